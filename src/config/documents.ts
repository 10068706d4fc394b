// Bridges that come as JSON documents at run time (REST, `ctl bridge add`): read by the same schema and checks as a
// file. Called by gateway/bridges.ts. Pure. A document is a bridge's block; a bare number has the key's unit, as in a
// file, and a secret that reads "***" keeps the value it has now.
import type {
  ForwardRule,
  MqttBridgeConfig,
  NngBridgeConfig,
  NngBridgeType,
  NngCompat,
  NngPubConfig,
  NngSubConfig,
  SubscriptionRule,
} from './bridges.ts';
import {
  buildMqttBridge,
  buildPair,
  buildPub,
  buildPull,
  buildPush,
  buildRep,
  buildReq,
  buildSub,
} from './build/bridges.ts';
import { buildRule } from './build/rules.ts';
import type { Tree, TreeValue } from './config.ts';
import type { RuleConfig } from './rules.ts';
import type { Key } from './schema/key.ts';
import { NNG_PAIR, NNG_PUB, NNG_PULL, NNG_PUSH, NNG_REP, NNG_REQ, NNG_SUB } from './schema/nng.ts';
import { MQTT_BRIDGE } from './schema/remote.ts';
import { RULE } from './schema/rules.ts';
import { withUnits } from './schema/units.ts';
import { Sink } from './sink.ts';
import { type BlockNode, FORBIDDEN_KEY, MAX_DEPTH, type Member, type Node, textNode } from './text/node.ts';

/** What is wrong with a document: a JSON pointer into it (RFC 6901) and a sentence that names the key. */
export interface DocumentProblem {
  readonly pointer: string;
  readonly message: string;
}
export type Read<T> =
  | {
      readonly ok: true;
      readonly value: T;
      readonly tree: Tree;
      readonly masked: Tree;
      readonly warnings: readonly string[];
      /** The document as it would be written in a file: only what it says, present secrets in the place of "***". */
      readonly node: Node;
    }
  | { readonly ok: false; readonly problems: readonly DocumentProblem[] };

const PLACE = { file: 'document', line: 0, column: 0 };

/** `current`: the tree of the bridge that is changed, secrets in clear; null for a new one. */
export function readNngPub(name: string, document: Tree, compat: NngCompat, current: Tree | null): Read<NngPubConfig> {
  return read(NNG_PUB, document, current, (block, sink) => buildPub(name, block, compat, sink));
}

export function readNngSub(name: string, document: Tree, compat: NngCompat, current: Tree | null): Read<NngSubConfig> {
  return read(NNG_SUB, document, current, (block, sink) => buildSub(name, block, compat, sink));
}

/** A bridge of any type. */
export function readNng(
  type: NngBridgeType,
  name: string,
  document: Tree,
  compat: NngCompat,
  current: Tree | null,
): Read<NngBridgeConfig> {
  switch (type) {
    case 'pub':
      return readNngPub(name, document, compat, current);
    case 'sub':
      return readNngSub(name, document, compat, current);
    case 'push':
      return read(NNG_PUSH, document, current, (block, sink) => buildPush(name, block, compat, sink));
    case 'pull':
      return read(NNG_PULL, document, current, (block, sink) => buildPull(name, block, compat, sink));
    case 'pair':
      return read(NNG_PAIR, document, current, (block, sink) => buildPair(name, block, compat, sink));
    case 'req':
      return read(NNG_REQ, document, current, (block, sink) => buildReq(name, block, compat, sink));
    case 'rep':
      return read(NNG_REP, document, current, (block, sink) => buildRep(name, block, compat, sink));
  }
}

export function readMqttBridge(name: string, document: Tree, current: Tree | null): Read<MqttBridgeConfig> {
  return read(MQTT_BRIDGE, document, current, (block, sink) => buildMqttBridge(name, block, sink));
}

/** The key of a bridge's block. */
export const BRIDGE_KEYS = {
  pub: NNG_PUB,
  sub: NNG_SUB,
  push: NNG_PUSH,
  pull: NNG_PULL,
  pair: NNG_PAIR,
  req: NNG_REQ,
  rep: NNG_REP,
  mqtt: MQTT_BRIDGE,
} as const;

/**
 * A bridge's tree as a document. The tree has milliseconds, and a bare number of a document has the unit of its key:
 * where that is seconds, the time is written with its unit.
 */
export function documentOf(type: NngBridgeType | 'mqtt', tree: Tree): Tree {
  return withUnits(BRIDGE_KEYS[type], tree, false, inSeconds) as Tree;
}

