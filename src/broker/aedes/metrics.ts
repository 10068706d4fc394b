// The metrics that only a broker on aedes with Redis has, each once. Used by redis.ts and engine.ts.
import type { MetricSpec } from '../../base/metrics.ts';

export const REDIS_METRICS = {
  connections: {
    name: 'tidegate_redis_connections',
    text: 'Connections to Redis that are up, of the three a shared broker needs',
    type: 'gauge',
    unit: 'connections',
  },
  unshared: {
    name: 'tidegate_publish_unshared_total',
    text: 'Messages that other gateways of the shared broker were not told: Redis was away',
    type: 'counter',
    unit: 'messages',
  },
  inStep: {
    name: 'tidegate_redis_in_step',
    text: 'Whether the gateway knows all subscriptions of its shared broker again after Redis was away: 0 acknowledges nothing',
    type: 'gauge',
    unit: 'none',
  },
} as const satisfies Record<string, MetricSpec>;
