// The first bytes of a client: what is a CONNECT, when that is known, and how much is held for it.
import { describe, expect, it } from 'vitest';
import { Preread, type PrereadResult } from '../../src/proxy/preread.ts';
import { connectBytes } from '../harness/proxyparts.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

function read(bytes: Buffer, size: number, maxBytes = 65_536): { result: PrereadResult; preread: Preread; at: number } {
  const preread = new Preread(maxBytes);
  let result: PrereadResult = 'more';
  let at = 0;
  while (at < bytes.length && result === 'more') {
    result = preread.push(bytes.subarray(at, at + size));
    at += size;
  }
  return { result, preread, at: Math.min(at, bytes.length) };
}

describe('preread', () => {
  it('is complete with the last byte of CONNECT, however it is cut', () => {
    for (const bytes of [
      connectBytes(),
      connectBytes({ version: 3 }),
      connectBytes({ clientId: 'x'.repeat(20_000) }),
    ]) {
      for (let cut = 1; cut < Math.min(bytes.length, 300); cut++) {
        const preread = new Preread(65_536);
        expect(preread.push(bytes.subarray(0, cut))).toBe('more');
        expect(preread.push(bytes.subarray(cut))).toBe('complete');
        expect(preread.bytes.equals(bytes)).toBe(true);
        expect(preread.end).toBe(bytes.length);
      }
      expect(read(bytes, 1)).toMatchObject({ result: 'complete', at: bytes.length });
    }
  });

  it('keeps what follows CONNECT', () => {
    const bytes = Buffer.concat([connectBytes(), hex('c000 e000')]);
    for (const size of [1, 7, bytes.length - 3, bytes.length]) {
      const { preread } = read(bytes, size);
      expect(preread.bytes.subarray(0, preread.end).equals(connectBytes())).toBe(true);
    }
    expect(read(bytes, bytes.length).preread.bytes.equals(bytes)).toBe(true);
  });

  it.each([
    ['HTTP', 'GET / HTTP/1.1', 'not-mqtt', 1],
    ['PROXY', 'PROXY TCP4', 'not-mqtt', 1],
    ['zeros', '\0\0', 'not-mqtt', 1],
  ])('refuses %s at its first byte', (_, text, result, at) => {
    expect(read(Buffer.from(text), 1)).toMatchObject({ result, at });
  });

  it('knows TLS by its first two bytes', () => {
    expect(read(hex('16 03 01 02 00 01'), 1)).toMatchObject({ result: 'tls', at: 2 });
    expect(read(hex('16 10'), 1)).toMatchObject({ result: 'not-mqtt', at: 2 });
  });

  it.each([
    ['another name', '10 0c 00 04 4d 51 54 58', 'not-mqtt', 8],
    ['another length of the name', '10 0c 00 05', 'not-mqtt', 4],
    ['a length of five bytes', '10 ff ff ff ff', 'malformed', 5],
    ['a large announcement', '10 ff ff ff 7f', 'too-large', 5],
    ['one byte more than allowed', '10 fd ff 03', 'too-large', 4],
  ])('refuses %s from the header alone', (_, bytes, result, at) => {
    expect(read(hex(bytes), 1)).toMatchObject({ result, at });
  });

  it.each([
    [0, '10 00'],
    [127, '10 7f'],
    [128, '10 80 01'],
    [16_383, '10 ff 7f'],
    [16_384, '10 80 80 01'],
    [2_097_151, '10 ff ff 7f'],
    [2_097_152, '10 80 80 80 01'],
    [268_435_455, '10 ff ff ff 7f'],
  ])('reads a length of %i', (length, header) => {
    const whole = hex(header).length + length;
    expect(new Preread(whole - 1).push(hex(header))).toBe('too-large');
    expect(new Preread(whole).push(hex(header))).not.toBe('too-large');
  });

  it('takes as many bytes as allowed and no more', () => {
    const bytes = connectBytes({ clientId: 'x'.repeat(1000) });
    expect(read(bytes, 100, bytes.length).result).toBe('complete');
    expect(read(bytes, 100, bytes.length - 1).result).toBe('too-large');
  });

  it('holds no more than twice what has come, whatever was announced', () => {
    const preread = new Preread(1 << 20);
    preread.push(hex('10 ff ff 3f 00 04'));
    preread.push(hex('4d 51'));
    // A small buffer is a piece of Node's pool.
    expect(preread.bytes.buffer.byteLength).toBeLessThanOrEqual(Math.max(16_384, Buffer.poolSize));
  });
});
