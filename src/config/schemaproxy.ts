// The keys of proxy and upstreams: each once, with type, default and text.
// Data for schema.ts; to add a key, add a row here, a field in config.ts and a line in buildproxy.ts, then run `make docs`.
// Sources: NGINX's stream modules (mqtt_preread, upstream, limit_conn), whose defaults are kept where they suit MQTT.

import { block, list, named, optional } from './blocks.ts';
import type { MatchField, MatchOp, RouteCondition, TreeValue } from './config.ts';
import type { Key } from './key.ts';
import { duration, flag, int, size, special, text, word } from './keys.ts';
import { isNull, joinPath, type Node, type ScalarNode } from './node.ts';
import { compilePattern } from './pattern.ts';
import { checkBind, TLS_CLIENT, TLS_SERVER } from './schemalisteners.ts';
import { nearest } from './values.ts';

const FIELDS: readonly MatchField[] = ['clientid', 'username', 'version', 'sni', 'listener', 'remote_addr', 'cert_cn'];
const TEXT_FORM = /^\s*([a-z_]{1,20})\s*(==|!=|=~\*|!~\*|=~|!~)\s*(.*?)\s*$/s;

export interface Match {
  readonly conditions: readonly RouteCondition[];
  readonly written: TreeValue;
}

/** A condition, or what is wrong with it. */
function condition(field: string, op: MatchOp, value: string): RouteCondition | string {
  const known = FIELDS.find((name) => name === field);
  if (known === undefined) {
    const close = nearest(field, FIELDS);
    return `unknown field${close === null ? '' : `; did you mean ${close}?`}; known are ${FIELDS.join(', ')}`;
  }
  if (op === '==' || op === '!=') return { field: known, op, value, pattern: null };
  const pattern = compilePattern(value, op.endsWith('*'));
  return typeof pattern === 'string' ? pattern : { field: known, op, value, pattern };
}

/** "~^x" is a pattern, "~*^x" one that ignores case, "\~x" the text "~x", anything else the text itself. */
function blockCondition(field: string, value: string): RouteCondition | string {
  if (value.startsWith('~*')) return condition(field, '=~*', value.slice(2));
  if (value.startsWith('~')) return condition(field, '=~', value.slice(1));
  return condition(field, '==', value.startsWith('\\~') ? value.slice(1) : value);
}

const MATCH: Key<Match> = {
  doc: {
    type: 'block or text',
    default: undefined,
    text: 'What has to fit: { field = "text", field = "~pattern", field = "~*pattern in any case" }, or "field op value" with == != =~ !~ =~* !~*. Fields: clientid, username, version, sni, listener, remote_addr, cert_cn.',
    example: { clientid: '~^sensor-' },
  },
  inside: null,
  read(node: Node, path, sink) {
    if (isNull(node)) return this.missing(node.at, path, sink);
    const conditions: RouteCondition[] = [];
    if (node.kind === 'scalar') {
      const found = TEXT_FORM.exec(node.text);
      if (found === null) return sink.problem(node.at, path, '"field op value" expected, as in "clientid =~ ^sensor-"');
      const one = condition(found[1], found[2] as MatchOp, unquote(found[3]));
      if (typeof one === 'string') return sink.problem(node.at, path, one);
      return { conditions: [one], written: node.text };
    }
    if (node.kind !== 'block' || node.fields.size === 0)
      return sink.problem(node.at, path, 'a block with at least one field expected');
    const written = Object.create(null) as Record<string, TreeValue>;
    for (const [field, { at, value }] of node.fields) {
      const one = value.kind === 'scalar' ? blockCondition(field, value.text) : 'a text expected';
      if (typeof one === 'string') sink.problem(at, joinPath(path, field), one);
      else conditions.push(one);
      if (value.kind === 'scalar') written[field] = value.text;
    }
    return { conditions, written };
  },
  missing: (at, path, sink) => sink.problem(at, path, 'is missing'),
  show: (value) => value.written,
};

