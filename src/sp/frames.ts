// Many frames of one head for one pipe, written into its output block in a row: what a burst of small messages costs is
// decided here. Called by pipe.ts for runs. Copies go eight bytes at a time and may write so many more than they
// should: the next frame covers them. Layout of a frame: codec/sp.ts.
import { copyBytes, type Writer } from '../base/writer.ts';
import { writeFrameHeader } from '../codec/sp.ts';

const SLACK_BYTES = 8;
/** Bodies up to here are copied in words, larger ones by the engine. */
const WORD_BYTES = 256;

/** Where bodies lie in their buffer: start and end of each, one after the other. */
export type Spans = Int32Array;

/**
 * Appends a frame of head + source[spans[2i], spans[2i+1]) for i from `from` on, as long as the writer holds no more
 * than `window` bytes. Returns the index of the first one that was not written.
 * @param prefixed whether frames begin with the ipc type byte
 */
export function appendFrames(
  writer: Writer,
  window: number,
  prefixed: boolean,
  head: Uint8Array,
  source: Uint8Array,
  spans: Spans,
  from: number,
  count: number,
): number {
  const headerBytes = (prefixed ? 9 : 8) + head.length;
  const words = new DataView(source.buffer, source.byteOffset, source.byteLength);
  let block: Buffer | null = null;
  let view = words;
  let lastAt = 0;
  let lastBytes = -1;
  let i = from;
  for (; i < count; i++) {
    const start = spans[2 * i];
    const bytes = spans[2 * i + 1] - start;
    const total = headerBytes + bytes;
    if (writer.queuedBytes > 0 && writer.queuedBytes + total > window) break;
    writer.reserve(total + SLACK_BYTES);
    const { at } = writer;
    if (writer.block !== block) {
      block = writer.block;
      view = new DataView(block.buffer, block.byteOffset, block.byteLength);
      lastBytes = -1;
    }
    if (bytes === lastBytes) {
      // The frame before has the same length and so the same header.
      for (let k = 0; k < headerBytes; k += 8) {
        view.setUint32(at + k, view.getUint32(lastAt + k, true), true);
        view.setUint32(at + k + 4, view.getUint32(lastAt + k + 4, true), true);
      }
    } else copyBytes(head, 0, block, writeFrameHeader(block, at, head.length + bytes, prefixed), head.length);
    const to = at + headerBytes;
    if (bytes <= WORD_BYTES && start + bytes + SLACK_BYTES <= source.length) {
      for (let k = 0; k < bytes; k += 8) {
        view.setUint32(to + k, words.getUint32(start + k, true), true);
        view.setUint32(to + k + 4, words.getUint32(start + k + 4, true), true);
      }
    } else copyBytes(source, start, block, to, bytes);
    lastAt = at;
    lastBytes = bytes;
    writer.advance(total);
  }
  return i;
}
