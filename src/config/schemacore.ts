// The keys of listeners, mqtt, auth, persistence, http_server, metrics, webhook, log and broker: each once, with type, default and text.
// Data for schema.ts; to add a key, add a row here, a field in config.ts and a line in buildcore.ts, then run `make docs`.
// Names, units and meanings are NanoMQ's where NanoMQ has the key; what it has and this gateway does not need is `ignored`.
import {
  block,
  duration,
  flag,
  group,
  ignored,
  int,
  list,
  masked,
  optional,
  pairs,
  real,
  size,
  text,
  word,
} from './keys.ts';
import { checkNetwork, checkTopicFilter, maskUrl, parseAddress } from './values.ts';

function checkBind(value: string): string | null {
  const address = parseAddress(value);
  if (typeof address === 'string') return address;
  return address.path === '' ? null : 'a path has no meaning here';
}

function checkBindPath(value: string): string | null {
  const address = parseAddress(value);
  return typeof address === 'string' ? address : null;
}

export function checkMode(value: string): string | null {
  return /^0?[0-7]{3}$/.test(value) ? null : 'permissions in octal expected, as in "0660"';
}

/** Server side of TLS, under the names NanoMQ's listeners.ssl uses. */
export const TLS_SERVER = {
  keyfile: text({ default: null, text: 'Private key, PEM.', example: '/etc/tidegate/certs/server.key' }),
  certfile: text({
    default: null,
    text: 'Certificate and the chain above it, PEM.',
    example: '/etc/tidegate/certs/server.pem',
  }),
  cacertfile: text({
    default: null,
    text: 'Authorities that may sign client certificates, PEM.',
    example: '/etc/tidegate/certs/ca.pem',
  }),
  crlfile: text({
    default: null,
    text: 'List of revoked client certificates, PEM.',
    example: '/etc/tidegate/certs/ca.crl',
  }),
  key_password: text({ default: null, secret: true, text: 'Password of the private key.', example: 'change-me' }),
  verify_peer: flag({ default: false, text: 'Ask clients for a certificate and verify it against cacertfile.' }),
  fail_if_no_peer_cert: flag({ default: false, text: 'With verify_peer: refuse clients that show no certificate.' }),
  alpn: list(text({ text: 'Name of a protocol.' }), {
    single: true,
    text: 'ALPN protocol names to offer; empty = no ALPN.',
    example: ['mqtt'],
  }),
};

/** Client side of TLS, for upstreams; the names of listeners.ssl are taken too. */
export const TLS_CLIENT = {
  ca: text({
    default: null,
    text: 'Authorities to trust, PEM; absent = those of the system.',
    example: '/etc/tidegate/certs/ca.pem',
  }),
  cert: text({ default: null, text: 'Our certificate, PEM.', example: '/etc/tidegate/certs/client.pem' }),
  key: text({ default: null, text: 'Private key of our certificate, PEM.', example: '/etc/tidegate/certs/client.key' }),
  key_password: text({ default: null, secret: true, text: 'Password of the private key.', example: 'change-me' }),
  verify: flag({ default: true, text: 'Verify the certificate of the other side and its name.' }),
  servername: text({
    default: null,
    text: 'Name to ask for (SNI) and to verify; absent = the host that is dialled.',
    example: 'broker.example.org',
  }),
};

/** On every kind of listener. */
const LISTENER = {
  enable: flag({ default: true, text: 'Whether the listener is opened.' }),
  max_connections: int({
    default: 0,
    text: 'Connections at once on this listener; above it new ones are closed. 0 = no limit.',
  }),
  connect_timeout: duration({
    default: '10s',
    min: 100,
    text: 'Time a connection has for TLS, WebSocket and its CONNECT packet.',
  }),
  proxy_protocol: flag({
    default: false,
    text: 'A PROXY protocol header, version 1 or 2, comes first on every connection.',
  }),
  allow_anonymous: flag({
    default: null,
    text: 'Instead of auth.allow_anonymous for this listener.',
    example: false,
  }),
  password_file: text({
    default: null,
    text: 'Instead of auth.password_file and auth.password for this listener.',
    example: '/etc/tidegate/passwd',
  }),
  acl_file: text({
    default: null,
    text: 'Instead of auth.acl_file and auth.acl for this listener.',
    example: '/etc/tidegate/acl',
  }),
};
const IDENTITY = {
  use_identity_as_username: flag({
    default: false,
    text: 'The common name of the verified client certificate is the username; passwords are not asked for.',
  }),
};
function bind(fallback: string, path: boolean) {
  return {
    bind: text({
      default: fallback,
      text: path ? 'Address, port and path to listen on.' : 'Address and port to listen on; port 0 = any free one.',
      check: path ? checkBindPath : checkBind,
    }),
  };
}

