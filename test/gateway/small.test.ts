// broker.profile = small: what it makes of limits.
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { sessionLimits } from '../../src/gateway/options.ts';

const MB = 1024 * 1024;

function limits(...set: string[]): ReturnType<typeof sessionLimits> {
  return sessionLimits(loadConfig({ set, env: {}, cwd: '/nonexistent' }).config);
}

test('a small machine has a smaller budget, and smaller buffers and queues', () => {
  const small = limits('broker.profile=small');
  expect(small.memoryBudget).toBeLessThanOrEqual(64 * MB);
  expect(small.memoryBudget).toBeGreaterThanOrEqual(16 * MB);
  expect([small.outbox.writeBuffer, small.outbox.queueBytes]).toEqual([MB / 2, 2 * MB]);
});

test('smaller limits of the configuration hold, and so does a budget it names', () => {
  const small = limits('broker.profile=small', 'mqtt.max_mqueue_bytes=1MB', 'mqtt.memory_budget=200MB');
  expect(small.outbox.queueBytes).toBe(MB);
  expect(small.memoryBudget).toBe(200 * MB);
});

test('no limit is one on a small machine, and none elsewhere', () => {
  expect(limits('broker.profile=small', 'mqtt.max_mqueue_bytes=0').outbox.queueBytes).toBe(2 * MB);
  expect(limits('mqtt.max_mqueue_bytes=0').outbox.queueBytes).toBe(0);
});
