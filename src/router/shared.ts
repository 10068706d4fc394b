// Shared subscriptions (MQTT 5.0 section 4.8.2): each message goes to exactly one member of a group.
// Used by routes.ts. Round robin over members that can take it at once; then over those that are connected; only when none is, an
// offline member queues it.
import type { Receiver, Target } from '../delivery/delivery.ts';
import { type Message, Publication } from '../mqtt/message.ts';
import type { GroupTargets, Subscription } from './router.ts';

export class SharedGroup {
  /** $share/<name>/<filter> */
  readonly topicFilter: string;
  readonly members = new Map<Receiver, Subscription>();
  private readonly targets = new Map<Receiver, Target>();
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
    return { pick: () => this.choose(candidates, null), peek: () => this.peek(candidates) };
  }

  /** A member could not finish this message: another one gets it, if there is one, whatever the store says: it was promised already. */
  redeliver(message: Message, except: Receiver): void {
    const candidates = [...this.targets.values()].filter((t) => t.receiver.mayReceive(message.topic));
    const target = this.choose(candidates, except);
    if (target === null) return;
    const publication = new Publication(message.origin);
    publication.load(message);
    publication.promised = true;
    target.receiver.deliver(publication, target);
  }

  private peek(candidates: readonly Target[]): Target | null {
    const { cursor } = this;
    const target = this.choose(candidates, null);
    this.cursor = cursor;
    return target;
  }

  private choose(candidates: readonly Target[], except: Receiver | null): Target | null {
    const n = candidates.length;
    let online: Target | null = null;
    let offline: Target | null = null;
    for (let i = 0; i < n; i++) {
      const target = candidates[(this.cursor + i) % n];
      const receiver = target.receiver;
      if (receiver === except) continue;
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
