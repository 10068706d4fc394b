// The keys of proxy: each once, with type, default and text. Data for schema.ts; to add a key, add a row here and its
// name in code to proxy/proxy.ts, then run `make docs`. Sources: NGINX's stream modules (mqtt_preread, limit_conn),
// whose defaults are kept where they suit MQTT.
import { isNull, type ScalarNode } from '../text/node.ts';
import { block, list, named, optional, pairs } from './blocks.ts';
import type { Key, Quantity } from './key.ts';
import { duration, flag, int, size, special, text, word } from './keys.ts';
import { CERTIFICATES, checkBind, ORIGINS, PROXY_FROM, TLS_SERVER, TLS_SESSIONS, WS_PATH } from './listeners.ts';
import { LOG_FORMAT } from './logformat.ts';
import { MATCH } from './match.ts';
import { checkTemplate } from './template.ts';

/** undefined = leave the field as it is; null (or false, for TOML) = remove it. */
function replacement(what: string, secret: boolean, example: string): Key<string | null | undefined> {
  const inner = text({ text: what, secret, example, check: checkTemplate });
  return {
    doc: { ...inner.doc, type: 'template | null | false', default: null },
    inside: null,
    read(node, path, sink) {
      const removed = node.kind === 'scalar' && (node.value === null || node.value === false);
      return removed ? null : inner.read(node, path, sink);
    },
    missing: () => undefined,
    show: (value, mask) => (typeof value === 'string' ? inner.show(value, mask) : value),
  };
}

function rate(node: ScalarNode): number | undefined {
  const found = /^(\d{1,9})(?:\/(s|m|h))?$/.exec(node.text.trim());
  if (found === null) return undefined;
  return Number(found[1]) / (found[2] === 'h' ? 3600 : found[2] === 'm' ? 60 : 1);
}
/** A number of events a second; shown as such. */
function rateKey(what: string): Key<Quantity<'PerSecond'>> {
  const key: Key<number> = {
    doc: { type: 'number/s, number/m or number/h', default: 0, text: what, example: '100/s', counts: 'PerSecond' },
    inside: null,
    read(node, path, sink) {
      if (isNull(node)) return 0;
      const value = node.kind === 'scalar' ? rate(node) : undefined;
      return value ?? sink.problem(node.at, path, 'a rate such as 100/s expected');
    },
    missing: () => 0,
    show: (value) => value,
  };
  return key as Key<Quantity<'PerSecond'>>;
}

/** A part of the clients, in hundredths of a percent; "*" = all that are left. */
const PERCENT: Key<number> = {
  doc: {
    type: 'percent | *',
    default: undefined,
    text: 'Share in percent, up to two decimals; * = the rest.',
    example: 10,
  },
  inside: null,
  read(node, path, sink) {
    const written = node.kind === 'scalar' && !isNull(node) ? node.text.trim().replace(/%$/, '') : '';
    if (written === '*') return -1;
    const found = /^\d{1,3}(?:\.\d{1,2})?$/.test(written) ? Math.round(Number(written) * 100) : Number.NaN;
    return found > 0 && found <= 10_000
      ? found
      : sink.problem(node.at, path, 'a share between 0.01 and 100 expected, or *');
  },
  missing: (at, path, sink) => sink.problem(at, path, 'is missing'),
  show: (value) => (value < 0 ? '*' : value / 100),
};

const SPLIT = list(
  block(
    { percent: PERCENT, upstream: text({ text: 'Name of an upstream, or local.', example: 'new' }) },
    { unknown: 'error', text: 'One share.' },
  ),
  {
    text: 'Distributes clients to several upstreams by a hash of split_key. Each client always gets the same upstream.',
  },
);

const MAP = optional(
  {
    source: text({ default: `\${clientid}`, text: 'Template of the value to look up.', check: checkTemplate }),
    ignore_case: flag({ default: false, text: 'Ignore case when comparing texts, as NGINX does.' }),
    hostnames: flag({ default: false, text: 'Treat "*.suffix", ".suffix" and "prefix.*" as masks.' }),
    values: pairs({
      text: 'Text, mask, "~pattern" or "~*pattern", each with the name of an upstream. If source is the variable remote_addr, networks such as 10.0.0.0/8 as well. Order: an equal text, the smallest network, the longest *. mask, the longest .* mask, the first pattern that matches.',
      example: { 'sensor-1': 'sensors', '~^gw-': 'gateways' },
    }),
    default: text({
      default: null,
      text: 'Upstream if no value matches. Absent = the map selects none.',
      example: 'main',
    }),
  },
  { unknown: 'error', text: 'Lookup table of upstreams, used when no route matches.' },
);

const TOPICS = (what: string) =>
  list(text({ text: 'A topic filter.', check: checkFilter }), { single: true, text: what, example: ['dev/#'] });

