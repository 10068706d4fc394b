// The keys of mqtt, limits and features of MQTT: each once, with type, default and text. Data for schema.ts; to add a
// key, add a row here, use it by its name in code (max_keepalive: maxKeepaliveSeconds) and run `make docs`. Names,
// units and meanings are NanoMQ's where NanoMQ has the key.
import { block, needless } from './blocks.ts';
import { digit, duration, flag, int, real, seconds, size, text } from './keys.ts';

/** A session may be kept 0xFFFFFFFE seconds at most, MQTT 5.0 section 3.1.2.11.2. */
const MAX_EXPIRY_MS = 0xfffffffe * 1000;

export const MQTT = block(
  {
    max_packet_size: size({
      default: '10MB',
      max: 268_435_460,
      text: 'Largest MQTT packet accepted from a client. 0 = the limit of the protocol, 256 MB.',
      check: (value) => (value === 0 || value >= 20 ? null : 'at least 20 bytes are required'),
    }),
    max_payload_size: size({
      default: '0B',
      max: 268_435_455,
      text: 'Largest payload of a publish. Larger ones are acknowledged (MQTT 5: 0x83) but not delivered. 0 = no limit.',
    }),
    max_topic_alias: int({ default: 64, max: 65535, text: 'Topic aliases a client may use (MQTT 5). 0 = none.' }),
    max_topic_alias_out: int({
      default: 0,
      max: 65535,
      text: 'Topic aliases used when sending to clients that accept them (MQTT 5). 0 = none; some client libraries do not resolve aliases and deliver an empty topic.',
    }),
    keepalive_multiplier: real({
      default: 1.5,
      min: 1,
      max: 100,
      text: 'A client that is silent for this multiple of its keep alive is disconnected.',
    }),
    max_keepalive: seconds({
      default: 65535,
      max: 65535,
      text: 'Longest keep alive; MQTT 5 clients that request a longer one receive this value. 0 = no limit.',
    }),
    max_inflight_window: int({
      default: 2048,
      max: 65535,
      text: 'Unacknowledged QoS 1 and 2 messages to one client; a lower Receive Maximum of an MQTT 5 client applies instead. 0 = no limit.',
    }),
    max_mqueue_len: int({ default: 1024, text: 'Messages waiting for one session. 0 = no limit.' }),
    max_mqueue_bytes: size({ default: '16MB', text: 'Bytes waiting for one session. 0 = no limit.' }),
    queue_qos0: flag({ default: false, text: 'Keep QoS 0 messages for sessions that are offline.' }),
    max_awaiting_rel: int({
      default: 2048,
      max: 65535,
      text: 'QoS 1 and 2 messages from one client in progress at the same time; sent to MQTT 5 clients as Receive Maximum. 0 = no limit.',
    }),
    max_session_expiry: duration({
      default: '7d',
      max: MAX_EXPIRY_MS,
      text: 'Longest time the session of an offline client is kept. 0 = no limit.',
    }),
    max_qos: digit([0, 1, 2], { default: 2, text: 'Highest QoS of publishes and subscriptions.' }),
    retain_available: flag({ default: true, text: 'Whether retained messages are accepted.' }),
    wildcard_available: flag({ default: true, text: 'Whether subscriptions may contain + and #.' }),
    shared_available: flag({ default: true, text: 'Whether shared subscriptions ($share/...) are accepted.' }),
    max_topic_levels: int({
      default: 128,
      max: 65535,
      text: 'Largest number of levels of a topic or filter. 0 = no limit.',
    }),
    clientid_prefix: text({
      default: '',
      text: 'Required prefix of client ids; others are refused. Empty = no prefix.',
    }),
    max_sessions: int({
      default: 100_000,
      text: 'Largest number of sessions, online and offline. A client that needs another one is refused (0x97, before MQTT 5 code 3). 0 = no limit.',
    }),
    max_subscriptions: int({
      default: 10_000,
      text: 'Largest number of subscriptions of one session; further ones are refused (0x97, before MQTT 5 0x80). 0 = no limit.',
    }),
    max_total_subscriptions: int({
      default: 1_000_000,
      text: 'Largest number of subscriptions of all sessions together. 0 = no limit.',
    }),
    max_retained_messages: int({
      default: 1_000_000,
      text: 'Largest number of retained messages. A publish that would add another is refused (0x97); at QoS 0 it is not stored. 0 = no limit.',
    }),
    max_retained_bytes: size({ default: '256MB', text: 'Memory of all retained messages together. 0 = no limit.' }),
    max_client_write_buffer: size({
      default: '4MB',
      min: 1024,
      text: 'Largest amount of unsent data for a slow client. Beyond it, QoS 0 is dropped, and QoS 1 and 2 wait in the queue.',
    }),
    send_timeout: duration({
      default: '30s',
      text: 'A client that reads nothing of its pending data for this time is disconnected. 0 = never.',
    }),
    max_connect_rate: int({
      default: 0,
      text: 'New connections per second, all listeners together; further ones are closed at once. 0 = no limit.',
    }),
    max_pending_connections: int({
      default: 10_000,
      text: 'Largest number of connections not yet accepted by a CONNACK; further ones are closed. 0 = no limit.',
    }),
    max_matching_filters: int({
      default: 1000,
      text: 'Largest number of topic filters of one client that match the same topic. If more match, the newest are removed and the client is disconnected (0x97). 0 = no limit.',
    }),
    memory_budget: size({
      default: '0B',
      check: (value) => (value === 0 || value >= 1024 * 1024 ? null : 'at least 1MB is required'),
      text: 'Queued and unsent bytes for all clients together. Above it, publishers are slowed down; above 1.5 times the budget, queues accept nothing more. 0 = a quarter of the memory of the machine, at least 64MB and at most 1GB, and at most a quarter of the heap limit of Node.js.',
    }),
    kept_budget: size({
      default: '0B',
      check: (value) => (value === 0 || value >= 1024 * 1024 ? null : 'at least 1MB is required'),
      text: 'Memory for state that outlives connections: sessions with names and wills, subscriptions, retained messages and their indexes. What does not fit is refused (0x97, before MQTT 5 code 3 or 0x80). Subscriptions may use half of it, retained messages half, both together three quarters. 0 = the size of memory_budget.',
    }),
    sys_interval: duration({
      default: '10s',
      text: 'How often the values below $SYS are published. 0 = no $SYS.',
    }),
    property_size: needless('the number of properties is not limited by a key of its own; no effect', 'number'),
    retry_interval: needless('messages are resent when a client reconnects, not after a time; no effect', 'duration'),
    await_rel_timeout: needless('QoS 2 messages wait for their PUBREL until the session ends; no effect', 'duration'),
    batch_resend: needless('queued messages are always sent in batches; no effect', 'true | false'),
  },
  { unknown: 'warn', text: 'Limits and features of MQTT.' },
);
