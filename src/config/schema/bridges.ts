// The keys of bridges.nng, bridges.mqtt and bridges.aws: each once, with type, default and text.
// Data for schema.ts; to add a key, add a row here and its name in code to bridge/bridge.ts or bridge/mqtt/options.ts, then run `make docs`.
// Sources: NanoMQ's documentation of its bridges, whose names, units and defaults are kept.

import { checkNngUrl, checkTopicFilter, checkTopicName } from '../values.ts';
import { block, ignored, list, named, needless, optional, pairs } from './blocks.ts';
import { digit, duration, flag, int, seconds, size, text, word } from './keys.ts';
import { checkMode, TLS_CLIENT, TLS_SERVER } from './listeners.ts';
import { withPreset } from './preset.ts';

function checkRuleFilter(filter: string): string | null {
  if (filter.startsWith('$share/'))
    return 'a shared subscription has no meaning in a bridge: every rule gets every message';
  return checkTopicFilter(filter);
}

/** local_topic of a subscription: a Topic Name once its placeholders are filled in. */
function checkTemplate(topic: string): string | null {
  if (topic === '') return null;
  const unknown = /\{(?!(?:topic|suffix|json:[^{}]+)\})[^}]*\}/.exec(topic);
  if (unknown !== null) return 'only {topic}, {suffix} and {json:field} can be filled in';
  // What is filled in holds no wildcard; the names of fields may look like one.
  return checkTopicName(topic.replace(/\{json:[^{}]+\}/g, 'x'));
}

const QOS = (what: string) => digit([0, 1, 2], { default: 0, text: what });
const DELIMITER = text({
  default: '/',
  strict: true,
  nul: true,
  text: 'What stands between topic and payload, any bytes of UTF-8; empty = "/". A NUL is written \\u0000.',
});
const FRAME = word(['topic', 'payload'], {
  default: 'topic',
  text: 'topic: topic, delimiter and payload; payload: the payload alone, as eKuiper and Neuron have it.',
});
const TRACE = (where: string) =>
  word(['strip', 'keep', 'add'], {
    default: 'keep',
    text: `The 26 bytes of a trace header in front of the payload: strip = take off, keep = leave, add = ${where}.`,
  });

export const FORWARD = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is in force.' }),
    local_topic: text({
      text: 'MQTT topic filter; what matches is sent.',
      check: checkRuleFilter,
      example: 'sensor/#',
    }),
    remote_topic: text({ default: '', text: 'What the frame begins with; empty = the topic of the message.' }),
    nng_delimiter: DELIMITER,
    qos: QOS(
      'Highest QoS the rule takes; above 0 a publish is acknowledged when the frame is in the queue of every peer.',
    ),
    retain: word(['any', 'live', 'retained'], {
      default: 'any',
      text: 'any: retained publishes too; live: only those without RETAIN; retained: any, and the stored ones when the bridge starts.',
    }),
    from: word(['any', 'mqtt'], { default: 'any', text: 'mqtt: not what other bridges brought in.' }),
    payload: word(['raw', 'base64', 'json'], {
      default: 'raw',
      text: 'raw: payload as it is; base64: as text; json: an object with topic, qos, retain and payload.',
    }),
    frame: FRAME,
    trace: TRACE('with the ids of the User Property traceparent, else with new ones'),
    rate_limit: int({
      default: 0,
      max: 1_000_000_000,
      text: 'Messages a second the rule passes on, the rest is dropped and counted; 0 = no limit.',
    }),
  },
  { unknown: 'error', text: 'One rule.' },
);

export const SUBSCRIPTION = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is in force.' }),
    remote_topic: text({ default: '', text: 'What a frame has to begin with.' }),
    nng_delimiter: DELIMITER,
    local_topic: text({
      default: '',
      text: 'MQTT topic to publish to; may hold {topic}, {suffix} and {json:field}; empty = the topic found in the frame.',
      check: checkTemplate,
    }),
    qos: QOS('QoS of the publish.'),
    retain: flag({ default: false, text: 'Whether the publish is retained.' }),
    match: word(['prefix', 'level', 'exact'], {
      default: 'prefix',
      text: 'What may stand between remote_topic and the delimiter: anything, only further levels, or nothing.',
    }),
    payload: word(['raw', 'base64', 'json'], {
      default: 'raw',
      text: 'raw: payload as it is; base64: decoded; json: the member payload of an object.',
    }),
    frame: FRAME,
    trace: TRACE('where there is none; what strip takes off becomes the User Property traceparent'),
    fallback_topic: text({
      default: '',
      text: 'Where a {json:} field of local_topic is missing; empty = the frame is dropped and counted.',
      check: (topic) => (topic === '' ? null : checkTopicName(topic)),
    }),
    rate_limit: int({
      default: 0,
      max: 1_000_000_000,
      text: 'Messages a second the rule passes on, the rest is dropped and counted; 0 = no limit.',
    }),
  },
  { unknown: 'error', text: 'One rule.' },
);

