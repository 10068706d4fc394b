// REST: NNG bridges at run time (bridgeapi.ts), told apart by their type, and trying a rule. Called by routes.ts.
// Documents have the keys of bridges.nng.<type>.<name>, plus `type` and `name`; the schema decides, not this file.

import type { Properties } from '../mqtt/property.ts';
import { type Answer, data, fail, isObject } from './answer.ts';
import { type BridgeKind, bridgeRoutes } from './bridgeapi.ts';
import type { BridgeRef, BridgeView, ConsoleOptions, Json, JsonObject, NngDirection, Trial } from './console.ts';
import { type Call, param, type QueryParameter, type Route, write } from './route.ts';
import { fromBase64, payloadFields } from './text.ts';

const TYPE_QUERY: readonly QueryParameter[] = [
  { name: 'type', text: 'pub, sub, push, pull or pair, where several have a bridge of this name', type: 'string' },
];

const DIRECTIONS: readonly NngDirection[] = ['pub', 'sub', 'push', 'pull', 'pair', 'req', 'rep'];
const TYPES = 'type has to be pub, sub, push, pull, pair, req or rep';

function directionOf(type: Json | undefined): NngDirection | undefined {
  return DIRECTIONS.find((direction) => direction === type);
}

function reference(direction: NngDirection, name: string): BridgeRef {
  return { kind: 'nng', direction, name };
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
  const { rule, topic, qos = 0, retain = false, traceparent } = document;
  const type = directionOf(document.type);
  if (type === undefined) return fail('value', TYPES, '/type');
  if (!isObject(rule)) return fail('missing', 'rule, an object', '/rule');
  const none = new Uint8Array(0);
  // A pair has rules of both kinds: the input tells which is meant.
  if (type === 'sub' || type === 'pull' || (type === 'pair' && topic === undefined)) {
    const frame = inputBytes(document, 'frame');
    if ('status' in frame) return frame;
    return { direction: 'sub', rule, frame, topic: '', payload: none, qos: 0, retain: false, properties: null };
  }
  if (typeof topic !== 'string' || topic === '') return fail('missing', 'topic', '/topic');
  if (typeof retain !== 'boolean') return fail('value', 'retain has to be true or false', '/retain');
  if (qos !== 0 && qos !== 1 && qos !== 2) return fail('value', 'qos has to be 0, 1 or 2', '/qos');
  if (traceparent !== undefined && typeof traceparent !== 'string')
    return fail('value', 'traceparent has to be text', '/traceparent');
  const properties: Properties | null =
    traceparent === undefined ? null : { userProperties: [['traceparent', traceparent]] };
  const given = document.payload !== undefined || document.payload_base64 !== undefined;
  const payload = given ? inputBytes(document, 'payload') : none;
  if ('status' in payload) return payload;
  return { direction: 'pub', rule, frame: none, topic, payload, qos, retain, properties };
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
  const { topic, qos, retain, payload, traceparent } = result;
  const trace: JsonObject = traceparent === undefined ? {} : { traceparent };
  return data({ matched: true, topic, qos, retain, ...payloadFields(payload, 'payload'), ...trace });
}

/** Which block a document is for. */
function placeOf(document: JsonObject): { direction: NngDirection } | Answer {
  const direction = directionOf(document.type);
  return direction === undefined ? fail('value', TYPES, '/type') : { direction };
}

export function nngRoutes(options: ConsoleOptions): Route[] {
  const about: BridgeKind = {
    kind: 'nng',
    path: '/api/v4/nng/bridges',
    words: 'NNG bridges',
    find: (call) => find(options, call),
    place: placeOf,
    query: TYPE_QUERY,
  };
  const tryRule = write('POST', '/api/v4/nng/test', 'shows what a rule would do', 'json', 'viewer', (c) =>
    test(options, c),
  );
  return [...bridgeRoutes(options, about), { ...tryRule, quiet: true }];
}
