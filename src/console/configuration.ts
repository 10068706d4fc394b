// REST: GET /configuration and /reload in NanoMQ's shapes, the effective tree, and reloading. Called by routes.ts.
// No secret leaves: passwords read "***", keys are named by their file, whoever asks.
import type { ListenerConfig } from '../config/config.ts';
import { type Answer, CODES, changed, data, fail, isObject, json } from './answer.ts';
import type { BridgeView, ChangeResult, ConsoleOptions, Json, JsonObject, ShownConfig } from './console.ts';
import { KEEP, keepOf } from './keeping.ts';
import { bridgeNode } from './mqttbridge.ts';
import { type Call, get, param, type Route, write } from './route.ts';

/** What stands where a secret is. */
export const MASK = '***';

function masked(secret: string | null): string | null {
  return secret === null ? null : MASK;
}

type Listener = ShownConfig['listeners'][number];

function first(config: ShownConfig, kind: Listener['kind']): Listener | undefined {
  return config.listeners.find((listener) => listener.kind === kind);
}

/** NanoMQ's name for each kind of listener. */
const SCHEMES = { tcp: 'nmq-tcp', ssl: 'tls+nmq-tcp', ws: 'nmq-ws', wss: 'nmq-wss', unix: 'unix' } as const;

function urlOf(listener: Listener | undefined): string | null {
  return listener === undefined ? null : `${SCHEMES[listener.kind]}://${listener.bind}`;
}

/** A number of the effective tree, by its path; null when it has none there. */
function treeNumber(tree: JsonObject, ...path: string[]): number | null {
  let at: Json | undefined = tree;
  for (const key of path) at = isObject(at) ? at[key] : undefined;
  return typeof at === 'number' ? at : null;
}

function retrySeconds(tree: JsonObject): number {
  return Math.round((treeNumber(tree, 'mqtt', 'retry_interval') ?? 0) / 1000);
}

function basic(config: ShownConfig, tree: JsonObject): JsonObject {
  const { mqtt, auth } = config;
  return {
    url: urlOf(first(config, 'tcp')),
    listeners: config.listeners.map((listener) => ({ name: listener.name, url: urlOf(listener) })),
    num_taskq_thread: 1,
    max_taskq_thread: 1,
    parallel: 1,
    property_size: 0,
    daemon: false,
    max_packet_size: mqtt.maxPacketSize,
    client_max_packet_size: mqtt.maxPacketSize,
    msq_len: mqtt.maxMqueueLen,
    qos_duration: retrySeconds(tree),
    keepalive_backoff: mqtt.keepaliveMultiplier,
    allow_anonymous: auth.allowAnonymous,
    ipc_internal: false,
  };
}

function tlsSection(listener: Listener | undefined): JsonObject {
  const tls: NonNullable<ListenerConfig['tls']> | null = listener?.tls ?? null;
  return {
    enable: tls !== null,
    url: urlOf(listener),
    key_password: masked(tls?.keyPassword ?? null),
    key: tls?.keyfile ?? null,
    cert: tls?.certfile ?? null,
    cacert: tls?.cacertfile ?? null,
    verify_peer: tls?.verifyPeer ?? false,
    fail_if_no_peer_cert: tls?.failIfNoPeerCert ?? false,
  };
}

/** Only where and how it asks: headers and parameters hold tokens. */
function httpAuthSection({ auth }: ShownConfig): JsonObject {
  const { httpAuth } = auth;
  if (httpAuth === null) return { enable: false };
  const request = (r: typeof httpAuth.authReq): Json =>
    r === null ? null : { url: hostOf(r.url), method: r.method.toUpperCase() };
  return {
    enable: true,
    timeout: httpAuth.timeoutMs / 1000,
    connect_timeout: httpAuth.connectTimeoutMs / 1000,
    pool_size: httpAuth.poolSize,
    auth_req: request(httpAuth.authReq),
    super_req: request(httpAuth.superReq),
    acl_req: request(httpAuth.aclReq),
  };
}

/** A URL without user, password and query. */
function hostOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return MASK;
  }
}

function httpSection({ httpServer }: ShownConfig): JsonObject {
  if (httpServer === null) return { enable: false };
  return {
    enable: true,
    port: httpServer.port,
    addr: httpServer.ipAddr,
    username: httpServer.username,
    password: masked(httpServer.password),
    auth_type: httpServer.authType,
  };
}

function bridgeNodes(bridges: Iterable<BridgeView>): JsonObject {
  const nodes: Json[] = [];
  for (const view of bridges) if (view.kind === 'mqtt') nodes.push(bridgeNode(view));
  return { nodes };
}

type Section = (options: ConsoleOptions) => Json;
const SECTIONS: ReadonlyMap<string, Section> = new Map<string, Section>([
  ['basic', ({ config }) => basic(config.current(), config.view())],
  ['tls', ({ config }) => tlsSection(first(config.current(), 'ssl'))],
  ['auth', ({ config }) => config.current().auth.users.map(({ username }) => ({ login: username, password: MASK }))],
  ['auth_http', ({ config }) => httpAuthSection(config.current())],
  [
    'websocket',
    ({ config }) => {
      const ws = first(config.current(), 'ws');
      const wss = first(config.current(), 'wss');
      return { enable: ws !== undefined, tls_enable: wss !== undefined, url: urlOf(ws), tls_url: urlOf(wss) };
    },
  ],
  ['http_server', ({ config }) => httpSection(config.current())],
  [
    'sqlite',
    ({ config }) => {
      const { enable, path, sync } = config.current().persistence;
      return { enable, mounted_file_path: path, sync };
    },
  ],
  ['bridge', ({ bridges }) => bridgeNodes(bridges.list())],
]);