const NNG_COMMON = {
  enable: flag({
    default: null,
    text: 'Whether the bridge runs; absent = off (with compat 0.25.5 or 0.25.6: on).',
    example: true,
  }),
  preset: word(['none', 'ekuiper', 'neuron', 'nngproxy'], {
    default: 'none',
    text: 'What a known peer needs, as other defaults: URL, mode, frame, trace, overflow, spool and qos.',
  }),
  mode: word(['listen', 'dial'], { default: 'listen', text: 'Wait for peers, or connect to one and keep trying.' }),
  clientid: text({
    default: null,
    text: 'Client id for rights and loops; absent = a random one.',
    example: 'nng-bridge',
  }),
  driver: word(['native', 'nanomsg'], { default: 'native', text: 'native, or the C library of the package nanomsg.' }),
  recv_max_size: size({
    default: '16MB',
    text: 'Largest frame taken; a peer that announces more is closed. 0 = no limit.',
  }),
  reconnect_max: duration({
    default: '30s',
    min: 10,
    text: 'Longest pause between two attempts to connect or to listen.',
  }),
  ipc_mode: text({ default: null, text: 'Permissions of ipc sockets, octal.', check: checkMode, example: '0660' }),
  ipc_group: text({ default: null, text: 'Group of ipc sockets, a name or number.', example: 'tidegate' }),
  tls: optional(
    { ...TLS_CLIENT, ...TLS_SERVER },
    {
      unknown: 'error',
      text: 'For tls+tcp and wss URLs. Listening: keyfile, certfile, cacertfile, verify_peer; dialling: ca, cert, key, verify, servername.',
    },
  ),
};
function urls(direction: string) {
  return list(text({ text: 'A URL.', check: checkNngUrl }), {
    min: 1,
    single: true,
    text: `Where the ${direction} socket listens or what it dials: one URL or several.`,
    example: 'tcp://127.0.0.1:9900',
  });
}

function sending(overflow: 'drop_oldest' | 'block') {
  return {
    send_buffer: size({ default: '4MB', min: 1, text: 'Bytes that may wait for one peer.' }),
    overflow: word(['drop_oldest', 'drop_newest', 'block'], {
      default: overflow,
      text: 'When a peer has no room: drop for that peer, or slow down publishers of QoS 1 and 2.',
    }),
    spool: size({
      default: '0',
      text: 'Bytes of frames kept while no peer is there (rules with qos 1 or 2), across restarts with persistence. 0 = none.',
    }),
    forwards: list(FORWARD, { text: 'MQTT to NNG, in order; every rule that matches sends.' }),
  };
}
const RECEIVING = {
  subscription: list(SUBSCRIPTION, {
    text: 'NNG to MQTT; the rule with the longest remote_topic that fits publishes.',
  }),
};

export const NNG_PUB = withPreset(
  block(
    { ...NNG_COMMON, pub_url: urls('publisher'), ...sending('drop_oldest') },
    { unknown: 'error', text: 'MQTT to NNG: an SP publisher (pub0).' },
  ),
);
export const NNG_SUB = withPreset(
  block(
    { ...NNG_COMMON, sub_url: urls('subscriber'), ...RECEIVING },
    { unknown: 'error', text: 'NNG to MQTT: an SP subscriber (sub0).' },
  ),
);
export const NNG_PUSH = withPreset(
  block(
    { ...NNG_COMMON, push_url: urls('push'), ...sending('block') },
    { unknown: 'error', text: 'MQTT to NNG: an SP pipeline (push0), each frame to one peer that is ready.' },
  ),
);
export const NNG_PULL = withPreset(
  block(
    { ...NNG_COMMON, pull_url: urls('pull'), ...RECEIVING },
    { unknown: 'error', text: 'NNG to MQTT: the end of an SP pipeline (pull0).' },
  ),
);
export const NNG_PAIR = withPreset(
  block(
    {
      ...NNG_COMMON,
      pair_url: urls('pair'),
      protocol: word(['pair0', 'pair1'], { default: 'pair0', text: 'SP protocol; the peer has to have the same.' }),
      ...sending('block'),
      ...RECEIVING,
    },
    { unknown: 'error', text: 'Both ways with one peer (pair0, pair1).' },
  ),
);

