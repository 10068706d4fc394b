#!/usr/bin/env node
// The command `tidegate`: hands the words and streams of this process to cli/ and ends with the exit code it gives.
// Engine flags are set here, before any other module is loaded. Nothing else belongs here.
import { setFlagsFromString } from 'node:v8';

// Patterns that users write (ACL, proxy routes) fall back to the engine without backtracking: no input can make them run for ever.
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
// The heap may double before it is collected as a whole. Left alone, the engine collects a heap full of queued messages after every third
// of its size: measured at 10,000 durable messages a second, twice as many pauses of 20 ms, and twice the 99th percentile of PUBACK.
setFlagsFromString('--heap-growing-percent=100');

const { runCli } = await import('./cli/cli.ts');

// A reader that goes away early (`tidegate sub ... | head`) ends the command; that is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const code = await runCli(process.argv.slice(2), process);
// Both streams are written out before the process ends; idle connections and timers of libraries do not hold it.
process.stdout.write('', () => process.stderr.write('', () => process.exit(process.exitCode ?? code)));
