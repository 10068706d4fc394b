// The keys of mqtt, persistence, http_server, metrics, webhook, log and broker: each once, with type, default and text.
// Data for schema.ts; to add a key, add a row here, then run `make docs`. Sections that config/config.ts does not
// derive from the schema take a field there and a line in config/build/core.ts too. Names, units and meanings are
// NanoMQ's where NanoMQ has the key; what it has and this gateway does not need is `ignored`.

import { checkTopicFilter, maskUrl } from '../values.ts';
import { block, ignored, list, named, needless, needRestart, optional, pairs } from './blocks.ts';
import { digit, duration, flag, int, masked, real, seconds, size, text, word } from './keys.ts';
import { checkBind, SECRET_HEADER, TLS_CLIENT, TLS_SERVER } from './listeners.ts';

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

export const PERSISTENCE = block(
  {
    enable: flag({
      default: null,
      restart: true,
      text: 'Whether persistence is on. Absent = on if path is set.',
      example: true,
    }),
    path: text({
      default: '',
      restart: true,
      text: 'Database file; its folder is created. Setting it turns persistence on.',
    }),
    sync: word(['ack', 'interval', 'off'], {
      default: 'ack',
      restart: true,
      text: 'When data is synced to disk. ack: before a message is acknowledged. interval: at least once per interval. off: when the operating system decides.',
    }),
    interval: duration({ default: '100ms', unit: 'ms', min: 1, restart: true, text: 'Interval for sync = interval.' }),
    max_size: size({
      default: '1GB',
      restart: true,
      text: 'Largest size of the database; beyond it, QoS 1 and 2 publishes to persistent sessions are refused. 0 = no limit.',
    }),
    on_corrupt: word(['start', 'stop'], {
      default: 'start',
      restart: true,
      text: 'Reaction to a damaged database. start: set it aside and start with an empty one. stop: do not start.',
    }),
  },
  { unknown: 'error', text: 'Storage for sessions, queued and retained messages across restarts.' },
);

/** Ten years. */
const MAX_KEEP_MS = 3650 * 24 * 3_600_000;

export const RECORD = block(
  {
    topics: list(text({ text: 'Topic filter.', check: checkTopicFilter }), {
      single: true,
      text: 'Topic filters of the messages that are recorded. Empty = nothing is recorded.',
      example: ['plant/#'],
    }),
    keep: duration({
      default: '7d',
      max: MAX_KEEP_MS,
      text: 'Age at which recorded messages are deleted. 0 = no limit.',
    }),
    max_size: size({
      default: '1GB',
      text: 'Largest size of the file in use; beyond it, the oldest recorded messages are deleted. 0 = no limit.',
    }),
    path: text({
      default: '',
      restart: true,
      text: 'File of the recording. Empty = beside the database of persistence, with -archive in its name.',
    }),
  },
  { unknown: 'error', text: 'Recording of messages for later queries, export and replay: docs/recording.md.' },
);

export const WEB_USER = block(
  {
    password: text({
      secret: true,
      text: 'Password: plain, or a hash made by tidegate passwd.',
      example: 'change-me',
    }),
    role: word(['viewer', 'operator', 'admin'], {
      default: 'viewer',
      text: 'viewer: read only. operator: also manage clients, messages and switches. admin: everything.',
    }),
    enable: flag({ default: true, text: 'Whether this user may log in.' }),
  },
  { unknown: 'error', text: 'A user of the console and REST API.' },
);

