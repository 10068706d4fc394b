// Whole packets out of the chunks of a connection: a packet is read where it lies, and only one that is cut is copied.
// Used by bridge/mqtt/remote.ts and bridge/mqtt/probe.ts. A client's connection, which may stop in the middle of a
// chunk, has session/reader.ts.
import { SpareBuffers } from '../base/sharedbytes.ts';
import { Assembler } from './assembler.ts';
import { newFrame } from './codec.ts';
import { readFrame } from './frame.ts';

export class PacketCutter {
  /** The packet that is being shown. */
  readonly frame = newFrame();
  private readonly maxBytes: number;
  private readonly assembler = new Assembler(new SpareBuffers(0));

  /** @param maxBytes of a packet */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /**
   * Calls `packet` for each whole packet, `frame` saying where it lies; false ends it. The bytes are valid during the
   * call. Throws ProtocolError as readFrame does.
   */
  feed(chunk: Buffer, packet: (buffer: Buffer) => boolean): void {
    const { frame, maxBytes, assembler } = this;
    let at = 0;
    if (assembler.active) {
      at = assembler.feed(chunk, at, chunk.length, frame, maxBytes);
      if (!assembler.complete) return;
      const { bytes } = assembler.take();
      // It has looked at the header before the packet was whole.
      readFrame(bytes, 0, bytes.length, frame, maxBytes);
      if (!packet(bytes)) return;
    }
    while (readFrame(chunk, at, chunk.length, frame, maxBytes) === 1) {
      at = frame.end;
      if (!packet(chunk)) return;
    }
    if (at < chunk.length) assembler.feed(chunk, at, chunk.length, frame, maxBytes);
  }
}
