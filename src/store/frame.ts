// The bytes that carry one batch of events to the writer thread: FrameWriter (main thread) packs, FrameReader (worker)
// walks. Called by log.ts and apply.ts. In place, no object per field; every event is one kind byte and its fields,
// little-endian:
//
//   u8 kind | u32 slot | fields        f64 = number, text/bytes = u32 length + bytes (length FFFFFFFF = null)
//   SESSION_PUT          text clientId, text username, f64 expiresAt, f64 expiryInterval, u8 version, text arrival,
//                        f64 validUntil
//   SESSION_DELETE       -
//   SUBSCRIPTION_PUT     text topicFilter, u8 options, f64 identifier
//   SUBSCRIPTION_DELETE  text topicFilter
//   MESSAGE              message   (slot is 0; the QUEUED events behind it mean this message)
//   QUEUED               f64 sequence, u8 flags, u8 state, u32 packetId, bytes identifiers (u32 each), text share
//   STATE                f64 sequence, u8 state, u32 packetId
//   DONE                 f64 sequence
//   INBOUND_PUT/DELETE   f64 packetId
//   RETAINED_PUT         message, text arrival of its publisher      RETAINED_DELETE  text topic
//   WILL_PUT             f64 dueAt, message WILL_DELETE      -
//   SPOOL_PUT            text bridge, f64 sequence, bytes    SPOOL_DELETE  text bridge, f64 upToSequence
//   message = text topic, u8 flags, f64 expiresAt, bytes properties, bytes origin, bytes payload
//
// flags: bits 0-1 qos, bit 2 retain. options: bits 0-1 qos, 2 noLocal, 3 retainAsPublished, 4-5 retainHandling (MQTT
// 5.0 3.8.3.1).
import { packProperties } from '../codec/property.ts';
import { packArrival } from '../mqtt/arrival.ts';
import type { Arrival, Message, Origin } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import type { StoredSubscription } from './store.ts';

const NULL = 0xffffffff;
/** A frame begins with this size and doubles: 1,000 small messages fit. */
const FIRST_BYTES = 256 * 1024;
/**
 * Texts up to this length are tried as ASCII in a loop before the engine's encoder is called (1.5 times faster for
 * topics).
 */
const LOOP_CHARS = 64;

export const ORIGIN_KINDS = ['client', 'bridge', 'api', 'server'] as const;

export function messageFlags(qos: Qos, retain: boolean): number {
  return qos | (retain ? 4 : 0);
}

export function subscriptionOptions(s: StoredSubscription): number {
  return s.qos | (s.noLocal ? 4 : 0) | (s.retainAsPublished ? 8 : 0) | (s.retainHandling << 4);
}

export class FrameWriter {
  /** Bytes written so far. */
  at = 0;
  private bytes: Buffer;
  private view: DataView;
  private lastOrigin: Origin | null = null;
  private lastOriginBytes: Uint8Array = new Uint8Array(0);
  private lastProperties: Properties | null = null;
  private lastPropertyBytes: Uint8Array = new Uint8Array(0);
  private lastArrival: Arrival | null = null;
  private lastArrivalText = '';

  /** @param buffer memory of an earlier frame to use again */
  constructor(buffer: ArrayBuffer | null = null) {
    const memory = buffer ?? new ArrayBuffer(FIRST_BYTES);
    this.bytes = Buffer.from(memory);
    this.view = new DataView(memory);
  }

  /** The memory it wrote into; transferring it ends the use of this writer. */
  get buffer(): ArrayBuffer {
    return this.view.buffer as ArrayBuffer;
  }

  private room(bytes: number): void {
    if (this.bytes.length - this.at >= bytes) return;
    let size = this.bytes.length * 2;
    while (size - this.at < bytes) size *= 2;
    const memory = new ArrayBuffer(size);
    const grown = Buffer.from(memory);
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
    this.view = new DataView(memory);
  }

  /** Begins an event. */
  event(kind: number, slot: number): void {
    this.room(5);
    this.bytes[this.at] = kind;
    this.view.setUint32(this.at + 1, slot, true);
    this.at += 5;
  }

  u8(value: number): void {
    this.room(1);
    this.bytes[this.at++] = value;
  }

  u32(value: number): void {
    this.room(4);
    this.view.setUint32(this.at, value, true);
    this.at += 4;
  }