export const TCP = { ...bind('127.0.0.1:1883', false), ...LISTENER };
export const SSL = { ...bind('0.0.0.0:8883', false), ...LISTENER, ...TLS_SERVER, ...IDENTITY };
export const WS = { ...bind('127.0.0.1:8083/mqtt', true), ...LISTENER };
export const WSS = { ...bind('127.0.0.1:8084/mqtt', true), ...LISTENER, ...TLS_SERVER, ...IDENTITY };
export const UNIX = {
  path: text({ default: null, text: 'Path of the socket; has to be given.', example: '/run/tidegate/mqtt.sock' }),
  mode: text({ default: '0660', text: 'Permissions of the socket, octal.', check: checkMode }),
  group: text({ default: null, text: 'Group of the socket, a name or number.', example: 'tidegate' }),
  ...LISTENER,
};
export const LISTENERS = block(
  {
    tcp: group(TCP, { unknown: 'warn', example: 'second', text: 'MQTT over TCP.' }),
    ssl: group(SSL, { unknown: 'warn', example: 'second', text: 'MQTT over TLS; needs keyfile and certfile.' }),
    ws: group(WS, { unknown: 'warn', example: 'second', text: 'MQTT over WebSocket.' }),
    wss: group(WSS, {
      unknown: 'warn',
      example: 'second',
      text: 'MQTT over WebSocket and TLS; without keyfile and certfile those of listeners.ssl are used.',
    }),
    unix: group(UNIX, { unknown: 'warn', example: 'second', text: 'MQTT over a Unix socket.' }),
    quic: ignored('QUIC listeners are not supported', 'block'),
  },
  {
    unknown: 'warn',
    text: 'Where MQTT is listened for. Without this block: tcp on 127.0.0.1:1883 only; with it, what it names and nothing else.',
  },
);

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
    max_topic_alias: int({ default: 64, max: 65535, text: 'Topic aliases a client may use (MQTT 5). 0 = none.' }),
    keepalive_multiplier: real({
      default: 1.5,
      min: 1,
      max: 100,
      text: 'A client that is silent for this many times its keep alive is gone.',
    }),
    max_keepalive: int({
      default: 65535,
      max: 65535,
      unit: 's',
      text: 'Longest keep alive; MQTT 5 clients are told to use it instead of a longer one. 0 = no limit.',
    }),
    max_inflight_window: int({
      default: 2048,
      max: 65535,
      text: 'QoS 1 and 2 messages on their way to one client, and the Receive Maximum it is told. 0 = no limit.',
    }),
    max_mqueue_len: int({ default: 1024, text: 'Messages waiting for one session. 0 = no limit.' }),
    max_mqueue_bytes: size({ default: '16MB', text: 'Bytes waiting for one session. 0 = no limit.' }),
    queue_qos0: flag({ default: false, text: 'Keep QoS 0 messages for sessions that are offline.' }),
    max_awaiting_rel: int({
      default: 2048,
      max: 65535,
      text: 'QoS 2 messages from one client that wait for its PUBREL. 0 = no limit.',
    }),
    max_session_expiry: duration({
      default: '7d',
      max: MAX_EXPIRY_MS,
      text: 'Longest time a session is kept for a client that is offline. 0 = no limit.',
    }),
    max_qos: int({ default: 2, max: 2, text: 'Highest QoS of publishes and subscriptions.' }),
    retain_available: flag({ default: true, text: 'Whether retained messages are taken.' }),
    wildcard_available: flag({ default: true, text: 'Whether subscriptions may hold + and #.' }),
    shared_available: flag({ default: true, text: 'Whether shared subscriptions ($share/...) are taken.' }),
    max_topic_levels: int({ default: 128, max: 65535, text: 'Levels of a topic or filter. 0 = no limit.' }),
    max_client_write_buffer: size({
      default: '4MB',
      min: 1024,
      text: 'Bytes a slow reader may leave unsent; past it QoS 0 is dropped and QoS 1 and 2 wait in the queue.',
    }),
    send_timeout: duration({
      default: '30s',
      text: 'A client that takes no byte of what waits for it in this time is closed. 0 = never.',
    }),
    property_size: ignored('the number of properties is not limited by a key of its own; no effect', 'number'),
    retry_interval: ignored(
      'messages are sent again when a client comes back, not after a time; no effect',
      'duration',
    ),
    await_rel_timeout: ignored(
      'QoS 2 messages wait for their PUBREL as long as the session lives; no effect',
      'duration',
    ),
    batch_resend: ignored('what waits is always sent in batches; no effect', 'true | false'),
  },
  { unknown: 'warn', text: 'Limits and features of MQTT.' },
);