/** Whole seconds as such: forms show "60s", not "1m". */
function inSeconds(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

/** A rule's tree as a document, as documentOf() has it for bridges. */
export function ruleDocument(tree: Tree): Tree {
  return withUnits(RULE, tree, false, inSeconds) as Tree;
}

/** A rule of the gateway. */
export function readRule(name: string, document: Tree): Read<RuleConfig> {
  return read(RULE, document, null, (block, sink) => buildRule(name, block, sink));
}

/** One rule of a pub bridge, for "what would this rule do". Pointers are relative to the rule. */
export function readForward(rule: Tree, compat: NngCompat): Read<ForwardRule> {
  const whole = { enable: true, pub_url: 'inproc://trial', forwards: [rule] };
  return ofRule(readNngPub('trial', whole, compat, null), (bridge) => bridge.forwards[0]);
}

/** One rule of a sub bridge. */
export function readSubscription(rule: Tree, compat: NngCompat): Read<SubscriptionRule> {
  const whole = { enable: true, sub_url: 'inproc://trial', subscription: [rule] };
  return ofRule(readNngSub('trial', whole, compat, null), (bridge) => bridge.subscription[0]);
}

function ofRule<B, R>(whole: Read<B>, pick: (bridge: B) => R): Read<R> {
  if (whole.ok) return { ...whole, value: pick(whole.value) };
  const problems = whole.problems.map(({ pointer, message }) => ({
    pointer: pointer.replace(/^\/\w+\/0/, ''),
    message,
  }));
  return { ok: false, problems };
}

function read<B, T>(key: Key<B>, document: Tree, current: Tree | null, build: (block: B, sink: Sink) => T): Read<T> {
  const sink = new Sink();
  const node = keepSecrets(toNode(document, '', 0, sink), key, current);
  const block = sink.problems.length > 0 ? undefined : key.read(node, '', sink);
  const value = block === undefined || sink.problems.length > 0 ? undefined : build(block, sink);
  if (block === undefined || value === undefined || sink.problems.length > 0) {
    return {
      ok: false,
      problems: sink.problems.map((p) => ({ pointer: pointer(p.key), message: `${p.key}: ${p.message}` })),
    };
  }
  const warnings = [...sink.warnings, ...sink.needlessLine()].map((w) => `${w.key}: ${w.message}`);
  const shown = (mask: boolean): Tree => key.show(block, mask) as Tree;
  return { ok: true, value, tree: shown(false), masked: shown(true), warnings, node };
}

function toNode(value: TreeValue, path: string, depth: number, sink: Sink): Node {
  if (depth > MAX_DEPTH) {
    sink.problem(PLACE, path, `more than ${MAX_DEPTH} levels`);
    return textNode('', PLACE);
  }
  if (isList(value)) {
    const items = value.map((item, i) => toNode(item, `${path}[${i}]`, depth + 1, sink));
    return { kind: 'list', items, at: PLACE };
  }
  if (typeof value === 'object' && value !== null) {
    const fields = new Map<string, Member>();
    for (const [name, inner] of Object.entries(value)) {
      const key = path === '' ? name : `${path}.${name}`;
      if (name === FORBIDDEN_KEY) sink.problem(PLACE, key, 'this name cannot be used');
      else fields.set(name, { at: PLACE, value: toNode(inner, key, depth + 1, sink) });
    }
    return { kind: 'block', fields, at: PLACE };
  }
  return { kind: 'scalar', value, text: String(value), quoted: typeof value === 'string', at: PLACE };
}

function isList(value: TreeValue | undefined): value is readonly TreeValue[] {
  return Array.isArray(value);
}

/** Puts the present secrets in the place of "***". */
function keepSecrets(node: Node, key: Key<unknown>, current: TreeValue | undefined): Node {
  if (node.kind === 'scalar') {
    if (node.value !== '***' || typeof current !== 'string') return node;
    // Also a key that is secret by what it holds.
    const isMask = key.doc.secret === true || key.show(current, true) === '***';
    return isMask ? textNode(current, node.at) : node;
  }
  if (node.kind !== 'block' || key.inside?.kind !== 'fields') return node;
  const known = key.inside.fields;
  const now = typeof current === 'object' && current !== null && !isList(current) ? current : undefined;
  const fields: BlockNode['fields'] = new Map();
  for (const [name, member] of node.fields) {
    const spec = Object.hasOwn(known, name) ? known[name] : undefined;
    const value = spec === undefined ? member.value : keepSecrets(member.value, spec, now?.[name]);
    fields.set(name, { at: member.at, value });
  }
  return { kind: 'block', fields, at: node.at };
}

/** forwards[0].qos -> /forwards/0/qos */
function pointer(key: string): string {
  const parts = key.match(/"(?:[^"\\]|\\.)*"|[^.[\]]+/g) ?? [];
  return parts
    .map((part) => `/${(part.startsWith('"') ? part.slice(1, -1) : part).replace(/~/g, '~0').replace(/\//g, '~1')}`)
    .join('');
}
