// From the configuration to what the stages are built from: src/gateway/options.ts.
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { sessionLimits } from '../../src/gateway/options.ts';

it('a CONNECT with the longest client id that MQTT can carry is not too large [MQTT-3.1.3-5]', () => {
  const { config } = loadConfig({ set: [], env: {}, cwd: '/nonexistent' });
  // Fixed header, MQTT, level, flags, keep alive, then the client id with its length.
  const bytes = 4 + 10 + 2 + 65_535;
  expect(sessionLimits(config).maxConnectSize).toBeGreaterThan(bytes);
});

it('topic aliases towards clients are off, whatever clients themselves may use, until their own key says otherwise', () => {
  const outgoing = (...set: string[]): number =>
    sessionLimits(loadConfig({ set, env: {}, cwd: '/nonexistent' }).config).outbox.topicAliases;
  expect(outgoing('mqtt.max_topic_alias=100')).toBe(0);
  expect(outgoing('mqtt.max_topic_alias=0', 'mqtt.max_topic_alias_out=7')).toBe(7);
});