function unquote(value: string): string {
  return /^"[^"]*"$/.test(value) ? value.slice(1, -1) : value;
}

/** Variables a template may hold. */
const VARIABLE = /\$\{([^}]*)\}/g;
const VARIABLES = ['clientid', 'username', 'version', 'sni', 'listener', 'remote_addr', 'remote_port', 'cert_cn'];

function checkTemplate(template: string): string | null {
  for (const [, name] of template.matchAll(VARIABLE)) {
    if (VARIABLES.includes(name) || /^env\.[A-Za-z_][A-Za-z0-9_]*$/.test(name)) continue;
    return `unknown variable \${${name.slice(0, 40)}}; known are ${VARIABLES.join(', ')} and env.NAME`;
  }
  return null;
}

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
const RATE: Key<number> = {
  doc: { type: 'number/s, number/m or number/h', default: 0, text: 'CONNECTs let in. 0 = no limit.', example: '100/s' },
  inside: null,
  read(node, path, sink) {
    if (isNull(node)) return 0;
    const value = node.kind === 'scalar' ? rate(node) : undefined;
    return value ?? sink.problem(node.at, path, 'a rate such as 100/s expected');
  },
  missing: () => 0,
  show: (value) => value,
};

const ROUTE = block(
  {
    match: MATCH,
    upstream: text({ text: 'Name of an upstream, or local for the built-in broker.', example: 'sensors' }),
  },
  { unknown: 'error', text: 'One route.' },
);

export const PROXY = named(
  block(
    {
      enable: flag({ default: true, text: 'Whether the proxy runs.' }),
      bind: text({ text: 'Address and port to listen on.', check: checkBind, example: '0.0.0.0:11883' }),
      tls: optional(
        {
          ...TLS_SERVER,
          use_identity_as_username: flag({
            default: false,
            text: 'The common name of the client certificate is the username.',
          }),
        },
        { unknown: 'error', text: 'Clients speak TLS.' },
      ),
      proxy_protocol: flag({ default: false, text: 'A PROXY protocol header, version 1 or 2, comes first.' }),
      preread: flag({
        default: true,
        text: 'Read CONNECT before a server is chosen; off = a plain TCP proxy to default.',
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
      default: text({
        default: null,
        text: 'Where clients go that no route takes; absent = they are refused.',
        example: 'main',
      }),
      max_connections: int({ default: 0, text: 'Connections at once. 0 = no limit.' }),
      limit_conn: block(
        {
          per_ip: int({ default: 0, text: 'Connections of one address. 0 = no limit.' }),
          per_clientid: int({ default: 0, text: 'Connections of one client id. 0 = no limit.' }),
        },
        { unknown: 'error', text: 'Limits of connections.' },
      ),
      limit_rate: block({ connects: RATE }, { unknown: 'error', text: 'Limits of rates.' }),
      access_log: optional(
        {
          file: text({ text: 'Path of the file.', example: '/var/log/tidegate/access.log' }),
          format: word(['text', 'json'], { default: 'text', text: 'Form of a line.' }),
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
      servers: list(SERVER, { min: 1, text: 'The servers.' }),
      health: optional(
        {
          type: word(['tcp', 'mqtt'], { default: 'tcp', text: 'Connect only, or wait for a CONNACK.' }),
          interval: duration({ default: '5s', min: 10, text: 'Time between two checks.' }),
          timeout: duration({ default: '2s', min: 10, text: 'Time for an answer.' }),
          fails: int({ default: 1, min: 1, text: 'Failures in a row that take a server out.' }),
          passes: int({ default: 1, min: 1, text: 'Successes in a row that take it back.' }),
        },
        { unknown: 'error', text: 'Active health checks.' },
      ),
      tls: optional(TLS_CLIENT, { unknown: 'error', text: 'Speak TLS to the servers.' }),
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
