// The keys of proxy and upstreams: each once, with type, default and text.
// Data for schema.ts; to add a key, add a row here and its name in code to proxy/proxy.ts, then run `make docs`.
// Sources: NGINX's stream modules (mqtt_preread, upstream, limit_conn), whose defaults are kept where they suit MQTT.

import { isNull, type ScalarNode } from '../text/node.ts';
import { block, list, named, optional, pairs } from './blocks.ts';
import type { Key, Quantity } from './key.ts';
import { duration, flag, int, size, special, text, word } from './keys.ts';
import { CERTIFICATES, checkBind, ORIGINS, PROXY_FROM, TLS_CLIENT, TLS_SERVER, WS_PATH } from './listeners.ts';
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
  doc: { type: 'percent | *', default: undefined, text: 'Share in percent, two decimals; * = the rest.', example: 10 },
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
  { text: 'Shares of the clients for several upstreams, by a hash of split_key: each client keeps its own.' },
);

const MAP = optional(
  {
    source: text({ default: `\${clientid}`, text: 'Template that is looked up.', check: checkTemplate }),
    ignore_case: flag({ default: false, text: 'Compare texts in any case, as NGINX does.' }),
    hostnames: flag({ default: false, text: 'Take "*.suffix", ".suffix" and "prefix.*" as masks.' }),
    values: pairs({
      text: 'Text, mask, "~pattern" or "~*pattern" and the name of an upstream. First a text, then the longest *. mask, the longest .* mask, the first pattern.',
      example: { 'sensor-1': 'sensors', '~^gw-': 'gateways' },
    }),
    default: text({
      default: null,
      text: 'Upstream for what is not in values; absent = the map decides nothing.',
      example: 'main',
    }),
  },
  { unknown: 'error', text: 'A table of upstreams, asked when no route fits.' },
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
      text: `Template put before every topic on its way to the server and taken off on its way back: clients with different prefixes never meet.`,
      example: `\${username}/`,
      check: checkTemplate,
    }),
    publish: block(
      {
        allow: TOPICS('Topics that may be published; empty = all.'),
        deny: TOPICS('Topics that may not be published.'),
      },
      { unknown: 'error', text: 'Topics as the client writes them; deny is looked at first.' },
    ),
    subscribe: block(
      {
        allow: TOPICS('Filters may not reach beyond these; empty = all.'),
        deny: TOPICS('Filters may not touch these.'),
      },
      { unknown: 'error', text: 'Topic filters as the client writes them; deny is looked at first.' },
    ),
    denied: word(['ignore', 'disconnect'], {
      default: 'ignore',
      text: 'What a client gets for a PUBLISH that is not allowed; ignore = a reason code where MQTT has one.',
    }),
    messages: rateKey('PUBLISH packets of one client; faster ones wait. 0 = no limit.'),
    user_properties: pairs({
      text: 'User properties put into every PUBLISH of a 5.0 client; templates.',
      example: { gateway: 'edge-1' },
    }),
  },
  { unknown: 'error', text: 'What happens to messages with inspect = true.' },
);

