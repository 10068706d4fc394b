// Runs the fuzz targets: tsx test/fuzz/run.ts [--seconds N] [--seed N] [name ...]. `make fuzz` calls it; every other file here is a target.
// Each input has a seed of its own; the first that makes a target throw is printed and ends the run with exit code 1:
// `--seed <that> --seconds 0 <name>` runs it alone.
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { FuzzTarget } from '../harness/fuzz.ts';
import { Random } from '../harness/random.ts';

const { values, positionals } = parseArgs({
  options: { seconds: { type: 'string', default: '10' }, seed: { type: 'string' } },
  allowPositionals: true,
});
const seconds = Number(values.seconds);
const firstSeed = values.seed === undefined ? Date.now() >>> 0 : Number(values.seed);
const known = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== 'run.ts')
  .map((file) => file.slice(0, -3));
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0 || !(seconds >= 0) || !Number.isInteger(firstSeed)) {
  console.error(`usage: run.ts [--seconds N] [--seed N] [${known.join('|')} ...]`);
  process.exit(64);
}

const names = positionals.length > 0 ? positionals : known;
for (const name of names) {
  const { target } = (await import(`./${name}.ts`)) as { target: FuzzTarget };
  if (!(await run(name, target, (seconds * 1000) / names.length))) process.exit(1);
}

async function run(name: string, target: FuzzTarget, budgetMs: number): Promise<boolean> {
  const endMs = performance.now() + budgetMs;
  let count = 0;
  do {
    const seed = (firstSeed + count) >>> 0;
    try {
      await target.once(new Random(seed));
    } catch (error) {
      console.error(`${name}: seed ${seed}:`, error);
      return false;
    }
    count++;
  } while (performance.now() < endMs);
  console.log(`${name}: ${count} inputs from seed ${firstSeed}, all well`);
  return true;
}
