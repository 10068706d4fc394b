// REST: bridges to remote brokers: /mqtt/bridges as for NNG bridges (bridgeapi.ts), and /bridges in NanoMQ's shapes.
// Called by routes.ts. Documents have the keys of bridges.mqtt.<name>; the schema decides, not this file.
import { type Answer, changed, data, fail, isObject, refuse } from './answer.ts';
import { type BridgeKind, bridgeRoutes, wrongName } from './bridgeapi.ts';
import { wantedBlock } from './bridgedocument.ts';
import type { BridgeRef, BridgeView, ChangeResult, ConsoleOptions, Json, JsonObject } from './console.ts';
import { KEEP, keepOf } from './keeping.ts';
import { type Call, get, param, type Route, write } from './route.ts';

function reference(name: string): BridgeRef {
  return { kind: 'mqtt', direction: null, name };
}

/** Configuration durations are milliseconds; NanoMQ shows seconds. */
function seconds(value: Json | undefined): Json {
  return typeof value === 'number' ? value / 1000 : (value ?? null);
}

function plain(value: Json | undefined): Json {
  return value ?? null;
}

/** One bridge as NanoMQ shows it, its state beside. */
export function bridgeNode(view: BridgeView): JsonObject {
  const { config } = view;
  const connector = {
    server: plain(config.server),
    proto_ver: plain(config.proto_ver),
    clientid: plain(config.clientid),
    clean_start: plain(config.clean_start),
    username: plain(config.username),
    password: plain(config.password) === null ? null : '***',
    keepalive: seconds(config.keepalive),
    ...(config.conn_properties === undefined ? {} : { conn_properties: config.conn_properties }),
  };
  return {
    name: view.name,
    enable: view.enabled,
    parallel: 1,
    connector,
    forwards: config.forwards ?? [],
    subscription: config.subscription ?? [],
    ...(config.sub_properties === undefined ? {} : { sub_properties: config.sub_properties }),
    ...(config.ssl === undefined ? {} : { tls: config.ssl }),
    state: view.state,
    last_error: view.lastError,
    status: view.status,
  };
}

function list({ bridges }: ConsoleOptions): Answer {
  const nodes: Json[] = [];
  for (const view of bridges.list()) if (view.kind === 'mqtt') nodes.push(bridgeNode(view));
  return data({ bridge: { nodes } });
}

function one({ bridges }: ConsoleOptions, call: Call): Answer {
  const view = bridges.get(reference(param(call, 'name')));
  return data({ bridge: { nodes: view === undefined ? [] : [bridgeNode(view)] } });
}

/** The block in {"<name>": {...}}. */
function blockIn(body: Json, name: string): { document: JsonObject; pointer: string } | Answer {
  if (!isObject(body)) return fail('value', 'the body has to be an object');
  const document = Object.hasOwn(body, name) ? body[name] : undefined;
  if (document === undefined) return fail('missing', `the key ${name}`, '');
  if (Object.keys(body).length > 1) return fail('value', `only the key ${name} may be there`);
  const pointer = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return isObject(document) ? { document, pointer } : fail('value', `${name} has to be an object`, pointer);
}

/** The outcome, pointers being those of the block. */
function outcome(result: ChangeResult, pointer: string, status: number): Answer {
  if (result.ok || result.why !== 'invalid') return changed(result, 'bridge', status);
  return refuse(result.problems.map((p) => ({ pointer: pointer + p.pointer, message: p.message })));
}

/** PUT {"<name>": {...}}: the whole block anew. */
async function replace({ bridges }: ConsoleOptions, call: Call): Promise<Answer> {
  const name = param(call, 'name');
  const found = blockIn(call.body, name);
  if ('status' in found) return found;
  const view = bridges.get(reference(name));
  if (view === undefined) return fail('bridge');
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  const block = wantedBlock(found.document, view.enabled, view);
  return outcome(await bridges.change(view, block, keep), found.pointer, 200);
}

