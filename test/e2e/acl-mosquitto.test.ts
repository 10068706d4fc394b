// ACL verdicts compared with a real mosquitto on random files. Known differences from 2.0.11, which the random files leave out:
// %c and %u inside a level (text here and in 2.1, replaced in 2.0); client ids and user names with a slash (no pattern rights here and
// in 2.1, spanning levels in 2.0). ACL_FILES sets how many files are compared, ACL_SEED the first one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { programPath } from '../harness/mosquitto.ts';
import { Comparison } from './aclmosquitto.ts';

const FILES = Number(process.env.ACL_FILES ?? 25);
const SEED = Number(process.env.ACL_SEED ?? 1);
const MOST_RULES = 12;

describe.skipIf(programPath('mosquitto') === null)('ACL file against mosquitto (needs mosquitto)', () => {
  let comparison: Comparison;
  beforeAll(async () => {
    comparison = await Comparison.start();
  });
  afterAll(() => comparison?.stop());

  it(`gives the verdicts that mosquitto gives on ${FILES} random files`, {
    timeout: 60_000 + FILES * 1000,
  }, async () => {
    for (let i = 0; i < FILES; i++) await comparison.file(SEED + i, MOST_RULES);
    expect(comparison.differences).toEqual([]);
    expect(comparison.questions).toBe(FILES * 12 * 7 * 2);
  });
});
