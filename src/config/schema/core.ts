// The keys of mqtt, persistence, http_server, metrics, webhook, log and broker: each once, with type, default and text.
// Data for schema.ts; to add a key, add a row here, then run `make docs`. Sections that config/config.ts does not derive from the schema
// take a field there and a line in config/build/core.ts too.
// Names, units and meanings are NanoMQ's where NanoMQ has the key; what it has and this gateway does not need is `ignored`.

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
      text: 'Largest MQTT packet taken from a client. 0 = no limit but that of the protocol, 256 MB.',
      check: (value) => (value === 0 || value >= 20 ? null : 'at least 20 bytes are needed'),
    }),
    max_payload_size: size({
      default: '0B',
      max: 268_435_455,
      text: 'Largest payload of a publish; one with more is acknowledged (MQTT 5: 0x83) and has no effect. 0 = no limit.',
    }),
    max_topic_alias: int({ default: 64, max: 65535, text: 'Topic aliases a client may use (MQTT 5). 0 = none.' }),
    max_topic_alias_out: int({
      default: 0,
      max: 65535,
      text: 'Topic aliases that are used towards a client which offers them (MQTT 5). 0 = none: some client libraries hand their users an empty topic.',
    }),
    keepalive_multiplier: real({
      default: 1.5,
      min: 1,
      max: 100,
      text: 'A client that is silent for this many times its keep alive is gone.',
    }),
    max_keepalive: seconds({
      default: 65535,
      max: 65535,
      text: 'Longest keep alive; MQTT 5 clients are told to use it instead of a longer one. 0 = no limit.',
    }),
    max_inflight_window: int({
      default: 2048,
      max: 65535,
      text: 'QoS 1 and 2 messages on their way to one client; the Receive Maximum of an MQTT 5 client lowers it. 0 = no limit.',
    }),
    max_mqueue_len: int({ default: 1024, text: 'Messages waiting for one session. 0 = no limit.' }),
    max_mqueue_bytes: size({ default: '16MB', text: 'Bytes waiting for one session. 0 = no limit.' }),
    queue_qos0: flag({ default: false, text: 'Keep QoS 0 messages for sessions that are offline.' }),
    max_awaiting_rel: int({
      default: 2048,
      max: 65535,
      text: 'QoS 1 and 2 messages from one client that are not done yet: the Receive Maximum an MQTT 5 client is told. 0 = no limit.',
    }),
    max_session_expiry: duration({
      default: '7d',
      max: MAX_EXPIRY_MS,
      text: 'Longest time a session is kept for a client that is offline. 0 = no limit.',
    }),
    max_qos: digit([0, 1, 2], { default: 2, text: 'Highest QoS of publishes and subscriptions.' }),
    retain_available: flag({ default: true, text: 'Whether retained messages are taken.' }),
    wildcard_available: flag({ default: true, text: 'Whether subscriptions may hold + and #.' }),
    shared_available: flag({ default: true, text: 'Whether shared subscriptions ($share/...) are taken.' }),
    max_topic_levels: int({ default: 128, max: 65535, text: 'Levels of a topic or filter. 0 = no limit.' }),
    clientid_prefix: text({
      default: '',
      text: 'What every client id has to begin with; others are refused. Empty = anything.',
    }),
    max_sessions: int({
      default: 100_000,
      text: 'Sessions, connected or kept; a client that would need one more is refused (0x97, before MQTT 5 code 3). 0 = no limit.',
    }),
    max_subscriptions: int({
      default: 10_000,
      text: 'Subscriptions of one session; one more is refused (0x97, before MQTT 5 0x80). 0 = no limit.',
    }),
    max_total_subscriptions: int({
      default: 1_000_000,
      text: 'Subscriptions of all sessions together. 0 = no limit.',
    }),
    max_retained_messages: int({
      default: 1_000_000,
      text: 'Retained messages; a publish that would make one more is refused (0x97) and at QoS 0 not kept. 0 = no limit.',
    }),
    max_retained_bytes: size({ default: '256MB', text: 'Memory of all retained messages together. 0 = no limit.' }),
    max_client_write_buffer: size({
      default: '4MB',
      min: 1024,
      text: 'Bytes a slow reader may leave unsent; past it QoS 0 is dropped and QoS 1 and 2 wait in the queue.',
    }),
    send_timeout: duration({
      default: '30s',
      text: 'A client that takes no byte of what waits for it in this time is closed. 0 = never.',
    }),
    max_connect_rate: int({
      default: 0,
      text: 'New connections a second, all listeners together; what is above it is closed at once. 0 = no limit.',
    }),
    max_pending_connections: int({
      default: 10_000,
      text: 'Connections at once that have not been let in yet; above it new ones are closed. 0 = no limit.',
    }),
    max_matching_filters: int({
      default: 1000,
      text: 'Topic filters of one client that may match the same topic; where more do, the newest end and the client is closed (0x97). 0 = no limit.',
    }),
    memory_budget: size({
      default: '0B',
      check: (value) => (value === 0 || value >= 1024 * 1024 ? null : 'at least 1MB is needed'),
      text: 'Bytes that wait for all clients together, queued and unsent; above it publishers are read more slowly, and at one and a half times as much queues take no more. 0 = a quarter of the memory of the machine, at least 64MB and at most 1GB, and at most a quarter of what Node.js may use as heap.',
    }),
    kept_budget: size({
      default: '0B',
      check: (value) => (value === 0 || value >= 1024 * 1024 ? null : 'at least 1MB is needed'),
      text: 'Memory of what stays when connections end: sessions with their names and wills, subscriptions, retained messages, the trees they are found in. The newest is refused (0x97, before MQTT 5 code 3 or 0x80) where it does not fit; subscriptions may take half, retained messages half, both three quarters. 0 = as much as memory_budget.',
    }),
    sys_interval: duration({
      default: '10s',
      text: 'How often the values below $SYS are published. 0 = there is no $SYS.',
    }),
    property_size: needless('the number of properties is not limited by a key of its own; no effect', 'number'),
    retry_interval: needless(
      'messages are sent again when a client comes back, not after a time; no effect',
      'duration',
    ),
    await_rel_timeout: needless(
      'QoS 2 messages wait for their PUBREL as long as the session lives; no effect',
      'duration',
    ),
    batch_resend: needless('what waits is always sent in batches; no effect', 'true | false'),
  },
  { unknown: 'warn', text: 'Limits and features of MQTT.' },
);

