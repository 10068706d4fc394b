// A gateway in a process of its own, watched: how long its event loop was held by one piece of work, with the stack, and what its memory is.
// Forked by the tests of test/limits with a small heap; talks by messages. A worker thread looks at a heartbeat of the loop and at the
// processor time of the loop's thread, so a busy machine is not taken for a held loop; time for garbage is told apart.

import { Session } from 'node:inspector';
import { PerformanceObserver } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { systemClock } from '../../src/base/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import type { Hold, Report, Request, Started } from './watch.ts';

const BEAT_MS = 1;
const held: Hold[] = [];
const garbage: { readonly from: number; readonly ms: number }[] = [];

new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) garbage.push({ from: startTime, ms: duration });
}).observe({ entryTypes: ['gc'] });

/** Looks from outside at the heartbeat; on a hold it stops the loop for a moment to see where it is. */
const WATCHER = `
const { parentPort, workerData } = require('node:worker_threads');
const { Session } = require('node:inspector');
const { readFileSync } = require('node:fs');
const beat = new Int32Array(workerData.beat);
const session = new Session();
session.connectToMainThread();
let stack = [];
session.on('Debugger.paused', ({ params }) => {
  stack = params.callFrames.slice(0, 12).map((f) => (f.functionName || '(anonymous)') + ' ' + f.url.split('/').slice(-2).join('/') + ':' + (f.location.lineNumber + 1));
  session.post('Debugger.resume');
});
session.post('Debugger.enable');
const cpuMs = () => Number(readFileSync('/proc/self/task/' + process.pid + '/schedstat', 'latin1').split(' ')[0]) / 1e6;
let seen = -1, atCpu = 0, longest = 0, paused = false;
setInterval(() => {
  const now = Atomics.load(beat, 0), cpu = cpuMs();
  if (now !== seen) {
    if (longest > workerData.limitMs) { parentPort.postMessage({ cpuMs: longest, stack }); }
    seen = now; atCpu = cpu; longest = 0; paused = false; stack = [];
    return;
  }
  longest = cpu - atCpu;
  if (longest > workerData.limitMs && !paused) { paused = true; session.post('Debugger.pause'); }
}, 2);
`;

function watch(limitMs: number): void {
  const beat = new SharedArrayBuffer(4);
  const counter = new Int32Array(beat);
  setInterval(() => Atomics.add(counter, 0, 1), BEAT_MS);
  const worker = new Worker(WATCHER, { eval: true, workerData: { beat, limitMs } });
  worker.on('message', (hold: Omit<Hold, 'garbageMs'>) => {
    // What of it was garbage collection is known by now: its entries come with the loop.
    setImmediate(() => {
      const since = performance.now() - hold.cpuMs * 3 - 500;
      const garbageMs = garbage.filter(({ from }) => from > since).reduce((sum, { ms }) => sum + ms, 0);
      held.push({ ...hold, garbageMs });
    });
  });
}

async function main(): Promise<void> {
  const { file, limitMs } = JSON.parse(process.argv[2]) as { file: string; limitMs: number };
  const load = (set?: readonly string[], kept?: string): ReturnType<typeof loadConfig> =>
    loadConfig({ file, set, env: {}, cwd: '.', kept });
  const gateway = createGateway(load(), { log: () => {}, clock: systemClock, load, relog: () => {} });
  await gateway.start();
  // The inspector agent is made once, before anything is measured.
  new Session().connect();
  if (limitMs > 0) watch(limitMs);
  const bound = (): (string | null)[] =>
    gateway.bridges.list().flatMap((bridge) => bridge.endpoints.map((endpoint) => endpoint.bound));
  // Bridges bind after the start.
  while (bound().includes(null)) await new Promise((resolve) => setTimeout(resolve, 5));
  const nng = bound().flatMap((url) => url ?? []);
  const started: Started = { kind: 'started', port: gateway.bound[0].port, nng };
  process.send?.(started);
  process.on('message', (request: Request) => {
    if (request.kind === 'stop') {
      void gateway.stop(500).then(() => process.exit(0));
      return;
    }
    if (request.collect) {
      globalThis.gc?.();
      globalThis.gc?.();
    }
    const counted: Record<string, number> = {};
    const numbers: Record<string, number> = {};
    for (const { spec, series } of gateway.metrics.all()) {
      for (const one of series.values()) {
        if (spec.name === 'tidegate_memory_counted_bytes') counted[one.labels.kind] = one.read();
        else
          numbers[
            `${spec.name}${Object.values(one.labels)
              .map((v) => `/${v}`)
              .join('')}`
          ] = one.read();
      }
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    const report: Report = { kind: 'report', usedBytes: heapUsed + arrayBuffers, counted, numbers, held };
    process.send?.(report);
  });
}

void main();
