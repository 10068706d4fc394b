// SEAM of config/nanomq/: what NanoMQ's files write differently from the schema is put into its form, before the schema
// sees the tree. Called by config/load.ts for every file and by converting.ts: a nanomq.conf starts unchanged. What
// cannot be taken over is warned about with its line; keys that simply have no effect are `ignored` rows of the schema.
// Sources: NanoMQ 0.25.6, its documentation and example.
import type { Sink } from '../sink.ts';
import { put } from '../text/grow.ts';
import { type BlockNode, blockNode, joinPath, type Member } from '../text/node.ts';
import { parseSize } from '../values.ts';
import { change, textOf, withoutEmpty } from './tidy.ts';
import { adaptFirstForm } from './v014.ts';

/** The longest packet MQTT has. */
const MAX_PACKET = 268_435_460;

/** The tree in this gateway's form. `defaults`: what is not written is as NanoMQ has it. */
export function adaptNanomq(given: BlockNode, sink: Sink, defaults = false): BlockNode {
  const isNanomq = looksLikeNanomq(given);
  let tree = withoutEmpty(adaptFirstForm(given, sink));
  tree = change(tree, ['mqtt', 'max_awaiting_rel'], (member) => {
    if (!/^\s*\d+\s*(ms|s|m|h|d)\s*$/.test(textOf(member.value))) return member;
    sink.needless(member.at, 'mqtt.max_awaiting_rel');
    return null;
  });
  tree = change(tree, ['mqtt', 'max_packet_size'], (member) => {
    const { value } = member;
    if (value.kind !== 'scalar' || (parseSize(value.text) ?? 0) <= MAX_PACKET) return member;
    sink.warn(value.at, 'mqtt.max_packet_size', 'more than MQTT has: 256MB');
    return { at: member.at, value: { ...value, value: MAX_PACKET, text: String(MAX_PACKET), quoted: false } };
  });
  for (const name of ['cache', 'sqlite']) {
    tree = change(tree, ['bridges', 'mqtt', name], (member) => {
      if (member.value.kind === 'block' && member.value.fields.has('server')) return member;
      sink.needless(member.at, `bridges.mqtt.${name}`);
      return null;
    });
  }
  tree = withHttp(tree, sink);
  tree = dropValues(tree, ['bridges', 'mqtt'], sink);
  tree = dropValues(tree, ['bridges', 'aws'], sink);
  return defaults || isNanomq ? withDefaults(tree, sink, defaults) : tree;
}

/** auth.http is an older name of auth.http_auth: who is to be asked must not be left out unseen. */
function withHttp(tree: BlockNode, sink: Sink): BlockNode {
  const auth = tree.fields.get('auth')?.value;
  const old = auth?.kind === 'block' ? auth.fields.get('http') : undefined;
  if (auth?.kind !== 'block' || old === undefined || auth.fields.has('http_auth')) return tree;
  sink.warn(old.at, 'auth.http', 'is read as auth.http_auth, its name now');
  const fields = new Map([...auth.fields].map(([key, member]) => [key === 'http' ? 'http_auth' : key, member]));
  return change(tree, ['auth'], (member) => ({ at: member.at, value: { ...auth, fields } }));
}

/** Old files have keys directly in a block of named bridges: they cannot be bridges. */
function dropValues(tree: BlockNode, path: readonly string[], sink: Sink): BlockNode {
  return change(tree, path, (member) => {
    if (member.value.kind !== 'block') return member;
    const fields = new Map<string, Member>();
    for (const [name, inner] of member.value.fields) {
      if (inner.value.kind === 'block') fields.set(name, inner);
      else sink.warn(inner.at, joinPath(path.join('.'), name), 'not a bridge block; it has no effect');
    }
    return { at: member.at, value: { kind: 'block', fields, at: member.value.at } };
  });
}

// ---- what is not written

/** Keys that only files written for NanoMQ have. */
const OWN_KEYS: readonly (readonly string[])[] = [
  ...['system', 'sqlite', 'rules', 'plugin', 'exchange_client', 'parquet', 'authorization'].map((key) => [key]),
  ...['property_size', 'retry_interval', 'await_rel_timeout', 'batch_resend', 'session'].map((key) => ['mqtt', key]),
  ['auth', 'cache'],
  ['bridges', 'mqtt', 'cache'],
  ['bridges', 'mqtt', 'nodes'],
  ['bridges', 'aws'],
];

function looksLikeNanomq(tree: BlockNode): boolean {
  return OWN_KEYS.some((path) => has(tree, path));
}

function has(block: BlockNode, [name, ...rest]: readonly string[]): boolean {
  const value = block.fields.get(name)?.value;
  if (value === undefined || rest.length === 0) return value !== undefined;
  return value.kind === 'block' && has(value, rest);
}

/** A block that is there and not switched off. */
function isOn(tree: BlockNode, key: string): boolean {
  const value = tree.fields.get(key)?.value;
  return value?.kind === 'block' && !/^(?:false|off|no|0)$/i.test(textOf(value.fields.get('enable')?.value));
}

/** Where NanoMQ is open and this is not: taken over when asked for, else told in one line. */
function withDefaults(tree: BlockNode, sink: Sink, take: boolean): BlockNode {
  const open: (readonly [what: string, path: string, value: string | boolean])[] = [];
  if (!has(tree, ['listeners']) && !has(tree, ['proxy']))
    open.push(['MQTT on 0.0.0.0:1883, here on 127.0.0.1:1883', 'listeners.tcp.bind', '0.0.0.0:1883']);
  if (isOn(tree, 'http_server') && !has(tree, ['http_server', 'ip_addr']))
    open.push(['http_server on 0.0.0.0, here on 127.0.0.1', 'http_server.ip_addr', '0.0.0.0']);
  if (!has(tree, ['auth', 'allow_anonymous']))
    open.push(['anonymous clients, here only on loopback', 'auth.allow_anonymous', true]);
  if (open.length === 0) return tree;
  if (!take) {
    const what = open.map(([text]) => text).join('; ');
    sink.warn(tree.at, 'defaults', `NanoMQ would take ${what}. --nanomq-defaults takes its defaults`);
    return tree;
  }
  const taken = copyOf(tree);
  for (const [, path, value] of open) put(taken, path, value, tree.at);
  return taken;
}

/** Blocks of their own, values shared. */
function copyOf(block: BlockNode): BlockNode {
  const copy = blockNode(block.at);
  for (const [key, { at, value }] of block.fields)
    copy.fields.set(key, { at, value: value.kind === 'block' ? copyOf(value) : value });
  return copy;
}
