// The receivers of a topic from the subscriptions that match it, the same array for the same subscriptions: topics with
// equal targets are known by it. Used by routes.ts for each route that is found. Bounded in number and in memory:
// thousands of receivers make long lists.
import { ENTRY_BYTES, OBJECT_BYTES } from '../base/ledger.ts';
import type { Receiver, Target } from '../delivery/delivery.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Subscription } from './router.ts';

/** Lists that are kept, and their memory. */
const SETS = 4096;
const SETS_BYTES = 8 * 1024 * 1024;
/** Subscriptions that a list may come from: its key grows with them. */
const SHARED_SUBSCRIPTIONS = 256;
/** A target and its part of the key. */
const TARGET_BYTES = OBJECT_BYTES + 24;

/** Subscriptions that match one topic, by receiver. */
export type ByReceiver = ReadonlyMap<Receiver, readonly Subscription[]>;

export class TargetSets {
  /** Memory of all lists. */
  bytes = 0;
  /** Lists of this version, by the ranks of the subscriptions that they came from. */
  private readonly sets = new Map<string, readonly Target[]>();
  private version = 0;

  /** @param version of the router: what was kept for another one is forgotten */
  of(byReceiver: ByReceiver, version: number): readonly Target[] {
    if (this.version !== version || this.sets.size >= SETS || this.bytes >= SETS_BYTES) this.clear(version);
    const ranks = ranksOf(byReceiver);
    const known = ranks === null ? undefined : this.sets.get(ranks);
    if (known !== undefined) return known;
    const targets: Target[] = [];
    for (const list of byReceiver.values()) targets.push(merge(list));
    targets.sort((a, b) => a.order - b.order);
    if (ranks !== null) {
      this.sets.set(ranks, targets);
      this.bytes += ENTRY_BYTES + TARGET_BYTES * targets.length;
    }
    return targets;
  }

  /** Forgets lists of another version. */
  sweep(version: number): void {
    if (this.version !== version) this.clear(version);
  }

  private clear(version: number): void {
    this.sets.clear();
    this.bytes = 0;
    this.version = version;
  }
}

/**
 * Ranks are unique, and a receiver's own come in the order in which the trie finds them; null where there are too many.
 */
function ranksOf(byReceiver: ByReceiver): string | null {
  if (byReceiver.size > SHARED_SUBSCRIPTIONS) return null;
  let ranks = '';
  let count = 0;
  for (const list of byReceiver.values()) {
    count += list.length;
    if (count > SHARED_SUBSCRIPTIONS) return null;
    for (const { order } of list) ranks += `${order},`;
  }
  return ranks;
}

function merge(list: readonly Subscription[]): Target {
  const target = combine(list);
  if (list.every((s) => !s.noLocal)) target.own = target;
  else {
    const others = list.filter((s) => !s.noLocal);
    target.own = others.length === 0 ? null : combine(others);
  }
  return target;
}

function combine(list: readonly Subscription[]): Target {
  let qos: Qos = 0;
  let retainAsPublished = false;
  let order = Number.POSITIVE_INFINITY;
  const identifiers: number[] = [];
  for (const subscription of list) {
    if (subscription.qos > qos) qos = subscription.qos;
    if (subscription.retainAsPublished) retainAsPublished = true;
    if (subscription.order < order) order = subscription.order;
    if (subscription.subscriptionIdentifier > 0) identifiers.push(subscription.subscriptionIdentifier);
  }
  return {
    receiver: list[0].receiver,
    qos,
    retainAsPublished,
    subscriptionIdentifiers: identifiers.length > 0 ? identifiers : null,
    own: null,
    share: null,
    order,
  };
}
