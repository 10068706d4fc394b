// SUBSCRIBE, UNSUBSCRIBE and PUBREL of a client, asked of all servers that they concern, and answered once. Made by
// exchange.ts. Sources: MQTT 5.0 sections 3.8 to 3.11, 4.8.2 (shared subscriptions, which are split like the filter in
// them).
import { ProtocolError } from '../../base/errors.ts';
import { ackPacketId } from '../../codec/ack.ts';
import type { Frame } from '../../codec/codec.ts';
import {
  decodeSuback,
  decodeSubscribe,
  decodeUnsuback,
  decodeUnsubscribe,
  encodeSubscribe,
  encodeUnsubscribe,
} from '../../codec/subscribe.ts';
import {
  PUBREL,
  SUBACK,
  SUBSCRIBE,
  type SubscribePacket,
  type SubscriptionRequest,
  UNSUBSCRIBE,
  type UnsubscribePacket,
} from '../../mqtt/packet.ts';
import { PROTOCOL_ERROR, QUOTA_EXCEEDED } from '../../mqtt/reason.ts';
import { Answer, type Asked, unknownRelease } from './answers.ts';
import { type Ends, refusalOf } from './ends.ts';
import type { Leg } from './leg.ts';

/** What a subscription is counted as, beside its filter. */
const SUBSCRIPTION_BYTES = 100;

interface Subscribed {
  readonly request: SubscriptionRequest;
  readonly identifiers: number[] | undefined;
}

interface Asking {
  readonly packet: SubscribePacket;
  /** Places of its filters by upstream. */
  readonly places: ReadonlyMap<number, readonly number[]>;
}

export class Requests {
  private readonly ends: Ends;
  private readonly answers = new Map<number, Answer>();
  /** SUBSCRIBE packets that are not answered, where what is granted has to be remembered. */
  private readonly asked = new Map<number, Asking>();
  /** Subscriptions by upstream and filter, where the proxy has to make them again. */
  private readonly subscribed = new Map<number, Map<string, Subscribed>>();
  /** Identifiers of SUBSCRIBE packets of the proxy itself. */
  private readonly own = new Set<number>();

  constructor(ends: Ends) {
    this.ends = ends;
  }

  subscribe(bytes: Buffer, frame: Frame): void {
    const packet = decodeSubscribe(bytes, frame, this.ends.version);
    const { subscriptions } = packet;
    const places = this.places(subscriptions.map((one) => one.topicFilter));
    if (this.ends.options.topicRouting.lost !== 'close') this.asked.set(packet.packetId, { packet, places });
    this.ask(SUBSCRIBE, packet.packetId, subscriptions.length, places, (mine) =>
      encodeSubscribe(this.ends.version, { ...packet, subscriptions: mine.map((i) => subscriptions[i]) }),
    );
  }

  unsubscribe(bytes: Buffer, frame: Frame): void {
    const packet: UnsubscribePacket = decodeUnsubscribe(bytes, frame, this.ends.version);
    const { topicFilters } = packet;
    const places = this.places(topicFilters);
    this.ask(UNSUBSCRIBE, packet.packetId, topicFilters.length, places, (mine) =>
      encodeUnsubscribe(this.ends.version, { ...packet, topicFilters: mine.map((i) => topicFilters[i]) }),
    );
    for (const [upstream, mine] of places) for (const i of mine) this.forget(upstream, topicFilters[i]);
  }

  /** PUBREL for what this connection has not published: every server is asked, one of them may have kept it. */
  release(bytes: Buffer, frame: Frame): void {
    const { ends } = this;
    const packetId = ackPacketId(bytes, frame);
    // One that is away is asked when it is back: it may be the one that has the message.
    const asked = ends.legs().filter((leg) => leg.state !== 'refused' && leg.state !== 'over');
    if (asked.length === 0) {
      ends.toClient(unknownRelease(ends.version, packetId));
      return;
    }
    this.put(packetId, new Answer(PUBREL, packetId, 1, new Map(asked.map((leg) => [leg.index, [0]]))));
    const packet = Buffer.from(bytes.subarray(frame.packetStart, frame.end));
    for (const leg of asked) leg.release(packetId, packet);
  }

  /** An answer of a server. */
  answered(leg: Leg, bytes: Buffer, frame: Frame): void {
    const { version } = this.ends;
    const { packetId, reasonCodes } =
      frame.type === SUBACK ? decodeSuback(bytes, frame, version) : decodeUnsuback(bytes, frame, version);
    leg.acknowledged(frame.type, packetId, 0);
    if (this.own.delete(packetId)) return;
    const answer = this.answers.get(packetId);
    if (answer === undefined || answer.type === PUBREL) return;
    this.granted(leg, packetId, reasonCodes);
    answer.take(leg.index, reasonCodes);
    this.settle(packetId, answer);
  }