export const PERSISTENCE = block(
  {
    enable: flag({ default: null, restart: true, text: 'Absent = on when there is a path.', example: true }),
    path: text({ default: '', restart: true, text: 'Database file; its folder is made. A path turns persistence on.' }),
    sync: word(['ack', 'interval', 'off'], {
      default: 'ack',
      restart: true,
      text: 'ack: acknowledged means on disk; interval: written at least that often; off: the system decides.',
    }),
    interval: duration({ default: '100ms', unit: 'ms', min: 1, restart: true, text: 'For sync = interval.' }),
    max_size: size({
      default: '1GB',
      restart: true,
      text: 'Size of the database past which QoS 1 and 2 publishes to kept sessions are refused. 0 = no limit.',
    }),
    on_corrupt: word(['start', 'stop'], {
      default: 'start',
      restart: true,
      text: 'What a damaged database does. start: it is put aside and an empty one begins; stop: the gateway does not start.',
    }),
  },
  { unknown: 'error', text: 'Sessions, queued and retained messages that survive the process.' },
);

const WEB_USER = block(
  {
    password: text({
      secret: true,
      text: 'Plain, or a hash as tidegate passwd writes it.',
      example: 'change-me',
    }),
    role: word(['viewer', 'operator', 'admin'], {
      default: 'viewer',
      text: 'viewer: reads; operator: also acts on clients, messages and switches; admin: everything.',
    }),
    enable: flag({ default: true, text: 'Whether this user is let in.' }),
  },
  { unknown: 'error', text: 'A user of console and REST API.' },
);

