// The publishes of one client whose rate is limited by quotas: stands before publish.ts, and only where there is such a
// quota. Made by served.ts. Back-pressure comes first: a client that is ahead of its time is not read until it is due.

import { ProtocolError } from '../base/errors.ts';
import type { SharedBytes } from '../base/sharedbytes.ts';
import type { Frame } from '../codec/codec.ts';
import { MESSAGE_RATE_TOO_HIGH, QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import type { Usage } from '../policy/policy.ts';
import { type Inbound, WAIT } from './publish.ts';
import { RELAX_MS, refusals } from './quotas.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

/** The shortest PUBLISH there is. */
const LEAST_BYTES = 5;
/** How soon it is looked again whether messages in flight are answered. */
const LOOK_MS = 20;

/** Who takes PUBLISH packets: publish.ts, or this file before it. */
export interface PublishTaker {
  publish(buffer: Buffer, frame: Frame, end: number, shared: SharedBytes | null): number;
  readonly waiting: Promise<unknown> | null;
  crowd(): Promise<void> | null;
}

export class Throttle implements PublishTaker {
  private readonly core: Core;
  private readonly session: Session;
  private readonly inner: Inbound;
  private readonly scopes: readonly Usage[];
  private readonly member = (): number => this.inner.inflight;
  private pause: Promise<void> | null = null;
  private wake: (() => void) | null = null;
  /** The publish at hand was waited for and is counted already: those who wait are served in their order. */
  private prepaid = false;
  /** Monotonic milliseconds until when it rests: its last publish was one too many. */
  private relaxUntilMs = 0;

  constructor(core: Core, session: Session, inner: Inbound, scopes: readonly Usage[]) {
    this.core = core;
    this.session = session;
    this.inner = inner;
    this.scopes = scopes;
    for (const scope of scopes) scope.members.add(this.member);
  }

  publish(buffer: Buffer, frame: Frame, end: number, shared: SharedBytes | null): number {
    const nowMs = this.core.clock.mono();
    const qos = (buffer[frame.packetStart] >> 1) & 3;
    this.pause = null;
    const waitMs = Math.max(this.waitMs(qos, nowMs), nowMs < this.relaxUntilMs ? this.relaxUntilMs - nowMs : -1);
    if (waitMs < 0) return this.inner.skip(buffer, frame);
    if (waitMs > 0) {
      this.rest(waitMs);
      return WAIT;
    }
    const paid = this.prepaid ? 1 : 0;
    let room = Number.POSITIVE_INFINITY;
    for (const scope of this.scopes) room = Math.min(room, scope.room(nowMs));
    // Packets of one run are not counted one by one: as many as may come would fit into this.
    const most = Math.max(frame.end, frame.packetStart + room * LEAST_BYTES);
    const before = this.session.messagesIn;
    const refused = refusals(this.session);
    const next = this.inner.publish(buffer, frame, Math.min(end, most), shared);
    if (next === WAIT) return WAIT;
    this.prepaid = false;
    if (refusals(this.session) > refused) this.relaxUntilMs = nowMs + RELAX_MS;
    for (const scope of this.scopes) scope.charge(this.session.messagesIn - before - paid, next - frame.packetStart);
    return next;
  }

  get waiting(): Promise<unknown> | null {
    return this.pause ?? this.inner.waiting;
  }

  crowd(): Promise<void> | null {
    return this.inner.crowd();
  }

  /** The connection has gone, or other quotas hold. */
  close(): void {
    for (const scope of this.scopes) scope.members.delete(this.member);
    this.wake?.();
  }

  // ---- inside

  /** Milliseconds to wait; -1: the message is dropped. Throws ProtocolError where the client has to go. */
  private waitMs(qos: number, nowMs: number): number {
    let longest = 0;
    for (const scope of this.scopes) {
      const crowded = qos > 0 && scope.inflightFull();
      const ms = Math.max(this.prepaid ? 0 : scope.publishMs(nowMs), crowded ? LOOK_MS : 0);
      if (ms === 0) continue;
      const what = crowded ? 'inflight' : 'publishes';
      if (scope.action === 'disconnect') {
        scope.count(what, 'refused');
        const code = crowded ? QUOTA_EXCEEDED : MESSAGE_RATE_TOO_HIGH;
        throw new ProtocolError(code, crowded ? 'too many messages in flight' : 'messages come too fast');
      }
      if (scope.action === 'drop' && qos === 0) {
        scope.count(what, 'dropped');
        return -1;
      }
      scope.count(what, 'delayed');
      longest = Math.max(longest, ms);
    }
    return longest;
  }

  private rest(ms: number): void {
    for (const scope of this.scopes) {
      scope.waiting++;
      if (!this.prepaid) scope.charge(1, 0);
    }
    this.prepaid = true;
    this.pause = new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        if (this.wake !== done) return;
        this.wake = null;
        for (const scope of this.scopes) scope.waiting--;
        resolve();
      };
      const timer = this.core.clock.after(ms, done);
      this.wake = done;
    });
  }
}
