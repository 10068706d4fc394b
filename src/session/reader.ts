// The bytes of one connection as packets, in the order they came: whole ones are handled where they lie in the chunk,
// cut ones are put together first. Made by client.ts. While an answer is waited for (suspend) nothing is handled: what
// comes stays in `unread` [MQTT-3.1.4-5]. Knows no session and answers nothing; whatever is thrown goes to the client's
// fail().
import { ProtocolError } from '../base/errors.ts';
import { SHARE_BYTES, type SharedBytes } from '../base/sharedbytes.ts';
import { Assembler } from '../codec/assembler.ts';
import type { Frame } from '../codec/codec.ts';
import { newFrame } from '../codec/codec.ts';
import { readFrame } from '../codec/frame.ts';
import { mayBeConnect } from '../codec/hint.ts';
import { PUBLISH } from '../mqtt/packet.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import type { Connection, Intake } from '../transport/transport.ts';
import { LARGE_BYTES } from './intake.ts';
import { WAIT } from './publish.ts';
import type { Core } from './session.ts';
import type { PublishTaker } from './throttle.ts';
import { inputLimit } from './weight.ts';

/** What the reader asks of its client. */
export interface PacketHandler {
  /** Bytes a packet may have now. */
  maxBytes(): number;
  /** Handles the whole packet in `frame`. Throws ProtocolError. */
  packet(buffer: Buffer, frame: Frame): void;
  /** buffer[at, end) cannot begin a CONNECT. Throws ProtocolError. */
  notMqtt(buffer: Buffer, at: number, end: number): void;
  /** Resolves when the client has taken what it is owed so far; null while that is not too much. */
  room(): Promise<void> | null;
  fail(error: unknown): void;
  /** What came has held the event loop for so long. */
  held(ms: number): void;
}

/** No input may hold the event loop for longer. */
const HELD_MS = 50;
/** Packets handled between two looks at the clock, while they are quick. */
const STEPS = 32;
/** Subscriptions looked at for routes after which the clock is looked at, too: about a tenth of a millisecond. */
const COSTLY = 1000;
/** Above it each packet is followed by a look. */
const SLOW_MS = 1;
/** What a client that is not let in yet may send ahead of the answer it waits for. */
const AHEAD_BYTES = 65_536;

export class Reader implements Intake {
  /** Monotonic milliseconds when the last bytes came. */
  heardMs: number;
  /** Nothing has been taken for a CONNECT yet: the first bytes are looked at closely. */
  fresh = true;
  /** Takes PUBLISH packets as soon as the client is in; until then they go to packet() like the others. */
  inbound: PublishTaker | null = null;
  private readonly core: Core;
  private readonly connection: Connection;
  private readonly handler: PacketHandler;
  private readonly frame: Frame = newFrame();
  private readonly assembler: Assembler;
  private unread: Buffer[] = [];
  private unreadBytes = 0;
  /** The peer sends nothing more; what it has sent is still handled. */
  private ended = false;
  private state: 'reading' | 'suspended' | 'closed' = 'reading';

  constructor(core: Core, connection: Connection, handler: PacketHandler) {
    this.core = core;
    this.connection = connection;
    this.handler = handler;
    this.assembler = new Assembler(core.slab.spare, (bytes) => this.claim(bytes));
    this.heardMs = core.clock.mono();
  }

  get suspended(): boolean {
    return this.state === 'suspended';
  }

  start(): void {
    this.connection.onEnd(() => this.peerEnds());
    this.assembler.direct = this.connection.fill?.(this) === true;
    if (!this.assembler.direct) this.connection.onData((chunk) => this.take(chunk, chunk.length));
  }

  /**
   * Where the connection puts the next bytes: what it reads is handled before another one reads, so all share a place.
   */
  place(): Buffer {
    const { region, lastBytes } = this.assembler;
    if (region !== null) return region;
    return lastBytes < LARGE_BYTES ? this.core.intake.whole : this.core.intake.head;
  }

  /** Nothing is handled any more. */
  close(): void {
    this.state = 'closed';
    this.assembler.clear();
    this.takeUnread();
    this.core.budget.release(this.connection);
  }

  /** Stops reading until `promise` has settled, then calls `then` and goes on with what has come meanwhile. */
  suspend<T>(promise: Promise<T>, then: (value: T) => void): void {
    this.state = 'suspended';
    // Of a client that is not let in a few bytes are still read: only so is it noticed when it leaves.
    if (this.inbound !== null) this.connection.pause();
    promise.then(
      (value) => this.wake(() => then(value)),
      (error) => this.wake(() => this.handler.fail(error)),
    );
  }

  take(buffer: Buffer, bytes: number): void {
    if (this.state === 'closed') return;
    const { core } = this;
    this.heardMs = core.clock.mono(); // Any packet, whole or not, is a sign of life [MQTT-3.1.2-22].
    core.stats.bytesIn += bytes;
    core.turn.enter();
    try {
      if (this.state === 'suspended') {
        this.keep(buffer, 0, bytes);
        if (this.unreadBytes > AHEAD_BYTES) this.connection.pause();
      } else if (buffer === this.assembler.region) this.filled(bytes);
      else this.read(buffer, bytes);
      if (this.state === 'reading') this.slowDown();
    } catch (error) {
      this.handler.fail(error);
    } finally {
      core.turn.leave();
      this.look(this.heardMs);
    }
  }

  // ---- inside

  /** Tells of input that has held the loop for longer than it ever should. */
  private look(sinceMs: number): void {
    const ms = this.core.clock.mono() - sinceMs;
    if (ms > HELD_MS) this.handler.held(ms);
  }

