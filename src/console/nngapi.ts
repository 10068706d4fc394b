// REST: NNG bridges at run time: list, create, read, change, enable, disable, remove, and trying a rule. Called by routes.ts.
// Documents have the keys of bridges.nng.<type>.<name>, plus `type` and `name`; the schema decides, not this file.
import { type Answer, changed, data, fail, isObject } from './answer.ts';
import { shownBlock, wantedBlock } from './bridgedocument.ts';
import type { BridgeRef, BridgeView, ConsoleOptions, Json, JsonObject, NngDirection, Trial } from './console.ts';
import { KEEP, keepOf } from './keeping.ts';
import { type Call, get, param, type QueryParameter, type Route, write } from './route.ts';
import { fromBase64, payloadFields } from './text.ts';

/** A name that may stand in a configuration file, a metric label and a URL. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

const TYPE_QUERY: readonly QueryParameter[] = [
  { name: 'type', text: 'pub, sub, push, pull or pair, where several have a bridge of this name', type: 'string' },
];
const CHANGE_QUERY: readonly QueryParameter[] = [...TYPE_QUERY, KEEP];

const DIRECTIONS: readonly NngDirection[] = ['pub', 'sub', 'push', 'pull', 'pair'];
const TYPES = 'type has to be pub, sub, push, pull or pair';

function directionOf(type: Json | undefined): NngDirection | undefined {
  return DIRECTIONS.find((direction) => direction === type);
}

function reference(direction: NngDirection, name: string): BridgeRef {
  return { kind: 'nng', direction, name };
}

/** One bridge: what its block says, then what it is doing. */
function shown(view: BridgeView): JsonObject {
  return {
    ...view.status,
    ...shownBlock(view.config),
    name: view.name,
    type: view.direction,
    enable: view.enabled,
    state: view.state,
    last_error: view.lastError,
  };
}

function list({ bridges }: ConsoleOptions): Answer {
  const rows: Json[] = [];
  for (const view of bridges.list()) if (view.kind === 'nng') rows.push(shown(view));
  return data(rows);
}

/** The bridge a path names; `type` tells where several share a name. */
function find({ bridges }: ConsoleOptions, call: Call): BridgeView | Answer {
  const name = param(call, 'name');
  const type = call.query.get('type');
  const wanted = directionOf(type);
  if (type !== undefined && wanted === undefined) return fail('query', TYPES);
  const directions = wanted === undefined ? DIRECTIONS : [wanted];
  const found = directions.map((direction) => bridges.get(reference(direction, name))).filter((v) => v !== undefined);
  if (found.length > 1) return fail('ambiguous', `add ?type=${found.map((view) => view.direction).join(' or ?type=')}`);
  return found[0] ?? fail('bridge');
}

async function create({ bridges }: ConsoleOptions, call: Call): Promise<Answer> {
  const document = call.body;
  if (!isObject(document)) return fail('value', 'the body has to be an object');
  const { name } = document;
  const type = directionOf(document.type);
  if (type === undefined) return fail('value', TYPES, '/type');
  if (name === undefined) return fail('missing', 'name', '/name');
  if (typeof name !== 'string' || !NAME.test(name)) {
    return fail('value', 'name has to be letters, digits, _ . or -, at most 64', '/name');
  }
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  // A block in a file is off without `enable`; who creates one now wants it to run.
  return changed(await bridges.add(reference(type, name), wantedBlock(document, true, null), keep), 'bridge', 201);
}

async function replace(options: ConsoleOptions, call: Call): Promise<Answer> {
  const view = find(options, call);
  if (!('direction' in view)) return view;
  const document = call.body;
  if (!isObject(document)) return fail('value', 'the body has to be an object');
  if (document.name !== undefined && document.name !== view.name) return fail('value', 'name cannot change', '/name');
  if (document.type !== undefined && document.type !== view.direction) {
    return fail('value', 'type cannot change', '/type');
  }
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  return changed(await options.bridges.change(view, wantedBlock(document, view.enabled, view), keep), 'bridge');
}

async function remove(options: ConsoleOptions, call: Call): Promise<Answer> {
  const view = find(options, call);
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  return 'direction' in view ? changed(await options.bridges.remove(view, keep), 'bridge') : view;
}

