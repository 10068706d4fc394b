// The metrics of the proxy, each once: name, text, type, unit. Cells are made by proxies.ts, entrance.ts and pool.ts.
// Labels are names from the configuration and fixed words, never what clients send.
import type { MetricSpec } from '../base/metrics.ts';

function counter(name: string, text: string, unit: MetricSpec['unit']): MetricSpec {
  return { name: `tidegate_proxy_${name}_total`, text, type: 'counter', unit };
}
function gauge(name: string, text: string, unit: MetricSpec['unit']): MetricSpec {
  return { name: `tidegate_proxy_${name}`, text, type: 'gauge', unit };
}

export const PROXY_METRICS = {
  accepted: counter('connections', 'Connections that clients have opened', 'connections'),
  active: gauge('active', 'Connections of clients that are open', 'connections'),
  refused: counter('refused', 'Connections that reached no server, by status of the access log', 'connections'),
  closed: counter('closed', 'Sessions that have ended, by reason', 'connections'),
  bytes: counter('bytes', 'Bytes of clients: in, and out to them', 'bytes'),
  rewritten: counter('rewritten', 'CONNECT packets that were sent on with other fields', 'packets'),
  connack: counter('connack', 'Answers of servers to CONNECT, by reason code', 'packets'),
  filtered: counter('filtered', 'Packets that a filter has stopped, by kind', 'packets'),
  topicSessions: gauge(
    'topic_sessions',
    'Sessions that clients of a proxy with topics have with servers',
    'connections',
  ),
  topicLost: counter(
    'topic_sessions_lost',
    'Sessions with servers that ended while their client was there',
    'connections',
  ),
  topicRefused: counter('topic_refused', 'PUBLISH and SUBSCRIBE packets that no server was given', 'packets'),
  topicForeign: counter(
    'topic_foreign',
    'Messages of a server on topics of another upstream, not passed on',
    'packets',
  ),
  logLost: counter('access_log_lost', 'Lines of access logs that could not be written', 'items'),
} as const;

export const UPSTREAM_METRICS = {
  connections: gauge('upstream_connections', 'Connections to the servers of a pool', 'connections'),
  usable: gauge('upstream_usable', 'Servers of a pool that take connections now', 'items'),
  sticky: gauge('upstream_sticky', 'Keys of a pool whose server is remembered', 'items'),
  connects: counter('upstream_connects', 'Connections made to servers', 'connections'),
  failures: counter('upstream_failures', 'Connections to servers that failed', 'connections'),
  discovered: gauge('upstream_discovered', 'Servers that discovery has found for a pool', 'items'),
  discoveryFailing: gauge(
    'upstream_discovery_failing',
    'Whether the last answer of discovery could not be used (1) or could (0)',
    'items',
  ),
  checks: counter('upstream_checks', 'Health checks, by result', 'items'),
} as const;
