// Subscriptions by topic filter: finding all that match a topic costs its levels, not the number of subscriptions.
// Used by routes.ts only. Wildcards as in MQTT 5.0 section 4.7.1; topics that begin with $ as in 4.7.2.
import { ownText } from '../base/brief.ts';
import { entryBytes, MAP_BYTES, textBytes } from '../base/ledger.ts';
import type { Receiver } from '../delivery/delivery.ts';
import type { Subscription } from './router.ts';
import type { SharedGroup } from './shared.ts';

/**
 * The subscriptions of one filter, by receiver. Most filters have one, and a map for each would be most of the memory.
 */
type Few = Subscription | Map<Receiver, Subscription> | null;

function addTo(few: Few, subscription: Subscription): Few {
  if (few === null) return subscription;
  if (few instanceof Map) return few.set(subscription.receiver, subscription);
  if (few.receiver === subscription.receiver) return subscription;
  return new Map([
    [few.receiver, few],
    [subscription.receiver, subscription],
  ]);
}

function findIn(few: Few, receiver: Receiver): Subscription | undefined {
  if (few === null) return undefined;
  if (few instanceof Map) return few.get(receiver);
  return few.receiver === receiver ? few : undefined;
}

function removeFrom(few: Few, receiver: Receiver): Few {
  if (few instanceof Map) return few.delete(receiver) && few.size === 0 ? null : few;
  return few !== null && few.receiver === receiver ? null : few;
}

/** A node, without its children. */
export const NODE_BYTES = 76;

class Node {
  children: Map<string, Node> | null = null;
  /** The child for `+`. */
  plus: Node | null = null;
  /** Subscriptions whose filter ends here. */
  own: Few = null;
  /** Those that end here with `#`. */
  rest: Few = null;
  ownGroups: Map<string, SharedGroup> | null = null;
  restGroups: Map<string, SharedGroup> | null = null;

  get empty(): boolean {
    return (
      this.plus === null &&
      (this.children === null || this.children.size === 0) &&
      this.own === null &&
      this.rest === null &&
      (this.ownGroups === null || this.ownGroups.size === 0) &&
      (this.restGroups === null || this.restGroups.size === 0)
    );
  }
}

/** What matched one topic. */
export interface Matches {
  readonly subscriptions: Subscription[];
  readonly groups: SharedGroup[];
  /** Nodes that were looked at. */
  visited: number;
}

export class SubscriptionTrie {
  /** Filters with at least one subscription, and shared groups. */
  filterCount = 0;
  /** Memory of all nodes. */
  bytes = 0;
  private readonly root = new Node();

  /** Adds or replaces; gives the subscription that was there. */
  add(subscription: Subscription): Subscription | undefined {
    const { node, rest } = this.place(subscription.filter);
    const few = rest ? node.rest : node.own;
    const before = findIn(few, subscription.receiver);
    if (few === null) this.filterCount++;
    // One that replaces another keeps its rank.
    const ranked = before === undefined ? subscription : { ...subscription, order: before.order };
    if (rest) node.rest = addTo(few, ranked);
    else node.own = addTo(few, ranked);
    return before;
  }

  remove(receiver: Receiver, filter: string): Subscription | undefined {
    return this.at(filter, (node, rest) => {
      const few = rest ? node.rest : node.own;
      const before = findIn(few, receiver);
      if (before === undefined) return undefined;
      const left = removeFrom(few, receiver);
      if (left === null) this.filterCount--;
      if (rest) node.rest = left;
      else node.own = left;
      return before;
    });
  }

  /** The group of this share name and filter, made by `make` if it is not there. */
  group(shareName: string, filter: string, make: () => SharedGroup): SharedGroup {
    const { node, rest } = this.place(filter);
    const map = rest ? (node.restGroups ??= new Map()) : (node.ownGroups ??= new Map());
    let group = map.get(shareName);
    if (group === undefined) {
      group = make();
      map.set(shareName, group);
      this.filterCount++;
    }
    return group;
  }

  findGroup(shareName: string, filter: string): SharedGroup | undefined {
    return this.at(filter, (node, rest) => (rest ? node.restGroups : node.ownGroups)?.get(shareName));
  }

