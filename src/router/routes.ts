// The router: subscriptions, the routes found from them, retained messages. One per broker.
// Called for every publication, so a topic's route is found once and kept until subscriptions or rights change.
import type { Clock } from '../base/clock.ts';
import type { Receiver, Target } from '../delivery/delivery.ts';
import type { Message, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import { parseShare } from '../mqtt/topic.ts';
import type { Journal } from '../store/store.ts';
import { TopicTable } from './known.ts';
import { RetainedStore } from './retained.ts';
import type { GroupTargets, RetainedLimits, Route, Router, RouterStats, Subscription } from './router.ts';
import { SharedGroup } from './shared.ts';
import { TopicCounts } from './topics.ts';
import { SubscriptionTrie } from './trie.ts';

/** Routes kept; above that all are forgotten and found again as they are needed. */
const ROUTES = 20_000;
/** Lists of targets shared by topics, and targets that such a list has at most: its key grows with it. */
const TARGET_SETS = 4096;
const SHARED_TARGETS = 256;
/** Longer topics are not kept: twenty thousand of 64 KB each would be a client's way to fill memory. */
const LONG_CHARACTERS = 256;

export class Routes implements Router {
  version = 1;
  subscriptionCount = 0;
  sharedCount = 0;
  readonly stats: RouterStats = { received: 0, noSubscribers: 0 };
  readonly topics: TopicCounts;
  retainedLimits: RetainedLimits = { messages: 0, bytes: 0 };
  /** Told for every publish whose message there was no room to keep. */
  onRetainedRefused: (clientId: string, topic: string) => void = () => {};
  private readonly trie = new SubscriptionTrie();
  private readonly routes = new Map<string, Route>();
  readonly known = new TopicTable();
  /** Targets found for this version, by the ranks of the subscriptions that they came from. */
  private readonly sets = new Map<string, Target[]>();
  private setsVersion = 0;
  private readonly store = new RetainedStore();
  private readonly journal: Journal;
  private readonly clock: Clock;
  private nextOrder = 1;

  constructor(journal: Journal, clock: Clock) {
    this.journal = journal;
    this.clock = clock;
    this.topics = new TopicCounts(clock);
  }

  get filterCount(): number {
    return this.trie.filterCount;
  }

  get retainedCount(): number {
    return this.store.count;
  }

  get retainedBytes(): number {
    return this.store.bytes;
  }

  subscribe(request: Omit<Subscription, 'order'>): boolean {
    this.version++;
    if (request.shareName !== null) {
      const { shareName, filter } = request;
      const group = this.trie.group(shareName, filter, () => new SharedGroup(shareName, filter));
      const before = group.members.get(request.receiver);
      group.add({ ...request, order: before?.order ?? this.nextOrder++ });
      if (before === undefined) this.sharedCount++;
      return before !== undefined;
    }
    const subscription = { ...request, order: this.nextOrder++ };
    const before = this.trie.add(subscription);
    if (before === undefined) this.subscriptionCount++;
    return before !== undefined;
  }

  unsubscribe(receiver: Receiver, topicFilter: string): boolean {
    this.version++;
    const share = parseShare(topicFilter);
    if (share === null) {
      const removed = this.trie.remove(receiver, topicFilter) !== undefined;
      if (removed) this.subscriptionCount--;
      return removed;
    }
    const group = this.trie.findGroup(share.shareName, share.topicFilter);
    const removed = group?.remove(receiver) ?? false;
    if (removed) this.sharedCount--;
    if (group !== undefined && group.members.size === 0) this.trie.removeGroup(share.shareName, share.topicFilter);
    return removed;
  }

  invalidate(): void {
    this.version++;
  }

  route(topic: string): Route {
    if (topic.length > LONG_CHARACTERS) return this.find(topic);
    const known = this.routes.get(topic);
    if (known !== undefined && known.version === this.version) return known;
    if (known === undefined && this.routes.size >= ROUTES) this.routes.clear();
    const route = this.find(topic);
    this.routes.set(topic, route);
    return route;
  }

  publish(publication: Publication, route: Route): number {
    this.stats.received++;
    route.count.messages++;
    route.count.bytes += publication.payloadEnd - publication.payloadStart;
    const targets = route.targets;
    const many = targets.length + route.groups.length > 1;
    const copied = (publication.retain || many) && publication.share();
    if (publication.retain) this.retain(publication);
    let receivers = 0;
    for (let i = 0; i < targets.length; i++) {
      const target = forPublisher(targets[i], publication);
      if (target === null) continue;
      target.receiver.deliver(publication, target);
      receivers++;
    }
    const groups = route.groups;
    for (let i = 0; i < groups.length; i++) {
      const target = groups[i].pick(publication);
      if (target === null) continue;
      target.receiver.deliver(publication, target);
      receivers++;
    }
    if (receivers === 0) this.stats.noSubscribers++;
    if (copied) publication.shared?.handled();
    return receivers;
  }

  refuses(publication: Publication, route: Route): boolean {
    if (publication.retain && publication.payloadEnd > publication.payloadStart) {
      if (!this.hasRoom(publication.message(), false)) {
        this.onRetainedRefused(publication.origin.clientId, publication.topic);
        return true;
      }
    }
    const { journal } = this;
    if (!journal.durable || journal.accepting) return false;
    for (const target of route.targets) if (needsStore(forPublisher(target, publication), publication)) return true;
    for (const group of route.groups) if (needsStore(group.peek(), publication)) return true;
    return false;
  }

  publishRun(
    publication: Publication,
    route: Route,
    start: number,
    end: number,
    count: number,
    longest: number,
  ): number {
    this.stats.received += count;
    const targets = route.targets;
    const copied = targets.length > 1 && publication.shareRun(start, end);
    if (copied) {
      end -= start;
      start = 0;
    }
    let receivers = 0;
    for (let i = 0; i < targets.length; i++) {
      const target = forPublisher(targets[i], publication);
      if (target === null) continue;
      target.receiver.deliverRun(publication, target, start, end, count, longest);
      receivers++;
    }
    const groups = route.groups;
    for (let i = 0; i < groups.length; i++) {
      for (let at = start; at < end; ) {
        at = publication.step(at);
        const target = groups[i].pick(publication);
        if (target === null) continue;
        target.receiver.deliver(publication, target);
        receivers++;
      }
    }
    if (receivers === 0) this.stats.noSubscribers += count;
    if (copied) publication.shared?.handled();
    return receivers;
  }

  retained(topicFilter: string): Iterator<Message> {
    return withoutPauses(this.store.match(topicFilter));
  }

  retainedInPieces(topicFilter: string): Iterator<Message | null> {
    return this.store.match(topicFilter);
  }

  redeliver(topicFilter: string, message: Message, except: Receiver): boolean {
    const share = parseShare(topicFilter);
    if (share === null) return false;
    return this.trie.findGroup(share.shareName, share.topicFilter)?.redeliver(message, except) ?? false;
  }

  /** Stores messages found in the journal at start. */
  restore(messages: readonly Message[]): void {
    for (const message of messages) this.store.set(message);
  }

  /** Forgets expired retained messages. */
  sweep(): void {
    this.store.sweep(this.clock.steady(), (topic) => {
      if (this.journal.durable) this.journal.retainedDelete(topic);
    });
  }

  /** To be called once in a window of the topic counts. */
  turnTopics(): void {
    if (this.topics.turn()) this.version++;
  }

  /** Removes one retained message, as an empty retained publish would. */
  forget(topic: string): boolean {
    const removed = this.store.delete(topic);
    if (removed && this.journal.durable) this.journal.retainedDelete(topic);
    return removed;
  }

  private retain(publication: Publication): void {
    if (publication.payloadEnd === publication.payloadStart) {
      // [MQTT-3.3.1-6], and nothing is stored [MQTT-3.3.1-7]; the acknowledgement waits for it like for a value.
      if (this.forget(publication.topic) && this.journal.durable) publication.stored = true;
      return;
    }
    const message = publication.message();
    if (!this.hasRoom(message, publication.promised)) {
      this.refuse(publication);
      return;
    }
    this.store.set(message);
    // Values the gateway makes itself are made anew after a start.
    if (this.journal.durable && message.origin.kind !== 'server') {
      this.journal.retainedPut(message);
      publication.stored = true;
    }
  }

  /** Whether a message may be retained: within the bounds, and one more only while the store takes new ones. */
  private hasRoom(message: Message, promised: boolean): boolean {
    if (message.origin.kind === 'server') return true;
    const { store, journal } = this;
    const { messages, bytes } = this.retainedLimits;
    const many = messages > 0 && store.count >= messages;
    const large = bytes > 0 && store.bytes + message.bytes > bytes;
    const closed = journal.durable && !journal.accepting && !promised;
    if (!many && !large && !closed) return true;
    const before = store.get(message.topic);
    if (before === null) return false;
    return !large || store.bytes + message.bytes - before.bytes <= bytes;
  }

  /** The publisher is told; at QoS 0, where it cannot be, there is better no value than an old one (MQTT 5.0 section 3.3.1.3). */
  private refuse(publication: Publication): void {
    this.onRetainedRefused(publication.origin.clientId, publication.topic);
    if (publication.qos === 0) {
      this.forget(publication.topic);
      return;
    }
    const hold = publication.hold();
    hold.add();
    hold.done(QUOTA_EXCEEDED);
  }

  /** The same array for the same subscriptions: topics with equal targets are known by it. */
  private targetsOf(byReceiver: ReadonlyMap<Receiver, readonly Subscription[]>): readonly Target[] {
    if (this.setsVersion !== this.version || this.sets.size >= TARGET_SETS) {
      this.sets.clear();
      this.setsVersion = this.version;
    }
    const ranks = byReceiver.size <= SHARED_TARGETS ? ranksOf(byReceiver) : null;
    const known = ranks === null ? undefined : this.sets.get(ranks);
    if (known !== undefined) return known;
    const targets: Target[] = [];
    for (const list of byReceiver.values()) targets.push(merge(list));
    targets.sort((a, b) => a.order - b.order);
    if (ranks !== null) this.sets.set(ranks, targets);
    return targets;
  }

  private find(topic: string): Route {
    const { subscriptions, groups } = this.trie.match(topic);
    const byReceiver = new Map<Receiver, Subscription[]>();
    for (const subscription of subscriptions) {
      const list = byReceiver.get(subscription.receiver);
      if (list !== undefined) list.push(subscription);
      else if (subscription.receiver.mayReceive(topic)) byReceiver.set(subscription.receiver, [subscription]);
    }
    const targets = this.targetsOf(byReceiver);
    const picks: GroupTargets[] = [];
    for (const group of groups) {
      const pick = group.targetsFor(topic);
      if (pick !== null) picks.push(pick);
    }
    return { topic, version: this.version, targets, groups: picks, count: this.topics.of(topic) };
  }
}

/** Ranks are unique, and a receiver's own come in the order in which the trie finds them. */
function ranksOf(byReceiver: ReadonlyMap<Receiver, readonly Subscription[]>): string {
  let ranks = '';
  for (const list of byReceiver.values()) for (const { order } of list) ranks += `${order},`;
  return ranks;
}

function* withoutPauses(messages: Iterator<Message | null>): Generator<Message, undefined> {
  for (let step = messages.next(); step.done !== true; step = messages.next())
    if (step.value !== null) yield step.value;
}

/** A client's own message goes only to its subscriptions without No Local [MQTT-3.8.3-3]. */
function forPublisher(target: Target, publication: Publication): Target | null {
  if (target.own === target) return target;
  return publication.origin.kind === 'client' && publication.origin.clientId === target.receiver.clientId
    ? target.own
    : target;
}

function needsStore(target: Target | null, publication: Publication): boolean {
  return target !== null && target.qos > 0 && publication.qos > 0 && target.receiver.stores;
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
