// The long form of the chaos test: `npx tsx test/chaos/run.ts [--rounds 300] [--seed N] [--faults kill,stop] [--report FILE]`, or `make chaos`.
// --source DIR builds the gateway of another checkout, --go-on does not end with the first broken promise: to compare.
// Exit code 1 when a promise was broken; the line before says which, and the seed that brings the same faults again.
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Chaos, FAULTS, type Fault } from '../harness/chaos.ts';
import { gatewayProgram } from '../harness/killgateway.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    settle: { type: 'string', default: '10' },
    faults: { type: 'string', default: FAULTS.join(',') },
    report: { type: 'string' },
    source: { type: 'string' },
    'go-on': { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);
const wanted = values.faults.split(',');
const faults: Fault[] = FAULTS.filter((fault) => wanted.includes(fault));
const settleEvery = Number(values.settle);
const program = await gatewayProgram(values.source);
const tell = (line: object): void => {
  const text = JSON.stringify(line);
  process.stdout.write(`${text}\n`);
  if (values.report !== undefined) appendFileSync(values.report, `${text}\n`);
};
try {
  const chaos = new Chaos({
    program,
    seed,
    rounds: Number(values.rounds),
    settleEvery,
    faults,
    goOn: values['go-on'],
    told: (round, fault, tally) => {
      if (round % settleEvery === 0) tell({ seed, round, fault, ...tally });
    },
  });
  const outcome = await chaos.run();
  tell({ seed, ...outcome });
  process.exitCode = outcome.faults.length > 0 ? 1 : 0;
} finally {
  program.remove();
}