/** "#" is everybody, in NanoMQ's words. */
function checkWho(value: string): string | null {
  return value === '#' ? null : checkNetwork(value);
}

const ACL_WHO = {
  username: text({ default: null, text: 'The rule is for this username.', example: 'alice' }),
  clientid: text({ default: null, text: 'The rule is for this client id.', example: 'sensor-1' }),
  ipaddr: text({
    default: null,
    text: 'The rule is for this address or network.',
    example: '10.0.0.0/8',
    check: checkWho,
  }),
  ipaddrs: list(text({ text: 'Address or network.', check: checkWho }), {
    text: 'The rule is for these addresses or networks.',
    example: ['127.0.0.1'],
  }),
};
/** A mistake here could leave the gateway open, so unknown keys are errors. */
export const ACL_RULE = block(
  {
    permit: word(['allow', 'deny'], { text: 'What a client that fits gets.', example: 'allow' }),
    action: word(['publish', 'subscribe', 'pubsub'], { default: 'pubsub', text: 'What the rule is about.' }),
    topics: list(text({ text: 'A topic filter.' }), {
      single: true,
      text: `Topic filters; \${clientid} and \${username} stand for those of the client, a leading @ takes a filter literally. Empty = every topic.`,
      example: [`dev/\${clientid}/#`],
    }),
    ...ACL_WHO,
    and: list(block(ACL_WHO, { unknown: 'error', text: 'A condition.' }), { text: 'All of these have to fit.' }),
    or: list(block(ACL_WHO, { unknown: 'error', text: 'A condition.' }), { text: 'One of these has to fit.' }),
  },
  { unknown: 'error', text: 'One rule; the first that fits decides.' },
);
export const HTTP_REQUEST = {
  url: masked(maskUrl, text({ text: 'Address of the service.', example: 'http://127.0.0.1:8080/mqtt/auth' })),
  method: word(['post', 'get'], { default: 'post', text: 'Parameters go into the body (post) or into the URL (get).' }),
  headers: pairs({ text: 'Headers to send.', example: { 'content-type': 'application/x-www-form-urlencoded' } }),
  params: pairs({
    text: 'Parameters: %u username, %c client id, %a address, %P password, %p port, %C and %d subject of the certificate, %t topic, %m mountpoint, %A action, %r protocol.',
    example: { clientid: '%c', username: '%u', password: '%P' },
  }),
  ssl: ignored('TLS settings of this request have no effect', 'block'),
};
const HTTP_AUTH = optional(
  {
    enable: flag({ default: true, text: 'Whether the service is asked.' }),
    timeout: duration({ default: '5s', min: 1, text: 'Time for an answer; without one the client is refused.' }),
    connect_timeout: duration({ default: '5s', min: 1, text: 'Time to connect to the service.' }),
    pool_size: int({ default: 32, min: 1, max: 1024, text: 'Requests at once.' }),
    cache_ttl: duration({ default: '0s', text: 'How long an answer about rights is remembered. 0 = not at all.' }),
    auth_req: optional(HTTP_REQUEST, { unknown: 'error', text: 'Asked at CONNECT; status 200 lets the client in.' }),
    super_req: optional(HTTP_REQUEST, {
      unknown: 'error',
      text: 'Asked at CONNECT; 200 allows everything that acl_req would be asked about.',
    }),
    acl_req: optional(HTTP_REQUEST, { unknown: 'error', text: 'Asked for a publish or subscribe; 200 allows it.' }),
  },
  { unknown: 'error', text: 'Users and rights are asked for over HTTP.' },
);

