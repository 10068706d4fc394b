// PUBLISH from a client (MQTT 5.0 section 3.3, 3.1.1 section 3.3): topic, alias, rights, quota, routing, answer. One
// per connection; called by reader.ts for every PUBLISH. The hottest code there is: topics are known by their bytes
// (named.ts), packets at QoS 0 whose topics go to the same targets are handed on as one run, and nothing is allocated
// for either.

import type { Access, Identity } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import type { SharedBytes } from '../base/sharedbytes.ts';
import type { Frame } from '../codec/codec.ts';
import { decodeProperties } from '../codec/property.ts';
import { newScan, scanPublish } from '../codec/publish.ts';
import { Publication } from '../mqtt/message.ts';
import { PUBACK, PUBLISH, PUBREC, type Qos, type Version } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import {
  IMPLEMENTATION_SPECIFIC_ERROR,
  NO_MATCHING_SUBSCRIBERS,
  NOT_AUTHORIZED,
  PROTOCOL_ERROR,
  QOS_NOT_SUPPORTED,
  QUOTA_EXCEEDED,
  RECEIVE_MAXIMUM_EXCEEDED,
  RETAIN_NOT_SUPPORTED,
  SUCCESS,
  TOPIC_ALIAS_INVALID,
} from '../mqtt/reason.ts';
import { isTopicName } from '../mqtt/topic.ts';
import type { KnownTopic } from '../router/router.ts';
import type { Acks } from './acks.ts';
import type { Exchanges } from './exchanges.ts';
import { heldCount } from './held.ts';
import { NamedTopics } from './named.ts';
import { checkPayload, DROPPED } from './payloads.ts';
import { Run } from './run.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

/** publish() returns it when an authorizer has to be waited for: `waiting` says for what. */
export const WAIT = -1;
/** refusal() returns it for a publish that is routed. */
const TAKEN = -1;

export interface InboundOptions {
  readonly core: Core;
  readonly session: Session;
  readonly identity: Identity;
  readonly access: () => Access;
  readonly acks: Acks;
  readonly exchanges: Exchanges;
  readonly version: Version;
  /** The listener's; that of all clients holds too. */
  readonly maxQos: Qos;
}

export class Inbound {
  private readonly core: Core;
  private readonly session: Session;
  private readonly access: () => Access;
  private readonly acks: Acks;
  private readonly exchanges: Exchanges;
  private readonly version: Version;
  private readonly five: boolean;
  private readonly maxQos: Qos;
  private readonly scan = newScan();
  private readonly publication: Publication;
  /** Properties of the PUBLISH being handled. */
  private decoded: Properties | null = null;
  private readonly names: NamedTopics;
  private readonly run: Run;
  /** Acknowledgements that may wait before no more is read. */
  private readonly mostHeld: number;

  constructor(options: InboundOptions) {
    this.core = options.core;
    this.session = options.session;
    this.access = options.access;
    this.acks = options.acks;
    this.exchanges = options.exchanges;
    this.version = options.version;
    this.five = options.version === 5;
    this.names = new NamedTopics(options.core, options.identity, options.access, this.five);
    this.run = new Run(this.names, this.five);
    this.maxQos = options.maxQos;
    this.publication = new Publication(options.session.origin, options.core.slab);
    this.mostHeld = heldCount(options.version, options.core.limits.maxAwaitingRel);
  }

