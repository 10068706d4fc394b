// MQTT 5.0 properties <-> the bytes a store keeps: the wire layout (MQTT 5.0 section 2.2.2) without the length in
// front. Called by frame.ts (main thread) and restore.ts. Works from the table of mqtt/property.ts alone; codec/ is
// above this layer. Bytes come back from a file that may be damaged: every read is bounded, and what cannot be read
// gives null.
import { PROPERTIES, type Properties, type PropertyRow } from '../mqtt/property.ts';

const BY_ID = new Map<number, PropertyRow>(PROPERTIES.map((row) => [row.id, row]));

function varint(out: number[], value: number): void {
  do {
    const low = value % 128;
    value = Math.floor(value / 128);
    out.push(value > 0 ? low | 128 : low);
  } while (value > 0);
}

function uint(out: number[], value: number, bytes: 1 | 2 | 4): void {
  for (let shift = (bytes - 1) * 8; shift >= 0; shift -= 8) out.push((value >>> shift) & 0xff);
}

function blob(out: number[], bytes: Uint8Array): void {
  uint(out, bytes.length, 2);
  for (const byte of bytes) out.push(byte);
}

function encodeOne(out: number[], row: PropertyRow, value: unknown): void {
  out.push(row.id);
  switch (row.type) {
    case 'byte':
      uint(out, value as number, 1);
      return;
    case 'flag':
      uint(out, Number(value), 1);
      return;
    case 'uint16':
      uint(out, value as number, 2);
      return;
    case 'uint32':
      uint(out, value as number, 4);
      return;
    case 'varint':
      varint(out, value as number);
      return;
    case 'string':
      blob(out, Buffer.from(value as string, 'utf8'));
      return;
    case 'binary':
      blob(out, value as Uint8Array);
      return;
    case 'pair': {
      const [name, text] = value as [string, string];
      blob(out, Buffer.from(name, 'utf8'));
      blob(out, Buffer.from(text, 'utf8'));
    }
  }
}

/** The bytes of a set of properties. */
export function packProperties(properties: Properties): Uint8Array {
  const out: number[] = [];
  for (const row of PROPERTIES) {
    const value: unknown = properties[row.key];
    if (value === undefined) continue;
    if (row.repeats) for (const one of value as unknown[]) encodeOne(out, row, one);
    else encodeOne(out, row, value);
  }
  return Uint8Array.from(out);
}

class Bytes {
  at = 0;
  private readonly bytes: Buffer;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  get left(): number {
    return this.bytes.length - this.at;
  }
  uint(count: 1 | 2 | 4): number {
    if (this.left < count) throw new RangeError('properties end early');
    const value = this.bytes.readUIntBE(this.at, count);
    this.at += count;
    return value;
  }
  varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 2_097_152; factor *= 128) {
      const byte = this.uint(1);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw new RangeError('number too long');
  }
  blob(): Buffer {
    const length = this.uint(2);
    if (this.left < length) throw new RangeError('properties end early');
    this.at += length;
    // A copy: the row it lies in is not kept.
    return Buffer.from(this.bytes.subarray(this.at - length, this.at));
  }
}

function decodeOne(bytes: Bytes, row: PropertyRow): unknown {
  switch (row.type) {
    case 'byte':
      return bytes.uint(1);
    case 'flag':
      return bytes.uint(1) !== 0;
    case 'uint16':
      return bytes.uint(2);
    case 'uint32':
      return bytes.uint(4);
    case 'varint':
      return bytes.varint();
    case 'string':
      return bytes.blob().toString('utf8');
    case 'binary':
      return bytes.blob();
    case 'pair':
      return [bytes.blob().toString('utf8'), bytes.blob().toString('utf8')];
  }
}

/** The properties of stored bytes; null when the bytes are none. */
export function unpackProperties(stored: Uint8Array): Properties | null {
  const found = new Map<keyof Properties, unknown>();
  try {
    const bytes = new Bytes(stored);
    while (bytes.left > 0) {
      const row = BY_ID.get(bytes.uint(1));
      if (row === undefined) return null;
      const value = decodeOne(bytes, row);
      const list = found.get(row.key);
      if (!row.repeats) found.set(row.key, value);
      else if (Array.isArray(list)) list.push(value);
      else found.set(row.key, [value]);
    }
  } catch {
    return null;
  }
  // Keys come from the table, never from the bytes.
  return Object.fromEntries(found) as Properties;
}
