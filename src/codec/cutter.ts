// Whole packets out of the chunks of a connection: a packet is read where it lies, and only one that is cut is copied.
// Used by bridge/mqtt/remote.ts, bridge/mqtt/probe.ts and proxy/topics/cutter.ts. A client's connection, whose reader
// chooses where bytes are read to, has session/reader.ts.
import { SpareBuffers } from '../base/sharedbytes.ts';
import { Assembler } from './assembler.ts';
import { newFrame } from './codec.ts';
import { readFrame } from './frame.ts';

export class PacketCutter {
  /** The packet that is being shown. */
  readonly frame = newFrame();
  /** Of a packet; may change between two packets. */
  maxBytes: number;
  private readonly assembler: Assembler;
  private readonly claim: (bytes: number) => void;
  /** A packet that was put together and is not taken yet. */
  private whole: Buffer | null = null;

  /**
   * @param maxBytes of a packet
   * @param claim told how much more, or less, is held of a packet that is cut; throws ProtocolError when there is no
   * room
   */
  constructor(maxBytes: number, claim: (bytes: number) => void = () => {}) {
    this.maxBytes = maxBytes;
    this.claim = claim;
    this.assembler = new Assembler(new SpareBuffers(0), claim);
  }

  /**
   * Calls `packet` for each whole packet, `frame` saying where it lies. False = it is not taken, and no more is shown:
   * the offset is returned from which chunk[offset, end) has to be given again, where it will be shown again. The bytes
   * are valid during the call. Throws ProtocolError as readFrame does.
   */
  feed(chunk: Buffer, packet: (buffer: Buffer) => boolean): number {
    const { frame, assembler } = this;
    let at = 0;
    if (this.whole === null && assembler.active) {
      at = assembler.feed(chunk, at, chunk.length, frame, this.maxBytes);
      if (!assembler.complete) return at;
      this.whole = assembler.take().bytes;
      this.claim(this.whole.length);
    }
    if (this.whole !== null) {
      const { whole } = this;
      // Looked at before it was whole, or before others.
      readFrame(whole, 0, whole.length, frame, this.maxBytes);
      if (!packet(whole)) return at;
      this.letGo();
    }
    while (readFrame(chunk, at, chunk.length, frame, this.maxBytes) === 1) {
      // What `packet` does may show the frame of another cutter, never this one.
      const { end } = frame;
      if (!packet(chunk)) return at;
      at = end;
    }
    return at < chunk.length ? assembler.feed(chunk, at, chunk.length, frame, this.maxBytes) : at;
  }

  /** Forgets what is held. */
  clear(): void {
    this.letGo();
    this.assembler.clear();
  }

  private letGo(): void {
    const { whole } = this;
    this.whole = null;
    if (whole !== null) this.claim(-whole.length);
  }
}
