// A broker as bridges see it: keeps subscriptions in order, matches plainly, records what is published. No sessions, no rights but a list.
import type { Broker, LocalClient, LocalOptions, LocalSubscription, PublishOutcome } from '../../src/broker/broker.ts';
import { type Hold, Message, type Origin, Publication } from '../../src/mqtt/message.ts';
import type { Qos } from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import { isTopicName, matches } from '../../src/mqtt/topic.ts';

export interface Published {
  readonly topic: string;
  readonly payload: string;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly by: string;
}

export const CLIENT: Origin = { kind: 'client', clientId: 'c1', username: null, bridge: null };

export class StubBroker implements Pick<Broker, 'attach'> {
  readonly attached: LocalOptions[] = [];
  readonly published: Published[] = [];
  readonly denied = new Set<string>();
  readonly retained = new Map<string, Message>();
  /** Set: every QoS 1 and 2 publish of a local client is held until these are done. */
  holds: Hold[] | null = null;
  private readonly subscriptions: LocalSubscription[] = [];
  private waiting: { done: () => boolean; resolve: () => void }[] = [];

  attach(options: LocalOptions): LocalClient {
    this.attached.push(options);
    const origin: Origin = {
      kind: options.kind,
      clientId: options.clientId,
      username: options.username,
      bridge: options.bridge,
    };
    const own = new Set<LocalSubscription>();
    let last: Hold | null = null;
    const unsubscribe = (subscription: LocalSubscription): void => {
      own.delete(subscription);
      const at = this.subscriptions.indexOf(subscription);
      if (at >= 0) this.subscriptions.splice(at, 1);
    };
    const client: LocalClient = {
      publishSoon: (topic, bytes, start, end, count = 1, stride = 0) => {
        let outcome: PublishOutcome = 'accepted';
        for (let i = 0, at = 0; i < count; i++, at += stride)
          outcome = client.publish(topic, bytes, start + at, end + at, 0, false);
        return outcome;
      },
      subscribe: (subscription) => {
        own.add(subscription);
        this.subscriptions.push(subscription);
        if (subscription.retainHandling === 2) return;
        for (const message of this.retained.values()) {
          if (!matches(subscription.topicFilter, message.topic)) continue;
          const view = new Publication(message.origin);
          view.load(message);
          subscription.receiver.receive(view, message.qos);
        }
      },
      unsubscribe,
      publish: (topic, bytes, start, end, qos, retain): PublishOutcome => {
        last = null;
        if (!isTopicName(topic)) return 'invalid-topic';
        if (this.denied.has(topic)) return 'denied';
        const payload = Buffer.from(bytes.subarray(start, end));
        this.published.push({ topic, payload: payload.toString('latin1'), qos, retain, by: options.clientId });
        const publication = this.deliver(origin, topic, payload, qos, retain);
        if (this.holds !== null && qos > 0) {
          const hold = publication.hold();
          hold.add();
          this.holds.push(hold);
        }
        last = publication.held;
        this.look();
        return 'accepted';
      },
      deniedTopic: () => null,
      lastHold: () => last,
      relieve: () => {},
      relieved: () => {},
      close: () => {
        for (const subscription of [...own]) unsubscribe(subscription);
      },
    };
    return client;
  }

  /** A publish from outside; returns what its acknowledgement waits for. */
  publish(
    topic: string,
    payload: string,
    qos: Qos = 0,
    retain = false,
    origin: Origin = CLIENT,
    properties: Properties | null = null,
  ): Hold | null {
    return this.deliver(origin, topic, Buffer.from(payload, 'latin1'), qos, retain, properties).held;
  }

  store(topic: string, payload: string): void {
    this.retained.set(topic, new Message(topic, Buffer.from(payload), 0, true, null, 0, CLIENT));
  }

  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  /** Topic and payload of all publishes so far. */
  seen(): string[] {
    return this.published.map(({ topic, payload }) => `${topic} ${payload}`);
  }

  private deliver(
    origin: Origin,
    topic: string,
    payload: Buffer,
    qos: Qos,
    retain: boolean,
    properties: Properties | null = null,
  ): Publication {
    const publication = new Publication(origin);
    publication.properties = properties;
    publication.topic = topic;
    publication.qos = qos;
    publication.retain = retain;
    // In a larger chunk, as on the wire: positions must be obeyed, and the chunk is gone afterwards.
    const chunk = Buffer.concat([Buffer.from('##'), payload, Buffer.from('##')]);
    publication.buffer = chunk;
    publication.payloadStart = 2;
    publication.payloadEnd = 2 + payload.length;
    for (const { topicFilter, qos: most, receiver } of [...this.subscriptions])
      if (matches(topicFilter, topic)) receiver.receive(publication, qos < most ? qos : most);
    chunk.fill(0x3f);
    return publication;
  }

  private look(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const one of waiting) {
      if (one.done()) one.resolve();
      else this.waiting.push(one);
    }
  }
}