  /** PUBCOMP of a server; false = it was not asked here. */
  completed(leg: Leg, packetId: number, code: number): boolean {
    const answer = this.answers.get(packetId);
    if (answer === undefined || answer.type !== PUBREL || !answer.asks(leg.index)) return false;
    answer.take(leg.index, [code]);
    this.settle(packetId, answer);
    return true;
  }

  /** A server will not answer this any more. */
  failed(upstream: number, packetId: number, code: number): void {
    const answer = this.answers.get(packetId);
    if (answer === undefined) return;
    answer.fail(upstream, code);
    this.settle(packetId, answer);
  }

  /** Makes the subscriptions again at a server that has lost them with the connection. */
  again(leg: Leg): void {
    const mine = this.subscribed.get(leg.index);
    if (mine === undefined) return;
    for (const { request, identifiers } of mine.values()) {
      const packetId = this.freeId();
      this.own.add(packetId);
      const properties = identifiers === undefined ? null : { subscriptionIdentifiers: identifiers };
      // What is retained has been sent already.
      const subscriptions = [{ ...request, retainHandling: 2 as const }];
      leg.pass(encodeSubscribe(this.ends.version, { type: SUBSCRIBE, packetId, subscriptions, properties }));
    }
  }

  /** Gives back what is held. */
  stop(): void {
    for (const [upstream, kept] of this.subscribed)
      for (const filter of [...kept.keys()]) this.forget(upstream, filter);
  }

  private ask(
    type: Asked,
    packetId: number,
    count: number,
    places: ReadonlyMap<number, readonly number[]>,
    encode: (mine: readonly number[]) => Buffer,
  ): void {
    const { ends } = this;
    const answer = new Answer(type, packetId, count, places);
    this.put(packetId, answer);
    ends.flushToServers();
    for (const [upstream, mine] of places) {
      const leg = ends.leg(upstream);
      const refusal = refusalOf(leg, ends.options.topicRouting.lost);
      if (leg === null || refusal !== 0) answer.fail(upstream, refusal);
      else if (!leg.send(encode(mine), packetId)) answer.fail(upstream, QUOTA_EXCEEDED);
      else continue;
      ends.cells.refused.value++;
    }
    this.settle(packetId, answer);
  }

  private put(packetId: number, answer: Answer): void {
    // [MQTT-2.2.1-3]
    if (this.answers.has(packetId)) throw new ProtocolError(PROTOCOL_ERROR, 'packet identifier is in use');
    this.answers.set(packetId, answer);
  }

  private settle(packetId: number, answer: Answer): void {
    if (!answer.complete || this.answers.get(packetId) !== answer) return;
    this.answers.delete(packetId);
    this.asked.delete(packetId);
    this.ends.toClient(answer.encode(this.ends.version));
  }

  /** Places of the filters by upstream. */
  private places(topicFilters: readonly string[]): Map<number, number[]> {
    const places = new Map<number, number[]>();
    for (const [i, topicFilter] of topicFilters.entries())
      for (const upstream of this.ends.table.reach(topicFilter)) {
        const mine = places.get(upstream);
        if (mine === undefined) places.set(upstream, [i]);
        else mine.push(i);
      }
    return places;
  }

  /** Remembers what a server has granted that will not remember it itself. */
  private granted(leg: Leg, packetId: number, reasonCodes: readonly number[]): void {
    const { ends } = this;
    const asked = this.asked.get(packetId);
    if (asked === undefined || leg.persistent) return;
    const { subscriptions, properties } = asked.packet;
    const kept = this.subscribed.get(leg.index) ?? new Map<string, Subscribed>();
    this.subscribed.set(leg.index, kept);
    for (const [at, i] of (asked.places.get(leg.index) ?? []).entries()) {
      if (reasonCodes[at] >= 0x80) continue;
      const request = subscriptions[i];
      const { topicFilter } = request;
      if (!kept.has(topicFilter) && !ends.held.take(topicFilter.length + SUBSCRIPTION_BYTES)) {
        ends.close(QUOTA_EXCEEDED, 'too much memory in subscriptions');
        return;
      }
      kept.set(topicFilter, { request, identifiers: properties?.subscriptionIdentifiers });
    }
  }

  private forget(upstream: number, topicFilter: string): void {
    if (this.subscribed.get(upstream)?.delete(topicFilter) !== true) return;
    this.ends.held.give(topicFilter.length + SUBSCRIPTION_BYTES);
  }

  /** From above: clients count from below. */
  private freeId(): number {
    let id = 65_535;
    while (this.answers.has(id) || this.own.has(id)) id--;
    return id;
  }
}
