// REST: rules at run time: list, put, remove, and trying one on a sample or on live messages. Called by routes.ts.
// A document has the keys of rules.<name>; the schema and the engine decide what is right, not this file.
import { type Answer, changed, data, fail, isObject } from './answer.ts';
import { wrongName } from './bridgeapi.ts';
import type { ConsoleOptions, Json, JsonObject, RuleControl, RuleView } from './console.ts';
import { KEEP, keepOf } from './keeping.ts';
import { type Call, get, param, type Route, write } from './route.ts';
import { fromBase64, payloadFields } from './text.ts';

/** Bounds of a trial on live messages. */
const MOST_SECONDS = 60;
const MOST_MESSAGES = 100;

function shown({ name, enabled, from, to, matched, passed, dropped, lastError, config }: RuleView): JsonObject {
  const error: Json =
    lastError === null
      ? null
      : { at: new Date(lastError.atMs).toISOString(), topic: lastError.topic, text: lastError.text };
  const document = { from: [...from], to, ...config };
  return { matched, passed, dropped: { ...dropped }, last_error: error, ...document, name, enable: enabled };
}

/** A document without what only tells how the rule is doing: a shown rule can be sent back. */
function wanted(document: JsonObject): JsonObject {
  const { name: _n, matched: _m, passed: _p, dropped: _d, last_error: _l, ...block } = document;
  return Object.fromEntries(Object.entries(block).filter(([, value]) => value !== null));
}

async function put(rules: RuleControl, call: Call): Promise<Answer> {
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const name = param(call, 'name');
  const wrong = wrongName(name, '/name');
  if (wrong !== null) return wrong;
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  const isNew = rules.list().every((rule) => rule.name !== name);
  return changed(await rules.put(name, wanted(call.body), keep), 'rule', isNew ? 201 : 200);
}

async function remove(rules: RuleControl, call: Call): Promise<Answer> {
  const keep = keepOf(call);
  return typeof keep === 'object' ? keep : changed(await rules.remove(param(call, 'name'), keep), 'rule');
}

type Sample = Parameters<RuleControl['test']>[0]['sample'];

function sampleOf(document: JsonObject): Sample | Answer {
  const { topic, payload = '', payload_base64: base64, qos = 0, retain = false, clientid = '', username } = document;
  if (typeof topic !== 'string' || topic === '') return fail('missing', 'topic', '/topic');
  if (qos !== 0 && qos !== 1 && qos !== 2) return fail('value', 'qos has to be 0, 1 or 2', '/qos');
  if (typeof payload !== 'string') return fail('value', 'payload has to be text', '/payload');
  const bytes = base64 === undefined ? Buffer.from(payload) : typeof base64 === 'string' ? fromBase64(base64) : null;
  if (bytes === null) return fail('value', 'payload_base64 is not base64', '/payload_base64');
  return {
    topic,
    payload: bytes,
    qos,
    retain: retain === true,
    clientId: typeof clientid === 'string' ? clientid : '',
    username: typeof username === 'string' ? username : null,
  };
}

type Tried = Extract<Awaited<ReturnType<RuleControl['test']>>, { ok: true }>['result'];

function triedFields(result: Tried): JsonObject {
  if (result.outcome !== 'passed') return { ...result };
  const { outcome, topic, payload, qos, retain } = result;
  return { outcome, topic, qos, retain, ...payloadFields(payload, 'payload') };
}

/** What a rule would do with a message, or with the next ones that come; nothing is published. */
async function test(rules: RuleControl, call: Call): Promise<Answer> {
  if (!isObject(call.body)) return fail('value', 'the body has to be an object');
  const { rule, live } = call.body;
  if (typeof rule !== 'string' && !isObject(rule)) return fail('missing', 'rule, its name or a document', '/rule');
  const document = typeof rule === 'string' ? rule : wanted(rule);
  if (live !== undefined) return watch(rules, document, live);
  const sample = sampleOf(call.body);
  if ('status' in sample) return sample;
  const tried = await rules.test({ rule: document, sample });
  return tried.ok ? data(triedFields(tried.result)) : refused(tried.problems);
}

async function watch(rules: RuleControl, rule: string | JsonObject, live: Json): Promise<Answer> {
  const { seconds = 5, count = 10 } = isObject(live) ? live : {};
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= MOST_SECONDS))
    return fail('value', `seconds has to be at most ${MOST_SECONDS}`, '/live/seconds');
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 1 || count > MOST_MESSAGES)
    return fail('value', `count has to be 1 to ${MOST_MESSAGES}`, '/live/count');
  const tried = await rules.watch(rule, seconds * 1000, count);
  if (!tried.ok) return refused(tried.problems);
  return data(
    tried.results.map(({ sample, result }) => ({
      from: { topic: sample.topic, qos: sample.qos, ...payloadFields(sample.payload, 'payload') },
      ...triedFields(result),
    })),
  );
}

function refused(problems: readonly { readonly pointer: string; readonly message: string }[]): Answer {
  const [first] = problems;
  return fail('value', first?.message, `/rule${first?.pointer ?? ''}`);
}

export function ruleRoutes({ rules }: ConsoleOptions): Route[] {
  if (rules === undefined) return [get('/api/v4/rules', 'rules, where the gateway has some', () => fail('rules'))];
  const one = '/api/v4/rules/{name}';
  const find = (call: Call): Answer => {
    const view = rules.list().find((rule) => rule.name === param(call, 'name'));
    return view === undefined ? fail('rule') : data(shown(view));
  };
  const trial = write(
    'POST',
    '/api/v4/rules/test',
    'tries a rule on a message, or on live ones',
    'json',
    'operator',
    (call) => test(rules, call),
  );
  return [
    get('/api/v4/rules', 'rules: configuration, counters, last errors', () => data(rules.list().map(shown))),
    { ...trial, quiet: true },
    get(one, 'one of them', find),
    write('PUT', one, 'adds it or takes its place', 'json', 'admin', (call) => put(rules, call), [KEEP]),
    write('DELETE', one, 'removes it', 'none', 'admin', (call) => remove(rules, call), [KEEP]),
  ];
}
