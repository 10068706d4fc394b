// QoS 0 publishes of a client inside the process that come one after another and go the same way, as a run of PUBLISH
// packets: routed once and copied to each receiver in one piece, like those of a client that sends many at once
// (session/publish.ts). Used by local.ts. Layout of a packet: codec/publish.ts, version 3.1.1, no packet identifier.
import { WordView } from '../base/words.ts';
import { copyBytes } from '../base/writer.ts';
import { PUBLISH } from '../mqtt/packet.ts';

const BLOCK_BYTES = 65_536;
/** Larger messages gain nothing. */
const MOST_BYTES = 8192;
/** Copies go eight bytes at a time and may write so many more than they should: the next packet covers them. */
const SLACK_BYTES = 8;
/** Payloads up to here are copied in words, larger ones by the engine. */
const WORD_BYTES = 256;
const NOTHING = Buffer.alloc(0);

export class Batch {
  /** The run is buffer[0, bytes). */
  buffer: Buffer = NOTHING;
  bytes = 0;
  count = 0;
  /** Of all payloads. */
  payloadBytes = 0;
  /** Bytes of the longest packet in it. */
  longest = 0;
  private view: DataView = new DataView(NOTHING.buffer, NOTHING.byteOffset, 0);
  private readonly source = new WordView();
  /** The packet before: one of the same length begins with the same bytes. */
  private lastAt = 0;
  private lastRemaining = -1;

  /**
   * Adds a publish of payload = from[start, end); the topic is the same until turn() or clear(). False when there is no
   * room for it.
   */
  add(topicUtf8: Uint8Array, from: Uint8Array, start: number, end: number): boolean {
    const payloadBytes = end - start;
    const topicBytes = topicUtf8.length;
    const remaining = 2 + topicBytes + payloadBytes;
    const headBytes = (remaining < 128 ? 4 : 5) + topicBytes;
    const at = this.bytes;
    if (remaining > MOST_BYTES || at + headBytes + payloadBytes + SLACK_BYTES > BLOCK_BYTES) return false;
    if (remaining === this.lastRemaining) {
      const { view, lastAt } = this;
      for (let i = 0; i < headBytes; i += 8) {
        view.setUint32(at + i, view.getUint32(lastAt + i, true), true);
        view.setUint32(at + i + 4, view.getUint32(lastAt + i + 4, true), true);
      }
    } else this.head(topicUtf8, at, remaining);
    this.lastAt = at;
    this.payload(from, start, at + headBytes, payloadBytes);
    this.bytes = at + headBytes + payloadBytes;
    this.count++;
    this.payloadBytes += payloadBytes;
    if (headBytes + payloadBytes > this.longest) this.longest = headBytes + payloadBytes;
    return true;
  }

  /**
   * Adds up to `count` publishes like the one before, of payloads of the same length, each `stride` bytes behind the
   * one before. Returns how many there was room for.
   */
  addMany(from: Uint8Array, start: number, payloadBytes: number, stride: number, count: number): number {
    const packetBytes = this.bytes - this.lastAt;
    const words = this.source.of(from);
    const room = Math.floor((BLOCK_BYTES - SLACK_BYTES - this.bytes) / packetBytes);
    // Whole words are read from the source too: not beyond its end.
    const readable = Math.floor((from.length - SLACK_BYTES - start - payloadBytes) / stride) + 1;
    const many = Math.min(count, room, readable);
    if (this.count === 0 || words === null || payloadBytes > WORD_BYTES || many <= 0) return 0;
    const { view } = this;
    const headBytes = packetBytes - payloadBytes;
    let at = this.bytes;
    for (let n = 0; n < many; n++, at += packetBytes, start += stride) {
      const before = at - packetBytes;
      for (let i = 0; i < headBytes; i += 8) {
        view.setUint32(at + i, view.getUint32(before + i, true), true);
        view.setUint32(at + i + 4, view.getUint32(before + i + 4, true), true);
      }
      const to = at + headBytes;
      for (let i = 0; i < payloadBytes; i += 8) {
        view.setUint32(to + i, words.getUint32(start + i, true), true);
        view.setUint32(to + i + 4, words.getUint32(start + i + 4, true), true);
      }
    }
    this.lastAt = at - packetBytes;
    this.bytes = at;
    this.count += many;
    this.payloadBytes += many * payloadBytes;
    return many;
  }

  /** What is added next is on another topic than what was added before. */
  turn(): void {
    this.lastRemaining = -1;
  }

  clear(): void {
    this.bytes = 0;
    this.count = 0;
    this.payloadBytes = 0;
    this.longest = 0;
    this.lastRemaining = -1;
    this.source.clear();
  }

  private head(topicUtf8: Uint8Array, at: number, remaining: number): void {
    if (this.buffer === NOTHING) {
      this.buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.view = new DataView(this.buffer.buffer, this.buffer.byteOffset, BLOCK_BYTES);
    }
    const { buffer } = this;
    buffer[at++] = PUBLISH << 4;
    if (remaining < 128) buffer[at++] = remaining;
    else {
      buffer[at++] = (remaining & 127) | 128;
      buffer[at++] = remaining >> 7;
    }
    buffer[at++] = topicUtf8.length >> 8;
    buffer[at++] = topicUtf8.length & 255;
    copyBytes(topicUtf8, 0, buffer, at, topicUtf8.length);
    this.lastRemaining = remaining;
  }

  private payload(from: Uint8Array, start: number, at: number, bytes: number): void {
    // Whole words are read from the source too: not beyond its end.
    const words = bytes <= WORD_BYTES && start + bytes + SLACK_BYTES <= from.length ? this.source.of(from) : null;
    if (words === null) {
      copyBytes(from, start, this.buffer, at, bytes);
      return;
    }
    const { view } = this;
    for (let i = 0; i < bytes; i += 8) {
      view.setUint32(at + i, words.getUint32(start + i, true), true);
      view.setUint32(at + i + 4, words.getUint32(start + i + 4, true), true);
    }
  }
}