  f64(value: number): void {
    this.room(8);
    this.view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  text(value: string | null): void {
    if (value === null) {
      this.u32(NULL);
      return;
    }
    const length = value.length;
    // UTF-8 has at most three bytes for a UTF-16 unit.
    this.room(4 + length * 3);
    const bytes = this.bytes;
    const start = this.at + 4;
    let i = 0;
    if (length <= LOOP_CHARS) {
      for (; i < length; i++) {
        const unit = value.charCodeAt(i);
        if (unit > 127) break;
        bytes[start + i] = unit;
      }
    }
    const size = i === length ? length : bytes.write(value, start, 'utf8');
    this.view.setUint32(this.at, size, true);
    this.at = start + size;
  }

  blob(value: Uint8Array | null): void {
    if (value === null) {
      this.u32(NULL);
      return;
    }
    const length = value.length;
    this.room(4 + length);
    this.view.setUint32(this.at, length, true);
    this.bytes.set(value, this.at + 4);
    this.at += 4 + length;
  }

  numbers(values: readonly number[]): void {
    if (values.length === 0) {
      this.u32(NULL);
      return;
    }
    this.room(4 + values.length * 4);
    this.u32(values.length * 4);
    for (let i = 0; i < values.length; i++) this.u32(values[i]);
  }

  /** An Application Message; sets of properties and origins that follow each other are packed once. */
  message(message: Message): void {
    this.text(message.topic);
    this.u8(messageFlags(message.qos, message.retain));
    this.f64(message.expiresAt);
    if (message.properties === null) this.u32(NULL);
    else {
      if (message.properties !== this.lastProperties) {
        this.lastProperties = message.properties;
        this.lastPropertyBytes = packProperties(message.properties);
      }
      this.blob(this.lastPropertyBytes);
    }
    if (message.origin !== this.lastOrigin) {
      this.lastOrigin = message.origin;
      this.lastOriginBytes = packOrigin(message.origin);
    }
    this.blob(this.lastOriginBytes);
    this.blob(message.payload);
  }

  /** How whoever it came from came, as a text for the writer thread; sets that follow each other are packed once. */
  arrival(arrival: Arrival | null): void {
    if (arrival === null) {
      this.u32(NULL);
      return;
    }
    if (arrival !== this.lastArrival) {
      this.lastArrival = arrival;
      this.lastArrivalText = packArrival(arrival);
    }
    this.text(this.lastArrivalText);
  }
}

/** u8 kind, then clientId, username and bridge, each as u32 length (FFFFFFFF = null) and UTF-8 bytes. */
function packOrigin(origin: Origin): Uint8Array {
  const parts = [origin.clientId, origin.username, origin.bridge].map((t) =>
    t === null ? null : Buffer.from(t, 'utf8'),
  );
  const out = Buffer.alloc(1 + parts.reduce((sum, part) => sum + 4 + (part === null ? 0 : part.length), 0));
  out[0] = ORIGIN_KINDS.indexOf(origin.kind);
  let at = 1;
  for (const part of parts) {
    at = out.writeUInt32LE(part === null ? NULL : part.length, at);
    if (part !== null) at += part.copy(out, at);
  }
  return out;
}

/** The origin of stored bytes; a client without a name, which has the fewest rights, when they are damaged. */
export function unpackOrigin(stored: Uint8Array | null): Origin {
  const nobody: Origin = { kind: 'client', clientId: '', username: null, bridge: null };
  if (stored === null || stored.length < 13) return nobody;
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const texts: (string | null)[] = [];
  let at = 1;
  for (let i = 0; i < 3; i++) {
    if (at + 4 > bytes.length) return nobody;
    const length = bytes.readUInt32LE(at);
    at += 4;
    if (length === NULL) texts.push(null);
    else {
      if (at + length > bytes.length) return nobody;
      texts.push(bytes.toString('utf8', at, at + length));
      at += length;
    }
  }
  return { kind: ORIGIN_KINDS[bytes[0]] ?? 'client', clientId: texts[0] ?? '', username: texts[1], bridge: texts[2] };
}

/** Walks a frame. It comes from the same process, so it is trusted. */
export class FrameReader {
  at = 0;
  private readonly bytes: Buffer;
  private readonly view: DataView;
  private readonly end: number;

  constructor(buffer: ArrayBuffer, end: number) {
    this.bytes = Buffer.from(buffer);
    this.view = new DataView(buffer);
    this.end = end;
  }

  get more(): boolean {
    return this.at < this.end;
  }

  u8(): number {
    return this.bytes[this.at++];
  }

  u32(): number {
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }

  f64(): number {
    this.at += 8;
    return this.view.getFloat64(this.at - 8, true);
  }

  text(): string | null {
    const length = this.u32();
    if (length === NULL) return null;
    this.at += length;
    return this.bytes.toString('utf8', this.at - length, this.at);
  }

  /** A view into the frame. */
  blob(): Buffer | null {
    const length = this.u32();
    if (length === NULL) return null;
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}
