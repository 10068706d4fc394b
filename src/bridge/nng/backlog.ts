// Frames of one bridge that wait for its peers, in order: because nobody is there, because the ones there are behind,
// or because others wait already. Used by out.ts only when a frame cannot go out at once. Knows the socket and the
// spool, not the broker.
//
//   waiting -> socket -> done                    frames in memory; their publishers' acknowledgements wait with them
//   waiting -> socket -> left -> done            frames of the spool: kept until a peer's transport has them
//                  \-> lost -> waiting           every peer that was given it has gone before
//
// A frame that is dropped is counted by its rule, with the reason.
import type { Clock, Timer } from '../../base/clock.ts';
import { Fifo } from '../../base/queue.ts';
import type { Hold } from '../../mqtt/message.ts';
import type { Receipt, SpSocket } from '../../sp/sp.ts';
import type { RuleCounters } from '../counters.ts';
import type { Spool, SpooledFrame } from './spool.ts';

/** How often is looked whether spooled frames have left: a crash within that time sends them again. */
const LOOK_MS = 20;
const NO_BYTES = new Uint8Array(0);

interface Waiting {
  readonly frame: Buffer;
  readonly payloadBytes: number;
  readonly counters: RuleCounters;
  readonly hold: Hold | null;
  readonly spooled: SpooledFrame | null;
}

interface Handed {
  readonly waiting: Waiting;
  readonly receipt: Receipt;
}

export interface BacklogOptions {
  readonly clock: Clock;
  readonly spool: Spool;
  /** Nobody is there. */
  readonly away: () => boolean;
  /** Counters of a rule by its place: of frames that an earlier worker or process has left. */
  readonly countersOf: (rule: number) => RuleCounters;
}

export class Backlog {
  /** Bytes of the frames in memory alone. */
  bytes = 0;
  /** Whether frames stay while nobody is there; else they are dropped, as a publisher does. */
  keeps = false;
  /** Whether the socket drops by itself what a peer has no room for: then frames wait here until there is room. */
  paced = false;
  socket: SpSocket | null = null;
  private readonly options: BacklogOptions;
  private readonly waiting = new Fifo<Waiting>();
  private handed: Handed[] = [];
  /** Spooled frames among `waiting`. */
  private spooledCount = 0;
  /** Of the first frame that was spooled here; -1 = none yet. */
  private firstSequence = -1;
  private timer: Timer | null = null;
  private soon = false;
  private emptied: (() => void) | null = null;
  private draining = false;

  constructor(options: BacklogOptions) {
    this.options = options;
  }

  /** Frames that an earlier worker or process has left in the spool wait in front of what this one was given. */
  adopt(): void {
    const { spool, countersOf } = this.options;
    const left: SpooledFrame[] = [];
    for (const frame of spool.pending()) {
      if (this.firstSequence >= 0 && frame.sequence >= this.firstSequence) break;
      left.push(frame);
    }
    for (const frame of left.reverse()) this.waiting.unshift(waitingOf(frame, countersOf(frame.rule)));
    this.spooledCount += left.length;
  }

  get length(): number {
    return this.waiting.length;
  }

  /** Whether spooled frames wait: later ones have to join them. */
  get spooling(): boolean {
    return this.spooledCount > 0;
  }

  /** Frames that the spool keeps, those included that are on their way. */
  get spooledFrames(): number {
    return this.spooledCount + this.handed.length;
  }

  /** Takes a frame into memory; `hold` is done when it has been handed to a peer. */
  keep(frame: Buffer, payloadBytes: number, counters: RuleCounters, hold: Hold | null): void {
    this.waiting.push({ frame, payloadBytes, counters, hold, spooled: null });
    this.bytes += frame.length;
  }

  /** Takes a frame that the spool has. */
  spooled(spooled: SpooledFrame, counters: RuleCounters): void {
    if (this.firstSequence < 0) this.firstSequence = spooled.sequence;
    this.waiting.push(waitingOf(spooled, counters));
    this.spooledCount++;
  }

