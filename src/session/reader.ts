// The bytes of one connection as packets, in the order they came: whole ones are handled where they lie in the chunk, cut ones are put
// together first. Made by client.ts. While an answer is waited for (suspend) nothing is handled: what comes stays in `unread` [MQTT-3.1.4-5].
// Knows no session and answers nothing; whatever is thrown goes to the client's fail().
import { SHARE_BYTES, type SharedBytes } from '../base/sharedbytes.ts';
import type { Frame } from '../codec/codec.ts';
import { newFrame } from '../codec/codec.ts';
import { readFrame } from '../codec/frame.ts';
import { PUBLISH } from '../mqtt/packet.ts';
import type { Connection, Intake } from '../transport/transport.ts';
import { Assembler } from './assembler.ts';
import { mayBeConnect } from './hint.ts';
import { LARGE_BYTES } from './intake.ts';
import { type Inbound, WAIT } from './publish.ts';
import type { Core } from './session.ts';

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
}

export class Reader implements Intake {
  /** Monotonic milliseconds when the last bytes came. */
  heardMs: number;
  /** Nothing has been taken for a CONNECT yet: the first bytes are looked at closely. */
  fresh = true;
  /** Takes PUBLISH packets as soon as the client is in; until then they go to packet() like the others. */
  inbound: Inbound | null = null;
  private readonly core: Core;
  private readonly connection: Connection;
  private readonly handler: PacketHandler;
  private readonly frame: Frame = newFrame();
  private readonly assembler: Assembler;
  private unread: Buffer[] = [];
  private state: 'reading' | 'suspended' | 'closed' = 'reading';

  constructor(core: Core, connection: Connection, handler: PacketHandler) {
    this.core = core;
    this.connection = connection;
    this.handler = handler;
    this.assembler = new Assembler(core.slab.spare);
    this.heardMs = core.clock.mono();
  }

  get suspended(): boolean {
    return this.state === 'suspended';
  }

  start(): void {
    if (this.connection.fill?.(this) !== true) this.connection.onData((chunk) => this.take(chunk, chunk.length));
  }

  /** Where the connection puts the next bytes: what it reads is handled before another one reads, so all share a place. */
  place(): Buffer {
    const { region, lastBytes } = this.assembler;
    if (region !== null) return region;
    return lastBytes < LARGE_BYTES ? this.core.intake.whole : this.core.intake.head;
  }

  /** Nothing is handled any more. */
  close(): void {
    this.state = 'closed';
    this.assembler.clear();
    this.unread = [];
    this.core.budget.release(this.connection);
  }

  /** Stops reading until `promise` has settled, then calls `then` and goes on with what has come meanwhile. */
  suspend<T>(promise: Promise<T>, then: (value: T) => void): void {
    this.state = 'suspended';
    this.connection.pause();
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
      if (this.state === 'suspended') this.keep(buffer, 0, bytes);
      else if (buffer === this.assembler.region) this.filled(bytes);
      else this.read(buffer, bytes);
      if (this.state === 'reading') this.slowDown();
    } catch (error) {
      this.handler.fail(error);
    } finally {
      core.turn.leave();
    }
  }

  // ---- inside

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
  }

  /**
   * Handles whole packets of buffer[at, end); returns the offset of the first byte that was not handled.
   * @param shared the buffer, where nobody writes to it any more
   */
  private packets(buffer: Buffer, at: number, end: number, shared: SharedBytes | null): number {
    const { frame, handler } = this;
    let maxBytes = handler.maxBytes();
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
    }
    return at;
  }

  private wake(then: () => void): void {
    if (this.state === 'closed') return;
    const { turn } = this.core;
    turn.enter();
    try {
      this.state = 'reading';
      this.heardMs = this.core.clock.mono();
      then();
      const unread = this.unread;
      this.unread = [];
      for (const chunk of unread) this.readAgain(chunk);
      if (this.state === 'reading') this.connection.resume();
    } catch (error) {
      this.handler.fail(error);
    } finally {
      turn.leave();
    }
  }

  /** What came meanwhile may bring the next thing to wait for, or the end. */
  private readAgain(chunk: Buffer): void {
    if (this.state === 'suspended') this.unread.push(chunk);
    else if (this.state === 'reading') this.read(chunk, chunk.length);
  }
}
