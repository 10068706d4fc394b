// Fuzz target: SP streams, greeting and frames, valid or damaged. Holds: nothing is thrown; however the bytes are cut, bodies and fault are
// those of a plain reading of the whole; no body is larger than the limit; what is in order is taken, all of it.
import { FrameReader, GreetingReader, writeFrameHeader } from '../../src/codec/sp.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

const LIMIT = 300;

interface Reading {
  readonly bodies: string[];
  readonly fault: string | null;
}

/** The stream read as simply as possible, with big integers. */
function plain(bytes: Buffer, ipc: boolean): Reading {
  const bodies: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (ipc && bytes[at] !== 1) return { bodies, fault: 'bad-frame' };
    const body = at + (ipc ? 9 : 8);
    if (body > bytes.length) break;
    const length = bytes.readBigUInt64BE(body - 8);
    if (length > BigInt(LIMIT)) return { bodies, fault: 'too-large' };
    const end = body + Number(length);
    if (end > bytes.length) break;
    bodies.push(bytes.toString('latin1', body, end));
    at = end;
  }
  return { bodies, fault: null };
}

function inPieces(bytes: Buffer, ipc: boolean, random: Random): Reading {
  const bodies: string[] = [];
  const reader = new FrameReader(ipc, LIMIT, (chunk, start, end) => {
    bodies.push(Buffer.from(chunk.subarray(start, end)).toString('latin1'));
    return true;
  });
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.below(random.below(2) === 0 ? 4 : 200);
    // A chunk of its own, with bytes in front that must not count, and gone afterwards.
    const chunk = Buffer.concat([Buffer.from('##'), bytes.subarray(at, at + size)]);
    const fault = reader.push(chunk, 2);
    chunk.fill(0xee);
    if (fault !== null) return { bodies, fault };
    at += size;
  }
  return { bodies, fault: null };
}

function stream(ipc: boolean, random: Random): Buffer {
  const parts: Buffer[] = [];
  for (let left = random.below(8); left > 0; left--) {
    const body = Buffer.alloc(random.below(10) === 0 ? LIMIT + random.below(3) - 1 : random.below(40), 0x61 + left);
    const header = Buffer.alloc(ipc ? 9 : 8);
    writeFrameHeader(header, 0, body.length, ipc);
    parts.push(header, body);
  }
  const bytes = Buffer.concat(parts);
  // Every other stream is damaged in a few places.
  if (bytes.length > 0 && random.below(2) === 0)
    for (let count = 1 + random.below(3); count > 0; count--) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
}

function greeting(random: Random): void {
  const bytes = Buffer.from([0, 0x53, 0x50, 0, 0, 0x21, 0, 0]);
  if (random.below(2) === 0) bytes[random.below(8)] = random.below(256);
  const want = bytes.equals(Buffer.from([0, 0x53, 0x50, 0, 0, 0x21, 0, 0]));
  const reader = new GreetingReader(0x21);
  let result = 'more';
  for (let at = 0; at < 8 && result === 'more'; ) {
    const size = 1 + random.below(8);
    result = reader.push(bytes.subarray(at, at + size), 0);
    at += size;
  }
  if ((result === 'ok') !== want) throw new Error(`greeting ${bytes.toString('hex')} is "${result}"`);
}

export const target: FuzzTarget = {
  once(random) {
    greeting(random);
    const ipc = random.below(2) === 0;
    const bytes = stream(ipc, random);
    const want = plain(bytes, ipc);
    const got = inPieces(bytes, ipc, random);
    if (JSON.stringify(got) !== JSON.stringify(want))
      throw new Error(`${bytes.toString('hex')} read as ${JSON.stringify(got)}, plainly ${JSON.stringify(want)}`);
  },
};
