// SP greeting and frames: src/codec/sp.ts.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  encodeGreeting,
  type FrameFault,
  FrameReader,
  GreetingReader,
  readLength,
  writeFrameHeader,
} from '../../src/codec/sp.ts';
import vectors from '../vectors/sp-wire.json' with { type: 'json' };

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Feeds the chunks; what came out, and the first fault. */
function read(
  ipc: boolean,
  max: number,
  chunks: Uint8Array[],
): { bodies: string[]; fault: FrameFault | null; reader: FrameReader } {
  const bodies: string[] = [];
  const reader = new FrameReader(ipc, max, (bytes, start, end) => {
    bodies.push(Buffer.from(bytes.subarray(start, end)).toString('hex'));
    return true;
  });
  let fault: FrameFault | null = null;
  for (const chunk of chunks) if (fault === null) fault = reader.push(chunk, 0);
  return { bodies, fault, reader };
}

function frame(ipc: boolean, body: Uint8Array): Buffer {
  const header = Buffer.alloc(ipc ? 9 : 8);
  writeFrameHeader(header, 0, body.length, ipc);
  return Buffer.concat([header, body]);
}

describe('greeting', () => {
  for (const row of vectors.greetings) {
    test(`reader answers ${row.result} to ${row.what}`, () => {
      const whole = new GreetingReader(row.wanted);
      expect(whole.push(hex(row.bytes), 0)).toBe(row.result);
      const single = new GreetingReader(row.wanted);
      let result = 'more';
      for (const byte of hex(row.bytes)) if (result === 'more') result = single.push(Uint8Array.of(byte), 0);
      expect(result).toBe(row.result);
    });
  }
  test('encoder puts the protocol in bytes 4 and 5', () => {
    expect(Buffer.from(encodeGreeting(0x20)).toString('hex')).toBe('0053500000200000');
    expect(Buffer.from(encodeGreeting(0x1234)).toString('hex')).toBe('0053500012340000');
  });
  test('reader leaves what follows the greeting to the frames', () => {
    const reader = new GreetingReader(0x20);
    expect(reader.push(hex('00 53 50'), 0)).toBe('more');
    expect(reader.push(hex('00 00 20 00 00 ff ff'), 0)).toBe('ok');
    expect(reader.have).toBe(8);
  });
});

describe('frames', () => {
  for (const row of vectors.streams) {
    test(`reader takes ${row.what}`, () => {
      const bytes = hex(row.bytes);
      const got = read(row.ipc, row.max, [bytes]);
      expect(got.bodies).toEqual(row.bodies);
      expect(got.fault).toBe(row.fault);
      const single = read(
        row.ipc,
        row.max,
        [...bytes].map((byte) => Uint8Array.of(byte)),
      );
      expect(single.bodies).toEqual(row.bodies);
      expect(single.fault).toBe(row.fault);
    });
  }
  test('reader gives the same bodies however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.boolean(),
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 17 }), { minLength: 1, maxLength: 30 }),
        (ipc, bodies, cuts) => {
          const stream = Buffer.concat(bodies.map((body) => frame(ipc, body)));
          const chunks: Buffer[] = [];
          for (let at = 0, i = 0; at < stream.length; i++) {
            const size = cuts[i % cuts.length];
            chunks.push(stream.subarray(at, at + size));
            at += size;
          }
          const got = read(ipc, 0, chunks);
          expect(got.fault).toBeNull();
          expect(got.bodies).toEqual(bodies.map((body) => Buffer.from(body).toString('hex')));
          expect(got.reader.midFrame).toBe(false);
        },
      ),
    );
  });
  test('reader collects a body of a megabyte from many chunks', () => {
    const body = Buffer.alloc(1 << 20, 0xa5);
    body[0] = 1;
    body[body.length - 1] = 2;
    const stream = frame(false, body);
    const chunks: Buffer[] = [];
    for (let at = 0; at < stream.length; at += 65_000) chunks.push(stream.subarray(at, at + 65_000));
    const got = read(false, 1 << 20, chunks);
    expect(got.bodies).toEqual([body.toString('hex')]);
  });
  test('reader hands whole frames out in place', () => {
    const chunk = Buffer.concat([frame(false, Buffer.from('one')), frame(false, Buffer.from('two'))]);
    const seen: [boolean, number, number][] = [];
    const reader = new FrameReader(false, 0, (bytes, start, end) => {
      seen.push([bytes === chunk, start, end]);
      return true;
    });
    reader.push(chunk, 0);
    expect(seen).toEqual([
      [true, 8, 11],
      [true, 19, 22],
    ]);
  });
  test('reader stops when its user says so', () => {
    let count = 0;
    const reader = new FrameReader(false, 0, () => ++count < 2);
    reader.push(Buffer.concat([1, 2, 3].map(() => frame(false, Buffer.from('x')))), 0);
    expect(count).toBe(2);
  });
  test('reader of a long body keeps no more memory than has arrived', () => {
    const header = Buffer.alloc(8);
    writeFrameHeader(header, 0, 2 ** 40, false);
    const before = process.memoryUsage().arrayBuffers;
    const got = read(false, 0, [Buffer.concat([header, Buffer.from('abc')])]);
    expect(got.fault).toBeNull();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 20);
  });
  test('lengths round-trip below 2^53 and are Infinity from there', () => {
    const bytes = Buffer.alloc(8);
    for (const length of [
      0,
      1,
      255,
      256,
      65_536,
      2 ** 31,
      2 ** 32 - 1,
      2 ** 32,
      2 ** 45 + 7,
      Number.MAX_SAFE_INTEGER,
    ]) {
      writeFrameHeader(bytes, 0, length, false);
      expect(readLength(bytes, 0)).toBe(length);
    }
    expect(readLength(hex('00 20 00 00 00 00 00 00'), 0)).toBe(Number.POSITIVE_INFINITY);
    expect(readLength(hex('01 00 00 00 00 00 00 00'), 0)).toBe(Number.POSITIVE_INFINITY);
    expect(readLength(hex('ff ff ff ff ff ff ff ff'), 0)).toBe(Number.POSITIVE_INFINITY);
  });
});
