// Sessions of people at the console: a random token in a cookie that scripts cannot read, kept here only as its hash.
// Called by access.ts (cookie -> who) and by session.ts's routes (login, logout). Bounded in number and time;
// kept over a restart by keptlogins.ts where there is a store.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import type { Role } from './console.ts';

const MAX_SESSIONS = 256;
/** Of one user: one more ends the one that was used longest ago, and nobody else's. */
const MAX_OF_USER = 16;
const IDLE_MS = 30 * 60_000;
const LIFE_MS = 12 * 3600_000;
const TOKEN_BYTES = 32;

export interface LoginSession {
  readonly username: string;
  readonly role: Role;
  /** What the page has to send as X-CSRF-Token with every change. */
  readonly csrf: string;
  /** Hash of the credentials it was opened with: a changed password ends it. Empty for one opened with a token. */
  readonly credentials: string;
}
interface Entry {
  readonly session: LoginSession;
  readonly endsMs: number;
  usedMs: number;
}

/** What is kept over a restart; times are of the wall clock. */
export interface KeptLogins {
  /** What credentials are hashed with, base64. */
  readonly pepper: string;
  readonly sessions: readonly (LoginSession & {
    /** Hash of the token. */
    readonly key: string;
    readonly endsAt: number;
    readonly usedAt: number;
  })[];
}

function keyOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

/** Compares two texts in a time that does not depend on where they differ. */
export function sameText(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

export class LoginSessions {
  private readonly clock: Clock;
  private readonly entries = new Map<string, Entry>();
  /** Called when a session has been closed by its user. */
  onClosed: () => void = () => {};

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Sessions as they are kept, those that have ended left out. */
  dump(): KeptLogins['sessions'] {
    const [wallMs, monoMs] = [this.clock.now(), this.clock.mono()];
    const all: KeptLogins['sessions'][number][] = [];
    for (const [key, { session, endsMs, usedMs }] of this.entries) {
      // One that was opened with a token would outlive a change of the key that the token was checked with.
      if (monoMs > endsMs || monoMs - usedMs > IDLE_MS || session.credentials === '') continue;
      // To the minute, so that reading pages does not change the file each time.
      const usedAt = Math.floor((wallMs - (monoMs - usedMs)) / 60_000) * 60_000;
      all.push({ key, ...session, endsAt: Math.round((wallMs + endsMs - monoMs) / 1000) * 1000, usedAt });
    }
    return all;
  }

  /** Takes up what was kept. A clock that was set back makes none last longer than a new one. */
  restore(kept: KeptLogins['sessions']): void {
    const [wallMs, monoMs] = [this.clock.now(), this.clock.mono()];
    for (const { key, endsAt, usedAt, username, role, csrf, credentials } of kept.slice(0, MAX_SESSIONS)) {
      const leftMs = endsAt - wallMs;
      const idleMs = Math.max(0, wallMs - usedAt);
      if (!(leftMs > 0) || idleMs > IDLE_MS || credentials === '') continue;
      const session = { username, role, csrf, credentials };
      this.entries.set(key, { session, endsMs: monoMs + Math.min(leftMs, LIFE_MS), usedMs: monoMs - idleMs });
    }
  }

  /**
   * Opens a session and gives the token for the cookie.
   * @param lifeMs it ends after this at the latest
   */
  open(username: string, role: Role, credentials: string, lifeMs = LIFE_MS): { token: string; session: LoginSession } {
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    const session = { username, role, csrf: randomBytes(TOKEN_BYTES).toString('base64url'), credentials };
    this.makeRoom(username);
    const nowMs = this.clock.mono();
    this.entries.set(keyOf(token), { session, endsMs: nowMs + Math.min(lifeMs, LIFE_MS), usedMs: nowMs });
    return { token, session };
  }

  /** The session of a token while it lasts; using it keeps it alive. */
  find(token: string): LoginSession | undefined {
    const key = keyOf(token);
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    const nowMs = this.clock.mono();
    if (nowMs - entry.usedMs > IDLE_MS || nowMs > entry.endsMs) {
      this.entries.delete(key);
      return undefined;
    }
    entry.usedMs = nowMs;
    return entry.session;
  }

  /** The session of a token without using it: one that nobody has used for long is still given. */
  peek(token: string): LoginSession | undefined {
    const entry = this.entries.get(keyOf(token));
    return entry === undefined || this.clock.mono() > entry.endsMs ? undefined : entry.session;
  }

  close(token: string): void {
    if (this.entries.delete(keyOf(token))) this.onClosed();
  }

  /** Ends a session of the same user, or of whoever has the most of them, where there is no room for one more. */
  private makeRoom(username: string): void {
    const counts = new Map<string, number>();
    for (const { session } of this.entries.values())
      counts.set(session.username, (counts.get(session.username) ?? 0) + 1);
    if ((counts.get(username) ?? 0) >= MAX_OF_USER) this.closeOldest(username);
    if (this.entries.size < MAX_SESSIONS) return;
    let most = username;
    for (const [name, count] of counts) if (count > (counts.get(most) ?? 0)) most = name;
    this.closeOldest(most);
  }

  private closeOldest(username: string): void {
    let oldest: string | null = null;
    let usedMs = Number.POSITIVE_INFINITY;
    for (const [key, entry] of this.entries) {
      if (entry.session.username === username && entry.usedMs < usedMs) {
        oldest = key;
        usedMs = entry.usedMs;
      }
    }
    if (oldest !== null) this.entries.delete(oldest);
  }
}