export const HTTP_SERVER = optional(
  {
    ip_addr: text({
      default: '127.0.0.1',
      restart: true,
      text: 'Address to listen on; without credentials always loopback.',
    }),
    port: int({ default: 8081, max: 65535, restart: true, text: 'Port to listen on.' }),
    username: text({ default: null, text: 'Name for basic authentication.', example: 'admin' }),
    password: text({
      default: null,
      secret: true,
      text: 'Password for basic authentication: plain, or a hash as tidegate passwd writes it.',
      example: 'change-me',
    }),
    users: named(WEB_USER, { example: 'name', text: 'More users of console and REST API, each with a role.' }),
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
              text: 'Public key that tokens are verified with, PEM.',
              example: '/etc/tidegate/jwt.pub',
            }),
          },
          { unknown: 'warn', text: 'The public key.' },
        ),
        issuer: text({ default: null, text: 'What the claim iss has to be.', example: 'https://id.example.org' }),
        audience: text({ default: null, text: 'What the claim aud has to hold.', example: 'tidegate' }),
      },
      { unknown: 'warn', text: 'For auth_type = jwt.' },
    ),
    limit_conn: int({ default: 32, restart: true, text: 'Connections at once. 0 = no limit.' }),
    max_body: size({ default: '1MB', restart: true, text: 'Largest request body. 0 = no limit.' }),
    tls: optional(needRestart(TLS_SERVER), { unknown: 'error', text: 'Serve HTTPS.' }),
    enable: flag({ default: true, restart: true, text: 'Whether the server is started.' }),
  },
  { unknown: 'warn', text: 'Web console and REST API; off unless this block is there.' },
);

export const METRICS = optional(
  {
    bind: text({ default: '127.0.0.1:9100', restart: true, text: 'Address and port.', check: checkBind }),
    auth: word(['none', 'basic'], {
      default: 'none',
      restart: true,
      text: 'basic: with the credentials of http_server.',
    }),
  },
  { unknown: 'error', text: 'Prometheus page /metrics on a port of its own; off unless this block is there.' },
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
      { text: 'What is reported.', example: 'on_message_publish' },
    ),
    topic: text({
      default: null,
      text: 'For on_message_publish: which topics.',
      check: checkTopicFilter,
      example: 'a/#',
    }),
  },
  { unknown: 'warn', text: 'One event.' },
);
export const WEBHOOK = optional(
  {
    enable: flag({ default: true, text: 'Whether events are sent.' }),
    url: masked(maskUrl, text({ text: 'Where events are sent, as POST.', example: 'http://127.0.0.1:8080/events' })),
    headers: pairs({
      secret: SECRET_HEADER,
      text: 'Headers to send.',
      example: { 'content-type': 'application/json' },
    }),
    body: block(
      { encoding: word(['plain', 'base64', 'base62'], { default: 'plain', text: 'How payloads are written.' }) },
      { unknown: 'warn', text: 'Form of the body.' },
    ),
    pool_size: int({ default: 32, min: 1, max: 1024, text: 'Requests at once.' }),
    cancel_timeout: duration({ default: '5s', unit: 'ms', text: 'Time for an answer.' }),
    batch: block(
      {
        size: int({
          default: 1,
          min: 1,
          max: 1000,
          text: 'Events in one request at most. 1 = one each, as NanoMQ sends them; more = a JSON array of events, whatever their number.',
        }),
        interval: duration({
          default: '100ms',
          unit: 'ms',
          text: 'Longest time an event waits for others to fill the request.',
        }),
      },
      { unknown: 'error', text: 'Several events in one request.' },
    ),
    events: list(EVENT, { text: 'Which events are sent.' }),
    tls: optional(TLS_CLIENT, { unknown: 'error', text: 'How https:// services are trusted and asked.' }),
    ssl: ignored('NanoMQ reads these and does not use them; the block tls has an effect', 'block'),
  },
  { unknown: 'warn', text: 'Events sent to an HTTP service; off unless this block is there.' },
);

