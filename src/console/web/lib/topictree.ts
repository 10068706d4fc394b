// Topics and topic filters as a tree of levels. Pure; used by the topic page and its tests.

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
}

function node(name: string, topic: string): TopicNode {
  const children = new Map<string, TopicNode>();
  return { name, topic, children, retained: false, subscribers: 0, retainedBelow: 0, subscribersBelow: 0 };
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

/** Children by name, wildcards first. */
export function sorted(children: ReadonlyMap<string, TopicNode>): TopicNode[] {
  const rank = (name: string): number => (name === '#' ? 0 : name === '+' ? 1 : 2);
  return [...children.values()].sort(
    (a, b) => rank(a.name) - rank(b.name) || a.name.localeCompare(b.name, 'en', { numeric: true }),
  );
}

/** Whether a filter (shared or not) takes a topic. */
export function takes(filter: string, topic: string): boolean {
  const levels = filter.split('/');
  const own = levels[0] === '$share' ? levels.slice(2) : levels;
  const names = topic.split('/');
  if (topic.startsWith('$') && (own[0] === '#' || own[0] === '+')) return false;
  for (const [i, level] of own.entries()) {
    if (level === '#') return true;
    if (i >= names.length || (level !== '+' && level !== names[i])) return false;
  }
  return own.length === names.length;
}
