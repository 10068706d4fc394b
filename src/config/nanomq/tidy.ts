// What NanoMQ's files write for "not given", and words of theirs for what has another name here. Steps over a tree, for
// nanomq.ts. Pure: the tree that is given stays as it is.
import type { BlockNode, Member, Node } from '../text/node.ts';

/**
 * The tree with one member changed or, for null, removed; `*` stands for every block of that level. Shared nodes stay
 * as they are.
 */
export function change(block: BlockNode, path: readonly string[], edit: (member: Member) => Member | null): BlockNode {
  const [name, ...rest] = path;
  if (name === '*') {
    let tree = block;
    for (const key of block.fields.keys()) tree = change(tree, [key, ...rest], edit);
    return tree;
  }
  const member = block.fields.get(name);
  if (member === undefined) return block;
  const changed = rest.length === 0 ? edit(member) : { at: member.at, value: within(member.value, rest, edit) };
  if (changed === member || changed?.value === member.value) return block;
  const fields = new Map(block.fields);
  if (changed === null) fields.delete(name);
  else fields.set(name, changed);
  return { kind: 'block', fields, at: block.at };
}

/** Of a list every block in it. */
function within(node: Node, path: readonly string[], edit: (member: Member) => Member | null): Node {
  if (node.kind === 'block') return change(node, path, edit);
  if (node.kind !== 'list') return node;
  const items = node.items.map((item) => within(item, path, edit));
  return items.every((item, i) => item === node.items[i]) ? node : { ...node, items };
}

export function textOf(node: Node | undefined): string {
  return node?.kind === 'scalar' ? node.text : '';
}

/** Keys that may be left out, and that files have with nothing between the quotes. */
const OPTIONAL: readonly (readonly string[])[] = [
  ...['clientid', 'username', 'password'].map((key) => ['bridges', 'mqtt', '*', key]),
  ...['keyfile', 'certfile', 'cacertfile', 'key_password'].map((key) => ['bridges', 'mqtt', '*', 'ssl', key]),
  ...['content_type', 'response_topic', 'correlation_data'].map((key) => [
    'bridges',
    'mqtt',
    '*',
    'will',
    'properties',
    key,
  ]),
  ['bridges', 'mqtt', '*', 'tcp', 'bind_interface'],
  ['listeners', 'ssl', 'key_password'],
  ['listeners', 'ssl', '*', 'key_password'],
];

/** Keys with 2 for "as it is". */
const KEEPS: readonly (readonly string[])[] = ['forwards', 'subscription'].map((list) => [
  'bridges',
  'mqtt',
  '*',
  list,
  'retain',
]);

/** Without what is written and not given. */
export function withoutEmpty(tree: BlockNode): BlockNode {
  let tidy = tree;
  const unlessEmpty = (member: Member): Member | null =>
    member.value.kind === 'scalar' && member.value.text === '' ? null : member;
  for (const path of OPTIONAL) tidy = change(tidy, path, unlessEmpty);
  for (const path of KEEPS) tidy = change(tidy, path, (member) => (textOf(member.value) === '2' ? null : member));
  return tidy;
}
