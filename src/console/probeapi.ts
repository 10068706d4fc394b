// REST: tests whether a bridge reaches its other side, before or after it is added. Called by routes.ts. For admins:
// the gateway connects to what the document names, as it would if they added the bridge. Changes nothing.
import { isTopicName } from '../mqtt/topic.ts';
import { type Answer, data, fail, isObject, refuse } from './answer.ts';
import { wrongName } from './bridgeapi.ts';
import { wantedBlock } from './bridgedocument.ts';
import type { BridgeRef, ConsoleOptions, Json, JsonObject, NngDirection, ProbeStep } from './console.ts';
import { type Call, type Route, write } from './route.ts';

const TYPES: readonly (NngDirection | 'mqtt')[] = ['mqtt', 'pub', 'sub', 'push', 'pull', 'pair', 'req', 'rep'];

/** Which bridge the body is about, or what is wrong with it. */
function refOf({ type, name = 'test' }: JsonObject): BridgeRef | Answer {
  const known = TYPES.find((one) => one === type);
  if (known === undefined) return fail('value', `type has to be one of ${TYPES.join(', ')}`, '/type');
  const wrong = wrongName(name, '/name');
  if (wrong !== null) return wrong;
  return known === 'mqtt'
    ? { kind: 'mqtt', direction: null, name: String(name) }
    : { kind: 'nng', direction: known, name: String(name) };
}

/** Names as in the other answers. */
function stepRow({ certificate, ...step }: ProbeStep): Json {
  if (certificate === undefined) return { ...step };
  const { validFrom, validTo, names, ...rest } = certificate;
  return { ...step, certificate: { ...rest, names: [...names], valid_from: validFrom, valid_to: validTo } };
}

async function probe({ bridges }: ConsoleOptions, call: Call): Promise<Answer> {
  const { body } = call;
  if (!isObject(body)) return fail('value', 'the body has to be an object');
  const ref = refOf(body);
  if ('status' in ref) return ref;
  const { document = null, publish_to: publishTo = null } = body;
  if (document !== null && !isObject(document)) return fail('value', 'document has to be an object', '/document');
  if (publishTo !== null && (typeof publishTo !== 'string' || !isTopicName(publishTo)))
    return fail('value', 'publish_to has to be a topic name', '/publish_to');
  const block = document === null ? null : { ...wantedBlock(document, true, bridges.get(ref) ?? null), enable: true };
  const result = await bridges.probe({ ref, document: block, publishTo });
  if (result.ok) return data(result.steps.map(stepRow));
  if (result.why === 'invalid')
    return refuse(result.problems.map((one) => ({ pointer: `/document${one.pointer}`, message: one.message })));
  return result.why === 'missing' ? fail('bridge') : fail('unavailable', 'too many tests at once');
}

export function probeRoutes(options: ConsoleOptions): Route[] {
  const text = 'tests the connection of a bridge: name, connection, TLS, what the other side says';
  return [write('POST', '/api/v4/test_connection', text, 'json', 'admin', (call) => probe(options, call))];
}
