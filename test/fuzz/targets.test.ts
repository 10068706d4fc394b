// Every fuzz target on a few thousand inputs with fixed seeds: `make fuzz` runs them for longer.
import { readdirSync } from 'node:fs';
import { describe, it } from 'vitest';
import type { FuzzTarget } from '../harness/fuzz.ts';
import { Random } from '../harness/random.ts';

const INPUTS = 2000;
const names = readdirSync(import.meta.dirname).filter((file) => !file.includes('.test.') && file !== 'run.ts');

describe.each(names)('fuzz target %s', (name) => {
  it(`holds on ${INPUTS} inputs`, async () => {
    const { target } = (await import(`./${name}`)) as { target: FuzzTarget };
    for (let seed = 1; seed <= INPUTS; seed++) await target.once(new Random(seed));
  });
});
