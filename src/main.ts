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

const { runCli } = await import('./cli/cli.ts');
const { systemErrorText } = await import('./base/systemerror.ts');

/** A reader that goes away early (`tidegate sub ... | head`) ends the command and is no failure; a full disk is one. */
function onWritten(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0);
  process.stderr.write(`tidegate: standard output: ${systemErrorText(error)}\n`, () => process.exit(1));
}

process.stdout.on('error', onWritten);

const code = await runCli(process.argv.slice(2), process);
// Both streams are written out before the process ends; idle connections and timers of libraries do not hold it.
process.stdout.write('', (error) => {
  // What could not be written is told by the event, which comes after this.
  if (error == null) process.stderr.write('', () => process.exit(process.exitCode ?? code));
});
