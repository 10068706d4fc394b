// Shared subscriptions (MQTT 5.0 section 4.8.2): each message goes to exactly one member of a group. Used by routes.ts.
// Round robin over members that can take it at once; then over those that are connected; only when none is, an offline
// member queues it.
import type { Receiver, Target } from '../delivery/delivery.ts';
import { type Message, Publication } from '../mqtt/message.ts';
import type { GroupTargets, Subscription } from './router.ts';

export class SharedGroup {
  /** $share/<name>/<filter> */
  readonly topicFilter: string;
  readonly members = new Map<Receiver, Subscription>();
  private readonly targets = new Map<Receiver, Target>();
  /**
   * Members that could not take a message: it does not come back to them. Weak, for a message may outlive the sessions
   * of members.
   */
  private readonly refused = new WeakMap<Message, WeakSet<Receiver>>();
  private cursor = 0;

  constructor(shareName: string, filter: string) {
    this.topicFilter = `$share/${shareName}/${filter}`;
  }

  add(subscription: Subscription): boolean {
    const known = this.members.has(subscription.receiver);
    this.members.set(subscription.receiver, subscription);
    const target: Target = {
      receiver: subscription.receiver,
      qos: subscription.qos,
      retainAsPublished: subscription.retainAsPublished,
      subscriptionIdentifiers: subscription.subscriptionIdentifier > 0 ? [subscription.subscriptionIdentifier] : null,
      own: null,
      share: this.topicFilter,
      order: subscription.order,
    };
    target.own = target;
    this.targets.set(subscription.receiver, target);
    return known;
  }

  remove(receiver: Receiver): boolean {
    this.targets.delete(receiver);
    return this.members.delete(receiver);
  }

  /** Those of the members that may read `topic`, to pick from. */
  targetsFor(topic: string): GroupTargets | null {
    const candidates = [...this.targets.values()].filter((t) => t.receiver.mayReceive(topic));
    if (candidates.length === 0) return null;
    return { pick: () => this.choose(candidates), peek: () => this.peek(candidates) };
  }

  /**
   * A member could not finish this message: another one gets it, if there is one, whatever the store says: it was
   * promised already. True when the journal was told of it there.
   */
  redeliver(message: Message, except: Receiver): boolean {
    let refused = this.refused.get(message);
    if (refused === undefined) {
      refused = new WeakSet();
      this.refused.set(message, refused);
    }
    refused.add(except);
    const candidates = [...this.targets.values()].filter(
      ({ receiver }) => !refused.has(receiver) && receiver.mayReceive(message.topic),
    );
    const target = this.choose(candidates);
    if (target === null) return false;
    const publication = new Publication(message.origin);
    publication.load(message);
    publication.promised = true;
    target.receiver.deliver(publication, target);
    return publication.stored;
  }

  private peek(candidates: readonly Target[]): Target | null {
    const { cursor } = this;
    const target = this.choose(candidates);
    this.cursor = cursor;
    return target;
  }

  private choose(candidates: readonly Target[]): Target | null {
    const n = candidates.length;
    let online: Target | null = null;
    let offline: Target | null = null;
    for (let i = 0; i < n; i++) {
      const target = candidates[(this.cursor + i) % n];
      const receiver = target.receiver;
      if (receiver.ready) {
        this.cursor = (this.cursor + i + 1) % n;
        return target;
      }
      if (receiver.online) online ??= target;
      else offline ??= target;
    }
    this.cursor = (this.cursor + 1) % Math.max(1, n);
    return online ?? offline;
  }
}
