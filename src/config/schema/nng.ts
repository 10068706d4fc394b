// The keys of bridges.nng, bridges to peers that speak Scalability Protocols: each once, with type, default and text.
// Data for bridges.ts; to add a key, add a row here, use it by its name in code in bridge/nng/ (max_frame_rate:
// maxFrameRate) and run `make docs`. Sources: NanoMQ's documentation of its bridges, whose names, units and defaults
// are kept.
import { checkNngUrl, checkTopicName } from '../values.ts';
import { block, list, named, optional } from './blocks.ts';
import { checkRuleFilter, DELIMITER, FALLBACK, FRAME, QOS, TRACE } from './bridgerule.ts';
import { duration, flag, int, size, text, word } from './keys.ts';
import { checkMode, TLS_CLIENT, TLS_SERVER } from './listeners.ts';
import { withPreset } from './preset.ts';

/** local_topic of a subscription: a Topic Name once its placeholders are filled in. */
function checkTemplate(topic: string): string | null {
  if (topic === '') return null;
  const unknown = /\{(?!(?:topic|suffix|json:[^{}]+)\})[^}]*\}/.exec(topic);
  if (unknown !== null) return 'only {topic}, {suffix} and {json:field} can be filled in';
  // What is filled in holds no wildcard; the names of fields may look like one.
  return checkTopicName(topic.replace(/\{json:[^{}]+\}/g, 'x'));
}

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

export const NNG = block(
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
);
