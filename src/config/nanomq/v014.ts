// The first HOCON form of nanomq.conf, of 0.14: mqtt.session, certificates under short names, bridges.mqtt.nodes,
// authorization.sources. Called by nanomq.ts for every tree; one without such keys stays as it is. Sources: NanoMQ's
// documentation of 0.14.
import type { Position } from '../problem.ts';
import type { Sink } from '../sink.ts';
import { append, child, put } from '../text/grow.ts';
import { type BlockNode, blockNode, type Member, type Node } from '../text/node.ts';
import { change, textOf } from './tidy.ts';

export function adaptFirstForm(given: BlockNode, sink: Sink): BlockNode {
  let tree = withSession(given, sink);
  tree = withShortNames(tree);
  tree = withNodes(tree, sink);
  return withSources(tree, sink);
}

function blockAt(block: BlockNode, ...path: readonly string[]): BlockNode | null {
  let inner: BlockNode = block;
  for (const key of path) {
    const value = inner.fields.get(key)?.value;
    if (value?.kind !== 'block') return null;
    inner = value;
  }
  return inner;
}

/** A copy without `key`, into which its content may be put. */
function without(block: BlockNode, key: string): BlockNode {
  const fields = new Map(block.fields);
  fields.delete(key);
  return { kind: 'block', fields, at: block.at };
}

// ---- mqtt.session

const SESSION: ReadonlyMap<string, string> = new Map([
  ['msq_len', 'mqtt.max_mqueue_len'],
  ['max_packet_size', 'mqtt.max_packet_size'],
  ['keepalive_backoff', 'mqtt.keepalive_multiplier'],
  ['allow_anonymous', 'auth.allow_anonymous'],
]);
const SESSION_NEEDLESS = ['property_size', 'qos_duration', 'client_max_packet_size'];

function withSession(tree: BlockNode, sink: Sink): BlockNode {
  const session = blockAt(tree, 'mqtt', 'session');
  const mqtt = blockAt(tree, 'mqtt');
  if (session === null || mqtt === null) return tree;
  const root = without(tree, '');
  root.fields.set('mqtt', { at: mqtt.at, value: without(mqtt, 'session') });
  const auth = blockAt(tree, 'auth');
  if (auth !== null) root.fields.set('auth', { at: auth.at, value: without(auth, '') });
  for (const [key, { at, value }] of session.fields) {
    const to = SESSION.get(key);
    // A bare number of this key was kilobytes.
    if (key === 'max_packet_size' && /^\d+$/.test(textOf(value)))
      put(root, 'mqtt.max_packet_size', `${textOf(value)}KB`, at);
    else if (to !== undefined) put(root, to, value, at);
    else if (SESSION_NEEDLESS.includes(key)) sink.needless(at, `mqtt.session.${key}`);
    else sink.warn(at, `mqtt.session.${key}`, 'unknown key; it has no effect');
  }
  return root;
}

// ---- listeners.ssl

const SHORT: ReadonlyMap<string, string> = new Map([
  ['key', 'keyfile'],
  ['keypass', 'key_password'],
  ['cert', 'certfile'],
  ['cacert', 'cacertfile'],
]);

function withShortNames(tree: BlockNode): BlockNode {
  return change(tree, ['listeners', 'ssl'], (member) => {
    const { value } = member;
    if (value.kind !== 'block') return member;
    const isShort = (key: string, inner: Member): boolean =>
      SHORT.has(key) && inner.value.kind === 'scalar' && !value.fields.has(SHORT.get(key) ?? '');
    if (![...value.fields].some(([key, inner]) => isShort(key, inner))) return member;
    const fields = new Map(
      [...value.fields].map(([key, inner]) => [isShort(key, inner) ? (SHORT.get(key) ?? key) : key, inner]),
    );
    return { at: member.at, value: { kind: 'block', fields, at: value.at } };
  });
}

// ---- bridges.mqtt.nodes