  removeGroup(shareName: string, filter: string): void {
    this.at(filter, (node, rest) => {
      const map = rest ? node.restGroups : node.ownGroups;
      if (map?.delete(shareName)) this.filterCount--;
      if (map?.size === 0) {
        if (rest) node.restGroups = null;
        else node.ownGroups = null;
      }
      return undefined;
    });
  }

  /** Everything that matches a topic name. */
  match(topic: string): Matches {
    const found: Matches = { subscriptions: [], groups: [], visited: 0 };
    const levels = topic.split('/');
    // Wildcards at the first level do not match topics that begin with $ [MQTT-4.7.2-1].
    let nodes: Node[] = [this.root];
    if (levels[0].charCodeAt(0) === 36) {
      const first = this.root.children?.get(levels[0]);
      nodes = first === undefined ? [] : [first];
      levels.shift();
      if (levels.length === 0) {
        for (const node of nodes) this.end(node, found);
        return found;
      }
    }
    const last = levels.length - 1;
    // Breadth first with at most two branches a level that both exist: no recursion, so no depth a topic could exhaust.
    for (let i = 0; i <= last && nodes.length > 0; i++) {
      const next: Node[] = [];
      found.visited += nodes.length;
      for (const node of nodes) {
        collect(node.rest, node.restGroups, found);
        const child = node.children?.get(levels[i]);
        if (child !== undefined) next.push(child);
        if (node.plus !== null) next.push(node.plus);
      }
      nodes = next;
    }
    for (const node of nodes) this.end(node, found);
    return found;
  }

  /** The filter may end here, or with # one level on, which matches the parent as well (MQTT 5.0 section 4.7.1.2). */
  private end(node: Node, found: Matches): void {
    collect(node.own, node.ownGroups, found);
    collect(node.rest, node.restGroups, found);
  }

  private place(filter: string): { node: Node; rest: boolean } {
    const levels = filter.split('/');
    const rest = levels[levels.length - 1] === '#';
    if (rest) levels.pop();
    let node = this.root;
    for (const level of levels) {
      node = level === '+' ? this.plus(node) : this.child(node, level);
    }
    return { node, rest };
  }

  private plus(node: Node): Node {
    if (node.plus === null) {
      node.plus = new Node();
      this.bytes += NODE_BYTES;
    }
    return node.plus;
  }

  private child(node: Node, level: string): Node {
    if (node.children === null) {
      node.children = new Map();
      this.bytes += MAP_BYTES;
    }
    let child = node.children.get(level);
    if (child === undefined) {
      child = new Node();
      this.bytes += NODE_BYTES + textBytes(level) + entryBytes(node.children.size);
      // Other filters may outlive the one that this level was cut from.
      node.children.set(ownText(level), child);
    }
    return child;
  }

  /** Calls `act` at the node of a filter, if it exists, and removes what has become empty on the way. */
  private at<T>(filter: string, act: (node: Node, rest: boolean) => T): T | undefined {
    const levels = filter.split('/');
    const rest = levels[levels.length - 1] === '#';
    if (rest) levels.pop();
    const path: Node[] = [this.root];
    for (const level of levels) {
      const node: Node | null | undefined =
        level === '+' ? path[path.length - 1].plus : path[path.length - 1].children?.get(level);
      if (node === null || node === undefined) return undefined;
      path.push(node);
    }
    const result = act(path[path.length - 1], rest);
    for (let i = path.length - 1; i > 0 && path[i].empty; i--) {
      const parent = path[i - 1];
      this.bytes -= NODE_BYTES;
      if (levels[i - 1] === '+') parent.plus = null;
      else {
        parent.children?.delete(levels[i - 1]);
        this.bytes -= textBytes(levels[i - 1]) + entryBytes(parent.children?.size ?? 0);
        if (parent.children?.size === 0) {
          parent.children = null;
          this.bytes -= MAP_BYTES;
        }
      }
    }
    return result;
  }
}

function collect(few: Few, groups: Map<string, SharedGroup> | null, found: Matches): void {
  if (few instanceof Map) for (const subscription of few.values()) found.subscriptions.push(subscription);
  else if (few !== null) found.subscriptions.push(few);
  if (groups !== null) for (const group of groups.values()) found.groups.push(group);
}
