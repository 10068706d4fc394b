// Figures of the process that are asked for by timers: they never throw, whatever the system has run out of.
import { afterEach, expect, test, vi } from 'vitest';
import { Metrics } from '../../src/base/metrics.ts';
import { renderMetrics } from '../../src/console/metrics.ts';
import { ProcessMetrics, residentBytes } from '../../src/console/process.ts';
import { FakeClock } from '../harness/clock.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** What Node does when a process has no file descriptor left. */
function outOfDescriptors(): never {
  throw Object.assign(new Error('EMFILE: too many open files, uv_resident_set_memory'), { code: 'EMFILE' });
}

test('resident memory is a figure, and 0 without a descriptor to read it', () => {
  expect(residentBytes()).toBeGreaterThan(1_000_000);
  vi.spyOn(process.memoryUsage, 'rss').mockImplementation(outOfDescriptors);
  expect(residentBytes()).toBe(0);
});

test('metrics are rendered without a descriptor left', async () => {
  const metrics = new Metrics();
  const shown = new ProcessMetrics(metrics, new FakeClock(), '1.2.3');
  await shown.start();
  vi.spyOn(process, 'memoryUsage').mockImplementation(outOfDescriptors);
  expect(renderMetrics(metrics)).toMatch(/nodejs_heap_used_bytes [1-9]/);
  await shown.stop();
});

test('the metrics say which version runs on which Node.js, and how many descriptors it may open', async () => {
  const metrics = new Metrics();
  const shown = new ProcessMetrics(metrics, new FakeClock(), '1.2.3');
  await shown.start();
  const text = renderMetrics(metrics);
  expect(text).toContain(`tidegate_build_info{version="1.2.3",node="${process.version}"} 1`);
  const open = Number(/^process_open_fds (\d+)$/m.exec(text)?.[1]);
  const most = Number(/^process_max_fds (\S+)$/m.exec(text)?.[1].replace('+Inf', 'Infinity'));
  expect(most).toBeGreaterThan(open);
  await shown.stop();
});