function withNodes(tree: BlockNode, sink: Sink): BlockNode {
  const mqtt = blockAt(tree, 'bridges', 'mqtt');
  const nodes = mqtt?.fields.get('nodes')?.value;
  if (mqtt === null || nodes?.kind !== 'list') return tree;
  return change(tree, ['bridges', 'mqtt'], (member) => {
    const made = without(mqtt, 'nodes');
    for (const [i, node] of nodes.items.entries()) {
      if (node.kind !== 'block') continue;
      const name = textOf(node.fields.get('name')?.value) || `node${i + 1}`;
      made.fields.set(name, { at: node.at, value: bridgeOf(node, `bridges.mqtt.nodes[${i}]`, sink) });
    }
    return { at: member.at, value: made };
  });
}

const NODE_NEEDLESS = /^(?:name|parallel|congestion_control|multi_stream|quic_.*)$/;

function bridgeOf(node: BlockNode, path: string, sink: Sink): BlockNode {
  const bridge = blockNode(node.at);
  // A node that says nothing was off.
  if (!node.fields.has('enable')) put(bridge, 'enable', false, node.at);
  for (const [key, { at, value }] of node.fields) {
    if (key === 'connector' && value.kind === 'block')
      for (const [name, inner] of value.fields) bridge.fields.set(name, inner);
    else if (key === 'forwards' && value.kind === 'list')
      for (const item of value.items) append(bridge, key, forwardOf(item), at);
    else if (key === 'subscription' && value.kind === 'list')
      for (const item of value.items) append(bridge, key, subscriptionOf(item), at);
    else if (NODE_NEEDLESS.test(key)) {
      if (key !== 'name') sink.needless(at, `${path}.${key}`);
    } else bridge.fields.set(key, { at, value });
  }
  return bridge;
}

function forwardOf(item: Node): Node {
  if (item.kind !== 'scalar') return item;
  const rule = blockNode(item.at);
  put(rule, 'local_topic', item.text, item.at);
  return rule;
}

function subscriptionOf(item: Node): Node {
  if (item.kind !== 'block' || !item.fields.has('topic')) return item;
  const fields = new Map([...item.fields].map(([key, member]) => [key === 'topic' ? 'remote_topic' : key, member]));
  return { kind: 'block', fields, at: item.at };
}

// ---- authorization

function withSources(tree: BlockNode, sink: Sink): BlockNode {
  const old = blockAt(tree, 'authorization');
  if (old === null) return tree;
  const root = without(tree, 'authorization');
  const auth = blockAt(tree, 'auth');
  root.fields.set('auth', { at: old.at, value: auth === null ? blockNode(old.at) : without(auth, '') });
  for (const [key, { at, value }] of old.fields) {
    if (key === 'sources' && value.kind === 'list')
      for (const source of value.items) placeSource(source, root, at, sink);
    else put(root, `auth.${key}`, value, at);
  }
  return root;
}

function placeSource(source: Node, root: BlockNode, at: Position, sink: Sink): void {
  if (source.kind !== 'block') return;
  const { fields } = source;
  const type = textOf(fields.get('type')?.value);
  if (/^(?:false|off|no)$/.test(textOf(fields.get('enable')?.value))) return;
  const auth = child(root, 'auth', at);
  if (type === 'simple') {
    const users = fields.get('users')?.value;
    for (const user of users?.kind === 'list' ? users.items : []) {
      const name = user.kind === 'block' ? textOf(user.fields.get('username')?.value) : '';
      const password = user.kind === 'block' ? user.fields.get('password')?.value : undefined;
      if (name !== '' && password !== undefined) child(auth, 'password', at).fields.set(name, { at, value: password });
    }
  } else if (type === 'file') {
    const rules = fields.get('rules')?.value;
    if (rules !== undefined) put(root, 'auth.acl.rules', rules, at);
  } else if (type === 'http') {
    const http = without(without(source, 'type'), 'enable');
    auth.fields.set('http_auth', { at, value: http });
  } else sink.problem(source.at, 'authorization.sources', `a source of type ${type || 'nothing'} is not known`);
}
