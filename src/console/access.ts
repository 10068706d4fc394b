// Who is calling and whether he may: Basic (RFC 7617), Bearer (RFC 6750), session cookie; roles; pages of other origins
// kept out. Made by http.ts; asked by app.ts for every route that is not public, before a body is read. Answers with a
// Caller or with the refusal. Nothing fails open: what is not understood is refused. Failures are counted by address;
// passwords.ts compares.
import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Cell, Metrics } from '../base/metrics.ts';
import { type Answer, fail } from './answer.ts';
import { type HttpSettings, type MatchesHash, ROLES, type Role, type WebUser } from './console.ts';
import { TokenChecker, type TokenOwner } from './jwt.ts';
import { LoginLimiter } from './limiter.ts';
import { type KeptLogins, LoginSessions, sameText } from './login.ts';
import { Passwords } from './passwords.ts';
import type { Asking, Caller } from './route.ts';
import { asText, fromBase64 } from './text.ts';

export const COOKIE = 'tidegate_session';
/** Longest Authorization value looked at; a JWT with many claims is about 2 KB. */
const MAX_AUTHORIZATION = 8192;
/** Characters of user and password in Basic credentials. */
const MAX_CREDENTIALS = 2048;

/** Whether a host name or address can only mean this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/** The name part of a Host header, without port and brackets. */
function hostName(host: string): string {
  return host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d{1,5}$/, '');
}

/** The session token of a Cookie header, null when there is none. */
function cookieToken(header: string | undefined): string | null {
  if (header === undefined || header.length > MAX_AUTHORIZATION) return null;
  for (const part of header.split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === COOKIE) return part.slice(at + 1).trim();
  }
  return null;
}

/**
 * True when a browser says that the request comes from a page of somebody else. Sec-Fetch-Site (Fetch Metadata) is the
 * browser's own word and holds behind a reverse proxy too, where Host is not what the page knows; without it Origin
 * (RFC 6454) has to be this host.
 */
function foreign({ headers }: Asking): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin, host } = headers;
  if (origin === undefined) return false;
  try {
    return new URL(origin).host !== host;
  } catch {
    return true;
  }
}

/** No credentials at all are configured: only a server bound to loopback may run like that. */
export function isOpen(settings: HttpSettings): boolean {
  return settings.authType === 'no_auth' || (settings.authType === 'basic' && settings.users.length === 0);
}

const PEPPER_BYTES = 32;

export class WebAccess {
  readonly sessions: LoginSessions;
  readonly tokens: TokenChecker;
  private readonly limiter: LoginLimiter;
  private readonly passwords: Passwords;
  private readonly settings: () => HttpSettings;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly deniedLog: Log;
  private readonly failures: Cell;
  /** Makes a session depend on the credentials it was opened with, without keeping them. */
  private pepper = randomBytes(PEPPER_BYTES);

  constructor(settings: () => HttpSettings, clock: Clock, log: Log, metrics: Metrics, matchesHash?: MatchesHash) {
    this.settings = settings;
    this.clock = clock;
    this.passwords = new Passwords(matchesHash);
    this.log = log;
    this.deniedLog = limitLog(log, () => clock.mono(), 1000);
    this.sessions = new LoginSessions(clock);
    this.tokens = new TokenChecker(clock);
    this.limiter = new LoginLimiter(clock);
    this.failures = metrics.cell({
      name: 'tidegate_http_login_failures_total',
      text: 'Requests to the HTTP API with wrong credentials.',
      type: 'counter',
      unit: 'items',
    });
  }

  /** What keeps people logged in over a restart. */
  keptLogins(): KeptLogins {
    return { pepper: this.pepper.toString('base64'), sessions: this.sessions.dump() };
  }

  /** To be called before anybody logs in. */
  restoreLogins({ pepper, sessions }: KeptLogins): void {
    const bytes = Buffer.from(pepper, 'base64');
    if (bytes.length !== PEPPER_BYTES) return;
    this.pepper = bytes;
    this.sessions.restore(sessions);
  }