  /**
   * Handles the PUBLISH in `frame` and, at QoS 0, those behind it that belong to the same run. Returns the offset
   * behind what was handled, or WAIT. Throws ProtocolError.
   * @param shared the buffer, where nobody writes to it any more
   */
  publish(buffer: Buffer, frame: Frame, end: number, shared: SharedBytes | null): number {
    const scan = this.scan;
    scanPublish(buffer, frame, this.version, scan);
    this.decoded = scan.hasProperties
      ? decodeProperties(buffer, scan.propertiesAt, frame.end, PUBLISH).properties
      : null;
    const { names } = this;
    if (!names.resolve(buffer, scan, this.decoded === null ? 0 : this.readAlias())) return WAIT;
    const topic = names.topic as KnownTopic;
    const limits = this.core.limits;
    if (scan.qos > limits.maxQos || scan.qos > this.maxQos)
      throw new ProtocolError(QOS_NOT_SUPPORTED, `PUBLISH with QoS ${scan.qos}`); // [MQTT-3.2.2-11]
    // [MQTT-3.2.2-14]
    if (scan.retain && !limits.retainAvailable) throw new ProtocolError(RETAIN_NOT_SUPPORTED, 'PUBLISH with RETAIN');
    const publication = this.publication;
    publication.reset();
    publication.topic = topic.name;
    publication.qos = scan.qos;
    publication.retain = scan.retain;
    publication.dup = false; // DUP of an incoming PUBLISH is not passed on [MQTT-3.3.1-3].
    publication.packetId = scan.packetId;
    publication.buffer = buffer;
    publication.shared = shared;
    publication.payloadStart = scan.payloadStart;
    publication.payloadEnd = frame.end;
    publication.wireVersion = this.version;
    publication.packetIdAt = scan.packetIdAt;
    // Bytes are passed on as they are only with a topic and with a length in its shortest form [MQTT-1.5.5-1]: no last
    // byte of 0.
    const minimal = frame.bodyStart === frame.packetStart + 2 || buffer[frame.bodyStart - 1] !== 0;
    publication.packetStart = minimal && scan.topicEnd > scan.topicStart ? frame.packetStart : -1;
    if (this.decoded !== null) this.useProperties(this.decoded);
    if (scan.qos === 0) {
      const plain = !scan.retain && !scan.hasProperties && publication.packetStart >= 0;
      if (plain && !this.isTooLarge(publication)) return this.alike(buffer, frame, end, topic);
      this.count(1, frame.end - frame.packetStart);
      if (this.refusal(publication) === TAKEN) this.core.router.publish(publication, names.route(topic));
      return frame.end;
    }
    this.count(1, frame.end - frame.packetStart);
    if (scan.qos === 1) this.atLeastOnce(publication, topic);
    else this.exactlyOnce(publication, topic);
    return frame.end;
  }

  /** Passes over a PUBLISH that has no effect but for its Topic Alias. Returns as publish(). */
  skip(buffer: Buffer, frame: Frame): number {
    const { scan } = this;
    scanPublish(buffer, frame, this.version, scan);
    this.decoded = scan.hasProperties
      ? decodeProperties(buffer, scan.propertiesAt, frame.end, PUBLISH).properties
      : null;
    return this.names.resolve(buffer, scan, this.decoded === null ? 0 : this.readAlias()) ? frame.end : WAIT;
  }

  /**
   * Publishes whose answer is owed. Not those that wait for a PUBREL: it would never be read behind a PUBLISH that is
   * held back for it.
   */
  get inflight(): number {
    return this.acks.pending;
  }

  /** What publish() has returned WAIT for: the promise of the verdict that is missing. */
  get waiting(): Promise<boolean> | null {
    return this.names.waiting;
  }

  /**
   * Resolves when half of what waits for acknowledgements is answered; null while there is no reason to wait for that.
   */
  crowd(): Promise<void> | null {
    return this.acks.crowded(this.mostHeld) ? this.acks.calmed(this.mostHeld) : null;
  }

  /** PUBREL. */
  release(packetId: number): void {
    this.exchanges.release(packetId, this.publication, this.acks);
  }

  /** The connection has gone. */
  close(): void {
    this.names.close();
  }

  // ---- QoS

  private atLeastOnce(publication: Publication, topic: KnownTopic): void {
    this.checkQuota();
    const packetId = publication.packetId;
    const refusal = this.refusal(publication);
    if (refusal !== TAKEN) {
      if (publication.stored) this.core.journal.barrier(publication.hold());
      this.acks.answer(PUBACK, packetId, refusal, publication.held);
      return;
    }
    const receivers = this.core.router.publish(publication, this.names.route(topic));
    if (publication.stored) this.core.journal.barrier(publication.hold());
    const bytes = publication.payloadEnd - publication.payloadStart;
    this.acks.answer(PUBACK, packetId, receivers > 0 ? SUCCESS : this.unheard(), publication.held, bytes);
  }