  /** Drops the oldest spooled frames until `bytes` more fit below `bound`. False when that cannot be. */
  makeRoom(bytes: number, bound: number): boolean {
    const { spool } = this.options;
    if (bytes > bound) return false;
    for (let left = this.waiting.length; left > 0 && spool.bytes + bytes > bound; left--) {
      const oldest = this.waiting.shift();
      if (oldest === undefined) break;
      // Frames in memory keep their places behind the spooled ones: the order of what stays is that of what was
      // accepted.
      if (oldest.spooled === null) {
        this.waiting.unshift(oldest);
        return false;
      }
      this.spooledCount--;
      oldest.counters.drop('overflow');
      spool.done(oldest.spooled);
    }
    return spool.bytes + bytes <= bound;
  }

  /** Sends what can be sent now. Called when a peer has come or has room. */
  drain(): void {
    // Whoever is told that a frame is done may bring more: those wait for this one's end.
    if (this.draining) return;
    this.draining = true;
    for (let next = this.waiting.peek(); next !== undefined; next = this.waiting.peek()) {
      if (this.options.away()) {
        if (this.keeps || next.spooled !== null) break;
        this.take(next).counters.drop('no-peer');
        next.hold?.done();
      } else if (!this.send(next)) break;
    }
    this.draining = false;
    if (this.waiting.length === 0) this.emptied?.();
  }

  /** Resolves when nothing waits, or after `deadlineMs`. */
  async emptiedWithin(deadlineMs: number): Promise<void> {
    if (this.waiting.length === 0 || this.options.away() || deadlineMs <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.options.clock.after(deadlineMs, resolve);
      this.emptied = () => {
        timer.cancel();
        resolve();
      };
    });
    this.emptied = null;
  }

  /**
   * Gives up: frames in memory are dropped and their publishers told with `reasonCode`; the spool keeps what has not
   * left.
   */
  stop(reasonCode: number): void {
    this.look();
    this.timer?.cancel();
    this.timer = null;
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      if (next.spooled !== null) continue;
      next.counters.drop('stopped');
      next.hold?.done(reasonCode);
    }
    this.spooledCount = 0;
    this.bytes = 0;
    this.handed = [];
    this.socket = null;
  }

  // ---- inside

  private send(next: Waiting): boolean {
    const { socket } = this;
    const { frame, counters, payloadBytes } = next;
    if (socket === null || (this.paced && !socket.ready(frame.length))) return false;
    if (!socket.send(NO_BYTES, frame, 0, frame.length)) return false;
    this.take(next);
    if (next.spooled !== null) this.handedOver(next, socket);
    counters.forwarded.value++;
    counters.bytes.value += payloadBytes;
    next.hold?.done();
    return true;
  }

  private take(next: Waiting): Waiting {
    this.waiting.shift();
    if (next.spooled === null) this.bytes -= next.frame.length;
    else this.spooledCount--;
    return next;
  }

  private handedOver(waiting: Waiting, socket: SpSocket): void {
    this.handed.push({ waiting, receipt: socket.receipt() });
    if (this.soon) return;
    // A connection that takes it at once, with the end of this turn, spares the journal the frame.
    this.soon = true;
    setImmediate(() => {
      this.soon = false;
      this.look();
    });
  }

  private lookLater(): void {
    this.timer ??= this.options.clock.after(LOOK_MS, () => {
      this.timer = null;
      this.look();
    });
  }

  /**
   * Which of the spooled frames have left by now. Those that went down with their peers wait again, in front of all
   * others.
   */
  private look(): void {
    const still: Handed[] = [];
    const lost: Waiting[] = [];
    for (const one of this.handed) {
      const state = one.receipt.state();
      const { spooled } = one.waiting;
      if (state === 'waiting') still.push(one);
      else if (state === 'lost') lost.push(one.waiting);
      else if (spooled !== null) this.options.spool.done(spooled);
    }
    this.handed = still;
    for (const waiting of lost.reverse()) {
      this.waiting.unshift(waiting);
      this.spooledCount++;
    }
    if (lost.length > 0) this.drain();
    if (this.handed.length > 0) this.lookLater();
  }
}

function waitingOf(spooled: SpooledFrame, counters: RuleCounters): Waiting {
  const { frame, payloadBytes } = spooled;
  return { frame, payloadBytes, counters, hold: null, spooled };
}