export const JWT = {
  enable: flag({ default: true, text: 'Whether tokens are taken.' }),
  secret: text({
    default: null,
    secret: true,
    text: 'Shared secret of at least 32 bytes, for HS256, HS384 and HS512. Either this or keyfile.',
    example: 'change-me-to-a-long-random-text-',
  }),
  keyfile: text({
    default: null,
    text: 'Public key or certificate (PEM), or keys (JWK or JWK set, JSON).',
    example: '/etc/tidegate/jwt.pem',
  }),
  algorithms: list(text({ text: 'An algorithm, e.g. ES256.' }), {
    text: 'Algorithms that are taken; empty = all that fit the key.',
    example: ['ES256'],
  }),
  issuer: text({ default: null, text: 'What the claim iss has to be.', example: 'https://login.example' }),
  audience: text({ default: null, text: 'What the claim aud has to hold.', example: 'tidegate' }),
  clock_tolerance: duration({ default: '5s', max: 3_600_000, text: 'How far the clocks may differ.' }),
  username_claims: list(text({ text: 'A claim.' }), {
    default: ['username', 'sub'],
    text: 'The first of these that a token has is the username.',
  }),
  clientid_claim: text({ default: 'clientid', text: 'Where a token has this claim, the client id has to be equal.' }),
  acl_claim: text({
    default: 'acl',
    text: 'Where a token has this claim, it is all the client may do: { "pub": [filters], "sub": [filters], "all": [filters] }.',
  }),
};
const AUTH_LIMITS = block(
  {
    per_user_and_address: int({
      default: 20,
      text: 'Failed logins of one user from one address before further ones are refused unseen. 0 = no limit.',
    }),
    per_address: int({ default: 0, text: 'The same for all users of an address. 0 = no limit.' }),
    per_user: int({
      default: 0,
      text: 'The same for a user from all addresses but those it has logged in from before. 0 = no limit.',
    }),
    window: duration({ default: '1m', min: 1, text: 'Failures older than this are forgotten.' }),
    lock: duration({ default: '10s', min: 1, text: 'How long logins are refused; twice as long each time.' }),
    max_lock: duration({ default: '15m', min: 1, text: 'The longest of these times.' }),
    exempt: list(text({ text: 'Address or network.', check: checkNetwork }), {
      default: ['127.0.0.0/8', '::1'],
      text: 'Addresses and networks that are never locked; per_user holds for them all the same.',
    }),
  },
  { unknown: 'error', text: 'Against guessing of passwords.' },
);

