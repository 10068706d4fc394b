// What clients of the engine aedes may do: asked by aedes for each PUBLISH, will, SUBSCRIBE and for each packet that
// leaves. Built by engine.ts. Nothing fails open: what is not judged yet waits, in order; what is refused is counted.
// aedes checks neither topics nor limits of its own.
import { exceedsLevels, hasWildcard, isShared, isTopicFilter, isTopicName } from '../../mqtt/topic.ts';
import type { Core } from '../../session/session.ts';
import type { Front } from './front.ts';
import type { AedesClient, AedesPacket, AedesSubscription, Callback } from './parts.ts';
import type { AedesSession } from './session.ts';
import { willOwner } from './whose.ts';

export interface RightsParts {
  readonly core: Core;
  /** Of this gateway. */
  readonly brokerId: () => string;
  /** Takes a message that may be published; `done` when it is where it has to be. */
  readonly take: (packet: AedesPacket, front: Front, done: Callback) => void;
  /** Whether a session may read a topic now. */
  readonly mayReceive: (session: AedesSession, topic: string) => boolean;
}

/** What brokers tell each other, and the gateway's own values: nobody else writes there. */
export function reserved(topic: string): boolean {
  // Commands are not served here.
  if (topic.startsWith('$CONTROL/')) return true;
  return topic.startsWith('$SYS/') && !topic.startsWith('$SYS/broker/connection/');
}

export class AedesRights {
  private readonly core: Core;
  private readonly parts: RightsParts;
  /** Packets that need nothing more when aedes publishes them: taken already, or dropped. */
  private readonly handled = new WeakSet<AedesPacket>();

  constructor(parts: RightsParts) {
    this.parts = parts;
    this.core = parts.core;
  }

  /** Whether a packet was taken or dropped when it was judged. */
  settled(packet: AedesPacket): boolean {
    return this.handled.has(packet);
  }

  authorizePublish(client: AedesClient | null, packet: AedesPacket, done: Callback): void {
    const front = client === null ? null : (client.conn as Front);
    const { topic } = packet;
    const levels = this.core.limits.maxTopicLevels;
    if (!isTopicName(topic) || exceedsLevels(topic, levels)) {
      done(new Error('topic name not valid'));
      return;
    }
    if (packet.retain && !this.core.limits.retainAvailable) {
      done(new Error('retained messages are not available'));
      return;
    }
    // A will that another gateway kept: whoever has its client id here now is somebody else.
    const away = packet.brokerId !== undefined && packet.brokerId !== this.parts.brokerId();
    if (front === null || front.identity === null || away) {
      this.judgeKept(packet, done);
      return;
    }
    const { identity } = front;
    const decided = (allowed: boolean): void => this.judged(front, packet, allowed, done);
    const access = front.listener.access();
    // What comes after the connection is its will: whoever was removed meanwhile has none.
    const there = !front.destroyed || access.vouches(identity);
    const verdict = there && !reserved(topic) && access.authorizer.publish(identity, topic, packet.qos, packet.retain);
    if (typeof verdict === 'boolean' && front.judging === null) {
      decided(verdict);
      return;
    }
    // One after the other: what is judged later may not overtake.
    const mine = (front.judging ?? Promise.resolve())
      .then(() => verdict)
      .then(decided, () => done(new Error('the source of rights does not answer')))
      .then(() => {
        if (front.judging === mine) front.judging = null;
      });
    front.judging = mine;
  }

  /** The will of a client whose gateway has gone. */
  private judgeKept(packet: AedesPacket, done: Callback): void {
    const { absentees } = this.core;
    const identity = willOwner(packet, absentees);
    const access = absentees.access(identity);
    const { topic } = packet;
    const verdict =
      !topic.startsWith('$') &&
      access.vouches(identity) &&
      access.authorizer.publish(identity, topic, packet.qos, packet.retain);
    const decided = (allowed: boolean): void => {
      if (!allowed) {
        this.core.stats.deniedWill++;
        // Dropped, and forgotten by its store as one that was published.
        this.handled.add(packet);
      }
      done(null);
    };
    if (typeof verdict === 'boolean') decided(verdict);
    else void verdict.then(decided);
  }

