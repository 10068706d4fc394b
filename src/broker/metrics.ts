// The broker's metrics: every counter of session/, router/ and delivery/ by name. Declared once by
// broker/base.ts; read when asked for.
import { KINDS } from '../base/ledger.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Core } from '../session/session.ts';

export function declareBrokerMetrics(
  metrics: Metrics,
  core: Core,
  sessions: () => { total: number; connected: number },
): void {
  const { stats, delivery } = core;
  const counter = (
    name: string,
    text: string,
    unit: 'messages' | 'bytes' | 'connections' | 'sessions' | 'items',
    read: () => number,
    labels = {},
  ) => metrics.read({ name: `tidegate_${name}_total`, text, type: 'counter', unit }, read, labels);
  const gauge = (
    name: string,
    text: string,
    unit: 'messages' | 'bytes' | 'connections' | 'sessions' | 'items',
    read: () => number,
  ) => metrics.read({ name: `tidegate_${name}`, text, type: 'gauge', unit }, read);
  counter('publish_received', 'Messages published by clients', 'messages', () => stats.received);
  counter('publish_received_bytes', 'Bytes of PUBLISH packets received', 'bytes', () => stats.receivedBytes);
  counter('publish_sent', 'Messages sent to clients', 'messages', () => delivery.sent);
  counter('publish_sent_bytes', 'Bytes of PUBLISH packets sent', 'bytes', () => delivery.sentBytes);
  counter('received_bytes', 'Bytes read from MQTT connections', 'bytes', () => stats.bytesIn);
  counter('connections', 'Clients let in', 'connections', () => stats.connects);
  counter('connections_refused', 'Connections refused before they became clients', 'connections', () => stats.refused);
  counter('disconnects', 'Clients that have gone', 'connections', () => stats.disconnects);
  counter(
    'takeovers',
    'Connections closed because another one had the same client id',
    'connections',
    () => stats.takeovers,
  );
  counter('protocol_errors', 'Connections closed for a protocol error', 'connections', () => stats.protocolErrors);
  counter('sessions_expired', 'Sessions that ended by their expiry', 'sessions', () => stats.expiredSessions);
  counter(
    'qos2_duplicates',
    'QoS 2 publishes received again and not delivered again',
    'messages',
    () => stats.duplicatesQos2,
  );
  counter(
    'publish_oversized',
    'Publishes acknowledged without effect: their payload is larger than mqtt.max_payload_size',
    'messages',
    () => stats.tooLargePublish,
  );
  const DENIED = 'Requests that rights do not allow';
  counter('denied', DENIED, 'messages', () => stats.deniedPublish, { action: 'publish' });
  counter('denied', DENIED, 'messages', () => stats.deniedSubscribe, { action: 'subscribe' });
  counter('denied', DENIED, 'messages', () => stats.deniedWill, { action: 'will' });
  const DROPPED = 'Messages not delivered to one receiver, by reason';
  const reasons: [string, () => number][] = [
    ['queue_full', () => delivery.droppedQueueFull],
    ['slow_reader', () => delivery.droppedSlow],
    ['offline', () => delivery.droppedOffline],
    ['too_large', () => delivery.droppedTooLarge],
    ['expired', () => delivery.droppedExpired],
    ['forbidden', () => delivery.droppedForbidden],
    ['hook', () => delivery.droppedByHook],
    ['store_full', () => delivery.refusedStore],
  ];
  for (const [reason, read] of reasons) counter('publish_dropped', DROPPED, 'messages', read, { reason });
  const LIMITED = 'What clients asked for and was refused for lack of room, by what was full';
  for (const limit of [
    'sessions',
    'subscriptions',
    'retained',
    'store',
    'memory',
    'matching',
    'exclusive',
    'delayed',
    'quota',
  ] as const)
    counter('limited', LIMITED, 'items', () => core.caps.counts[limit], { limit });
  const COUNTED = 'Memory that clients and peers make the gateway keep, by kind';
  for (const kind of KINDS) {
    const spec = { name: 'tidegate_memory_counted_bytes', text: COUNTED, type: 'gauge', unit: 'bytes' } as const;
    metrics.read(spec, () => core.ledger.of(kind), { kind });
  }
  counter(
    'loop_held',
    'Times the input of one client held the event loop for more than 50 ms',
    'items',
    () => stats.held,
  );
  counter(
    'work_put_off',
    'Times a client had used its share of the event loop and went on behind others',
    'items',
    () => core.pace.putOff,
  );
  counter(
    'topics_rewritten',
    'Topics and filters that a rewrite rule has changed',
    'items',
    () => stats.rewrittenPublish,
    { action: 'publish' },
  );
  counter(
    'topics_rewritten',
    'Topics and filters that a rewrite rule has changed',
    'items',
    () => stats.rewrittenSubscribe,
    { action: 'subscribe' },
  );
  counter(
    'publish_misplaced',
    'Publishes without effect because no valid topic was left of theirs',
    'messages',
    () => stats.misplacedPublish,
  );
  const DELAYED = 'Delayed messages, by what has become of them';
  for (const outcome of ['accepted', 'refused', 'published', 'denied', 'expired', 'removed'] as const)
    counter('delayed', DELAYED, 'messages', () => core.delayed.counts[outcome], { outcome });
  gauge('delayed_messages', 'Delayed messages that wait', 'messages', () => core.delayed.count);
  gauge('delayed_bytes', 'Payload bytes of delayed messages that wait', 'bytes', () => core.delayed.bytes);
  gauge('exclusive_subscriptions', 'Exclusive subscriptions', 'items', () => core.exclusives.count);
  gauge('clients_connected', 'Clients connected now', 'connections', () => sessions().connected);
  gauge('sessions', 'Sessions, connected or not', 'sessions', () => sessions().total);
  gauge(
    'subscriptions',
    'Subscriptions, shared ones included',
    'items',
    () => core.router.subscriptionCount + core.router.sharedCount,
  );
  gauge('topics', 'Different topic filters that are subscribed', 'items', () => core.router.filterCount);
  gauge('retained_messages', 'Retained messages', 'messages', () => core.router.retainedCount);
  gauge('retained_bytes', 'Memory of retained messages', 'bytes', () => core.router.retainedBytes);
  gauge('queued_messages', 'Messages queued or in flight for sessions', 'messages', () => delivery.queuedMessages);
  gauge('queued_bytes', 'Memory of messages queued or in flight', 'bytes', () => delivery.queuedBytes);
}