/** POST {"<name>": {...}}: a new one, in the shape of the change. */
async function create({ bridges }: ConsoleOptions, call: Call): Promise<Answer> {
  const name = isObject(call.body) ? Object.keys(call.body)[0] : undefined;
  const found = blockIn(call.body, name ?? 'name');
  if ('status' in found) return found;
  const wrong = wrongName(name, found.pointer);
  if (wrong !== null) return wrong;
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  const block = wantedBlock(found.document, true, null);
  return outcome(await bridges.add(reference(String(name)), block, keep), found.pointer, 201);
}

async function remove({ bridges }: ConsoleOptions, call: Call): Promise<Answer> {
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  return changed(await bridges.remove(reference(param(call, 'name')), keep), 'bridge');
}

async function switchBridge({ bridges }: ConsoleOptions, call: Call): Promise<Answer> {
  const document = isObject(call.body) ? call.body.data : undefined;
  const on = isObject(document) ? document.bridge_switch : undefined;
  if (typeof on !== 'boolean') return fail('missing', 'data.bridge_switch, true or false', '/data/bridge_switch');
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  return changed(await bridges.switch(reference(param(call, 'name')), on, keep), 'bridge');
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Changes the subscriptions of a running bridge: the rest of its block stays. */
async function resubscribe(
  { bridges }: ConsoleOptions,
  call: Call,
  key: 'subscription' | 'unsubscription',
): Promise<Answer> {
  const ref = reference(param(call, 'name'));
  const view = bridges.get(ref);
  if (view === undefined) return fail('bridge');
  const document = isObject(call.body) ? call.body.data : undefined;
  const entries = isObject(document) ? document[key] : undefined;
  if (!Array.isArray(entries) || !entries.every(isObject))
    return fail('missing', `data.${key}, a list`, `/data/${key}`);
  const named = (rule: Json): Json => (isObject(rule) ? (rule.remote_topic ?? rule.topic ?? null) : null);
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  const topics = new Set(entries.map(named));
  const others = listOf(view.config.subscription).filter((rule) => !topics.has(named(rule)));
  const subscription = key === 'subscription' ? [...others, ...entries] : others;
  const block = wantedBlock({ ...view.document, subscription }, view.enabled, view);
  return changed(await bridges.change(ref, block, keep), 'bridge');
}

export function mqttBridgeRoutes(options: ConsoleOptions): Route[] {
  const about: BridgeKind = {
    kind: 'mqtt',
    path: '/api/v4/mqtt/bridges',
    words: 'bridges to remote brokers',
    find: (call) => options.bridges.get(reference(param(call, 'name'))) ?? fail('bridge'),
    place: () => ({ direction: null }),
    query: [],
  };
  return [...bridgeRoutes(options, about), ...nanomqRoutes(options)];
}

function nanomqRoutes(options: ConsoleOptions): Route[] {
  return [
    get('/api/v4/bridges', 'bridges to remote brokers', () => list(options)),
    get('/api/v4/bridges/{name}', 'one of them, or none', (call) => one(options, call)),
    write('POST', '/api/v4/bridges', 'creates one and starts it', 'json', 'admin', (c) => create(options, c), [KEEP]),
    write('DELETE', '/api/v4/bridges/{name}', 'stops and removes it', 'none', 'admin', (c) => remove(options, c), [
      KEEP,
    ]),
    write(
      'PUT',
      '/api/v4/bridges/{name}',
      'replaces its configuration',
      'json',
      'admin',
      (call) => replace(options, call),
      [KEEP],
    ),
    write(
      'POST',
      '/api/v4/bridges/switch/{name}',
      'enables or disables it',
      'json',
      'operator',
      (call) => switchBridge(options, call),
      [KEEP],
    ),
    write(
      'POST',
      '/api/v4/bridges/sub/{name}',
      'adds subscriptions at the remote broker',
      'json',
      'admin',
      (call) => resubscribe(options, call, 'subscription'),
      [KEEP],
    ),
    write(
      'POST',
      '/api/v4/bridges/unsub/{name}',
      'ends subscriptions at the remote broker',
      'json',
      'admin',
      (call) => resubscribe(options, call, 'unsubscription'),
      [KEEP],
    ),
  ];
}