  private judged(front: Front, packet: AedesPacket, allowed: boolean, done: Callback): void {
    if (allowed) {
      // PUBACK leaves when aedes is told to go on: that is after the message is where it has to be, not before.
      if (packet.qos !== 1) done(null);
      else {
        this.handled.add(packet);
        this.parts.take(packet, front, done);
      }
      return;
    }
    this.core.stats.deniedPublish++;
    if (front.listener.access().denyAction === 'disconnect') {
      done(new Error('publish not allowed'));
      return;
    }
    // 3.1.1 has no answer for it: acknowledged and dropped [MQTT-3.3.5-2].
    this.handled.add(packet);
    done(null);
  }

  authorizeSubscribe(
    client: AedesClient,
    subscription: AedesSubscription,
    done: (error: Error | null, subscription: AedesSubscription | null) => void,
  ): void {
    const front = client.conn as Front;
    const { session, identity } = front;
    const { topic } = subscription;
    const { limits, stats } = this.core;
    if (session === null || identity === null) {
      done(new Error('not let in'), null);
      return;
    }
    if (!isTopicFilter(topic) || exceedsLevels(topic, limits.maxTopicLevels)) {
      done(new Error('topic filter not valid'), null);
      return;
    }
    const access = front.listener.access();
    const decided = (allowed: boolean): void => {
      if (front.destroyed || session.front !== front) {
        done(new Error('gone'), null);
        return;
      }
      if (!allowed) {
        stats.deniedSubscribe++;
        done(access.denyAction === 'disconnect' ? new Error('subscription not allowed') : null, null);
        return;
      }
      this.subscribe(session, subscription);
      done(null, subscription);
    };
    // Refused with 0x80 [MQTT-3.9.3-2]: aedes has no shared subscriptions, and limits hold.
    if (isShared(topic) || (!limits.wildcardAvailable && hasWildcard(topic)) || !this.roomFor(session, topic)) {
      done(null, null);
      return;
    }
    const verdict = access.authorizer.subscribe(identity, topic, subscription.qos);
    if (typeof verdict === 'boolean') decided(verdict);
    else void verdict.then(decided, () => done(new Error('the source of rights does not answer'), null));
  }

  private roomFor(session: AedesSession, filter: string): boolean {
    const { limits, router, caps } = this.core;
    if (session.subscriptions.has(filter)) return true;
    const own = limits.maxSubscriptions > 0 && session.subscriptions.size >= limits.maxSubscriptions;
    const all = limits.maxTotalSubscriptions > 0 && router.subscriptionCount >= limits.maxTotalSubscriptions;
    if (!own && !all && router.hasRoomFor(filter)) return true;
    caps.refused('subscriptions', session.clientId, filter);
    return false;
  }

  private subscribe(session: AedesSession, { topic, qos }: AedesSubscription): void {
    const request = {
      topicFilter: topic,
      qos,
      noLocal: session.bridge,
      retainAsPublished: false,
      retainHandling: 0,
    } as const;
    session.subscriptions.set(topic, request);
    this.core.router.subscribe({
      ...request,
      filter: topic,
      shareName: null,
      subscriptionIdentifier: 0,
      receiver: session,
    });
  }

  /** The last word before a packet leaves: rights as they are now, and the QoS that was asked for [MQTT-3.8.4-6]. */
  authorizeForward(client: AedesClient, packet: AedesPacket): AedesPacket | null {
    const { session } = client.conn as Front;
    if (session === null) return null;
    const qos = session.qosOf(packet.topic);
    if (qos < 0 && packet.qos > 0 && packet.retain === false && packet.messageId === undefined) return null;
    if (!this.parts.mayReceive(session, packet.topic)) {
      this.core.delivery.droppedForbidden++;
      return null;
    }
    if (qos >= 0 && packet.qos > qos) packet.qos = qos === 0 ? 0 : 1;
    return packet;
  }
}