export const HTTP_SERVER = optional(
  {
    ip_addr: text({
      default: '127.0.0.1',
      restart: true,
      text: 'Address to listen on. Without credentials, always loopback.',
    }),
    port: int({ default: 8081, max: 65535, restart: true, text: 'Port to listen on.' }),
    username: text({ default: null, text: 'User name for basic authentication.', example: 'admin' }),
    password: text({
      default: null,
      secret: true,
      text: 'Password for basic authentication: plain, or a hash made by tidegate passwd.',
      example: 'change-me',
    }),
    users: named(WEB_USER, { example: 'name', text: 'Further users of the console and REST API, each with a role.' }),
    auth_type: word(['basic', 'no_auth', 'jwt'], {
      default: 'basic',
      restart: true,
      text: 'How requests are authenticated.',
    }),
    jwt: optional(
      {
        public: optional(
          {
            keyfile: text({
              default: null,
              text: 'Public key for verifying tokens, PEM.',
              example: '/etc/tidegate/jwt.pub',
            }),
          },
          { unknown: 'warn', text: 'The public key.' },
        ),
        issuer: text({ default: null, text: 'Required value of the claim iss.', example: 'https://id.example.org' }),
        audience: text({ default: null, text: 'Value that the claim aud must contain.', example: 'tidegate' }),
      },
      { unknown: 'warn', text: 'For auth_type = jwt.' },
    ),
    limit_conn: int({ default: 32, restart: true, text: 'Largest number of connections. 0 = no limit.' }),
    max_body: size({ default: '1MB', restart: true, text: 'Largest request body. 0 = no limit.' }),
    tls: optional(needRestart(TLS_SERVER), { unknown: 'error', text: 'Serve HTTPS.' }),
    enable: flag({ default: true, restart: true, text: 'Whether the HTTP server runs.' }),
  },
  { unknown: 'warn', text: 'Web console and REST API. Off without this block.' },
);

export const METRICS = optional(
  {
    bind: text({ default: '127.0.0.1:9100', restart: true, text: 'Address and port.', check: checkBind }),
    auth: word(['none', 'basic'], {
      default: 'none',
      restart: true,
      text: 'Authentication. basic: the credentials of http_server.',
    }),
  },
  { unknown: 'error', text: 'Prometheus endpoint /metrics on a separate port. Off without this block.' },
);

const EVENT = block(
  {
    event: word(
      [
        'on_client_connect',
        'on_client_connack',
        'on_client_connected',
        'on_client_disconnected',
        'on_client_subscribe',
        'on_client_unsubscribe',
        'on_session_subscribed',
        'on_session_unsubscribed',
        'on_session_terminated',
        'on_message_publish',
        'on_message_delivered',
        'on_message_acked',
      ],
      { text: 'Event to report.', example: 'on_message_publish' },
    ),
    topic: text({
      default: null,
      text: 'For on_message_publish: topic filter of the messages.',
      check: checkTopicFilter,
      example: 'a/#',
    }),
  },
  { unknown: 'warn', text: 'One event.' },
);
export const WEBHOOK = optional(
  {
    enable: flag({ default: true, text: 'Whether events are sent.' }),
    url: masked(
      maskUrl,
      text({ text: 'URL that receives the events as POST requests.', example: 'http://127.0.0.1:8080/events' }),
    ),
    headers: pairs({
      secret: SECRET_HEADER,
      text: 'Headers to send.',
      example: { 'content-type': 'application/json' },
    }),
    body: block(
      { encoding: word(['plain', 'base64', 'base62'], { default: 'plain', text: 'Encoding of payloads.' }) },
      { unknown: 'warn', text: 'Format of the request body.' },
    ),
    pool_size: int({ default: 32, min: 1, max: 1024, text: 'Largest number of concurrent requests.' }),
    cancel_timeout: duration({ default: '5s', unit: 'ms', text: 'Time allowed for an answer.' }),
    batch: block(
      {
        size: int({
          default: 1,
          min: 1,
          max: 1000,
          text: 'Largest number of events in one request. 1 = one event per request, as NanoMQ sends them; more = always a JSON array of events.',
        }),
        interval: duration({
          default: '100ms',
          unit: 'ms',
          text: 'Longest time an event waits for the request to fill.',
        }),
      },
      { unknown: 'error', text: 'Sending several events in one request.' },
    ),
    events: list(EVENT, { text: 'Events to send.' }),
    tls: optional(TLS_CLIENT, { unknown: 'error', text: 'TLS settings for https:// URLs.' }),
    ssl: ignored('NanoMQ reads these and does not use them; use the block tls', 'block'),
  },
  { unknown: 'warn', text: 'Events sent to an HTTP service. Off without this block.' },
);