export const REQUEST = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is in force.' }),
    local_topic: text({ text: 'MQTT topic filter of the requests.', check: checkRuleFilter, example: 'rpc/+/request' }),
    frame: word(['topic', 'payload'], {
      default: 'payload',
      text: 'What the peer gets: the payload alone, or topic, delimiter and payload.',
    }),
    remote_topic: text({ default: '', text: 'With frame = topic: what the frame begins with; empty = the topic.' }),
    nng_delimiter: DELIMITER,
    timeout: duration({ default: '5s', min: 1, text: 'Time for the reply; after it the requester gets an error.' }),
    response_topic: text({
      default: '',
      text: 'Where a request without Response Topic is answered; {1} is what the first wildcard stands for. Empty = such a request is dropped.',
      check: (topic) => (topic === '' ? null : checkTopicName(topic.replace(/\{(?:topic|[1-9][0-9]{0,2})\}/g, 'x'))),
      example: 'rpc/{1}/response',
    }),
    qos: QOS('QoS of the reply.'),
  },
  { unknown: 'error', text: 'One rule.' },
);
const { preset: _, ...NNG_PLAIN } = NNG_COMMON;
export const NNG_REQ = block(
  {
    ...NNG_PLAIN,
    req_url: urls('req'),
    send_buffer: size({ default: '4MB', min: 1, text: 'Bytes of requests that wait for a reply.' }),
    requests: list(REQUEST, { text: 'MQTT requests that a peer answers.' }),
  },
  { unknown: 'error', text: 'MQTT clients ask, a local process answers (req0).' },
);
export const NNG_REP = block(
  {
    ...NNG_PLAIN,
    rep_url: urls('rep'),
    topics: list(text({ text: 'A topic filter.', check: checkRuleFilter }), {
      min: 1,
      single: true,
      text: 'What may be asked for and published to.',
      example: ['state/#'],
    }),
    publish: flag({ default: false, text: 'Whether requests may publish.' }),
  },
  { unknown: 'error', text: 'Local processes ask (rep0): for retained values, or to publish.' },
);

const LEVEL = (what: string) => digit([0, 1, 2], { default: null, text: `QoS; absent = ${what}.`, example: 1 });
const AFFIXES = {
  prefix: text({ default: '', text: 'Put before the topic.' }),
  suffix: text({ default: '', text: 'Put after the topic.' }),
};
export const MQTT_FORWARD = block(
  {
    local_topic: text({
      text: 'MQTT topic filter; what matches is sent.',
      check: (value) => (value === '' ? null : checkRuleFilter(value)),
      example: 'up/#',
    }),
    remote_topic: text({ default: '', text: 'Topic at the remote broker; empty = as it is.' }),
    qos: LEVEL('as published'),
    max_qos: digit([0, 1, 2], {
      default: 2,
      text: 'Highest QoS of what is sent: a message with more is sent with this.',
    }),
    retain: flag({ default: null, text: 'RETAIN flag; absent = as published.', example: false }),
    stored: flag({
      default: false,
      text: 'Send the retained messages that match each time the bridge connects, not only what is published from then on.',
    }),
    ...AFFIXES,
  },
  { unknown: 'warn', text: 'One rule.' },
);
export const MQTT_SUBSCRIPTION = block(
  {
    remote_topic: text({ text: 'Topic filter at the remote broker.', check: checkTopicFilter, example: 'down/#' }),
    local_topic: text({ default: '', text: 'Topic to publish to here; empty = as it is.' }),
    qos: QOS('QoS of the subscription.'),
    retain: flag({ default: null, text: 'RETAIN flag; absent = as received.', example: false }),
    retain_as_published: flag({ default: false, text: 'Retain As Published (MQTT 5).' }),
    retain_handling: digit([0, 1, 2], { default: 0, text: 'Retain Handling (MQTT 5).' }),
    nolocal: flag({ default: true, text: 'No Local (MQTT 5): not what this bridge sent itself.' }),
    stream_id: needless('QUIC streams are not supported', 'number'),
    ...AFFIXES,
  },
  { unknown: 'warn', text: 'One rule.' },
);

const QUIC = Object.fromEntries(
  [
    'quic_keepalive',
    'quic_idle_timeout',
    'quic_discon_timeout',
    'quic_handshake_timeout',
    'quic_send_idle_timeout',
    'quic_initial_rtt_ms',
    'quic_max_ack_delay_ms',
    'quic_multi_stream',
    'quic_qos_priority',
    'quic_0rtt',
  ].map((key) => [key, needless('QUIC is not supported', 'anything')]),
);
const SECONDS = (what: string) => seconds({ default: 0, max: 0xffffffff, text: what });
const USER_PROPERTY = pairs({ text: 'User properties (MQTT 5).', example: { site: 'north' } });

