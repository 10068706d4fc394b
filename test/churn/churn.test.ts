// The churn harness in its short form: after a crowd of all kinds has gone, nothing of a connection can be reached. `make churn` runs minutes.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gatewayProgram, type Program } from '../harness/killgateway.ts';
import { Random } from '../harness/random.ts';
import { Churn, type ChurnReport } from './churn.ts';
import { faults } from './verdict.ts';

let program: Program;
beforeAll(async () => {
  program = await gatewayProgram();
}, 60_000);
afterAll(() => program?.remove());

test('nothing of a gone connection can be reached but its stored session', { timeout: 90_000 }, async () => {
  const churn = new Churn({ program, random: new Random(7), loadMs: 8000, windowMs: 4000, restMs: 3000 });
  const report = await churn.run();
  expect(report.connections).toBeGreaterThan(200);
  expect(report.left).toEqual([]);
  expect(report.sessions).toBeLessThanOrEqual(report.kept);
});

const MB = 1024 * 1024;
const steady: ChurnReport = {
  connections: 1000,
  idleBytes: 80 * MB,
  restedBytes: 90 * MB,
  windows: [30, 35, 40, 40, 41, 42].map((heap) => ({
    heapBytes: heap * MB,
    externalBytes: 5 * MB,
    residentBytes: 120 * MB,
    connections: 0,
  })),
  left: [],
  sessions: 50,
  sessionPath: '',
  kept: 50,
};

test('the verdict finds growth in the second half, what is held, and memory that does not come back', () => {
  expect(faults(steady)).toEqual([]);
  const growing = steady.windows.map((window, n) => ({ ...window, heapBytes: (30 + 8 * n) * MB }));
  expect(faults({ ...steady, windows: growing })).toHaveLength(1);
  expect(faults({ ...steady, left: [{ name: 'Client', count: 3, path: 'x' }] })).toHaveLength(1);
  expect(faults({ ...steady, restedBytes: 210 * MB })).toHaveLength(1);
  expect(faults({ ...steady, sessions: 51 })).toHaveLength(1);
});
