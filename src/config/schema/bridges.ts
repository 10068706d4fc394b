// The keys of bridges.nng, bridges.mqtt and bridges.aws: each once, with type, default and text. Data for schema.ts; to
// add a key, add a row here and its name in code to bridge/bridge.ts or bridge/mqtt/options.ts, then run `make docs`.
// Sources: NanoMQ's documentation of its bridges, whose names, units and defaults are kept.

import { checkNngUrl, checkTopicFilter, checkTopicName } from '../values.ts';
import { block, ignored, list, named, needless, optional, pairs } from './blocks.ts';
import { digit, duration, flag, int, seconds, size, text, word } from './keys.ts';
import { checkMode, TLS_CLIENT, TLS_SERVER } from './listeners.ts';
import { withPreset } from './preset.ts';

function checkRuleFilter(filter: string): string | null {
  if (filter.startsWith('$share/'))
    return 'shared subscriptions are not possible in a bridge: every rule receives every message';
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

const HEX = /^(?:[0-9a-f]{2}){1,256}$/i;
const QOS = (what: string) => digit([0, 1, 2], { default: 0, text: what });
const DELIMITER = text({
  default: '/',
  strict: true,
  nul: true,
  text: 'Separator between topic and payload, any UTF-8 text; empty = "/". Write a NUL as \\u0000.',
});
const FRAME = word(['topic', 'payload'], {
  default: 'topic',
  text: 'Content of a frame. topic: topic, delimiter and payload. payload: only the payload, as eKuiper and Neuron use it.',
});
const TRACE = (where: string) =>
  word(['strip', 'keep', 'add'], {
    default: 'keep',
    text: `Trace header (26 bytes) in front of the payload: strip = remove, keep = leave as it is, add = ${where}.`,
  });

const FALLBACK = (key: string, what: string) =>
  text({
    default: '',
    text: `Topic used when a {json:} field of ${key} is missing. Empty = the ${what} is dropped and counted.`,
    check: (topic) => (topic === '' ? null : checkTopicName(topic)),
  });

export const FORWARD = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is active.' }),
    local_topic: text({
      text: 'MQTT topic filter of the messages to send.',
      check: checkRuleFilter,
      example: 'sensor/#',
    }),
    remote_topic: text({ default: '', text: 'Topic at the start of the frame; empty = the topic of the message.' }),
    nng_delimiter: DELIMITER,
    qos: QOS(
      'Highest QoS used by the rule. Above 0, the publisher is acknowledged only once the frame is queued for every peer.',
    ),
    retain: word(['any', 'live', 'retained'], {
      default: 'any',
      text: 'any: also publishes with RETAIN. live: only publishes without RETAIN. retained: as any, and the stored messages when the bridge starts.',
    }),
    from: word(['any', 'mqtt'], {
      default: 'any',
      text: 'Origin of the messages. mqtt: excludes messages from other bridges.',
    }),
    payload: word(['raw', 'base64', 'json'], {
      default: 'raw',
      text: 'Encoding of the payload. raw: unchanged. base64: as Base64 text. json: an object with topic, qos, retain and payload.',
    }),
    frame: FRAME,
    trace: TRACE('insert one with the ids of the User Property traceparent, or with new ids'),
    rate_limit: int({
      default: 0,
      max: 1_000_000_000,
      text: 'Largest rate of the rule, messages per second; further ones are dropped and counted. 0 = no limit.',
    }),
  },
  { unknown: 'error', text: 'One rule.' },
);

