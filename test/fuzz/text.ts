// Fuzz target: strings. Holds: readText takes exactly what the platform's strict decoder takes, without U+0000.
import { ProtocolError } from '../../src/base/errors.ts';
import { readText } from '../../src/codec/text.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const SEEDS = [
  '',
  'a',
  'sensor/room 1/temperature',
  'ü',
  '→€',
  '😀😀',
  '\ufeff',
  'x'.repeat(64),
  'x'.repeat(65),
  'é'.repeat(60),
];

export const target: FuzzTarget = {
  once(random: Random): void {
    const bytes = random.mutated(Buffer.from(random.pick(SEEDS) + random.pick(SEEDS)));
    const wanted = model(bytes);
    let got: string | null = null;
    try {
      got = readText(Buffer.concat([Buffer.from([0xc3]), bytes, Buffer.from([0xa9, 0x80])]), 1, 1 + bytes.length);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
    if (got !== wanted)
      throw new Error(`${bytes.toString('hex')}: ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
  },
};

function model(bytes: Uint8Array): string | null {
  try {
    const text = strict.decode(bytes);
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}