async function turn(options: ConsoleOptions, call: Call, on: boolean): Promise<Answer> {
  const view = find(options, call);
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  return 'direction' in view ? changed(await options.bridges.switch(view, on, keep), 'bridge') : view;
}

/** Bytes of a test's input: as text under `name`, or in base64 under `<name>_base64`. */
function inputBytes(document: JsonObject, name: string): Uint8Array | Answer {
  const text = document[name];
  const base64 = document[`${name}_base64`];
  if (text !== undefined) {
    return typeof text === 'string' ? Buffer.from(text) : fail('value', `${name} has to be text`, `/${name}`);
  }
  if (base64 === undefined) return fail('missing', name, `/${name}`);
  const bytes = typeof base64 === 'string' ? fromBase64(base64) : null;
  return bytes ?? fail('value', `${name}_base64 is not base64`, `/${name}_base64`);
}

function readTrial(document: Json): Trial | Answer {
  if (!isObject(document)) return fail('value', 'the body has to be an object');
  const { rule, topic, retain = false } = document;
  const type = directionOf(document.type);
  if (type === undefined) return fail('value', TYPES, '/type');
  if (!isObject(rule)) return fail('missing', 'rule, an object', '/rule');
  const none = new Uint8Array(0);
  // A pair has rules of both kinds: the input tells which is meant.
  if (type === 'sub' || type === 'pull' || (type === 'pair' && topic === undefined)) {
    const frame = inputBytes(document, 'frame');
    if ('status' in frame) return frame;
    return { direction: 'sub', rule, frame, topic: '', payload: none, retain: false };
  }
  if (typeof topic !== 'string' || topic === '') return fail('missing', 'topic', '/topic');
  if (typeof retain !== 'boolean') return fail('value', 'retain has to be true or false', '/retain');
  const given = document.payload !== undefined || document.payload_base64 !== undefined;
  const payload = given ? inputBytes(document, 'payload') : none;
  if ('status' in payload) return payload;
  return { direction: 'pub', rule, frame: none, topic, payload, retain };
}

/** What one rule would do with one input; nothing is sent. */
function test({ bridges }: ConsoleOptions, call: Call): Answer {
  const trial = readTrial(call.body);
  if ('status' in trial) return trial;
  const result = bridges.test(trial);
  if (!result.ok) {
    const first = result.problems[0];
    return fail('value', first?.message, `/rule${first?.pointer ?? ''}`);
  }
  if (!result.matched) return data({ matched: false, reason: result.reason });
  if (result.direction === 'pub') return data({ matched: true, ...payloadFields(result.frame, 'frame') });
  const { topic, qos, retain, payload } = result;
  return data({ matched: true, topic, qos, retain, ...payloadFields(payload, 'payload') });
}

const ONE = '/api/v4/nng/bridges/{name}';

export function nngRoutes(options: ConsoleOptions): Route[] {
  const tryRule = write('POST', '/api/v4/nng/test', 'shows what a rule would do', 'json', 'viewer', (c) =>
    test(options, c),
  );
  return [
    get('/api/v4/nng/bridges', 'NNG bridges: configuration, state, peers, counters', () => list(options)),
    write('POST', '/api/v4/nng/bridges', 'creates one and starts it', 'json', 'admin', (c) => create(options, c), [
      KEEP,
    ]),
    get(
      ONE,
      'one NNG bridge',
      (call) => {
        const view = find(options, call);
        return 'direction' in view ? data(shown(view)) : view;
      },
      'viewer',
      TYPE_QUERY,
    ),
    write('PUT', ONE, 'replaces its configuration', 'json', 'admin', (c) => replace(options, c), CHANGE_QUERY),
    write('DELETE', ONE, 'stops and removes it', 'none', 'admin', (c) => remove(options, c), CHANGE_QUERY),
    write('POST', `${ONE}/enable`, 'starts it', 'none', 'operator', (c) => turn(options, c, true), CHANGE_QUERY),
    write(
      'POST',
      `${ONE}/disable`,
      'stops it and keeps it',
      'none',
      'operator',
      (c) => turn(options, c, false),
      CHANGE_QUERY,
    ),
    { ...tryRule, quiet: true },
  ];
}