function checkFilter(value: string): string | null {
  const levels = value.split('/');
  const fits = levels.every(
    (level, i) => level === '+' || (level === '#' && i === levels.length - 1) || !/[+#]/.test(level),
  );
  return value !== '' && fits ? null : 'not a topic filter';
}

const FILTER = block(
  {
    prefix: text({
      default: '',
      text: `Template added in front of every topic to the server and removed on the way back, which isolates clients with different prefixes from each other.`,
      example: `\${username}/`,
      check: checkTemplate,
    }),
    publish: block(
      {
        allow: TOPICS('Topics that may be published; empty = all.'),
        deny: TOPICS('Topics that may not be published.'),
      },
      { unknown: 'error', text: 'Topics as sent by the client. deny is checked first.' },
    ),
    subscribe: block(
      {
        allow: TOPICS('Subscriptions must stay within these; empty = all.'),
        deny: TOPICS('Subscriptions must not overlap these.'),
      },
      { unknown: 'error', text: 'Topic filters as sent by the client. deny is checked first.' },
    ),
    denied: word(['ignore', 'disconnect'], {
      default: 'ignore',
      text: 'Reaction to a PUBLISH that is not allowed. ignore = drop it, with a reason code where MQTT has one.',
    }),
    messages: rateKey('Largest rate of PUBLISH packets of one client; further ones wait. 0 = no limit.'),
    user_properties: pairs({
      text: 'User properties added to every PUBLISH of an MQTT 5 client; templates.',
      example: { gateway: 'edge-1' },
    }),
  },
  { unknown: 'error', text: 'Filtering of messages; requires inspect = true.' },
);

const ROUTE = block(
  {
    match: MATCH,
    upstream: text({
      default: null,
      text: 'Name of an upstream, or local for the built-in broker. Either this or split is required.',
      example: 'sensors',
    }),
    split: SPLIT,
  },
  { unknown: 'error', text: 'One route.' },
);

const TOPIC_RULE = block(
  {
    filter: text({ text: 'Topic filter.', check: checkFilter, example: 'plant/+/alarm/#' }),
    upstream: text({ text: 'Name of the upstream that these topics belong to.', example: 'alarms' }),
    clientid: text({
      default: null,
      text: 'Template of the client id there. Default: the one that the upstream of the route gets.',
      example: `\${clientid}-alarms`,
      check: checkTemplate,
    }),
  },
  { unknown: 'error', text: 'Topics of one upstream.' },
);

const TOPIC_ROUTING = block(
  {
    lost: word(['close', 'refuse', 'wait'], {
      default: 'close',
      text: 'A server of a connected client is lost. close: the client is closed. refuse: its topics are refused until it is back. wait: they wait for it, within max_held_bytes.',
    }),
    max_sessions: int({ default: 8, min: 1, max: 64, text: 'Sessions with servers that one client may have.' }),
    max_packet_bytes: size({
      default: '1MB',
      min: 256,
      max: 268_435_460,
      text: 'Largest packet, to and from clients.',
    }),
    max_held_bytes: size({
      default: '4MB',
      min: 1024,
      text: 'Bytes held for one client: packets that are not complete, and what waits for a server.',
    }),
    memory_bytes: size({ default: '256MB', min: 1024, text: 'Bytes held for all clients of this proxy.' }),
  },
  { unknown: 'error', text: 'How clients of a proxy with topics are served.' },
);

export const PROXY = named(
  block(
    {
      enable: flag({ default: true, text: 'Whether the proxy runs.' }),
      bind: list(text({ text: 'An address and port.', check: checkBind }), {
        single: true,
        min: 1,
        text: 'Address and port to listen on, or a list of them.',
        example: '0.0.0.0:11883',
      }),
      protocol: word(['tcp', 'udp', 'ws', 'wss'], {
        default: 'tcp',
        text: 'Protocol of the clients. ws and wss: MQTT over WebSocket. udp: forwards datagrams, one session per client address and port; requires preread = false.',
      }),
      websocket: block(
        {
          ...WS_PATH,
          ...ORIGINS,
          max_message_size: size({ default: '10MB', min: 16, max: 268_435_460, text: 'Largest WebSocket message.' }),
        },
        { unknown: 'error', text: 'Settings for protocol ws and wss.' },
      ),
      udp_timeout: duration({ default: '60s', min: 10, text: 'Idle time after which a UDP session ends.' }),
      tls: optional(
        {
          ...TLS_SERVER,
          ...TLS_SESSIONS,
          use_identity_as_username: flag({
            default: false,
            text: 'Use the common name of the client certificate as username.',
          }),
          ...CERTIFICATES,
        },
        { unknown: 'error', text: 'TLS for client connections.' },
      ),
      proxy_protocol: flag({ default: false, text: 'Expect a PROXY protocol header (version 1 or 2) first.' }),
      ...PROXY_FROM,
      preread: flag({
        default: true,
        text: 'Read CONNECT before a server is selected. off = plain TCP proxy to default.',
      }),
      non_mqtt: word(['close', 'pass'], {
        default: 'close',
        text: 'Handling of connections that do not start with a CONNECT. pass = route without client id and forward unchanged.',
      }),
      preread_max_bytes: size({ default: '64KB', min: 16, max: 268_435_460, text: 'Largest CONNECT.' }),
      preread_timeout: duration({ default: '10s', min: 10, text: 'Time allowed for TLS and CONNECT.' }),
      connect_timeout: duration({ default: '5s', min: 10, text: 'Time allowed to connect to a server.' }),
      idle_timeout: special(
        'auto',
        duration({
          default: '0s',
          text: 'Idle time after which a session ends. auto = 1.5 times its keep alive plus 10 s. 0 = never.',
        }),
        (node) => (node.text === 'auto' ? null : undefined),
        null,
        () => 'auto',
      ),
      half_close: flag({
        default: false,
        text: 'A side that has closed its sending direction may still receive. off = the session ends.',
      }),
      next_upstream: block(
        {
          tries: int({ default: 0, text: 'Largest number of servers tried for one client. 0 = all.' }),
          timeout: duration({ default: '0s', text: 'Time within which another server may be tried. 0 = no limit.' }),
        },
        { unknown: 'error', text: 'Retry with another server when a server cannot be reached.' },
      ),
      reject: word(['close', 'connack'], {
        default: 'close',
        text: 'Reaction to a refused client. connack: send a CONNACK with the reason, then close.',
      }),
      set: block(
        {
          clientid: replacement('New client id.', false, `ng-\${clientid}`),
          username: replacement('New username.', false, 'gateway'),
          password: replacement('New password.', true, 'change-me'),
        },
        {
          unknown: 'error',
          text: `Rewrites CONNECT fields: a template with \${clientid}, \${username}, \${env.NAME} ...; null removes the field.`,
        },
      ),
      routes: list(ROUTE, { text: 'Routes. The first that matches decides.' }),
      map: MAP,
      split: SPLIT,
      split_key: text({
        default: `\${clientid}`,
        text: 'Template of the value hashed by split.',
        check: checkTemplate,
      }),
      default: text({
        default: null,
        text: 'Upstream for clients that no route, map or split matches. Absent = they are refused.',
        example: 'main',
      }),
      topics: list(TOPIC_RULE, {
        text: 'Routing by topic: one client has sessions with the servers of several upstreams. The first filter that fits decides, everything else goes where the route leads.',
      }),
      topic_routing: TOPIC_ROUTING,
      max_connections: int({ default: 0, text: 'Largest number of connections. 0 = no limit.' }),
      limit_conn: block(
        {
          per_ip: int({ default: 0, text: 'Largest number of connections of one address. 0 = no limit.' }),
          per_clientid: int({ default: 0, text: 'Largest number of connections of one client id. 0 = no limit.' }),
          per_username: int({ default: 0, text: 'Largest number of connections of one username. 0 = no limit.' }),
        },
        { unknown: 'error', text: 'Connection limits.' },
      ),
      limit_rate: block(
        {
          connects: rateKey('Largest rate of accepted CONNECT packets. 0 = no limit.'),
          per_ip: rateKey('Largest rate of connections of one address. 0 = no limit.'),
          per_clientid: rateKey('Largest rate of CONNECT packets of one client id. 0 = no limit.'),
          burst: int({
            default: 10,
            min: 1,
            text: 'Connections of one address or client id that may come at once, where that is more than in a second.',
          }),
          ban: duration({
            default: '0s',
            text: 'How long an address or client id that came too often is refused. 0 = until its rate allows it again.',
          }),
        },
        { unknown: 'error', text: 'Rate limits.' },
      ),
      deny: list(MATCH, { text: 'Clients that match one of these are refused.' }),
      allow: list(MATCH, { text: 'If not empty, clients that match none of these are refused.' }),
      inspect: flag({ default: false, text: 'Read every packet and apply filter. off = bytes are forwarded unread.' }),
      filter: FILTER,
      access_log: optional(
        {
          file: text({ text: 'Path of the file.', example: '/var/log/tidegate/access.log' }),
          format: LOG_FORMAT,
          rotation: block(
            {
              size: size({ default: '0', text: 'Size at which the file is renamed to <file>.1. 0 = never.' }),
              count: int({ default: 5, min: 1, max: 1000, text: 'Number of old files to keep.' }),
            },
            { unknown: 'error', text: 'Rotation of the file. SIGHUP reopens the file.' },
          ),
        },
        { unknown: 'error', text: 'Access log: one line per connection.' },
      ),
    },
    { unknown: 'error', text: 'One CONNECT-aware proxy.' },
  ),
  { example: 'name', text: 'Proxies that read, route and rewrite CONNECT.' },
);
