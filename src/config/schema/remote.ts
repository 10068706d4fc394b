// The keys of bridges.mqtt, bridges to remote MQTT brokers: each once, with type, default and text. Data for
// bridges.ts; to add a key, add a row here and its name in code to bridge/mqtt/options.ts, then run `make docs`.
// Sources: NanoMQ's documentation of its bridges, whose names, units and defaults are kept.
import { checkTopicFilter, checkTopicName } from '../values.ts';
import { block, list, needless, optional, pairs } from './blocks.ts';
import { checkRuleFilter, FALLBACK, QOS, TRACE } from './bridgerule.ts';
import { digit, duration, flag, int, seconds, size, text } from './keys.ts';
import { TLS_CLIENT } from './listeners.ts';

const HEX = /^(?:[0-9a-f]{2}){1,256}$/i;
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