  /**
   * Who leaves while it waits to be let in is gone, unless it has sent packets behind its CONNECT: those are for after
   * it.
   */
  private peerEnds(): void {
    if (this.state === 'suspended' && this.unreadBytes > 0) this.ended = true;
    else this.connection.end();
  }

  /** Who does not read its answers is not read either; the budget of all clients slows down everybody who sends. */
  private slowDown(): void {
    const { budget } = this.core;
    const room = this.handler.room();
    if (room !== null) this.suspend(room, () => {});
    else if (budget.exceeded) budget.hold(this.connection);
  }

  private filled(bytes: number): void {
    this.assembler.filled(bytes);
    if (this.assembler.complete) this.assembled();
  }

  /** Handles the packet that was put together. */
  private assembled(): void {
    const packet = this.assembler.take();
    const { bytes } = packet;
    const done = this.packets(bytes, 0, bytes.length, bytes.length < SHARE_BYTES ? null : packet);
    if (this.suspended && done < bytes.length) this.keep(bytes, done, bytes.length);
    packet.handled();
  }

  private read(chunk: Buffer, end: number): void {
    let at = 0;
    while (this.assembler.active) {
      at = this.assembler.feed(chunk, at, end, this.frame, this.handler.maxBytes());
      if (!this.assembler.complete) return;
      this.assembled();
      if (this.state === 'reading') continue;
      if (this.suspended && at < end) this.keep(chunk, at, end);
      return;
    }
    at = this.packets(chunk, at, end, null);
    if (at >= end) return;
    if (this.suspended) this.keep(chunk, at, end);
    else if (this.state === 'reading') this.assembler.feed(chunk, at, end, this.frame, this.handler.maxBytes());
  }

  private keep(chunk: Buffer, at: number, end: number): void {
    this.unread.push(Buffer.from(chunk.subarray(at, end)));
    this.unreadBytes += end - at;
    this.core.ledger.add('input', end - at);
  }

  private takeUnread(): Buffer[] {
    const { unread } = this;
    this.unread = [];
    this.core.ledger.add('input', -this.unreadBytes);
    this.unreadBytes = 0;
    return unread;
  }

  /** Memory for a packet that comes in pieces. Throws ProtocolError when all such packets together hold too much. */
  private claim(bytes: number): void {
    const { ledger, limits } = this.core;
    const limit = bytes > 0 ? inputLimit(limits, this.inbound !== null) : 0;
    if (limit > 0 && (ledger.of('input') + bytes > limit || ledger.isFull(bytes))) {
      this.core.caps.refused('memory', '');
      throw new ProtocolError(QUOTA_EXCEEDED, 'no memory for one more packet that comes in pieces');
    }
    ledger.add('input', bytes);
  }

  /** The client has used its share of this round: it goes on behind the others. */
  private putOff(): void {
    this.state = 'suspended';
    this.connection.pause();
    this.core.pace.later(() => this.wake(() => {}));
  }

  /**
   * Handles whole packets of buffer[at, end); returns the offset of the first byte that was not handled.
   * @param shared the buffer, where nobody writes to it any more
   */
  private packets(buffer: Buffer, at: number, end: number, shared: SharedBytes | null): number {
    const { frame, handler } = this;
    let maxBytes = handler.maxBytes();
    let steps = STEPS;
    const { router } = this.core;
    let { searched } = router;
    let lookedMs = 0;
    let endMs = 0;
    while (at < end) {
      if (this.fresh && !mayBeConnect(buffer, at, end)) handler.notMqtt(buffer, at, end);
      if (readFrame(buffer, at, end, frame, maxBytes) === 0) return at;
      if (frame.type === PUBLISH && this.inbound !== null) {
        const next = this.inbound.publish(buffer, frame, end, shared);
        if (next === WAIT) {
          this.suspend(this.inbound.waiting ?? Promise.resolve(false), () => {});
          return at;
        }
        at = next;
        if (router.searched - searched > COSTLY) steps = 1;
        const crowd = this.inbound.crowd();
        if (crowd !== null) {
          this.suspend(crowd, () => {});
          return at;
        }
      } else {
        const packetEnd = frame.end;
        handler.packet(buffer, frame);
        maxBytes = handler.maxBytes();
        at = packetEnd;
      }
      if (this.state !== 'reading') return at;
      if (--steps > 0 || at >= end) continue;
      searched = router.searched;
      const nowMs = this.core.clock.mono();
      if (endMs === 0) endMs = this.core.pace.begin();
      else if (nowMs >= endMs) {
        if (this.core.pace.spent) {
          this.putOff();
          return at;
        }
        endMs = nowMs + SLOW_MS;
      }
      steps = lookedMs > 0 && nowMs - lookedMs > SLOW_MS ? 1 : STEPS;
      lookedMs = nowMs;
    }
    return at;
  }

  private wake(then: () => void): void {
    if (this.state === 'closed') return;
    const { turn } = this.core;
    const beganMs = this.core.clock.mono();
    turn.enter();
    try {
      this.state = 'reading';
      this.heardMs = beganMs;
      then();
      for (const chunk of this.takeUnread()) this.readAgain(chunk);
      if (this.state === 'reading' && this.ended) this.connection.end();
      else if (this.state === 'reading') this.connection.resume();
    } catch (error) {
      this.handler.fail(error);
    } finally {
      turn.leave();
      this.look(beganMs);
    }
  }

  /** What came meanwhile may bring the next thing to wait for, or the end. */
  private readAgain(chunk: Buffer): void {
    if (this.state === 'suspended') this.keep(chunk, 0, chunk.length);
    else if (this.state === 'reading') this.read(chunk, chunk.length);
  }
}