export const SUBSCRIPTION = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is active.' }),
    remote_topic: text({ default: '', text: 'Required start of a frame.' }),
    nng_delimiter: DELIMITER,
    local_topic: text({
      default: '',
      text: 'MQTT topic to publish to; may contain {topic}, {suffix} and {json:field}. Empty = the topic found in the frame.',
      check: checkTemplate,
    }),
    qos: QOS('QoS of the publish.'),
    retain: flag({ default: false, text: 'Whether the publish is retained.' }),
    match: word(['prefix', 'level', 'exact'], {
      default: 'prefix',
      text: 'What may follow remote_topic before the delimiter. prefix: anything. level: further topic levels only. exact: nothing.',
    }),
    payload: word(['raw', 'base64', 'json'], {
      default: 'raw',
      text: 'Encoding of the payload. raw: unchanged. base64: is decoded. json: the member payload of an object.',
    }),
    frame: FRAME,
    trace: TRACE('insert one where there is none. A header removed by strip becomes the User Property traceparent'),
    fallback_topic: FALLBACK('local_topic', 'frame'),
    rate_limit: int({
      default: 0,
      max: 1_000_000_000,
      text: 'Largest rate of the rule, messages per second; further ones are dropped and counted. 0 = no limit.',
    }),
  },
  { unknown: 'error', text: 'One rule.' },
);

const NNG_COMMON = {
  enable: flag({
    default: null,
    text: 'Whether the bridge runs. Absent = off (with compat 0.25.5 or 0.25.6: on).',
    example: true,
  }),
  preset: word(['none', 'ekuiper', 'neuron', 'nngproxy'], {
    default: 'none',
    text: 'Defaults that suit a known peer: URL, mode, frame, trace, overflow, spool and qos.',
  }),
  mode: word(['listen', 'dial'], {
    default: 'listen',
    text: 'listen: wait for peers. dial: connect to a peer and keep retrying.',
  }),
  clientid: text({
    default: null,
    text: 'Client id used for permissions and loop detection. Absent = a random one.',
    example: 'nng-bridge',
  }),
  driver: word(['native', 'nanomsg'], {
    default: 'native',
    text: 'SP implementation: native, or the C library of the package nanomsg.',
  }),
  recv_max_size: size({
    default: '16MB',
    text: 'Largest frame accepted; a peer that announces a larger one is disconnected. 0 = no limit.',
  }),
  reconnect_max: duration({
    default: '30s',
    min: 10,
    text: 'Longest delay between two attempts to connect or listen.',
  }),
  ipc_mode: text({ default: null, text: 'Permissions of ipc sockets, octal.', check: checkMode, example: '0660' }),
  ipc_group: text({ default: null, text: 'Group of ipc sockets, a name or number.', example: 'tidegate' }),
  tls: optional(
    { ...TLS_CLIENT, ...TLS_SERVER },
    {
      unknown: 'error',
      text: 'TLS for tls+tcp and wss URLs. With mode listen: keyfile, certfile, cacertfile, verify_peer. With mode dial: ca, cert, key, verify, servername.',
    },
  ),
};
function urls(direction: string) {
  return list(text({ text: 'A URL.', check: checkNngUrl }), {
    min: 1,
    single: true,
    text: `URLs on which the ${direction} socket listens or which it dials: one or several.`,
    example: 'tcp://127.0.0.1:9900',
  });
}