  /** The caller of a request, or why it is refused. `changes`: it is not a mere read. */
  async admit(asking: Asking, needed: Role, changes: boolean): Promise<Caller | Answer> {
    if (changes && foreign(asking)) return fail('origin');
    const caller = await this.identify(asking, changes);
    if ('status' in caller) return caller;
    return ROLES.indexOf(caller.role) >= ROLES.indexOf(needed) ? caller : fail('role', `${needed} is needed`);
  }

  /** For writes that need no credentials (logging in): not for pages of other origins. */
  admitPublic(asking: Asking): Caller | Answer {
    return foreign(asking) ? fail('origin') : { username: '', role: 'viewer', via: 'open' };
  }

  /** The user of these credentials, or why they are refused. Used by Basic and by the login page. */
  async checkPassword(asking: Asking, username: string, password: string): Promise<WebUser | Answer> {
    const waitSeconds = this.limiter.waitSeconds(asking.remote);
    if (waitSeconds > 0) return this.locked(waitSeconds);
    if (this.settings().authType === 'jwt') return this.refused(asking, 'credentials', 'scheme');
    const isLocked = (): boolean => this.limiter.waitSeconds(asking.remote) > 0;
    const found = await this.passwords.find(this.settings().users, username, password, isLocked);
    if (found === 'busy') return fail('unavailable', 'too many logins at once', '', { 'retry-after': '1' });
    if (found === 'none') return isLocked() ? this.lockedNow(asking) : this.refused(asking, 'credentials', 'password');
    this.limiter.succeeded(asking.remote);
    return found;
  }

  /** Tells later whether a caller would still be let in as he was: for answers that stay open. */
  ticket(asking: Asking, { username, via, lifeMs }: Caller): () => boolean {
    if (via === 'socket') return () => true;
    if (via === 'open') return () => isOpen(this.settings());
    if (via === 'jwt') {
      const endMs = this.clock.mono() + (lifeMs ?? 0);
      return () => this.settings().jwt !== null && this.clock.mono() < endMs;
    }
    const token = this.tokenOf(asking);
    const session = via === 'session' && token !== null ? this.sessions.peek(token) : undefined;
    if (session !== undefined && token !== null)
      return () => this.sessions.peek(token) === session && this.holds(session.username, session.credentials);
    const user = this.settings().users.find((one) => one.username === username);
    const credentials = user === undefined ? null : this.credentialsOf(user);
    return () => credentials !== null && this.holds(username, credentials);
  }

  /** Whether a user still has the credentials that something was opened with; "" = opened with a token. */
  private holds(username: string, credentials: string): boolean {
    if (credentials === '') return true;
    const current = this.settings().users.find((user) => user.username === username);
    return current !== undefined && sameText(this.credentialsOf(current), credentials);
  }

  /** What ties a session to credentials: it changes when the user's password does. */
  credentialsOf(user: WebUser): string {
    const { username, role, password } = user;
    return createHmac('sha256', this.pepper)
      .update(JSON.stringify([username, role, password]))
      .digest('base64');
  }

  /** The session token a request carries, null when it has none. */
  tokenOf({ headers }: Asking): string | null {
    return cookieToken(headers.cookie);
  }

  /** What the page has to send with changes, null for callers without a session. */
  csrfOf(asking: Asking): string | null {
    const token = this.tokenOf(asking);
    return token === null ? null : (this.sessions.find(token)?.csrf ?? null);
  }

  private async identify(asking: Asking, changes: boolean): Promise<Caller | Answer> {
    const settings = this.settings();
    const { authorization, cookie } = asking.headers;
    if (asking.local === true) return { username: 'local', role: 'admin', via: 'socket' };
    if (authorization === undefined) {
      const token = cookieToken(cookie);
      const session = token === null ? null : this.fromSession(asking, token, changes);
      if (session !== null) return session;
      if (isOpen(settings)) return this.openCaller(asking, settings);
      return fail('anonymous', undefined, '', this.challenge(asking));
    }
    if (isOpen(settings)) return this.openCaller(asking, settings);
    if (authorization.length > MAX_AUTHORIZATION) return this.refused(asking, 'credentials', 'too long');
    const at = authorization.indexOf(' ');
    const scheme = (at < 0 ? authorization : authorization.slice(0, at)).toLowerCase();
    const value = at < 0 ? '' : authorization.slice(at + 1).trim();
    if (scheme === 'basic' && settings.authType === 'basic') return this.fromBasic(asking, value);
    if (scheme === 'bearer' && settings.jwt !== null) return this.fromToken(asking, value);
    return this.refused(asking, 'credentials', 'scheme');
  }