export const MQTT_BRIDGE = block(
  {
    enable: flag({ default: true, text: 'Whether the bridge runs.' }),
    server: text({
      text: 'mqtt-tcp://host:port or tls+mqtt-tcp://host:port.',
      example: 'mqtt-tcp://broker.example.org:1883',
    }),
    proto_ver: digit([3, 4, 5], { default: 4, text: 'MQTT version: 3, 4 (3.1.1) or 5.' }),
    clientid: text({
      default: null,
      text: 'Client id at the remote broker; absent = a random one.',
      example: 'gateway-1',
    }),
    username: text({ default: null, text: 'Username at the remote broker.', example: 'gateway' }),
    password: text({ default: null, secret: true, text: 'Password at the remote broker.', example: 'change-me' }),
    keepalive: duration({ default: '60s', text: 'Keep alive. 0 = none.' }),
    backoff_max: duration({ default: '5s', min: 100, text: 'Longest pause between two attempts to connect.' }),
    clean_start: flag({ default: true, text: 'Begin without what the remote broker kept.' }),
    transparent: flag({ default: false, text: 'Subscriptions of local clients are made at the remote broker too.' }),
    retry_qos_0: flag({ default: false, text: 'Keep QoS 0 messages while the remote broker is away.' }),
    no_local_v4: flag({
      default: true,
      text: 'Tell the remote broker that this is a bridge (bit 0x80), so that nothing comes back.',
    }),
    loop_guard: flag({
      default: true,
      text: 'With MQTT 5: mark what is forwarded (User Property tidegate-via), and forward nothing that has this mark.',
    }),
    conn_properties: block(
      {
        session_expiry_interval: SECONDS('Session Expiry Interval.'),
        receive_maximum: int({ default: 65535, min: 1, max: 65535, text: 'Receive Maximum.' }),
        topic_alias_maximum: int({ default: 0, max: 65535, text: 'Topic Alias Maximum.' }),
        maximum_packet_size: int({ default: 0, max: 268_435_460, text: 'Maximum Packet Size. 0 = no limit.' }),
        request_problem_infomation: flag({
          default: true,
          text: 'Request Problem Information; the key is spelled like this.',
        }),
        request_response_infomation: flag({
          default: false,
          text: 'Request Response Information; the key is spelled like this.',
        }),
        user_property: USER_PROPERTY,
      },
      { unknown: 'warn', text: 'CONNECT properties (MQTT 5).' },
    ),
    will: optional(
      {
        topic: text({ text: 'Topic.', check: checkTopicName, example: 'gateway/gone' }),
        payload: text({ default: '', text: 'Payload.' }),
        qos: QOS('QoS.'),
        retain: flag({ default: false, text: 'RETAIN flag.' }),
        properties: block(
          {
            payload_format_indicator: int({ default: 0, max: 1, text: 'Payload Format Indicator.' }),
            message_expiry_interval: SECONDS('Message Expiry Interval. 0 = none.'),
            will_delay_interval: SECONDS('Will Delay Interval.'),
            content_type: text({ default: null, text: 'Content Type.', example: 'text/plain' }),
            response_topic: text({ default: null, text: 'Response Topic.', check: checkTopicName, example: 'answers' }),
            correlation_data: text({ default: null, text: 'Correlation Data.', example: '1' }),
            user_property: USER_PROPERTY,
          },
          { unknown: 'warn', text: 'Will properties (MQTT 5).' },
        ),
      },
      { unknown: 'warn', text: 'Will at the remote broker.' },
    ),
    ssl: optional(
      {
        enable: flag({ default: true, text: 'Whether these settings are used.' }),
        key_password: TLS_CLIENT.key_password,
        keyfile: TLS_SERVER.keyfile,
        certfile: text({ default: null, text: 'Our certificate, PEM.', example: '/etc/tidegate/certs/client.pem' }),
        cacertfile: TLS_CLIENT.ca,
        verify_peer: TLS_CLIENT.verify,
        servername: TLS_CLIENT.servername,
        verify_name: TLS_CLIENT.verify_name,
        min_version: TLS_CLIENT.min_version,
        ciphers: TLS_CLIENT.ciphers,
        alpn: list(text({ text: 'Name of a protocol.' }), {
          single: true,
          text: 'ALPN protocol names to ask for; empty = no ALPN.',
          example: ['mqtt'],
        }),
      },
      { unknown: 'warn', text: 'TLS to the remote broker.' },
    ),
    tcp: block(
      {
        nodelay: flag({ default: true, text: 'TCP_NODELAY; always on.' }),
        keepalive: flag({ default: true, text: 'TCP keep-alive; always on.' }),
        bind_interface: text({
          default: null,
          text: 'Local address, or name of the interface, to connect from.',
          example: '192.0.2.1',
        }),
        ...Object.fromEntries(
          ['quickack', 'keepidle', 'keepintvl', 'keepcnt', 'sendtimeo', 'recvtimeo'].map((key) => [
            key,
            needless('this TCP option is left to the system; no effect', 'anything'),
          ]),
        ),
      },
      { unknown: 'warn', text: 'TCP options.' },
    ),
    max_packet_size: size({
      default: '0B',
      text: 'Largest packet that is sent; larger messages are dropped and counted. 0 = as the remote broker takes.',
    }),
    notifications: optional(
      {
        topic: text({
          default: null,
          check: checkTopicName,
          text: 'Topic; absent = $SYS/broker/connection/<clientid>/state.',
          example: 'gateway/up',
        }),
        local_only: flag({ default: false, text: 'Publish it here only, not at the remote broker.' }),
        remote_retain: flag({ default: true, text: 'Whether it is retained at the remote broker.' }),
      },
      {
        unknown: 'warn',
        text: 'The state of the bridge as a retained message, 1 or 0, here and at the remote broker, there as its will too; off unless this block is there.',
      },
    ),
    forwards: list(MQTT_FORWARD, { text: 'What is sent to the remote broker.' }),
    subscription: list(MQTT_SUBSCRIPTION, { text: 'What is fetched from the remote broker.' }),
    sub_properties: block(
      {
        identifier: int({ default: null, min: 1, max: 268_435_455, text: 'Subscription Identifier.', example: 1 }),
        user_property: USER_PROPERTY,
      },
      { unknown: 'warn', text: 'SUBSCRIBE properties (MQTT 5).' },
    ),
    max_inflight: int({
      default: 0,
      max: 65_000,
      text: 'Messages of QoS 1 and 2 sent and not acknowledged yet. 0 = as many as the remote takes: its Receive Maximum with MQTT 5, 19 before, fewer where it closes the connection over them.',
    }),
    max_send_queue_len: int({ default: 1024, text: 'Messages kept while the remote broker is away. 0 = no limit.' }),
    max_recv_queue_len: int({ default: 1024, text: 'Messages received and not yet published. 0 = no limit.' }),
    resend_interval: duration({
      default: '5s',
      unit: 'ms',
      text: 'Without an acknowledgement for so long the remote broker is asked whether it is there.',
    }),
    cancel_timeout: duration({
      default: '10s',
      unit: 'ms',
      text: 'Time for CONNACK, and for the answer when the remote broker is asked.',
    }),
    hybrid_bridging: flag({ default: false, text: 'Try hybrid_servers too.' }),
    hybrid_servers: list(text({ text: 'A server.' }), {
      text: 'Servers to try after server.',
      example: ['mqtt-tcp://backup.example.org:1883'],
    }),
    max_parallel_processes: needless('one connection keeps the order; no effect', 'number'),
    resend_wait: needless('no effect', 'number'),
    ...QUIC,
  },
  { unknown: 'warn', text: 'A remote MQTT broker.' },
);