function sending(overflow: 'drop_oldest' | 'block') {
  return {
    send_buffer: size({ default: '4MB', min: 1, text: 'Largest size of the send queue of one peer, in bytes.' }),
    overflow: word(['drop_oldest', 'drop_newest', 'block'], {
      default: overflow,
      text: 'When the queue of a peer is full: drop messages for that peer, or slow down publishers of QoS 1 and 2.',
    }),
    spool: size({
      default: '0',
      text: 'Bytes of frames kept while no peer is connected (rules with qos 1 or 2); with persistence also across restarts. 0 = none.',
    }),
    forwards: list(FORWARD, { text: 'Rules MQTT to NNG. Every rule that matches sends.' }),
  };
}
const RECEIVING = {
  subscription: list(SUBSCRIPTION, {
    text: 'Rules NNG to MQTT. Of the rules that match, the one with the longest remote_topic publishes.',
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
    { unknown: 'error', text: 'MQTT to NNG: an SP pipeline (push0). Each frame goes to one peer that is ready.' },
  ),
);
export const NNG_PULL = withPreset(
  block(
    { ...NNG_COMMON, pull_url: urls('pull'), ...RECEIVING },
    { unknown: 'error', text: 'NNG to MQTT: the receiving end of an SP pipeline (pull0).' },
  ),
);
export const NNG_PAIR = withPreset(
  block(
    {
      ...NNG_COMMON,
      pair_url: urls('pair'),
      protocol: word(['pair0', 'pair1'], { default: 'pair0', text: 'SP protocol; the peer must use the same.' }),
      ...sending('block'),
      ...RECEIVING,
    },
    { unknown: 'error', text: 'Both directions with one peer (pair0, pair1).' },
  ),
);

export const REQUEST = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is active.' }),
    local_topic: text({ text: 'MQTT topic filter of the requests.', check: checkRuleFilter, example: 'rpc/+/request' }),
    frame: word(['topic', 'payload'], {
      default: 'payload',
      text: 'Content of a frame. payload: only the payload. topic: topic, delimiter and payload.',
    }),
    remote_topic: text({
      default: '',
      text: 'With frame = topic: topic at the start of the frame; empty = the topic of the message.',
    }),
    nng_delimiter: DELIMITER,
    timeout: duration({
      default: '5s',
      min: 1,
      text: 'Time allowed for the reply; after that, the requester gets an error.',
    }),
    response_topic: text({
      default: '',
      text: 'Topic for replies to requests without Response Topic; {1} is the level matched by the first wildcard. Empty = such requests are dropped.',
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
    send_buffer: size({ default: '4MB', min: 1, text: 'Largest size of the requests awaiting a reply, in bytes.' }),
    requests: list(REQUEST, { text: 'Rules for MQTT requests answered by a peer.' }),
  },
  { unknown: 'error', text: 'Requests from MQTT clients, answered by a local process (req0).' },
);
export const NNG_REP = block(
  {
    ...NNG_PLAIN,
    rep_url: urls('rep'),
    topics: list(text({ text: 'A topic filter.', check: checkRuleFilter }), {
      min: 1,
      single: true,
      text: 'Topics that requests may read or publish to.',
      example: ['state/#'],
    }),
    publish: flag({ default: false, text: 'Whether requests may publish.' }),
  },
  { unknown: 'error', text: 'Requests from local processes (rep0): read retained messages, or publish.' },
);

const LEVEL = (what: string) => digit([0, 1, 2], { default: null, text: `QoS; absent = ${what}.`, example: 1 });
const AFFIXES = {
  prefix: text({ default: '', text: 'Put before the topic.' }),
  suffix: text({ default: '', text: 'Put after the topic.' }),
};
export const MQTT_FORWARD = block(
  {
    local_topic: text({
      text: 'MQTT topic filter of the messages to send.',
      check: (value) => (value === '' ? null : checkRuleFilter(value)),
      example: 'up/#',
    }),
    remote_topic: text({
      default: '',
      text: 'Topic at the remote broker; may contain {json:field}. Empty = unchanged.',
    }),
    qos: LEVEL('as published'),
    max_qos: digit([0, 1, 2], {
      default: 2,
      text: 'Highest QoS used for sending; messages with a higher QoS are sent with this one.',
    }),
    retain: flag({ default: null, text: 'RETAIN flag; absent = as published.', example: false }),
    stored: flag({
      default: false,
      text: 'Also send the matching retained messages each time the bridge connects.',
    }),
    fallback_topic: FALLBACK('remote_topic', 'message'),
    trace: TRACE('insert one with the ids of the User Property traceparent, or with new ids'),
    ...AFFIXES,
  },
  { unknown: 'warn', text: 'One rule.' },
);
export const MQTT_SUBSCRIPTION = block(
  {
    remote_topic: text({ text: 'Topic filter at the remote broker.', check: checkTopicFilter, example: 'down/#' }),
    local_topic: text({
      default: '',
      text: 'Local topic to publish to; may contain {json:field}. Empty = unchanged.',
    }),
    qos: QOS('QoS of the subscription.'),
    retain: flag({ default: null, text: 'RETAIN flag; absent = as received.', example: false }),
    retain_as_published: flag({ default: false, text: 'Retain As Published (MQTT 5).' }),
    retain_handling: digit([0, 1, 2], { default: 0, text: 'Retain Handling (MQTT 5).' }),
    nolocal: flag({ default: true, text: 'No Local (MQTT 5): excludes messages sent by this bridge.' }),
    fallback_topic: FALLBACK('local_topic', 'message'),
    trace: TRACE('insert one where there is none. A header removed by strip becomes the User Property traceparent'),
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
      text: 'Remote broker: mqtt-tcp://host:port or tls+mqtt-tcp://host:port.',
      example: 'mqtt-tcp://broker.example.org:1883',
    }),
    proto_ver: digit([3, 4, 5], { default: 4, text: 'MQTT version: 3, 4 (3.1.1) or 5.' }),
    clientid: text({
      default: null,
      text: 'Client id at the remote broker. Absent = a random one.',
      example: 'gateway-1',
    }),
    username: text({ default: null, text: 'Username at the remote broker.', example: 'gateway' }),
    password: text({ default: null, secret: true, text: 'Password at the remote broker.', example: 'change-me' }),
    keepalive: duration({ default: '60s', text: 'Keep alive. 0 = none.' }),
    backoff_max: duration({ default: '5s', min: 100, text: 'Longest delay between two attempts to connect.' }),
    clean_start: flag({ default: true, text: 'Start a clean session at the remote broker.' }),
    transparent: flag({ default: false, text: 'Also make the subscriptions of local clients at the remote broker.' }),
    retry_qos_0: flag({ default: false, text: 'Keep QoS 0 messages while the remote broker is unreachable.' }),
    no_local_v4: flag({
      default: true,
      text: 'Identify as a bridge to the remote broker (bit 0x80 of the protocol version), so that it sends nothing back.',
    }),
    loop_guard: flag({
      default: true,
      text: 'With MQTT 5: mark forwarded messages (User Property tidegate-via), and do not forward messages that carry this mark.',
    }),
    conn_properties: block(
      {
        session_expiry_interval: SECONDS('Session Expiry Interval.'),
        receive_maximum: int({ default: 65535, min: 1, max: 65535, text: 'Receive Maximum.' }),
        topic_alias_maximum: int({ default: 0, max: 65535, text: 'Topic Alias Maximum.' }),
        maximum_packet_size: int({ default: 0, max: 268_435_460, text: 'Maximum Packet Size. 0 = no limit.' }),
        request_problem_infomation: flag({
          default: true,
          text: 'Request Problem Information (NanoMQ spells the key this way).',
        }),
        request_response_infomation: flag({
          default: false,
          text: 'Request Response Information (NanoMQ spells the key this way).',
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
        enable: flag({ default: true, text: 'Whether TLS is used.' }),
        key_password: TLS_CLIENT.key_password,
        keyfile: TLS_CLIENT.key,
        certfile: TLS_CLIENT.cert,
        cacertfile: TLS_CLIENT.ca,
        verify_peer: TLS_CLIENT.verify,
        servername: TLS_CLIENT.servername,
        verify_name: TLS_CLIENT.verify_name,
        min_version: TLS_CLIENT.min_version,
        ciphers: TLS_CLIENT.ciphers,
        psk: text({
          default: null,
          secret: true,
          text: 'Pre-shared key in hexadecimal, instead of certificates. Requires psk_identity.',
          example: '6c6f6e672d72616e646f6d2d6b6579',
          check: (value) => (HEX.test(value) ? null : 'an even number of hexadecimal digits expected'),
        }),
        psk_identity: text({ default: null, text: 'Identity that psk belongs to.', example: 'gateway-1' }),
        alpn: list(text({ text: 'Protocol name.' }), {
          single: true,
          text: 'ALPN protocol names to request; empty = no ALPN.',
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
          text: 'Local address or interface to connect from.',
          example: '192.0.2.1',
        }),
        ...Object.fromEntries(
          ['quickack', 'keepidle', 'keepintvl', 'keepcnt', 'sendtimeo', 'recvtimeo'].map((key) => [
            key,
            needless('this TCP option keeps the default of the system; no effect', 'anything'),
          ]),
        ),
      },
      { unknown: 'warn', text: 'TCP options.' },
    ),
    max_packet_size: size({
      default: '0B',
      text: 'Largest packet to send; larger messages are dropped and counted. 0 = the limit of the remote broker.',
    }),
    notifications: optional(
      {
        topic: text({
          default: null,
          check: checkTopicName,
          text: 'Topic. Absent = $SYS/broker/connection/<clientid>/state.',
          example: 'gateway/up',
        }),
        local_only: flag({ default: false, text: 'Publish the state only locally, not at the remote broker.' }),
        remote_retain: flag({ default: true, text: 'Whether the state is retained at the remote broker.' }),
      },
      {
        unknown: 'warn',
        text: 'Publishes the state of the bridge (1 or 0) as a retained message, locally and at the remote broker, there also as will. Off without this block.',
      },
    ),
    forwards: list(MQTT_FORWARD, { text: 'Rules for messages sent to the remote broker.' }),
    subscription: list(MQTT_SUBSCRIPTION, { text: 'Rules for messages received from the remote broker.' }),
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
      text: 'Largest number of unacknowledged QoS 1 and 2 messages. 0 = the Receive Maximum of the remote broker with MQTT 5, else 19; fewer if the remote broker closes the connection because of them.',
    }),
    max_send_queue_len: int({
      default: 1024,
      text: 'Messages kept while the remote broker is unreachable. 0 = no limit.',
    }),
    max_recv_queue_len: int({ default: 1024, text: 'Messages received and not yet published. 0 = no limit.' }),
    resend_interval: duration({
      default: '5s',
      unit: 'ms',
      text: 'After this time without an acknowledgement, the bridge pings the remote broker.',
    }),
    cancel_timeout: duration({
      default: '10s',
      unit: 'ms',
      text: 'Time allowed for the CONNACK and for the answer to a ping.',
    }),
    hybrid_bridging: flag({ default: false, text: 'Whether hybrid_servers are tried as well.' }),
    hybrid_servers: list(text({ text: 'A server.' }), {
      text: 'Further servers, tried in order after server.',
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
          text: "Which behaviour to follow where they differ: NanoMQ's documentation, or one of its releases.",
        }),
        pub: named(NNG_PUB, { example: 'name', text: 'MQTT to NNG.' }),
        sub: named(NNG_SUB, { example: 'name', text: 'NNG to MQTT.' }),
        push: named(NNG_PUSH, { example: 'name', text: 'MQTT to NNG. Each frame goes to one peer.' }),
        pull: named(NNG_PULL, { example: 'name', text: 'NNG to MQTT, from a pipeline.' }),
        pair: named(NNG_PAIR, { example: 'name', text: 'Both directions with one peer.' }),
        req: named(NNG_REQ, { example: 'name', text: 'Requests from MQTT clients, answered by a local process.' }),
        rep: named(NNG_REP, { example: 'name', text: 'Requests from local processes.' }),
      },
      { unknown: 'error', text: 'Bridges between MQTT and NNG (Scalability Protocols).' },
    ),
    mqtt: named(MQTT_BRIDGE, { example: 'name', text: 'Bridges to remote MQTT brokers.' }),
    aws: ignored('bridges to AWS are not supported; use bridges.mqtt with TLS', 'block'),
  },
  { unknown: 'error', text: 'Bridges.' },
);
