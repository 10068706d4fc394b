// The churn harness: tsx test/churn/run.ts [--minutes N] [--seed N]; `make churn` runs ten minutes, `make churn MINUTES=60` an hour.
// Ends with exit code 1 when memory keeps growing or a connection that is gone can still be reached.
import { parseArgs } from 'node:util';
import { gatewayProgram } from '../harness/killgateway.ts';
import { Random } from '../harness/random.ts';
import { Churn } from './churn.ts';
import { faults } from './verdict.ts';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' }, seed: { type: 'string' } } });
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Date.now() >>> 0 : Number(values.seed);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  console.error('usage: run.ts [--minutes N] [--seed N]');
  process.exit(64);
}
/** An hour has windows of five minutes, shorter runs twelve windows as well. */
const windowMs = (minutes * 60_000) / 12;
const program = await gatewayProgram();
const mb = (bytes: number): string => (bytes / 1048576).toFixed(1).padStart(7);
console.log(`churn: ${minutes} minutes, seed ${seed}; lowest of each window in MB`);
console.log('   heap external resident connections so far');
try {
  const report = await new Churn({
    program,
    random: new Random(seed),
    loadMs: minutes * 60_000,
    windowMs,
    restMs: 60_000,
    onWindow: (w) => console.log(`${mb(w.heapBytes)} ${mb(w.externalBytes)}  ${mb(w.residentBytes)} ${w.connections}`),
  }).run();
  console.log(
    `idle ${mb(report.idleBytes)}, rested ${mb(report.restedBytes)}, sessions ${report.sessions} of ${report.kept} kept`,
  );
  const found = faults(report);
  for (const fault of found) console.error(`churn: ${fault}`);
  process.exitCode = found.length > 0 ? 1 : 0;
} finally {
  program.remove();
}
