// One side of an exchange cut into packets by codec/cutter.ts, with what an exchange needs beside: a packet that cannot
// be taken now keeps its place and everything behind it, and what is held counts against the client's memory. Used by
// clientside.ts and by leg.ts for each server. Throws ProtocolError for lengths that may not be, and where there is no
// memory. Source: MQTT 5.0 section 2.1.
import { ProtocolError } from '../../base/errors.ts';
import type { Frame } from '../../codec/codec.ts';
import { PacketCutter } from '../../codec/cutter.ts';
import { QUOTA_EXCEEDED } from '../../mqtt/reason.ts';
import type { Held } from './held.ts';

/** false = not now: nothing more is shown before go(). */
export type TakePacket = (bytes: Buffer, frame: Frame) => boolean;

export class Cutter {
  private readonly packets: PacketCutter;
  private readonly show: (bytes: Buffer) => boolean;
  private readonly onDone: () => void;
  private readonly held: Held;
  /** Chunks that have to wait, the first one from the packet on that was not taken. */
  private waiting: Buffer[] = [];
  private stopped = false;
  private blocked = false;

  /** `onDone` is called when all packets of a chunk have been shown. */
  constructor(maxBytes: number, held: Held, take: TakePacket, onDone: () => void) {
    this.held = held;
    this.onDone = onDone;
    this.packets = new PacketCutter(maxBytes, (bytes) => this.claim(bytes));
    const { frame } = this.packets;
    this.show = (bytes) => {
      const taken = take(bytes, frame);
      this.blocked = !taken && !this.stopped;
      return taken && !this.stopped;
    };
  }

  get isBlocked(): boolean {
    return this.blocked;
  }

  /** Packets that are larger are refused from now on. */
  limit(maxBytes: number): void {
    this.packets.maxBytes = maxBytes;
  }

  /** Takes a chunk that is the cutter's from now on. */
  push(chunk: Buffer): void {
    if (this.stopped) return;
    if (!this.blocked) this.cut(chunk);
    else {
      this.claim(chunk.length);
      this.waiting.push(chunk);
    }
  }

  /** Goes on where `take` has said not now. */
  go(): void {
    if (!this.blocked) return;
    this.blocked = false;
    while (!this.blocked) {
      const chunk = this.waiting.shift();
      if (chunk === undefined) return;
      this.held.give(chunk.length);
      this.cut(chunk);
    }
  }

  /** Shows nothing more and gives back what is held. */
  stop(): void {
    this.stopped = true;
    this.blocked = false;
    this.packets.clear();
    for (const chunk of this.waiting) this.held.give(chunk.length);
    this.waiting = [];
  }

  private cut(chunk: Buffer): void {
    const at = this.packets.feed(chunk, this.show);
    // What came behind the last packet is nobody's.
    if (this.stopped) this.packets.clear();
    this.onDone();
    if (!this.blocked) return;
    const rest = chunk.subarray(at);
    this.claim(rest.length);
    this.waiting.unshift(rest);
  }

  private claim(bytes: number): void {
    if (bytes < 0) this.held.give(-bytes);
    else if (!this.held.take(bytes)) throw new ProtocolError(QUOTA_EXCEEDED, 'too much memory');
  }
}