function configuration(options: ConsoleOptions): Answer {
  const sections: Record<string, Json> = {};
  for (const [name, section] of SECTIONS) sections[name] = section(options);
  return data(sections);
}

function oneSection(options: ConsoleOptions, call: Call): Answer {
  const name = param(call, 'section');
  const section = SECTIONS.get(name);
  return section === undefined ? fail('section') : data({ [name]: section(options) });
}

function reloadValues({ config }: ConsoleOptions): Answer {
  const { mqtt, auth } = config.current();
  const kilobytes = Math.floor(mqtt.maxPacketSize / 1024);
  return data({
    property_size: 0,
    max_packet_size: kilobytes,
    client_max_packet_size: kilobytes,
    msq_len: mqtt.maxMqueueLen,
    qos_duration: retrySeconds(config.view()),
    keepalive_backoff: mqtt.keepaliveMultiplier,
    allow_anonymous: auth.allowAnonymous,
    enable_mqtt_stream: false,
    bridge_mode: false,
  });
}

type Setting = (value: Json) => string | number | boolean | null;
const number: Setting = (value) => (typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : null);
const whole: Setting = (value) => (Number.isSafeInteger(value) ? number(value) : null);
const packet: Setting = (value) => {
  const kilobytes = whole(value);
  return typeof kilobytes === 'number' ? kilobytes * 1024 : null;
};

/** What POST /reload takes: NanoMQ's name, our key, the value in the key's form (null = wrong). */
const SETTINGS: ReadonlyMap<string, { readonly key: string; readonly read: Setting }> = new Map([
  ['max_packet_size', { key: 'mqtt.max_packet_size', read: packet }],
  ['client_max_packet_size', { key: 'mqtt.max_packet_size', read: packet }],
  ['msq_len', { key: 'mqtt.max_mqueue_len', read: whole }],
  [
    'qos_duration',
    { key: 'mqtt.retry_interval', read: (value) => (whole(value) === null ? null : `${String(value)}s`) },
  ],
  ['keepalive_backoff', { key: 'mqtt.keepalive_multiplier', read: number }],
  ['allow_anonymous', { key: 'auth.allow_anonymous', read: (value) => (typeof value === 'boolean' ? value : null) }],
  ['property_size', { key: '', read: whole }],
]);

/** A reload that left something as it was says so in its code, with the report all the same. */
function reloaded(result: ChangeResult): Answer {
  const report = result.ok ? result.report : undefined;
  if (report === undefined) return changed(result, 'unavailable');
  const left = [
    ['could not be applied', names(report.failed)],
    ['needs a restart', names(report.needRestart)],
  ].filter(([, list]) => list !== '');
  if (left.length === 0) return changed(result, 'unavailable');
  const { code, status, text } = CODES.partly;
  const message = `${text}: ${left.map((words) => words.join(': ')).join('; ')}`;
  return json({ code, message, pointer: '', data: report }, status);
}

function names(list: Json | undefined): string {
  return Array.isArray(list) ? list.join(', ') : '';
}

/** NanoMQ's form {"data":{...}} sets limits in memory or keeps them; an empty body reads the file again. */
async function reload({ config }: ConsoleOptions, call: Call): Promise<Answer> {
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  if (call.body === null) return reloaded(await config.reload());
  const document = isObject(call.body) ? call.body.data : undefined;
  if (!isObject(document)) return fail('value', 'data has to be an object', '/data');
  const values = new Map<string, string | number | boolean>();
  for (const [name, value] of Object.entries(document)) {
    const pointer = `/data/${name}`;
    const setting = SETTINGS.get(name);
    if (setting === undefined) return fail('value', `${name} cannot be set here`, pointer);
    const read = setting.read(value);
    if (read === null) return fail('value', `${name} has the wrong type or range`, pointer);
    // property_size has no meaning here; NanoMQ does not use it either.
    if (setting.key === '') continue;
    const before = values.get(setting.key);
    if (before !== undefined && before !== read)
      return fail('value', 'there is one limit for both directions', pointer);
    values.set(setting.key, read);
  }
  return changed(await config.set(values, keep), 'unavailable');
}

export function configurationRoutes(options: ConsoleOptions): Route[] {
  return [
    get('/api/v4/configuration', 'the configuration in the shape of NanoMQ, without secrets', () =>
      configuration(options),
    ),
    get('/api/v4/configuration/{section}', 'one section of it', (call) => oneSection(options, call)),
    get('/api/v4/config', 'the effective configuration with the keys of the file, without secrets', () =>
      data(options.config.view()),
    ),
    get('/api/v4/reload', 'the limits that can be set while running', () => reloadValues(options)),
    write(
      'POST',
      '/api/v4/reload',
      'sets limits until the next restart, or keeps them; with an empty body: reads the configuration file again',
      'optional',
      'admin',
      (call) => reload(options, call),
      [KEEP],
    ),
  ];
}
