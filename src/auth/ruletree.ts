// Access rules as a tree of topic levels: one walk over a topic finds every rule that matches, whatever their number.
// Built by aclfile.ts at load; asked for each verdict that session/ has not cached. A node's rule is a set of bits; a
// level may also stand for the client id or the user name (mosquitto's %c and %u). O(levels), branching only where
// rules do.

/** Bits of a rule. */
export const READ = 1;
export const WRITE = 2;
export const DENY = 4;

interface Node {
  /** Rules that end here. */
  bits: number;
  /** Rules that end here with `#`: they match this level and all below. */
  below: number;
  literal: Map<string, Node> | null;
  plus: Node | null;
  clientId: Node | null;
  username: Node | null;
}

export type LevelKind = 'literal' | 'plus' | 'clientId' | 'username';

/** Who asks, for the levels that stand for a name; empty never matches. */
export interface Names {
  readonly clientId: string;
  readonly username: string;
}

function newNode(): Node {
  return { bits: 0, below: 0, literal: null, plus: null, clientId: null, username: null };
}

export class RuleTree {
  private readonly root = newNode();

  /** Adds a rule; `levels` of a pattern rule may be %c and %u, elsewhere these are text. */
  add(levels: readonly string[], bits: number, pattern: boolean): void {
    let node = this.root;
    for (const level of levels) {
      if (level === '#') {
        node.below |= bits;
        return;
      }
      node = this.child(node, level, pattern);
    }
    node.bits |= bits;
  }

  private child(node: Node, level: string, pattern: boolean): Node {
    if (level === '+') return (node.plus ??= newNode());
    if (pattern && level === '%c') return (node.clientId ??= newNode());
    if (pattern && level === '%u') return (node.username ??= newNode());
    node.literal ??= new Map();
    let next = node.literal.get(level);
    if (next === undefined) {
      next = newNode();
      node.literal.set(level, next);
    }
    return next;
  }

  /** The bits of all rules that match the topic, together. */
  match(topic: string, names: Names): number {
    const root = this.root;
    const slash = topic.indexOf('/');
    if (topic.charCodeAt(0) !== 36) {
      return root.below | this.step(root, topic, 0, slash < 0 ? topic.length : slash, names);
    }
    // Topics that begin with $ are matched only by rules that spell it [MQTT-4.7.2-1].
    const end = slash < 0 ? topic.length : slash;
    const next = root.literal === null ? undefined : root.literal.get(topic.slice(0, end));
    return next === undefined ? 0 : this.inside(next, topic, end, names);
  }

  /** Matches the level topic[start, end) and what follows against the children of `node`. */
  private step(node: Node, topic: string, start: number, end: number, names: Names): number {
    let bits = 0;
    if (node.plus !== null) bits |= this.inside(node.plus, topic, end, names);
    if (node.literal === null && node.clientId === null && node.username === null) return bits;
    const level = topic.slice(start, end);
    if (node.literal !== null) {
      const next = node.literal.get(level);
      if (next !== undefined) bits |= this.inside(next, topic, end, names);
    }
    if (level !== '') {
      if (node.clientId !== null && level === names.clientId) bits |= this.inside(node.clientId, topic, end, names);
      if (node.username !== null && level === names.username) bits |= this.inside(node.username, topic, end, names);
    }
    return bits;
  }

  /** The level before `end` has led to `node`. */
  private inside(node: Node, topic: string, end: number, names: Names): number {
    // `a/#` matches `a` as well (MQTT 5.0 section 4.7.1.2).
    if (end === topic.length) return node.bits | node.below;
    const start = end + 1;
    const slash = topic.indexOf('/', start);
    return node.below | this.step(node, topic, start, slash < 0 ? topic.length : slash, names);
  }
}
