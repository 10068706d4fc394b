// The router: subscriptions, the routes found from them, retained messages. One per broker.
// Called for every publication, so a topic's route is found once and kept until subscriptions or rights change.
import type { Clock } from '../base/clock.ts';
import { ENTRY_BYTES, Ledger, MAP_BYTES, OBJECT_BYTES, pathBytes, textBytes } from '../base/ledger.ts';
import type { Receiver, Target } from '../delivery/delivery.ts';
import type { Message, Origin, Publication } from '../mqtt/message.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import { parseShare } from '../mqtt/topic.ts';
import type { Journal } from '../store/store.ts';
import { TopicTable } from './known.ts';
import { RETAINED_NODE_BYTES, RetainedStore } from './retained.ts';
import { type FoundRoute, RouteCache } from './routecache.ts';
import type { GroupTargets, RetainedLimits, Route, Router, RouterStats, Subscription } from './router.ts';
import { SharedGroup } from './shared.ts';
import { TargetSets } from './targetsets.ts';
import { TopicCounts } from './topics.ts';
import { NODE_BYTES, SubscriptionTrie } from './trie.ts';

/** One subscription beside its filter: as the session has it, as the router has it, an entry in a map of each. */
const SUBSCRIPTION_BYTES = 5 * OBJECT_BYTES + 2 * ENTRY_BYTES;
/** What a shared one costs more: its part of the group. */
const SHARED_BYTES = 2 * (MAP_BYTES + OBJECT_BYTES);

/** Commands to the gateway itself: they are neither kept nor passed on. */
const COMMANDS = '$CONTROL/';

/** Told of filters of one receiver that are too many for one topic; the newest, which are left out. */
export type OnCrowded = (receiver: Receiver, topic: string, excess: readonly Subscription[]) => void;

export class Routes implements Router {
  version = 1;
  subscriptionCount = 0;
  sharedCount = 0;
  searched = 0;
  readonly stats: RouterStats = { received: 0, noSubscribers: 0 };
  readonly topics: TopicCounts;
  retainedLimits: RetainedLimits = { messages: 0, bytes: 0 };
  /** Told for every publish whose message there was no room to keep. */
  onRetainedRefused: (clientId: string, topic: string) => void = () => {};
  /** Whether a client may have one more retained message; null = each may. */
  mayRetain: ((origin: Origin) => boolean) | null = null;
  /** Filters of one receiver that may match one topic; 0 = no limit. */
  maxMatching = 0;
  onCrowded: OnCrowded = () => {};
  private readonly trie = new SubscriptionTrie();
  readonly known = new TopicTable();
  private readonly routes = new RouteCache(() => this.known.forgetRoutes());
  private readonly sets = new TargetSets();
  private readonly store = new RetainedStore();
  private readonly journal: Journal;
  private readonly clock: Clock;
  private readonly ledger: Ledger;
  private nextOrder = 1;
  /** Memory of subscriptions, the tree left out. */
  private subscribedBytes = 0;

  constructor(journal: Journal, clock: Clock, ledger = new Ledger()) {
    this.journal = journal;
    this.clock = clock;
    this.ledger = ledger;
    ledger.watch('subscriptions', () => this.subscribedBytes + this.trie.bytes);
    ledger.watch('retained', () => this.retainedBytes);
    ledger.watch('caches', () => this.routes.bytes + this.sets.bytes + this.topics.bytes + this.known.bytes);
    this.topics = new TopicCounts(clock);
  }

  get filterCount(): number {
    return this.trie.filterCount;
  }

  get retainedCount(): number {
    return this.store.count;
  }

  get retainedBytes(): number {
    return this.store.bytes + this.store.treeBytes;
  }

  subscribe(request: Omit<Subscription, 'order'>): boolean {
    this.version++;
    if (request.shareName !== null) {
      const { shareName, filter } = request;
      const group = this.trie.group(shareName, filter, () => new SharedGroup(shareName, filter));
      const before = group.members.get(request.receiver);
      group.add({ ...request, order: before?.order ?? this.nextOrder++ });
      if (before === undefined) {
        this.sharedCount++;
        this.subscribedBytes += subscriptionBytes(request.topicFilter);
      }
      return before !== undefined;
    }
    const subscription = { ...request, order: this.nextOrder++ };
    const before = this.trie.add(subscription);
    if (before === undefined) {
      this.subscriptionCount++;
      this.subscribedBytes += subscriptionBytes(request.topicFilter);
    }
    return before !== undefined;
  }

  hasRoomFor(topicFilter: string): boolean {
    return this.ledger.hasRoom('subscriptions', subscriptionBytes(topicFilter) + pathBytes(topicFilter, NODE_BYTES));
  }