const ROUTE = block(
  {
    match: MATCH,
    upstream: text({
      default: null,
      text: 'Name of an upstream, or local for the built-in broker; this or split has to be given.',
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
      bind: text({ text: 'Address and port to listen on.', check: checkBind, example: '0.0.0.0:11883' }),
      protocol: word(['tcp', 'udp', 'ws', 'wss'], {
        default: 'tcp',
        text: 'ws and wss: MQTT over WebSocket. udp passes datagrams on, one session for each address and port of a client; needs preread = false.',
      }),
      websocket: block(
        {
          ...WS_PATH,
          ...ORIGINS,
          max_message_size: size({ default: '10MB', min: 16, max: 268_435_460, text: 'Largest WebSocket message.' }),
        },
        { unknown: 'error', text: 'With protocol ws and wss.' },
      ),
      udp_timeout: duration({ default: '60s', min: 10, text: 'Silence that ends a session of datagrams.' }),
      tls: optional(
        {
          ...TLS_SERVER,
          use_identity_as_username: flag({
            default: false,
            text: 'The common name of the client certificate is the username.',
          }),
          ...CERTIFICATES,
        },
        { unknown: 'error', text: 'Clients speak TLS.' },
      ),
      proxy_protocol: flag({ default: false, text: 'A PROXY protocol header, version 1 or 2, comes first.' }),
      ...PROXY_FROM,
      preread: flag({
        default: true,
        text: 'Read CONNECT before a server is chosen; off = a plain TCP proxy to default.',
      }),
      non_mqtt: word(['close', 'pass'], {
        default: 'close',
        text: 'What happens to clients whose first bytes are no CONNECT; pass = they are routed without client id and passed on as they are.',
      }),
      preread_max_bytes: size({ default: '64KB', min: 16, max: 268_435_460, text: 'Largest CONNECT.' }),
      preread_timeout: duration({ default: '10s', min: 10, text: 'Time for TLS and CONNECT.' }),
      connect_timeout: duration({ default: '5s', min: 10, text: 'Time to connect to a server.' }),
      idle_timeout: special(
        'auto',
        duration({
          default: '0s',
          text: 'Silence that ends a session; auto = 1.5 times its keep alive and 10 s. 0 = never.',
        }),
        (node) => (node.text === 'auto' ? null : undefined),
        null,
        () => 'auto',
      ),
      half_close: flag({
        default: false,
        text: 'A side that has sent its last byte may still receive; off = the session ends.',
      }),
      next_upstream: block(
        {
          tries: int({ default: 0, text: 'Servers tried for one client. 0 = all of them.' }),
          timeout: duration({ default: '0s', text: 'Time in which another server may still be tried. 0 = no limit.' }),
        },
        { unknown: 'error', text: 'What happens when a server cannot be reached.' },
      ),
      reject: word(['close', 'connack'], { default: 'close', text: 'Whether a refused client is told why.' }),
      set: block(
        {
          clientid: replacement('New client id.', false, `ng-\${clientid}`),
          username: replacement('New username.', false, 'gateway'),
          password: replacement('New password.', true, 'change-me'),
        },
        {
          unknown: 'error',
          text: `Rewrites CONNECT: a template with \${clientid}, \${username}, \${env.NAME} ...; null removes the field.`,
        },
      ),
      routes: list(ROUTE, { text: 'The first route that fits decides.' }),
      map: MAP,
      split: SPLIT,
      split_key: text({
        default: `\${clientid}`,
        text: 'Template that split hashes.',
        check: checkTemplate,
      }),
      default: text({
        default: null,
        text: 'Where clients go that no route, map and split takes; absent = they are refused.',
        example: 'main',
      }),
      topics: list(TOPIC_RULE, {
        text: 'Routing by topic: one client has sessions with the servers of several upstreams. The first filter that fits decides, everything else goes where the route leads.',
      }),
      topic_routing: TOPIC_ROUTING,
      max_connections: int({ default: 0, text: 'Connections at once. 0 = no limit.' }),
      limit_conn: block(
        {
          per_ip: int({ default: 0, text: 'Connections of one address. 0 = no limit.' }),
          per_clientid: int({ default: 0, text: 'Connections of one client id. 0 = no limit.' }),
          per_username: int({ default: 0, text: 'Connections of one username. 0 = no limit.' }),
        },
        { unknown: 'error', text: 'Limits of connections.' },
      ),
      limit_rate: block(
        { connects: rateKey('CONNECTs let in. 0 = no limit.') },
        { unknown: 'error', text: 'Limits of rates.' },
      ),
      deny: list(MATCH, { text: 'Clients that fit one of these are refused.' }),
      allow: list(MATCH, { text: 'When there are some, clients that fit none of these are refused.' }),
      inspect: flag({ default: false, text: 'Read every packet and apply filter; off = bytes are passed on.' }),
      filter: FILTER,
      access_log: optional(
        {
          file: text({ text: 'Path of the file.', example: '/var/log/tidegate/access.log' }),
          format: LOG_FORMAT,
          rotation: block(
            {
              size: size({ default: '0', text: 'A file of this size is renamed to <file>.1. 0 = never.' }),
              count: int({ default: 5, min: 1, max: 1000, text: 'Old files kept.' }),
            },
            { unknown: 'error', text: 'Rotation; SIGHUP opens the file anew as well.' },
          ),
        },
        { unknown: 'error', text: 'One line for each connection.' },
      ),
    },
    { unknown: 'error', text: 'One CONNECT-aware proxy.' },
  ),
  { example: 'name', text: 'Proxies that read, route and rewrite CONNECT.' },
);

const SERVER = block(
  {
    addr: text({
      text: 'host:port, or unix:/path.',
      example: '10.0.1.10:1883',
      check: (value) => (value.startsWith('unix:/') ? null : checkBind(value)),
    }),
    weight: int({ default: 1, min: 1, max: 65535, text: 'Share of connections.' }),
    backup: flag({ default: false, text: 'Used only when no other server is left.' }),
    down: flag({ default: false, text: 'Never used.' }),
    max_fails: int({
      default: 1,
      text: 'Failures within fail_timeout that put the server to rest. 0 = failures do not count.',
    }),
    fail_timeout: duration({ default: '10s', min: 1, text: 'Window for failures, and the time a server rests.' }),
    max_conns: int({ default: 0, text: 'Connections at once. 0 = no limit.' }),
  },
  { unknown: 'error', text: 'One server.' },
);

export const UPSTREAMS = named(
  block(
    {
      balance: word(['round_robin', 'least_conn', 'ip_hash', 'hash', 'consistent_hash', 'random'], {
        default: 'round_robin',
        text: 'How a server is chosen.',
      }),
      hash_key: text({
        default: `\${clientid}`,
        text: 'Template that hash and consistent_hash take.',
        check: checkTemplate,
      }),
      servers: list(SERVER, { text: 'The servers. Required where nothing discovers any.' }),
      discover: optional(
        {
          type: word(['dns', 'srv', 'file', 'http', 'consul'], {
            text: 'dns: A and AAAA records. srv: SRV records. file: a JSON or TOML file. http: a document in the form of Prometheus http_sd. consul: the healthy instances of a service.',
            example: 'srv',
          }),
          name: text({
            default: '',
            text: 'Host name (dns), name of the SRV records (srv) or of the service (consul).',
            example: '_mqtt._tcp.example.org',
          }),
          port: int({
            default: 0,
            max: 65535,
            text: 'Port of servers whose address comes without one. Required with type dns.',
          }),
          resolver: text({
            default: null,
            text: 'Name server, host:port. Default: those of the system.',
            example: '127.0.0.1:53',
            check: checkBind,
          }),
          path: text({ default: '', text: 'With type file: the file.', example: '/etc/tidegate/servers.json' }),
          url: text({
            default: '',
            text: 'With type http: the document. With type consul: the address of its HTTP API.',
            example: 'http://127.0.0.1:8500',
          }),
          token: text({
            default: null,
            secret: true,
            text: 'Bearer token (http), or ACL token (consul).',
            example: 'change-me',
          }),
          tag: text({ default: null, text: 'With type consul: only instances with this tag.', example: 'edge' }),
          datacenter: text({ default: null, text: 'With type consul: its datacenter.', example: 'dc1' }),
          tls: optional(TLS_CLIENT, { unknown: 'error', text: 'How an https URL is verified.' }),
          weight_label: text({ default: 'weight', text: 'Label or metadata key that holds the weight of a server.' }),
          refresh: duration({
            default: '10s',
            min: 100,
            text: 'Time between two questions; with types dns and srv the records say it themselves.',
          }),
          timeout: duration({ default: '5s', min: 10, text: 'Time for an answer.' }),
        },
        { unknown: 'error', text: 'Servers that are found while the gateway runs, beside those of servers.' },
      ),
      health: optional(
        {
          type: word(['tcp', 'mqtt'], { default: 'tcp', text: 'Connect only, or wait for a CONNACK.' }),
          interval: duration({ default: '5s', min: 10, text: 'Time between two checks.' }),
          timeout: duration({ default: '2s', min: 10, text: 'Time for an answer.' }),
          fails: int({ default: 1, min: 1, text: 'Failures in a row that take a server out.' }),
          passes: int({ default: 1, min: 1, text: 'Successes in a row that take it back.' }),
          any_connack: flag({ default: false, text: 'With type mqtt: a refusal is a good answer as well.' }),
          username: text({ default: null, text: 'With type mqtt: user name of the probe.', example: 'probe' }),
          password: text({
            default: null,
            secret: true,
            text: 'With type mqtt: password of the probe.',
            example: 'change-me',
          }),
        },
        { unknown: 'error', text: 'Active health checks.' },
      ),
      tls: optional(TLS_CLIENT, { unknown: 'error', text: 'Speak TLS to the servers.' }),
      protocol: word(['tcp', 'ws'], { default: 'tcp', text: 'ws: MQTT over WebSocket; with tls it is wss.' }),
      path: text({
        default: '/mqtt',
        text: 'Path of the WebSocket request.',
        check: (value) => (/^\/\S{0,1000}$/.test(value) ? null : 'a path such as /mqtt expected'),
      }),
      slow_start: duration({
        default: '0s',
        text: 'Time in which a server that came back gets its full share. 0 = at once.',
      }),
      dns_refresh: duration({
        default: '30s',
        text: 'How long addresses of a host name are used. 0 = they are looked up once.',
      }),
      send_proxy_protocol: word(['off', 'v1', 'v2'], { default: 'off', text: 'Send a PROXY protocol header first.' }),
    },
    { unknown: 'error', text: 'One pool of servers.' },
  ),
  { example: 'name', text: 'Pools of MQTT brokers for proxies.' },
);
