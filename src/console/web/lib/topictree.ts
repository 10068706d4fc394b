// Topics and topic filters as a tree of levels, with the traffic of each level. Pure; used by the topic page and its
// tests.
import type { Traffic } from './types.ts';

export interface TopicNode {
  readonly name: string;
  /** The whole topic up to here. */
  readonly topic: string;
  readonly children: Map<string, TopicNode>;
  /** Has a retained message of its own. */
  retained: boolean;
  /** Subscriptions to exactly this filter. */
  subscribers: number;
  /** Retained messages here and below. */
  retainedBelow: number;
  subscribersBelow: number;
  /** What is published on exactly this topic, null when it is not counted. */
  traffic: Traffic | null;
  /** Topics that are published on, here and below. */
  topicsBelow: number;
  /** A second, here and below. */
  messageRate: number;
  byteRate: number;
}

function node(name: string, topic: string): TopicNode {
  return {
    name,
    topic,
    children: new Map(),
    retained: false,
    subscribers: 0,
    retainedBelow: 0,
    subscribersBelow: 0,
    traffic: null,
    topicsBelow: 0,
    messageRate: 0,
    byteRate: 0,
  };
}

export function emptyTree(): TopicNode {
  return node('', '');
}

/** The nodes from below the root to the one of `topic`, made where they are missing. */
function path(root: TopicNode, topic: string): TopicNode[] {
  const found: TopicNode[] = [];
  let at = root;
  let name = '';
  for (const [i, level] of topic.split('/').entries()) {
    name = i === 0 ? level : `${name}/${level}`;
    let next = at.children.get(level);
    if (next === undefined) {
      next = node(level, name);
      at.children.set(level, next);
    }
    found.push(next);
    at = next;
  }
  return found;
}

export function addRetained(root: TopicNode, topic: string): void {
  const nodes = path(root, topic);
  const last = nodes.at(-1);
  if (last === undefined || last.retained) return;
  last.retained = true;
  for (const one of [root, ...nodes]) one.retainedBelow++;
}

export function addSubscriber(root: TopicNode, filter: string): void {
  const nodes = path(root, filter);
  const last = nodes.at(-1);
  if (last !== undefined) last.subscribers++;
  for (const one of [root, ...nodes]) one.subscribersBelow++;
}

/** Each topic once. */
export function addTraffic(root: TopicNode, topic: string, traffic: Traffic): void {
  const nodes = path(root, topic);
  const last = nodes.at(-1);
  if (last === undefined) return;
  last.traffic = traffic;
  for (const one of [root, ...nodes]) {
    one.topicsBelow++;
    one.messageRate += traffic.messages_rate;
    one.byteRate += traffic.bytes_rate;
  }
}

/** The node of a topic. */
export function nodeOf(root: TopicNode, topic: string): TopicNode | undefined {
  let at: TopicNode | undefined = root;
  for (const level of topic.split('/')) at = at?.children.get(level);
  return at;
}

const byName = new Intl.Collator('en', { numeric: true });

/** Children by name, wildcards first; or those with most messages a second first. */
export function sorted(children: ReadonlyMap<string, TopicNode>, busiest = false): TopicNode[] {
  const rank = (name: string): number => (name === '#' ? 0 : name === '+' ? 1 : 2);
  return [...children.values()].sort(
    (a, b) =>
      (busiest ? b.messageRate - a.messageRate || b.byteRate - a.byteRate : 0) ||
      rank(a.name) - rank(b.name) ||
      byName.compare(a.name, b.name),
  );
}