  unsubscribe(receiver: Receiver, topicFilter: string): boolean {
    this.version++;
    const share = parseShare(topicFilter);
    if (share === null) {
      const removed = this.trie.remove(receiver, topicFilter) !== undefined;
      if (removed) {
        this.subscriptionCount--;
        this.subscribedBytes -= subscriptionBytes(topicFilter);
      }
      return removed;
    }
    const group = this.trie.findGroup(share.shareName, share.topicFilter);
    const removed = group?.remove(receiver) ?? false;
    if (removed) {
      this.sharedCount--;
      this.subscribedBytes -= subscriptionBytes(topicFilter);
    }
    if (group !== undefined && group.members.size === 0) this.trie.removeGroup(share.shareName, share.topicFilter);
    return removed;
  }

  invalidate(): void {
    this.version++;
  }

  route(topic: string): Route {
    const known = this.routes.get(topic);
    if (known !== undefined && known.version === this.version) return known;
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

  /** Tells `onCount` of each retained message from here on, and first of those that there are. O(retained). */
  countRetained(onCount: ((message: Message, by: 1 | -1) => void) | null): void {
    this.store.onCount = onCount;
    if (onCount === null) return;
    const messages = this.retained('#');
    for (let step = messages.next(); step.done !== true; step = messages.next())
      if (step.value.origin.kind !== 'server') onCount(step.value, 1);
  }

  /** Stores messages found in the journal at start. */
  restore(messages: readonly Message[]): void {
    for (const message of messages) this.store.set(message);
  }

  /** Forgets expired retained messages, and routes that no longer hold with the receivers they lead to. */
  sweep(): void {
    this.routes.sweep(this.version);
    this.known.sweep(this.version);
    this.sets.sweep(this.version);
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
    if (publication.topic.startsWith(COMMANDS)) return;
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
    message.settle();
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
    const { messages } = this.retainedLimits;
    const many = messages > 0 && store.count >= messages;
    const closed = journal.durable && !journal.accepting && !promised;
    const more = message.bytes + pathBytes(message.topic, RETAINED_NODE_BYTES);
    const barred = this.mayRetain !== null && store.get(message.topic) === null && !this.mayRetain(message.origin);
    if (!many && !closed && !barred && this.fits(more)) return true;
    const before = store.get(message.topic);
    return before !== null && this.fits(message.bytes - before.bytes);
  }

  /** Whether retained messages may take `bytes` more. */
  private fits(bytes: number): boolean {
    const limit = this.retainedLimits.bytes;
    return (
      bytes <= 0 || ((limit === 0 || this.retainedBytes + bytes <= limit) && this.ledger.hasRoom('retained', bytes))
    );
  }

  /**
   * The publisher is told; at QoS 0, where it cannot be, there is better no value than an old one (MQTT 5.0 section
   * 3.3.1.3).
   */
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

  private find(topic: string): FoundRoute {
    const { subscriptions, groups, visited } = this.trie.match(topic);
    this.searched += subscriptions.length + visited;
    const byReceiver = new Map<Receiver, Subscription[]>();
    const isCommand = topic.startsWith(COMMANDS);
    for (const subscription of subscriptions) {
      // Commands hold passwords: no subscription of anybody else gets them.
      if (isCommand && subscription.receiver.control !== true) continue;
      const list = byReceiver.get(subscription.receiver);
      if (list !== undefined) list.push(subscription);
      else if (subscription.receiver.mayReceive(topic)) byReceiver.set(subscription.receiver, [subscription]);
    }
    if (this.maxMatching > 0) for (const [receiver, list] of byReceiver) this.bound(topic, receiver, list);
    const targets = this.sets.of(byReceiver, this.version);
    const picks: GroupTargets[] = [];
    for (const group of isCommand ? [] : groups) {
      const pick = group.targetsFor(topic);
      if (pick !== null) picks.push(pick);
    }
    return { topic, version: this.version, targets, groups: picks, count: this.topics.of(topic) };
  }

  /** Where one receiver's filters are too many for a topic, the oldest count. */
  private bound(topic: string, receiver: Receiver, list: Subscription[]): void {
    const most = this.maxMatching;
    if (list.length <= most) return;
    list.sort((a, b) => a.order - b.order);
    this.onCrowded(receiver, topic, list.splice(most));
  }
}

function subscriptionBytes(topicFilter: string): number {
  return SUBSCRIPTION_BYTES + textBytes(topicFilter) + (topicFilter.startsWith('$share/') ? SHARED_BYTES : 0);
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
