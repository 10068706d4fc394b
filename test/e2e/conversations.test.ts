// Every byte conversation of test/vectors/mqtt/talk-*.json against the broker, and every malformed packet of the packet vectors:
// after a good CONNECT it ends the connection, with the reason in 5.0.
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Conversation, run } from '../harness/conversation.ts';
import { loadVectors, type PacketVector, packetFiles } from '../harness/packets.ts';
import { type TalkLimits, talkPlace } from '../harness/talkplace.ts';

async function holds(conversation: Conversation, chunkBytes = 0): Promise<void> {
  const place = await talkPlace(conversation.limits as TalkLimits | undefined, chunkBytes);
  try {
    await run(conversation, place);
    expect(place.errors).toEqual([]);
  } finally {
    await place.stop();
  }
}

const tags = (one: { clause: string[] }): string => one.clause.map((clause) => `[${clause}]`).join(' ');
const files = readdirSync(new URL('../vectors/mqtt/', import.meta.url)).filter((name) => name.startsWith('talk-'));

for (const file of files.sort()) {
  describe(file, () => {
    for (const conversation of loadVectors<Conversation>(file)) {
      it(`${conversation.name} ${tags(conversation)}`, () => holds(conversation));
    }
  });
}

/** The same again with every byte alone: where packets begin and end in chunks must not matter [MQTT-4.2-1]. */
describe('byte by byte', () => {
  for (const file of files.sort()) {
    for (const conversation of loadVectors<Conversation>(file)) {
      // A loss or a step of time right after bytes that are still on their way is another conversation.
      if (conversation.steps.some((step) => step.includes(' drops') || step.startsWith('clock'))) continue;
      it(`${file}: ${conversation.name}`, () => holds(conversation, 1));
    }
  }
});

const CONNECTS: Readonly<Record<number, string>> = {
  3: '10 0f 00 06 4d 51 49 73 64 70 03 02 00 00 00 01 61',
  4: '10 0d 00 04 4d 51 54 54 04 02 00 00 00 01 61',
  5: '10 0e 00 04 4d 51 54 54 05 02 00 00 00 00 01 61',
};

/** What is refused has to be refused by the broker as well: as first packet where it is a CONNECT, else after one. */
function refusal(vector: PacketVector): Conversation {
  const { version, hex, error = 0 } = vector;
  const code = error.toString(16).padStart(2, '0');
  if (hex.startsWith('1') && vector.answer !== undefined) {
    const answer = vector.answer === null ? [] : [`A < ${vector.answer}`];
    return { ...vector, steps: [`A > ${hex}`, ...answer, 'A closed'] };
  }
  if (hex.startsWith('1')) {
    const answer = version === 5 ? [`A < 20 .. 00 ${code} ...`] : [];
    return { ...vector, steps: [`A > ${hex}`, ...answer, 'A closed'] };
  }
  const reason = version === 5 ? [`A < e0 .. ${code} ...`] : [];
  return { ...vector, steps: [`A > ${CONNECTS[version]}`, 'A < 20 .. 00 00 ...', `A > ${hex}`, ...reason, 'A closed'] };
}

describe('a refused packet ends the connection', () => {
  for (const file of packetFiles()) {
    for (const vector of loadVectors<PacketVector>(file)) {
      if (vector.error === undefined || (vector.from ?? 'client') !== 'client') continue;
      it(`${vector.name} ${tags(vector)}`, () => holds(refusal(vector)));
    }
  }
});