export const BRIDGES = block(
  {
    nng: block(
      {
        compat: word(['documented', '0.25.5', '0.25.6'], {
          default: 'documented',
          text: "Whose rules hold where they differ: NanoMQ's documentation, or one of its releases.",
        }),
        pub: named(NNG_PUB, { example: 'name', text: 'MQTT to NNG.' }),
        sub: named(NNG_SUB, { example: 'name', text: 'NNG to MQTT.' }),
        push: named(NNG_PUSH, { example: 'name', text: 'MQTT to NNG, each frame to one peer.' }),
        pull: named(NNG_PULL, { example: 'name', text: 'NNG to MQTT, from a pipeline.' }),
        pair: named(NNG_PAIR, { example: 'name', text: 'Both ways with one peer.' }),
        req: named(NNG_REQ, { example: 'name', text: 'MQTT requests that a local process answers.' }),
        rep: named(NNG_REP, { example: 'name', text: 'Requests of local processes.' }),
      },
      { unknown: 'error', text: 'Bridges between MQTT and NNG (Scalability Protocols).' },
    ),
    mqtt: named(MQTT_BRIDGE, { example: 'name', text: 'Bridges to remote MQTT brokers.' }),
    aws: ignored('bridges to AWS are not supported; use bridges.mqtt with TLS', 'block'),
  },
  { unknown: 'error', text: 'Bridges.' },
);
