// What the engine aedes cannot do: a configuration that asks for it is refused where it asks. Called by
// config/build/build.ts. Data and predicates; knows nothing of the engine but its limits.
import { listenerBlocks } from './build/listeners.ts';
import type { CheckedRoot } from './schema/schema.ts';
import type { Sink } from './sink.ts';

/** Topics and filters of more levels cannot be matched there. */
const MOST_LEVELS = 100;
const KEEPALIVE_MULTIPLIER = 1.5;
/** Bounds of the native engine on what clients make it keep. */
const BOUNDS = [
  'max_sessions',
  'max_subscriptions',
  'max_total_subscriptions',
  'max_retained_messages',
  'max_retained_bytes',
] as const;

interface ListenerKeys {
  readonly max_qos: number;
  readonly auto_clientid_prefix: string;
  readonly use_username_as_clientid: boolean;
  readonly mount_point: string;
}

function checkListener(listener: ListenerKeys, cannot: (block: object, key: string, what: string) => void): void {
  if (listener.max_qos < 2) cannot(listener, 'max_qos', 'cannot lower QoS');
  if (listener.auto_clientid_prefix !== 'auto-') cannot(listener, 'auto_clientid_prefix', 'names such clients itself');
  if (listener.mount_point !== '') cannot(listener, 'mount_point', 'passes topics on as they are');
  if (listener.use_username_as_clientid) cannot(listener, 'use_username_as_clientid', 'takes the client id as it is');
}

function checkTopics(
  { topics, validation, quotas }: CheckedRoot,
  cannot: (block: object, key: string, what: string) => void,
): void {
  if (topics.rewrite.length > 0) cannot(topics, 'rewrite', 'passes topics on as they are');
  if (topics.auto_subscribe.length > 0) cannot(topics, 'auto_subscribe', 'subscribes only what clients ask for');
  if (topics.exclusive_subscriptions) cannot(topics, 'exclusive_subscriptions', 'has no exclusive subscriptions');
  if (topics.delayed.enable) cannot(topics.delayed, 'enable', 'delays no messages');
  for (const quota of quotas.values()) if (quota.enable) cannot(quota, 'per', 'has no quotas');
  for (const rule of validation.values()) if (rule.enable) cannot(rule, 'topics', 'does not look at payloads');
}

export function checkEngine(root: CheckedRoot, persists: boolean, sink: Sink): void {
  const { broker, mqtt, persistence, sqlite, auth, preset, tracing } = root;
  if (broker.engine !== 'aedes') return;
  if (broker.redis !== null)
    sink.doubt(
      broker,
      'redis',
      'acknowledged means kept by this Redis (appendfsync always), and QoS 2 may come twice when Redis or a gateway stops in the middle of an exchange: docs/broker-engines.md',
    );
  const cannot = (block: object, key: string, what: string): void =>
    sink.refuse(block, key, `engine = aedes ${what}; engine = native can`);
  if (persists && sqlite !== null && persistence.path === '')
    cannot(sqlite, 'enable', 'keeps nothing on disk, only in the Redis of broker.redis');
  else if (persists)
    cannot(
      persistence,
      sink.written(persistence, 'path') ? 'path' : 'enable',
      'keeps nothing on disk, only in the Redis of broker.redis',
    );
  if (mqtt.max_qos < 2) cannot(mqtt, 'max_qos', 'cannot lower QoS for all clients');
  if (mqtt.queue_qos0) cannot(mqtt, 'queue_qos0', 'keeps no QoS 0 messages for sessions that are offline');
  if (mqtt.keepalive_multiplier !== KEEPALIVE_MULTIPLIER)
    cannot(mqtt, 'keepalive_multiplier', `always waits ${KEEPALIVE_MULTIPLIER} times the Keep Alive`);
  if (sink.written(mqtt, 'max_topic_levels') && (mqtt.max_topic_levels === 0 || mqtt.max_topic_levels > MOST_LEVELS))
    cannot(mqtt, 'max_topic_levels', `has topics of ${MOST_LEVELS} levels at most`);
  if (sink.written(mqtt, 'shared_available') && mqtt.shared_available)
    cannot(mqtt, 'shared_available', 'has no shared subscriptions');
  for (const key of BOUNDS)
    if (sink.written(mqtt, key) && mqtt[key] !== 0)
      cannot(mqtt, key, 'bounds neither sessions nor subscriptions nor retained messages');
  if (mqtt.max_payload_size > 0) cannot(mqtt, 'max_payload_size', 'does not look at the size of payloads');
  if (mqtt.clientid_prefix !== '') cannot(mqtt, 'clientid_prefix', 'takes every client id');
  for (const { block } of listenerBlocks(root)) checkListener(block, cannot);
  checkTopics(root, cannot);
  if (tracing?.enable && (tracing.ratio > 0 || tracing.parents))
    cannot(tracing, 'parents', 'traces no messages (metrics alone: ratio = 0, parents = false)');
  if (preset !== null && preset.session.size > 0) cannot(preset, 'session', 'keeps no session before its client');
  if (auth.scram_file !== null) cannot(auth, 'scram_file', 'speaks no MQTT 5.0, which enhanced authentication needs');
}
