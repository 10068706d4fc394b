#!/usr/bin/env node
// The command `tidegate`: hands the words and streams of this process to cli/ and ends with the exit code it gives.
// Engine flags are set here, before any other module is loaded. Nothing else belongs here.
import { setFlagsFromString } from 'node:v8';

// Patterns that users write (ACL, proxy routes) fall back to the engine without backtracking: no input can make them
// run for ever.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
// The heap may double before it is collected as a whole. Left alone, the engine collects a heap full of queued messages
// after every third of its size: measured at 10,000 durable messages a second, twice as many pauses of 20 ms, and twice
// the 99th percentile of PUBACK.
setFlagsFromString('--heap-growing-percent=100');
// What runs at a start runs once: it is not optimised, and the young generation does not grow for it. Both would stay
// in memory afterwards: 8 MB. cli/start.ts takes it back before there is work (gateway/tidy.ts, fullSpeed).
const isStart = process.argv[2] === 'start';
if (isStart) {
  setFlagsFromString('--no-opt');
  setFlagsFromString('--semi-space-growth-factor=1');
}

const run = isStart ? (await import('./cli/run.ts')).runStart : (await import('./cli/cli.ts')).runCli;

/** A reader that goes away early (`tidegate sub ... | head`) ends the command and is no failure; a full disk is one. */
async function onWritten(error: NodeJS.ErrnoException): Promise<void> {
  if (error.code === 'EPIPE') process.exit(0);
  const { systemErrorText } = await import('./base/systemerror.ts');
  process.stderr.write(`tidegate: standard output: ${systemErrorText(error)}\n`, () => process.exit(1));
}

process.stdout.on('error', onWritten);

const code = await run(process.argv.slice(2), process);
// Both streams are written out before the process ends; idle connections and timers of libraries do not hold it.
process.stdout.write('', (error) => {
  // What could not be written is told by the event, which comes after this.
  if (error == null) process.stderr.write('', () => process.exit(process.exitCode ?? code));
});
