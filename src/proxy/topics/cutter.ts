// A stream of MQTT bytes cut into whole packets, which are shown one by one where they lie; what is incomplete is held
// and counted. Used by exchange.ts for the client's side and by leg.ts for each server's. The reader may stop it in the
// middle of a chunk. Throws ProtocolError for lengths that may not be. Source: MQTT 5.0 section 2.1.
import { type Frame, newFrame } from '../../codec/codec.ts';
import { readFrame } from '../../codec/frame.ts';
import type { Held } from './held.ts';

/** false = not now: nothing more is shown before go(). */
export type TakePacket = (bytes: Buffer, frame: Frame) => boolean;

export class Cutter {
  private readonly frame = newFrame();
  private maxBytes: number;
  private readonly take: TakePacket;
  private readonly onDone: () => void;
  private readonly held: Held;
  private parts: Buffer[] = [];
  private heldBytes = 0;
  /** Bytes of the packet that is incomplete, 0 = not known. */
  private need = 0;
  private stopped = false;
  private blocked = false;

  /** `onDone` is called when all packets of a chunk have been shown. */
  constructor(maxBytes: number, held: Held, take: TakePacket, onDone: () => void) {
    this.maxBytes = maxBytes;
    this.held = held;
    this.take = take;
    this.onDone = onDone;
  }

  get isBlocked(): boolean {
    return this.blocked;
  }

  /** Packets that are larger are refused from now on. */
  limit(maxBytes: number): void {
    this.maxBytes = maxBytes;
  }

  /** Takes a chunk that is the cutter's from now on. False = there is no memory for what has to be held. */
  push(chunk: Buffer): boolean {
    if (this.stopped) return true;
    if (this.blocked || (this.need > 0 && this.heldBytes + chunk.length < this.need)) return this.keep(chunk);
    let bytes = chunk;
    if (this.parts.length > 0) {
      bytes = Buffer.concat([...this.parts, chunk]);
      this.letGo();
    }
    return this.cut(bytes);
  }

  /** Goes on where `take` has said not now. */
  go(): boolean {
    if (!this.blocked || this.stopped) return true;
    this.blocked = false;
    const { parts } = this;
    this.letGo();
    return parts.length === 0 ? true : this.cut(parts.length === 1 ? parts[0] : Buffer.concat(parts));
  }

  /** Shows nothing more and gives back what is held. */
  stop(): void {
    this.stopped = true;
    this.letGo();
  }

  private cut(bytes: Buffer): boolean {
    const { frame, maxBytes } = this;
    let at = 0;
    this.need = 0;
    while (at < bytes.length && !this.stopped) {
      if (readFrame(bytes, at, bytes.length, frame, maxBytes) === 0) {
        this.need = frame.end === 0 ? 0 : frame.end - at;
        break;
      }
      // What `take` does may show the frame of another cutter, never this one.
      const { end } = frame;
      if (!this.take(bytes, frame)) {
        this.blocked = true;
        break;
      }
      at = end;
    }
    this.onDone();
    return this.stopped || at >= bytes.length || this.keep(at === 0 ? bytes : bytes.subarray(at));
  }

  private keep(bytes: Buffer): boolean {
    if (!this.held.take(bytes.length)) return false;
    this.parts.push(bytes);
    this.heldBytes += bytes.length;
    return true;
  }

  private letGo(): void {
    this.held.give(this.heldBytes);
    this.heldBytes = 0;
    this.parts = [];
  }
}