export const AUTH = block(
  {
    allow_anonymous: flag({
      default: null,
      text: 'Let clients in that send no username; absent = only while every listener is on loopback or a Unix socket and there is no source of passwords.',
      example: false,
    }),
    password_file: text({
      default: null,
      text: 'Users and hashed passwords, a file of mosquitto_passwd.',
      example: '/etc/tidegate/passwd',
    }),
    acl_file: text({
      default: null,
      text: "Rights, a file in mosquitto's acl_file format.",
      example: '/etc/tidegate/acl',
    }),
    acl_subscribe: word(['granted', 'truthful'], {
      default: 'granted',
      text: 'With acl_file a SUBSCRIBE is granted and delivery filtered, or (truthful) refused where nothing could ever be delivered.',
    }),
    check_retain_source: flag({
      default: true,
      text: 'Deliver a retained message only while the one who published it may still write its topic.',
    }),
    password: pairs({ secret: true, text: 'Users and their passwords in clear.', example: { alice: 'change-me' } }),
    acl: optional(
      {
        enable: flag({ default: true, text: 'Whether the rules are in force.' }),
        rules: list(ACL_RULE, { text: 'Rules in order.' }),
      },
      { unknown: 'error', text: 'Rights as a list of rules.' },
    ),
    no_match: word(['allow', 'deny'], { default: 'allow', text: 'What auth.acl gives when no rule fits.' }),
    deny_action: word(['ignore', 'disconnect'], {
      default: 'ignore',
      text: 'Whether a denied publish or subscribe ends the connection.',
    }),
    scram_file: text({
      default: null,
      text: 'Users for SCRAM-SHA-256, lines of username:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.',
      example: '/etc/tidegate/scram',
    }),
    jwt: optional(JWT, { unknown: 'error', text: 'Clients that send a token as their password.' }),
    limits: AUTH_LIMITS,
    http_auth: HTTP_AUTH,
    enable: ignored('authentication cannot be switched off as a whole; no effect', 'true | false'),
  },
  { unknown: 'warn', text: 'Who may connect and what they may do.' },
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
  },
  { unknown: 'error', text: 'Sessions, queued and retained messages that survive the process.' },
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
    password: text({ default: null, secret: true, text: 'Password for basic authentication.', example: 'change-me' }),
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
      },
      { unknown: 'warn', text: 'For auth_type = jwt.' },
    ),
    limit_conn: int({ default: 32, restart: true, text: 'Connections at once. 0 = no limit.' }),
    max_body: size({ default: '1MB', restart: true, text: 'Largest request body. 0 = no limit.' }),
    tls: optional(TLS_SERVER, { unknown: 'error', text: 'Serve HTTPS.' }),
    enable: flag({ default: true, restart: true, text: 'Whether the server is started.' }),
  },
  { unknown: 'warn', text: 'Web console and REST API; off unless this block is there.' },
);

export const METRICS = optional(
  {
    bind: text({ default: '127.0.0.1:9100', restart: true, text: 'Address and port.', check: checkBind }),
    auth: word(['none', 'basic'], { default: 'none', text: 'basic: with the credentials of http_server.' }),
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
    headers: pairs({ text: 'Headers to send.', example: { 'content-type': 'application/json' } }),
    body: block(
      { encoding: word(['plain', 'base64', 'base62'], { default: 'plain', text: 'How payloads are written.' }) },
      { unknown: 'warn', text: 'Form of the body.' },
    ),
    pool_size: int({ default: 32, min: 1, max: 1024, text: 'Requests at once.' }),
    cancel_timeout: duration({ default: '5s', unit: 'ms', text: 'Time for an answer.' }),
    events: list(EVENT, { text: 'Which events are sent.' }),
    ssl: ignored('TLS settings of the webhook have no effect', 'block'),
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
    engine: word(['native', 'aedes'], { default: 'native', restart: true, text: 'The broker core.' }),
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

/** Blocks of NanoMQ for what is not here. */
export const FOREIGN = {
  system: ignored('threads and processes are not configured; no effect', 'block'),
  sqlite: optional(
    {
      enable: flag({ default: true, text: 'Whether persistence is on.' }),
      mounted_file_path: text({ default: '.', text: 'Folder of the database.' }),
      disk_cache_size: ignored('the size of the database is persistence.max_size; no effect', 'number'),
      flush_mem_threshold: ignored('writes are grouped by time, see persistence.sync; no effect', 'number'),
      resend_interval: ignored('messages are sent again when a client comes back; no effect', 'number'),
    },
    {
      unknown: 'warn',
      text: "NanoMQ's block for persistence: the same as persistence.path = <mounted_file_path>/tidegate.db.",
    },
  ),
  preset: ignored('preset sessions are not supported', 'block'),
  rules: ignored('the rule engine is not supported', 'block'),
  plugin: ignored('plugins are not supported', 'block'),
  exchange_client: ignored('exchanges are not supported', 'block'),
  exchange: ignored('exchanges are not supported', 'block'),
  parquet: ignored('parquet files are not supported', 'block'),
  blf: ignored('BLF files are not supported', 'block'),
  cmd: ignored('no effect', 'block'),
  license: ignored('no licence is needed', 'block'),
};