export const LOG = block(
  {
    level: word(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], {
      default: 'warn',
      text: 'Lowest level that is logged.',
    }),
    to: list(word(['console', 'file', 'syslog', 'uds'], { text: 'A target.' }), {
      single: true,
      restart: true,
      default: ['console'],
      text: 'Where log lines are written: console, file or both.',
    }),
    dir: text({ default: '', restart: true, text: 'Folder of the log file; empty = the working directory.' }),
    file: text({ default: 'tidegate.log', restart: true, text: 'Name of the log file.' }),
    rotation: block(
      {
        size: size({
          default: '10MB',
          restart: true,
          text: 'Size at which the log file is rotated. 0 = never.',
        }),
        count: int({ default: 5, max: 1000, restart: true, text: 'Number of old files to keep. 0 = all.' }),
      },
      { unknown: 'warn', text: 'Rotation of the log file.' },
    ),
    format: word(['auto', 'json', 'pretty'], {
      default: 'auto',
      restart: true,
      text: 'Format of log lines. auto: pretty on a terminal, else json.',
    }),
    uds_addr: ignored('logging to a Unix socket is not supported', 'text'),
  },
  { unknown: 'warn', text: 'Logging.' },
);

export const BROKER = block(
  {
    engine: word(['native', 'aedes'], {
      default: 'native',
      restart: true,
      text: 'Broker engine. aedes: MQTT 3.1 and 3.1.1 only and no persistence, but several gateways can form one broker.',
    }),
    profile: word(['normal', 'small'], {
      default: 'normal',
      restart: true,
      text: 'Memory profile. small: for machines with 512MB or less. The heap grows in smaller steps, the store caches less, mqtt.memory_budget = 0 means an eighth of the memory (16MB to 64MB), and max_client_write_buffer and max_mqueue_bytes are at most 512KB and 2MB. Throughput is lower.',
    }),
    redis: masked(
      maskUrl,
      text({
        default: null,
        restart: true,
        text: 'With engine = aedes: Redis server through which several gateways form one broker.',
        example: 'redis://127.0.0.1:6379',
      }),
    ),
  },
  { unknown: 'error', text: 'Broker engine and memory profile.' },
);

const PRESET_SESSION = block(
  {
    clientid: text({
      text: 'Client id. The first client that connects with it without clean start owns the session.',
      example: 'device-1',
    }),
    topic: list(
      block(
        {
          remote_topic: text({ text: 'Topic filter.', check: checkTopicFilter, example: 'down/device-1/#' }),
          qos: digit([0, 1, 2], { default: 1, text: 'QoS of the subscription.' }),
          retain_as_published: flag({ default: false, text: 'Retain As Published (MQTT 5).' }),
          retain_handling: int({ default: 0, max: 2, text: 'Retain Handling (MQTT 5).' }),
          retain: ignored('retained messages are sent when a client subscribes; no effect', 'number'),
          stream_id: ignored('QUIC streams are not supported', 'number'),
        },
        { unknown: 'warn', text: 'One subscription.' },
      ),
      { text: 'Subscriptions of the session; matching messages are kept until the client connects.' },
    ),
  },
  { unknown: 'warn', text: 'A session that exists from the start of the gateway and is kept for max_session_expiry.' },
);

/** Blocks of NanoMQ that mean something here, and those for what is not here. */
export const FOREIGN = {
  system: needless('threads and processes are not configured; no effect', 'block'),
  sqlite: optional(
    {
      enable: flag({ default: true, text: 'Whether persistence is on.' }),
      mounted_file_path: text({ default: '.', text: 'Folder of the database.' }),
      disk_cache_size: needless('the size of the database is persistence.max_size; no effect', 'number'),
      flush_mem_threshold: needless('writes are grouped by time, see persistence.sync; no effect', 'number'),
      resend_interval: needless('messages are resent when a client reconnects; no effect', 'number'),
    },
    {
      unknown: 'warn',
      text: "NanoMQ's block for persistence: the same as persistence.path = <mounted_file_path>/tidegate.db.",
    },
  ),
  preset: optional(
    {
      session: named(PRESET_SESSION, { example: 'name', text: 'Sessions that exist before their clients connect.' }),
    },
    { unknown: 'warn', text: "NanoMQ's preset sessions." },
  ),
  plugin: ignored('plugins are not supported', 'block'),
  exchange_client: ignored('exchanges are not supported', 'block'),
  exchange: ignored('exchanges are not supported', 'block'),
  parquet: ignored('parquet files are not supported', 'block'),
  blf: ignored('BLF files are not supported', 'block'),
  cmd: needless('no effect', 'block'),
  license: needless('no licence is needed', 'block'),
};