  private exactlyOnce(publication: Publication, topic: KnownTopic): void {
    const packetId = publication.packetId;
    if (this.exchanges.has(packetId)) {
      this.acks.answer(PUBREC, packetId, SUCCESS, this.exchanges.again(packetId, publication));
      return;
    }
    this.checkQuota();
    const refusal = this.refusal(publication);
    if (refusal !== TAKEN) {
      const { stored } = publication;
      if (refusal === SUCCESS) this.exchanges.begin(packetId, publication);
      if (stored) this.core.journal.barrier(publication.hold());
      this.exchanges.await(packetId, publication.held);
      this.acks.answer(PUBREC, packetId, refusal, publication.held);
      return;
    }
    const { journal, router } = this.core;
    const route = this.names.route(topic);
    // "Once" leaves no room for a refusal by one receiver after another one has the message: all of them take it, or
    // none gets it.
    const unable = !journal.writing && this.session.outbox.durable;
    if (unable || ((!journal.accepting || publication.retain) && router.refuses(publication, route))) {
      this.core.delivery.refusedStore++;
      this.acks.answer(PUBREC, packetId, QUOTA_EXCEEDED, null);
      return;
    }
    const receivers = router.publish(publication, route);
    // Behind the message, in the same group of the journal: it is never stored without it. One that was refused is not
    // remembered at all.
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
      // [MQTT-3.3.4-7]
      throw new ProtocolError(RECEIVE_MAXIMUM_EXCEEDED, `more than ${maximum} publishes without acknowledgement`);
    }
  }

  private unheard(): number {
    return this.five ? NO_MATCHING_SUBSCRIBERS : SUCCESS;
  }

  /** TAKEN, or the code to acknowledge a publish with that has no effect; counts it. */
  private refusal(publication: Publication): number {
    if (!this.names.allowed) return this.unusual(publication);
    return this.isTooLarge(publication) ? this.tooLarge() : TAKEN;
  }

  private tooLarge(): number {
    this.core.stats.tooLargePublish++;
    return this.five ? IMPLEMENTATION_SPECIFIC_ERROR : SUCCESS;
  }

  /** As refusal(), for what is denied, or on a topic that the configuration makes something else of. */
  private unusual(publication: Publication): number {
    const { special } = this.names;
    const { core } = this;
    if (special === null || (!special.may && special.plan.refusal === 0)) {
      this.denied(1);
      return this.deniedCode();
    }
    const { plan } = special;
    if (plan.refusal !== 0) {
      core.stats.misplacedPublish++;
      return this.five ? plan.refusal : SUCCESS;
    }
    if (this.isTooLarge(publication)) return this.tooLarge();
    if (plan.rewritten) core.stats.rewrittenPublish++;
    const code = checkPayload(plan, publication);
    if (code !== SUCCESS) return this.five && code !== DROPPED ? code : SUCCESS;
    if (plan.delaySeconds === 0) return TAKEN;
    return core.delayed.put(publication, plan.delaySeconds);
  }

  private isTooLarge(publication: Publication): boolean {
    const most = this.core.limits.maxPayloadSize;
    return most > 0 && publication.payloadEnd - publication.payloadStart > most;
  }

  /** Before 5.0 a refusal cannot be told: the publish is acknowledged and has no effect [MQTT-3.3.5-2 of 3.1.1]. */
  private deniedCode(): number {
    return this.five ? NOT_AUTHORIZED : SUCCESS;
  }

  private denied(count: number): void {
    this.core.stats.deniedPublish += count;
    if (this.access().denyAction === 'disconnect')
      throw new ProtocolError(NOT_AUTHORIZED, `publishing to ${this.publication.topic} is not allowed`);
  }

  // ---- runs

  /** The QoS 0 PUBLISH in `frame` and those behind it that go the same way, routed as one. */
  private alike(buffer: Buffer, frame: Frame, end: number, topic: KnownTopic): number {
    const { names, run, core, publication } = this;
    const start = frame.packetStart;
    const route = names.allowed ? names.route(topic) : null;
    const at = run.extend(buffer, frame, this.scan, names.lasting ? end : frame.end, this.runBytes, topic, route);
    this.count(run.count, at - start);
    if (route !== null) {
      if (run.mixed) publication.names = core.router.known;
      core.router.publishRun(publication, route, start, at, run.count, run.longest);
    } else this.denied(run.count);
    return at;
  }

  /** Bytes of a packet of a run; one that is larger may be too large in itself or by its payload. 0 = no limit. */
  private get runBytes(): number {
    const { maxPacketSize, maxPayloadSize } = this.core.limits;
    if (maxPayloadSize === 0 || maxPacketSize === 0) return maxPayloadSize + maxPacketSize;
    return Math.min(maxPacketSize, maxPayloadSize);
  }

  private count(messages: number, bytes: number): void {
    const stats = this.core.stats;
    stats.received += messages;
    stats.receivedBytes += bytes;
    this.session.messagesIn += messages;
  }

  // ---- properties

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
    if (expiry !== undefined) publication.expiresAt = this.core.clock.steady() + expiry * 1000;
    for (const _ in properties) {
      publication.properties = properties;
      return;
    }
  }
}