  /**
   * Without credentials only requests that name this machine are served: a foreign name that resolves to it is DNS
   * rebinding.
   */
  private openCaller(asking: Asking, settings: HttpSettings): Caller | Answer {
    if (!isLoopback(settings.host) || !isLoopback(asking.remote))
      return fail('anonymous', undefined, '', this.challenge(asking));
    if (!isLoopback(hostName(asking.headers.host ?? '')))
      return fail('origin', 'the Host header names another machine');
    return { username: 'local', role: 'admin', via: 'open' };
  }

  private async fromBasic(asking: Asking, value: string): Promise<Caller | Answer> {
    const bytes = value.length <= MAX_CREDENTIALS ? fromBase64(value) : null;
    const text = bytes === null ? null : asText(bytes);
    const colon = text?.indexOf(':') ?? -1;
    if (text === null || colon < 0) return this.refused(asking, 'credentials', 'malformed');
    const user = await this.checkPassword(asking, text.slice(0, colon), text.slice(colon + 1));
    return 'status' in user ? user : { username: user.username, role: user.role, via: 'basic' };
  }

  /** The owner of a bearer token, or why it is refused. Used by Bearer and by the login page. */
  async fromToken(asking: Asking, token: string): Promise<(Caller & TokenOwner) | Answer> {
    const { jwt } = this.settings();
    const waitSeconds = this.limiter.waitSeconds(asking.remote);
    if (waitSeconds > 0) return this.locked(waitSeconds);
    const owner = jwt === null ? null : await this.tokens.check(token, jwt);
    if (owner === null) return this.refused(asking, 'token', 'token');
    this.limiter.succeeded(asking.remote);
    return { ...owner, via: 'jwt' };
  }

  /** The caller of a session cookie; null when there is no such session any more. */
  private fromSession(asking: Asking, token: string, changes: boolean): Caller | Answer | null {
    const session = this.sessions.find(token);
    if (session === undefined) return null;
    if (!this.holds(session.username, session.credentials)) {
      this.sessions.close(token);
      return null;
    }
    const sent = asking.headers['x-csrf-token'];
    if (changes && !(typeof sent === 'string' && sameText(sent, session.csrf))) {
      return fail('origin', 'X-CSRF-Token is missing or wrong');
    }
    return { username: session.username, role: session.role, via: 'session' };
  }

  private refused(asking: Asking, name: 'credentials' | 'token', why: string): Answer {
    this.failures.value++;
    const locks = this.limiter.failed(asking.remote);
    if (locks) this.log('warn', 'WEB-LOCKED', { remote: asking.remote });
    else this.deniedLog('warn', 'WEB-DENIED', { remote: asking.remote, why });
    return fail(name, undefined, '', this.challenge(asking));
  }

  private lockedNow({ remote }: Asking): Answer {
    return this.locked(this.limiter.waitSeconds(remote));
  }

  private locked(waitSeconds: number): Answer {
    return fail('tooMany', undefined, '', { 'retry-after': String(waitSeconds) });
  }

  /** A script of the console names itself, so that the browser leaves the question to the page. */
  private challenge(asking: Asking): Record<string, string> {
    if (asking.headers['x-requested-with'] !== undefined) return { 'www-authenticate': 'Session' };
    const scheme = this.settings().authType === 'jwt' ? 'Bearer' : 'Basic';
    return { 'www-authenticate': `${scheme} realm="tidegate"${scheme === 'Basic' ? ', charset="UTF-8"' : ''}` };
  }
}
