// REST: bridges of one kind at run time: list, create, read, change, remove, enable, disable. Called by nngapi.ts and
// mqttbridge.ts. A document has the keys of the bridge's block and its `name`; the schema decides what is right, not
// this file. What fails changes nothing.
import { type Answer, changed, data, fail, isObject } from './answer.ts';
import { wantedBlock } from './bridgedocument.ts';
import type { BridgeRef, BridgeView, ConsoleOptions, Json, JsonObject } from './console.ts';
import { KEEP, keepOf } from './keeping.ts';
import { type Call, get, type QueryParameter, type Route, write } from './route.ts';

/** A name that may stand in a configuration file, a metric label and a URL. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

/** What tells the bridges of one kind from others. */
export interface BridgeKind {
  readonly kind: BridgeRef['kind'];
  /** Path of the list. */
  readonly path: string;
  /** In the texts of the routes. */
  readonly words: string;
  /** Which one a path names. */
  readonly find: (call: Call) => BridgeView | Answer;
  /** Which block of the configuration a new one stands in. */
  readonly place: (document: JsonObject) => Pick<BridgeRef, 'direction'> | Answer;
  /** What `find` reads of a query. */
  readonly query: readonly QueryParameter[];
}

/**
 * One bridge: what its block says, then what it is doing. Counters come first, so that they never hide a key of the
 * block.
 */
export function shown(view: BridgeView): JsonObject {
  return {
    ...view.status,
    ...view.document,
    name: view.name,
    ...(view.direction === null ? {} : { type: view.direction }),
    enable: view.enabled,
    state: view.state,
    last_error: view.lastError,
  };
}

/** What is wrong with the name of a new bridge. */
export function wrongName(name: Json | undefined, pointer: string): Answer | null {
  if (name === undefined) return fail('missing', 'name', pointer);
  if (typeof name === 'string' && NAME.test(name)) return null;
  return fail('value', 'name has to be letters, digits, _ . or -, at most 64', pointer);
}

function isAnswer<T extends object>(value: T | Answer): value is Answer {
  return 'contentType' in value;
}

async function create({ bridges }: ConsoleOptions, { kind, place }: BridgeKind, call: Call): Promise<Answer> {
  const document = call.body;
  if (!isObject(document)) return fail('value', 'the body has to be an object');
  const where = place(document);
  if (isAnswer(where)) return where;
  const { name } = document;
  const wrong = wrongName(name, '/name');
  if (wrong !== null) return wrong;
  const keep = keepOf(call);
  if (typeof keep === 'object') return keep;
  // A block in a file may be off without `enable`; who creates one now wants it to run.
  const block = wantedBlock(document, true, null);
  return changed(await bridges.add({ kind, ...where, name: String(name) }, block, keep), 'bridge', 201);
}

async function replace({ bridges }: ConsoleOptions, view: BridgeView, call: Call, keep: boolean): Promise<Answer> {
  const document = call.body;
  if (!isObject(document)) return fail('value', 'the body has to be an object');
  if (document.name !== undefined && document.name !== view.name) return fail('value', 'name cannot change', '/name');
  if (document.type !== undefined && document.type !== view.direction)
    return fail('value', 'type cannot change', '/type');
  return changed(await bridges.change(view, wantedBlock(document, view.enabled, view), keep), 'bridge');
}

export function bridgeRoutes(options: ConsoleOptions, about: BridgeKind): Route[] {
  const { bridges } = options;
  const { kind, path, words, find, query } = about;
  const one = `${path}/{name}`;
  const changing = [...query, KEEP];
  const list = (): Answer => {
    const rows: Json[] = [];
    for (const view of bridges.list()) if (view.kind === kind) rows.push(shown(view));
    return data(rows);
  };
  /** A handler that gets the bridge its path names. */
  const on =
    (work: (view: BridgeView, call: Call, keep: boolean) => Answer | Promise<Answer>) =>
    (call: Call): Answer | Promise<Answer> => {
      const view = find(call);
      if (isAnswer(view)) return view;
      const keep = keepOf(call);
      return typeof keep === 'object' ? keep : work(view, call, keep);
    };
  const remove = on(async (view, _call, keep) => changed(await bridges.remove(view, keep), 'bridge'));
  const turn = (enable: boolean): Route['handle'] =>
    on(async (view, _call, keep) => changed(await bridges.switch(view, enable, keep), 'bridge'));
  const change = on((view, call, keep) => replace(options, view, call, keep));
  const read = on((view) => data(shown(view)));
  return [
    get(path, `${words}: configuration, state, counters`, list),
    write('POST', path, 'creates one and starts it', 'json', 'admin', (call) => create(options, about, call), [KEEP]),
    get(one, 'one of them', read, 'viewer', query),
    write('PUT', one, 'replaces its configuration', 'json', 'admin', change, changing),
    write('DELETE', one, 'stops and removes it', 'none', 'admin', remove, changing),
    write('POST', `${one}/enable`, 'starts it', 'none', 'operator', turn(true), changing),
    write('POST', `${one}/disable`, 'stops it and keeps it', 'none', 'operator', turn(false), changing),
  ];
}