export const LOG = block(
  {
    level: word(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], {
      default: 'warn',
      text: 'The least important lines written.',
    }),
    to: list(word(['console', 'file', 'syslog', 'uds'], { text: 'A target.' }), {
      single: true,
      restart: true,
      default: ['console'],
      text: 'Where lines go: console, file or both.',
    }),
    dir: text({ default: '', restart: true, text: 'Folder of the log file; empty = the current one.' }),
    file: text({ default: 'tidegate.log', restart: true, text: 'Name of the log file.' }),
    rotation: block(
      {
        size: size({
          default: '10MB',
          restart: true,
          text: 'The file is closed and numbered when it has this size. 0 = never.',
        }),
        count: int({ default: 5, max: 1000, restart: true, text: 'Old files kept. 0 = all.' }),
      },
      { unknown: 'warn', text: 'Rotation of the log file.' },
    ),
    format: word(['auto', 'json', 'pretty'], {
      default: 'auto',
      restart: true,
      text: 'auto: pretty on a terminal, else json.',
    }),
    uds_addr: ignored('logging to a Unix socket is not supported', 'text'),
  },
  { unknown: 'warn', text: 'Log lines.' },
);

export const BROKER = block(
  {
    engine: word(['native', 'aedes'], {
      default: 'native',
      restart: true,
      text: 'The broker core. aedes: MQTT 3.1 and 3.1.1 only and nothing on disk, but several gateways can be one broker.',
    }),
    profile: word(['normal', 'small'], {
      default: 'normal',
      restart: true,
      text: 'small: for machines of 512MB and less. The heap grows in smaller steps, the store caches less, mqtt.memory_budget = 0 means an eighth of the memory (16MB to 64MB), and max_client_write_buffer and max_mqueue_bytes are at most 512KB and 2MB. Costs throughput.',
    }),
    redis: masked(
      maskUrl,
      text({
        default: null,
        restart: true,
        text: 'With engine = aedes: several gateways share one broker through this Redis.',
        example: 'redis://127.0.0.1:6379',
      }),
    ),
  },
  { unknown: 'error', text: 'Which broker core runs.' },
);

const PRESET_SESSION = block(
  {
    clientid: text({
      text: 'Client id; whoever connects with it first, without clean start, owns the session.',
      example: 'device-1',
    }),
    topic: list(
      block(
        {
          remote_topic: text({ text: 'Topic filter.', check: checkTopicFilter, example: 'down/device-1/#' }),
          qos: digit([0, 1, 2], { default: 1, text: 'QoS of the subscription.' }),
          retain_as_published: flag({ default: false, text: 'Retain As Published (MQTT 5).' }),
          retain_handling: int({ default: 0, max: 2, text: 'Retain Handling (MQTT 5).' }),
          retain: ignored('stored messages are sent when a client subscribes; no effect', 'number'),
          stream_id: ignored('QUIC streams are not supported', 'number'),
        },
        { unknown: 'warn', text: 'One subscription.' },
      ),
      { text: 'What is kept for the client until it comes.' },
    ),
  },
  { unknown: 'warn', text: 'A session that is kept from the start of the gateway on, for max_session_expiry.' },
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
      resend_interval: needless('messages are sent again when a client comes back; no effect', 'number'),
    },
    {
      unknown: 'warn',
      text: "NanoMQ's block for persistence: the same as persistence.path = <mounted_file_path>/tidegate.db.",
    },
  ),
  preset: optional(
    {
      session: named(PRESET_SESSION, { example: 'name', text: 'Sessions that are there before their clients.' }),
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
