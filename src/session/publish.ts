// PUBLISH from a client (MQTT 5.0 section 3.3, 3.1.1 section 3.3): topic, alias, rights, quota, routing, answer.
// One per connection; called by reader.ts for every PUBLISH. The hottest code there is: what repeats is remembered (the last topic with
// its route and verdict), packets of one topic at QoS 0 are handed on as one run, and nothing is allocated for either.

import type { Access, Identity } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import type { Frame } from '../codec/codec.ts';
import { decodeProperties } from '../codec/property.ts';
import { newScan, scanPublish } from '../codec/publish.ts';
import { readText } from '../codec/text.ts';
import { Publication } from '../mqtt/message.ts';
import { PUBACK, PUBLISH, PUBREC, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import {
  NO_MATCHING_SUBSCRIBERS,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  QOS_NOT_SUPPORTED,
  QUOTA_EXCEEDED,
  RECEIVE_MAXIMUM_EXCEEDED,
  RETAIN_NOT_SUPPORTED,
  SUCCESS,
  TOPIC_ALIAS_INVALID,
  TOPIC_NAME_INVALID,
} from '../mqtt/reason.ts';
import { exceedsLevels, isTopicName } from '../mqtt/topic.ts';
import type { Route } from '../router/router.ts';
import type { Acks } from './acks.ts';
import type { Exchanges } from './exchanges.ts';
import { heldCount } from './held.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';
import { Verdicts } from './verdicts.ts';

/** publish() returns it when an authorizer has to be waited for: `waiting` says for what. */
export const WAIT = -1;

export interface InboundOptions {
  readonly core: Core;
  readonly session: Session;
  readonly identity: Identity;
  readonly access: () => Access;
  readonly acks: Acks;
  readonly exchanges: Exchanges;
  readonly version: Version;
}

export class Inbound {
  /** Set when publish() has returned WAIT: the promise of the verdict that is missing. */
  waiting: Promise<boolean> | null = null;
  private readonly core: Core;
  private readonly session: Session;
  private readonly identity: Identity;
  private readonly access: () => Access;
  private readonly acks: Acks;
  private readonly exchanges: Exchanges;
  private readonly version: Version;
  private readonly five: boolean;
  private readonly scan = newScan();
  private readonly publication: Publication;
  /** Properties of the PUBLISH being handled. */
  private decoded: Properties | null = null;
  private lastTopic: Buffer = Buffer.alloc(64);
  private lastBytes = -1;
  private lastName = '';
  private lastAllowed = false;
  private route: Route | null = null;
  private verdictVersion = -1;
  private readonly verdicts = new Verdicts();
  private readonly aliases: (string | undefined)[] = [];
  /** Acknowledgements that may wait before no more is read. */
  private readonly mostHeld: number;

  constructor(options: InboundOptions) {
    this.core = options.core;
    this.session = options.session;
    this.identity = options.identity;
    this.access = options.access;
    this.acks = options.acks;
    this.exchanges = options.exchanges;
    this.version = options.version;
    this.five = options.version === 5;
    this.publication = new Publication(options.session.origin, options.core.slab);
    this.mostHeld = heldCount(options.version, options.core.limits.maxAwaitingRel);
  }

  /**
   * Handles the PUBLISH in `frame` and, at QoS 0, those behind it that belong to the same run. Returns the offset behind what was handled,
   * or WAIT. Throws ProtocolError.
   */
  publish(buffer: Buffer, frame: Frame, end: number): number {
    const scan = this.scan;
    scanPublish(buffer, frame, this.version, scan);
    this.decoded = scan.hasProperties
      ? decodeProperties(buffer, scan.propertiesAt, frame.end, PUBLISH).properties
      : null;
    if (!this.resolve(buffer)) return WAIT;
    const limits = this.core.limits;
    if (scan.qos > limits.maxQos) throw new ProtocolError(QOS_NOT_SUPPORTED, `PUBLISH with QoS ${scan.qos}`); // [MQTT-3.2.2-11]
    if (scan.retain && !limits.retainAvailable) throw new ProtocolError(RETAIN_NOT_SUPPORTED, 'PUBLISH with RETAIN'); // [MQTT-3.2.2-14]
    const publication = this.publication;
    publication.reset();
    publication.topic = this.lastName;
    publication.qos = scan.qos;
    publication.retain = scan.retain;
    publication.dup = false; // DUP of an incoming PUBLISH is not passed on [MQTT-3.3.1-3].
    publication.packetId = scan.packetId;
    publication.buffer = buffer;
    publication.payloadStart = scan.payloadStart;
    publication.payloadEnd = frame.end;
    publication.wireVersion = this.version;
    publication.packetIdAt = scan.packetIdAt;
    // Bytes are passed on as they are only with a topic and with a length in its shortest form [MQTT-1.5.5-1]: no last byte of 0.
    const minimal = frame.bodyStart === frame.packetStart + 2 || buffer[frame.bodyStart - 1] !== 0;
    publication.packetStart = minimal && scan.topicEnd > scan.topicStart ? frame.packetStart : -1;
    if (this.decoded !== null) this.useProperties(this.decoded);
    if (scan.qos === 0) {
      if (!scan.retain && !scan.hasProperties && publication.packetStart >= 0) return this.run(buffer, frame, end);
      this.count(1, frame.end - frame.packetStart);
      if (this.lastAllowed) this.core.router.publish(publication, this.current());
      else this.denied(1);
      return frame.end;
    }
    this.count(1, frame.end - frame.packetStart);
    if (scan.qos === 1) this.atLeastOnce(publication);
    else this.exactlyOnce(publication);
    return frame.end;
  }

  /** Resolves when half of what waits for acknowledgements is answered; null while there is no reason to wait for that. */
  crowd(): Promise<void> | null {
    return this.acks.crowded(this.mostHeld) ? this.acks.calmed(this.mostHeld) : null;
  }

  /** PUBREL. */
  release(packetId: number): void {
    this.exchanges.release(packetId, this.publication, this.acks);
  }

  // ---- QoS

  private atLeastOnce(publication: Publication): void {
    this.checkQuota();
    const packetId = publication.packetId;
    if (!this.lastAllowed) {
      this.denied(1);
      this.acks.answer(PUBACK, packetId, this.deniedCode(), null);
      return;
    }
    const receivers = this.core.router.publish(publication, this.current());
    if (publication.stored) this.core.journal.barrier(publication.hold());
    const bytes = publication.payloadEnd - publication.payloadStart;
    this.acks.answer(PUBACK, packetId, receivers > 0 ? SUCCESS : this.unheard(), publication.held, bytes);
  }

  private exactlyOnce(publication: Publication): void {
    const packetId = publication.packetId;
    if (this.exchanges.has(packetId)) {
      this.acks.answer(PUBREC, packetId, SUCCESS, this.exchanges.again(packetId, publication));
      return;
    }
    this.checkQuota();
    if (!this.lastAllowed) {
      this.denied(1);
      const code = this.deniedCode();
      if (code === SUCCESS) this.exchanges.begin(packetId, publication);
      this.acks.answer(PUBREC, packetId, code, null);
      return;
    }
    const { journal, router } = this.core;
    const route = this.current();
    // "Once" leaves no room for a refusal by one receiver after another one has the message: all of them take it, or none gets it.
    const unable = !journal.writing && this.session.outbox.durable;
    if (unable || ((!journal.accepting || publication.retain) && router.refuses(publication, route))) {
      this.core.delivery.refusedStore++;
      this.acks.answer(PUBREC, packetId, QUOTA_EXCEEDED, null);
      return;
    }
    const receivers = router.publish(publication, route);
    // Behind the message, in the same group of the journal: it is never stored without it. One that was refused is not remembered at all.
    if (publication.held?.refused !== true) this.exchanges.begin(packetId, publication);
    if (publication.stored) journal.barrier(publication.hold());
    const { held } = publication;
    this.exchanges.await(packetId, held);
    const bytes = publication.payloadEnd - publication.payloadStart;
    this.acks.answer(PUBREC, packetId, receivers > 0 ? SUCCESS : this.unheard(), held, bytes);
  }

  private checkQuota(): void {
    // Before 5.0 nobody is told of a Receive Maximum: such a client is not read for a while instead (reader.ts).
    const maximum = this.five ? this.core.limits.maxAwaitingRel : 0;
    // QoS 2 publishes are in `exchanges.open` from the PUBLISH on, whether their PUBREC waits or not.
    if (maximum > 0 && this.acks.unacknowledged + this.exchanges.open >= maximum) {
      throw new ProtocolError(RECEIVE_MAXIMUM_EXCEEDED, `more than ${maximum} publishes without acknowledgement`); // [MQTT-3.3.4-7]
    }
  }

  private unheard(): number {
    return this.five ? NO_MATCHING_SUBSCRIBERS : SUCCESS;
  }

  /** Before 5.0 a refusal cannot be told: the publish is acknowledged and has no effect [MQTT-3.3.5-2 of 3.1.1]. */
  private deniedCode(): number {
    return this.five ? NOT_AUTHORIZED : SUCCESS;
  }

  private denied(count: number): void {
    this.core.stats.deniedPublish += count;
    if (this.access().denyAction === 'disconnect')
      throw new ProtocolError(NOT_AUTHORIZED, `publishing to ${this.lastName} is not allowed`);
  }

  // ---- runs

  /** Extends the QoS 0 PUBLISH in `frame` by those that follow with the same first byte, topic and no properties, and routes them as one. */
  private run(buffer: Buffer, frame: Frame, end: number): number {
    const start = frame.packetStart;
    const topicAt = this.scan.topicStart;
    const topicBytes = this.scan.topicEnd - topicAt;
    const least = topicBytes + (this.five ? 3 : 2);
    const maxBytes = this.core.limits.maxPacketSize;
    const first = buffer[start];
    const five = this.five;
    let at = frame.end;
    let count = 1;
    let longest = at - start;
    // Whatever is unusual (cut, malformed, long) ends the run and is left to the reader.
    while (at + 1 < end && buffer[at] === first) {
      let o = at + 1;
      let byte = buffer[o++];
      let length = byte & 127;
      if (byte > 127) {
        byte = buffer[o++];
        if (byte === undefined || byte === 0 || byte > 127) break;
        length |= byte << 7;
      }
      const next = o + length;
      if (next > end || length < least) break;
      const bytes = next - at;
      if (maxBytes > 0 && bytes > maxBytes) break;
      if (((buffer[o] << 8) | buffer[o + 1]) !== topicBytes) break;
      o += 2;
      let i = 0;
      while (i < topicBytes && buffer[o + i] === buffer[topicAt + i]) i++;
      if (i < topicBytes || (five && buffer[o + topicBytes] !== 0)) break;
      if (bytes > longest) longest = bytes;
      at = next;
      count++;
    }
    this.count(count, at - start);
    if (!this.lastAllowed) this.denied(count);
    else this.core.router.publishRun(this.publication, this.current(), start, at, count, longest);
    return at;
  }

  private count(messages: number, bytes: number): void {
    const stats = this.core.stats;
    stats.received += messages;
    stats.receivedBytes += bytes;
    this.session.messagesIn += messages;
  }

  /** The route of the last topic as subscriptions are now. */
  private current(): Route {
    const router = this.core.router;
    let route = this.route;
    if (route === null || route.version !== router.version) {
      route = router.route(this.lastName);
      this.route = route;
    }
    return route;
  }

  // ---- topics

  /** Finds out lastName and lastAllowed for the scanned PUBLISH. False when a verdict has to be waited for. */
  private resolve(buffer: Buffer): boolean {
    const scan = this.scan;
    const bytes = scan.topicEnd - scan.topicStart;
    if (
      bytes === this.lastBytes &&
      this.access().authorizer.version === this.verdictVersion &&
      this.decoded?.topicAlias === undefined
    ) {
      const last = this.lastTopic;
      let i = 0;
      while (i < bytes && buffer[scan.topicStart + i] === last[i]) i++;
      if (i === bytes) return true;
    }
    return this.resolveNew(buffer, bytes);
  }

  private resolveNew(buffer: Buffer, bytes: number): boolean {
    const scan = this.scan;
    const alias = this.readAlias();
    let topic: string;
    if (bytes === 0) {
      const known = alias > 0 ? this.aliases[alias] : undefined;
      if (known === undefined) {
        // A topic of length zero without a known alias [MQTT-3.3.2-8]; before 5.0 there is none at all.
        throw new ProtocolError(this.five ? PROTOCOL_ERROR : TOPIC_NAME_INVALID, 'PUBLISH without topic');
      }
      topic = known;
    } else {
      topic = readText(buffer, scan.topicStart, scan.topicEnd);
      if (!isTopicName(topic)) throw new ProtocolError(TOPIC_NAME_INVALID, 'topic name with wildcard'); // [MQTT-3.3.2-2]
      const most = this.core.limits.maxTopicLevels;
      if (most > 0 && exceedsLevels(topic, most))
        throw new ProtocolError(TOPIC_NAME_INVALID, `topic of more than ${most} levels`);
    }
    const verdict = this.verdict(topic);
    if (typeof verdict !== 'boolean') {
      this.waiting = verdict;
      this.lastBytes = -1;
      return false;
    }
    if (topic !== this.lastName) this.route = null;
    this.lastName = topic;
    this.lastAllowed = verdict;
    if (alias > 0) this.aliases[alias] = topic; // [MQTT-3.3.2-12]
    this.lastBytes = alias > 0 || bytes === 0 ? -1 : bytes;
    if (this.lastBytes > 0) {
      if (this.lastTopic.length < bytes) this.lastTopic = Buffer.alloc(bytes * 2);
      buffer.copy(this.lastTopic, 0, scan.topicStart, scan.topicEnd);
    }
    return true;
  }

  private verdict(topic: string): boolean | Promise<boolean> {
    const authorizer = this.access().authorizer;
    if (authorizer.version !== this.verdictVersion) {
      this.verdicts.clear();
      this.verdictVersion = authorizer.version;
    }
    const known = this.verdicts.get(topic);
    if (known !== undefined) return known;
    const verdict = authorizer.publish(this.identity, topic, this.scan.qos, this.scan.retain);
    if (typeof verdict === 'boolean') {
      this.verdicts.set(topic, verdict);
      return verdict;
    }
    return verdict.then((allowed) => {
      this.verdicts.set(topic, allowed);
      return allowed;
    });
  }

  private readAlias(): number {
    const alias = this.decoded?.topicAlias;
    if (alias === undefined) return 0;
    if (alias === 0 || alias > this.core.limits.maxTopicAlias) {
      throw new ProtocolError(TOPIC_ALIAS_INVALID, `topic alias ${alias}`); // [MQTT-3.3.2-9]
    }
    return alias;
  }

  private useProperties(properties: Properties): void {
    const publication = this.publication;
    if (properties.subscriptionIdentifiers !== undefined) {
      throw new ProtocolError(PROTOCOL_ERROR, 'PUBLISH from a client with a Subscription Identifier'); // [MQTT-3.3.4-6]
    }
    if (properties.responseTopic !== undefined && !isTopicName(properties.responseTopic)) {
      throw new ProtocolError(PROTOCOL_ERROR, 'Response Topic with wildcard'); // [MQTT-3.3.2-14]
    }
    if (properties.topicAlias !== undefined) {
      // An alias belongs to this connection only; the receivers get the topic [MQTT-3.3.2-7].
      delete properties.topicAlias;
      publication.packetStart = -1;
    }
    const expiry = properties.messageExpiryInterval;
    if (expiry !== undefined) publication.expiresAt = this.core.clock.now() + expiry * 1000;
    for (const _ in properties) {
      publication.properties = properties;
      return;
    }
  }
}
