// What one session is to be sent: its queue, its flow control and, while a client is connected, its output bytes.
// One per session; called by router/ (deliver), session/ (acknowledgements, attach, detach) and by its writer (room).
// Must not know subscriptions or sockets. Sources: MQTT 5.0 sections 4.3 to 4.6 and 4.9, 3.1.1 sections 4.3 to 4.6.
import type { Clock } from '../base/clock.ts';
import { Fifo } from '../base/queue.ts';
import { ACK_BYTES, encodeAck, writeAck } from '../codec/ack.ts';
import { encodedPropertiesBytes } from '../codec/property.ts';
import { type PublishParts, publishBytes, writePublish } from '../codec/publish.ts';
import { Hold, type Message, Publication } from '../mqtt/message.ts';
import { PUBLISH, PUBREL, type Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { PACKET_IDENTIFIER_NOT_FOUND, QUOTA_EXCEEDED, SUCCESS } from '../mqtt/reason.ts';
import type { Journal, StoredMessage } from '../store/store.ts';
import { AliasTable } from './alias.ts';
import type { Backlog, DeliveryStats, OutboxLimits, OutboxOptions, Peer, SessionOutbox, Target } from './delivery.ts';
import type { Entry } from './entry.ts';
import { FREE, Inflight, RELEASED, SENT_QOS1, SENT_QOS2 } from './inflight.ts';

/** Backlog messages sent in a row before others get their turn. */
const SLICE = 256;

export class Outbox implements SessionOutbox {
  readonly clientId: string;
  /** Messages and drops of this session alone. */
  sent = 0;
  dropped = 0;
  /** True when the session outlives its connection: what is not acknowledged is kept. */
  resumable: boolean;
  /** True when the journal is told. */
  durable = false;
  limits: OutboxLimits;
  private readonly clock: Clock;
  private readonly journal: Journal;
  private readonly stats: DeliveryStats;
  private readonly readable: (topic: string) => boolean;
  private readonly onTrouble: (reason: 'queue-full' | 'slow') => void;
  private readonly queue = new Fifo<Entry>();
  private readonly inflight = new Inflight();
  private readonly view: Publication;
  private queueBytes = 0;
  private nextSequence = 1;
  private backlogs: Backlog[] = [];
  private backlogTimer = false;
  private peer: Peer | null = null;
  private aliases: AliasTable | null = null;
  private five = false;
  private window = 0;
  /** Messages that have their Packet Identifier and wait for its commit. */
  private unsettled = 0;
  private troubled: 'queue-full' | 'slow' | null = null;
  private readonly parts: PublishParts = {
    version: 4,
    qos: 0,
    dup: false,
    retain: false,
    packetId: 0,
    topic: '',
    topicUtf8: null,
    topicBytes: 0,
    properties: null,
    propertyBytes: 0,
    payload: Buffer.alloc(0),
    payloadStart: 0,
    payloadEnd: 0,
  };

  constructor(options: OutboxOptions, resumable: boolean) {
    this.clientId = options.clientId;
    this.clock = options.clock;
    this.journal = options.journal;
    this.limits = options.limits;
    this.stats = options.stats;
    this.readable = options.mayReceive;
    this.onTrouble = options.onTrouble;
    this.resumable = resumable;
    this.view = new Publication({ kind: 'server', clientId: '', username: null, bridge: null });
  }

  get online(): boolean {
    return this.peer !== null;
  }

  get ready(): boolean {
    return (
      this.peer !== null && this.queue.length === 0 && this.inflight.count < this.window && this.hasRoom(this.peer)
    );
  }

  get inflightCount(): number {
    return this.inflight.count;
  }

  get queuedCount(): number {
    return this.queue.length;
  }

  get queuedBytes(): number {
    return this.queueBytes;
  }

  mayReceive(topic: string): boolean {
    return this.readable(topic);
  }

  // ---- from the router

  deliver(publication: Publication, target: Target): void {
    const qos = publication.qos < target.qos ? publication.qos : target.qos;
    const retain = publication.retain && target.retainAsPublished; // [MQTT-3.3.1-12] [MQTT-3.3.1-13]
    const peer = this.peer;
    if (qos === 0) {
      if (peer === null) this.offlineQos0(publication, target, retain);
      else if (!this.hasRoom(peer)) this.dropSlow(1);
      else this.write(peer, publication, 0, retain, false, 0, target.subscriptionIdentifiers);
      return;
    }
    const direct = peer !== null && this.queue.length === 0 && this.inflight.count < this.window && this.hasRoom(peer);
    if (direct && !this.resumable && target.share === null) {
      // The session ends with this connection and nothing is ever sent again on it [MQTT-4.4.0-1]: only the identifier is kept.
      const packetId = this.inflight.take(qos === 1 ? SENT_QOS1 : SENT_QOS2, null);
      if (!this.write(peer, publication, qos, retain, false, packetId, target.subscriptionIdentifiers))
        this.inflight.free(packetId);
      return;
    }
    if (!direct && !this.fits(publication)) return;
    if (this.durable) {
      if (!this.journal.accepting) {
        this.refuse(publication);
        return;
      }
      publication.stored = true;
    }
    const entry = this.newEntry(publication.message(), qos, retain, target, this.durable);
    if (direct) this.send(peer, entry, publication);
    else {
      this.enqueue(entry);
      if (entry.stored) this.tell(entry);
    }
  }

  deliverRun(
    publication: Publication,
    target: Target,
    start: number,
    end: number,
    count: number,
    longest: number,
  ): void {
    const peer = this.peer;
    if (peer === null) {
      if (!this.limits.queueQos0 || !this.resumable) {
        this.dropped += count;
        this.stats.droppedOffline += count;
        return;
      }
    } else if (!this.hasRoom(peer)) {
      this.dropSlow(count);
      return;
    } else if (
      this.five === (publication.wireVersion === 5) &&
      target.subscriptionIdentifiers === null &&
      this.aliases === null &&
      longest <= peer.maximumPacketSize
    ) {
      peer.writer.append(publication.buffer, start, end);
      this.count(count, end - start);
      return;
    }
    for (let at = start; at < end; ) {
      at = publication.step(at);
      this.deliver(publication, target);
    }
  }

  /** Sends what a new subscription is owed of stored messages, as fast as the client takes them. */
  deliverBacklog(backlog: Backlog): void {
    this.backlogs.push(backlog);
    this.pump();
  }

  // ---- from the client

  /** PUBACK. False when the identifier waits for none. */
  acknowledge(packetId: number): boolean {
    if (this.inflight.state(packetId) !== SENT_QOS1) return false;
    this.finish(packetId);
    return true;
  }

  /** PUBREC: answers PUBREL, or nothing when the client refused the message (reason code 0x80 and above) [MQTT-4.3.3-4]. */
  received(packetId: number, reasonCode: number): void {
    const peer = this.peer;
    const state = this.inflight.state(packetId);
    if (state === SENT_QOS2 && reasonCode >= 0x80) {
      this.finish(packetId);
      return;
    }
    if (state === SENT_QOS2) {
      this.inflight.setState(packetId, RELEASED);
      const entry = this.inflight.entry(packetId);
      if (entry?.stored === true) {
        // PUBREL frees the identifier at the client: from then on a PUBLISH under it would be another message, also after a crash.
        this.journal.messageState(this.clientId, entry.sequence, 'received', packetId);
        this.whenStored(() => {
          if (this.peer === peer && peer !== null) this.writeRelease(peer, packetId, SUCCESS);
        });
        return;
      }
    }
    if (peer === null || reasonCode >= 0x80) return;
    const known = state === SENT_QOS2 || state === RELEASED;
    this.writeRelease(peer, packetId, known ? SUCCESS : PACKET_IDENTIFIER_NOT_FOUND);
  }

  /** PUBCOMP. False when the identifier waits for none. */
  complete(packetId: number): boolean {
    if (this.inflight.state(packetId) !== RELEASED) return false;
    this.finish(packetId);
    return true;
  }

  /** A client has connected: sends again what was not acknowledged, in the original order [MQTT-4.4.0-1] [MQTT-4.6.0-1], then what waited. */
  attach(peer: Peer): void {
    this.peer = peer;
    this.five = peer.version === 5;
    // Nothing from the queue may overtake what is sent again: the window opens when that is done.
    this.window = 0;
    const window = Math.min(peer.receiveMaximum, this.limits.inflight === 0 ? 65_534 : this.limits.inflight, 65_534);
    const aliases = this.five ? Math.min(peer.topicAliasMaximum, this.limits.topicAliases) : 0;
    this.aliases = aliases > 0 ? new AliasTable(aliases) : null;
    this.troubled = null;
    const kept = this.inflight.kept();
    let under = 0;
    // What exceeds the client's present Receive Maximum goes back to the front of the queue and keeps its identifier and DUP.
    const later: Entry[] = [];
    for (const entry of kept) {
      if (this.inflight.state(entry.packetId) === RELEASED) {
        this.writeRelease(peer, entry.packetId, SUCCESS);
        under++;
      } else if (under < window) {
        under++;
        this.resend(peer, entry);
      } else later.push(entry);
    }
    for (let i = later.length - 1; i >= 0; i--) {
      this.inflight.free(later[i].packetId);
      this.queue.unshift(later[i]);
      this.queueBytes += later[i].message.bytes;
    }
    this.window = window;
    this.pump();
  }

  /** The client has gone. What a session that goes on has not seen acknowledged stays. */
  detach(): void {
    this.peer = null;
    this.aliases = null;
    if (this.resumable) return;
    this.end();
  }

  /** The session has ended: everything is forgotten, and messages of shared subscriptions go to other members. */
  end(): void {
    this.peer = null;
    this.backlogs = [];
    const shared = this.inflight.kept().filter((e) => e.share !== null && this.inflight.state(e.packetId) !== RELEASED);
    for (const entry of this.inflight.kept()) this.account(entry, -1);
    for (const entry of this.queue) {
      this.account(entry, -1);
      if (entry.share !== null) shared.push(entry);
    }
    this.inflight.clear();
    this.queue.clear();
    this.queueBytes = 0;
    for (const entry of shared) entry.share?.redeliver(entry.message, this);
    // Their new places are written before this session's end, which follows, can be.
    if (shared.length > 0 && this.journal.durable) this.journal.barrierAll(new Hold());
  }

  /** Takes over the messages of a session found in the store. */
  restore(messages: readonly StoredMessage[]): void {
    for (const stored of messages) {
      const entry: Entry = {
        sequence: stored.sequence,
        message: stored.message,
        qos: stored.qos,
        retain: stored.retain,
        subscriptionIdentifiers: stored.subscriptionIdentifiers.length > 0 ? stored.subscriptionIdentifiers : null,
        share: null,
        packetId: stored.packetId,
        sent: stored.state !== 'queued',
        stored: true,
      };
      this.nextSequence = Math.max(this.nextSequence, entry.sequence + 1);
      this.account(entry, 1);
      if (stored.state === 'queued') {
        this.queue.push(entry);
        this.queueBytes += entry.message.bytes;
      } else {
        const state = stored.state === 'received' ? RELEASED : entry.qos === 1 ? SENT_QOS1 : SENT_QOS2;
        this.inflight.restore(entry.packetId, state, entry);
      }
    }
  }

  /** What the session holds, for a journal that has to write it anew (a session that becomes durable). */
  *stored(): Iterable<StoredMessage> {
    for (const entry of this.inflight.kept()) yield this.asStored(entry);
    for (const entry of this.queue) yield this.asStored(entry);
  }

  /** Sends from the queue and the backlogs while the client takes more. Called whenever room may have come. */
  pump(): void {
    const peer = this.peer;
    if (peer === null || this.window === 0) return;
    if (this.queue.length > 0) this.pumpQueue(peer);
    if (this.backlogs.length > 0 && this.queue.length === 0) this.pumpBacklogs(peer);
    if (this.troubled === 'slow' && this.hasRoom(peer)) this.troubled = null;
  }

  // ---- inside

  private hasRoom(peer: Peer): boolean {
    return this.limits.writeBuffer === 0 || peer.writer.queuedBytes < this.limits.writeBuffer;
  }

  private newEntry(message: Message, qos: Qos, retain: boolean, target: Target, stored: boolean): Entry {
    return {
      sequence: this.nextSequence++,
      message,
      qos,
      retain,
      subscriptionIdentifiers: target.subscriptionIdentifiers,
      share: target.share,
      packetId: 0,
      sent: false,
      stored: stored && qos > 0,
    };
  }

  private offlineQos0(publication: Publication, target: Target, retain: boolean): void {
    if (!this.limits.queueQos0 || !this.resumable) {
      this.dropped++;
      this.stats.droppedOffline++;
    } else if (this.fits(publication)) this.enqueue(this.newEntry(publication.message(), 0, retain, target, false));
  }

  /** Whether the queue takes one more; counts the drop when not. */
  private fits(publication: Publication): boolean {
    const { queueLength, queueBytes } = this.limits;
    const bytes = publication.payloadEnd - publication.payloadStart;
    if (
      (queueLength === 0 || this.queue.length < queueLength) &&
      (queueBytes === 0 || this.queueBytes + bytes <= queueBytes)
    )
      return true;
    this.dropped++;
    this.stats.droppedQueueFull++;
    this.trouble('queue-full');
    return false;
  }

  /** The store cannot take it: the publisher is told, so nothing acknowledged is lost. */
  private refuse(publication: Publication): void {
    this.dropped++;
    this.stats.refusedStore++;
    const hold = publication.hold();
    hold.add();
    hold.done(QUOTA_EXCEEDED);
  }

  private dropSlow(count: number): void {
    this.dropped += count;
    this.stats.droppedSlow += count;
    this.trouble('slow');
  }

  private trouble(reason: 'queue-full' | 'slow'): void {
    if (this.troubled === reason) return;
    this.troubled = reason;
    this.onTrouble(reason);
  }

  private enqueue(entry: Entry): void {
    this.queue.push(entry);
    this.queueBytes += entry.message.bytes;
    this.account(entry, 1);
  }

  private account(entry: Entry, sign: 1 | -1): void {
    this.stats.queuedBytes += sign * entry.message.bytes;
    this.stats.queuedMessages += sign;
  }

  private tell(entry: Entry): void {
    this.journal.messageQueued(this.clientId, this.asStored(entry));
  }

  private asStored(entry: Entry): StoredMessage {
    const released = entry.packetId > 0 && this.inflight.state(entry.packetId) === RELEASED;
    return {
      sequence: entry.sequence,
      message: entry.message,
      qos: entry.qos,
      retain: entry.retain,
      subscriptionIdentifiers: entry.subscriptionIdentifiers ?? [],
      state: released ? 'received' : entry.sent ? 'sent' : 'queued',
      packetId: entry.packetId,
    };
  }

  /** Sends an entry that is kept until it is acknowledged. `publication` is its view. */
  private send(peer: Peer, entry: Entry, publication: Publication): void {
    entry.packetId = this.inflight.take(entry.qos === 1 ? SENT_QOS1 : SENT_QOS2, entry);
    this.account(entry, 1);
    entry.sent = true;
    if (entry.stored) this.tell(entry);
    if (this.mustWait(entry)) {
      this.writeWhenStored(peer, entry, false);
      return;
    }
    if (this.write(peer, publication, entry.qos, entry.retain, false, entry.packetId, entry.subscriptionIdentifiers))
      return;
    this.finish(entry.packetId);
  }

  /**
   * A QoS 2 PUBLISH leaves when its Packet Identifier is durable: after a crash it has to come again under the same one, or the client
   * would take it for another message. What comes behind such a message waits with it: order is kept over QoS levels.
   */
  private mustWait(entry: Entry): boolean {
    return entry.stored && (entry.qos === 2 || this.unsettled > 0);
  }

  private writeWhenStored(peer: Peer, entry: Entry, again: boolean): void {
    const { packetId, qos } = entry;
    this.unsettled++;
    this.whenStored(() => {
      this.unsettled--;
      const waits = qos === 1 ? SENT_QOS1 : SENT_QOS2;
      if (this.peer !== peer || this.inflight.state(packetId) !== waits || this.inflight.entry(packetId) !== entry)
        return;
      this.view.load(entry.message);
      if (!this.write(peer, this.view, qos, entry.retain, again, packetId, entry.subscriptionIdentifiers))
        this.finish(packetId);
    });
  }

  /** Calls `then` when what the journal has been told so far is durable, or cannot be made so. */
  private whenStored(then: () => void): void {
    const hold = new Hold();
    this.journal.barrierAll(hold);
    hold.whenDone(then);
  }

  private resend(peer: Peer, entry: Entry): void {
    if (!this.deliverable(entry)) {
      this.finish(entry.packetId);
      return;
    }
    this.view.load(entry.message);
    if (!this.write(peer, this.view, entry.qos, entry.retain, true, entry.packetId, entry.subscriptionIdentifiers))
      this.finish(entry.packetId);
  }

  /** Whether a message that waited may still go out: not expired [MQTT-3.3.2-5], and the user may still read the topic. */
  private deliverable(entry: Entry): boolean {
    const message = entry.message;
    if (message.expiresAt > 0 && message.expiresAt <= this.clock.now() && !entry.sent) {
      this.dropped++;
      this.stats.droppedExpired++;
      return false;
    }
    if (this.readable(message.topic)) return true;
    this.dropped++;
    this.stats.droppedForbidden++;
    return false;
  }

  private finish(packetId: number): void {
    const entry = this.inflight.free(packetId);
    if (entry !== null) {
      this.account(entry, -1);
      if (entry.stored) this.journal.messageDone(this.clientId, entry.sequence);
    }
    if (this.queue.length > 0 || this.backlogs.length > 0) this.pump();
  }

  private pumpQueue(peer: Peer): void {
    while (this.queue.length > 0 && this.hasRoom(peer)) {
      const entry = this.queue.peek() as Entry;
      if (entry.qos > 0 && this.inflight.count >= this.window) return;
      this.queue.shift();
      this.queueBytes -= entry.message.bytes;
      if (this.troubled === 'queue-full') this.troubled = null;
      if (!this.deliverable(entry)) {
        this.account(entry, -1);
        if (entry.stored) this.journal.messageDone(this.clientId, entry.sequence);
        continue;
      }
      this.view.load(entry.message);
      const again = entry.sent;
      if (entry.qos === 0) {
        this.account(entry, -1);
        this.write(peer, this.view, 0, entry.retain, false, 0, entry.subscriptionIdentifiers);
        continue;
      }
      const state = entry.qos === 1 ? SENT_QOS1 : SENT_QOS2;
      if (entry.packetId > 0 && this.inflight.state(entry.packetId) === FREE)
        this.inflight.restore(entry.packetId, state, entry);
      else entry.packetId = this.inflight.take(state, entry);
      entry.sent = true;
      if (entry.stored) this.journal.messageState(this.clientId, entry.sequence, 'sent', entry.packetId);
      if (this.mustWait(entry)) {
        this.writeWhenStored(peer, entry, again);
        continue;
      }
      const written = this.write(
        peer,
        this.view,
        entry.qos,
        entry.retain,
        again,
        entry.packetId,
        entry.subscriptionIdentifiers,
      );
      if (!written) this.finish(entry.packetId);
    }
  }

  private pumpBacklogs(peer: Peer): void {
    let left = SLICE;
    while (this.backlogs.length > 0) {
      if (!this.hasRoom(peer) || this.inflight.count >= this.window) return;
      if (left-- === 0) {
        this.continueLater();
        return;
      }
      const backlog = this.backlogs[0];
      const message = backlog.next();
      if (message === null) this.backlogs.shift();
      else this.deliverStored(peer, message, backlog.target);
    }
  }

  private continueLater(): void {
    if (this.backlogTimer) return;
    this.backlogTimer = true;
    setImmediate(() => {
      this.backlogTimer = false;
      this.pump();
    });
  }

  /** A retained message for a new subscription goes out with RETAIN 1 [MQTT-3.3.1-8]. */
  private deliverStored(peer: Peer, message: Message, target: Target): void {
    if (message.expiresAt > 0 && message.expiresAt <= this.clock.now()) return;
    if (!this.readable(message.topic)) return;
    const qos = message.qos < target.qos ? message.qos : target.qos;
    this.view.load(message);
    if (qos === 0) {
      this.write(peer, this.view, 0, true, false, 0, target.subscriptionIdentifiers);
      return;
    }
    this.send(peer, this.newEntry(message, qos, true, target, this.durable), this.view);
  }

  private count(messages: number, bytes: number): void {
    this.sent += messages;
    this.stats.sent += messages;
    this.stats.sentBytes += bytes;
  }

  private writeRelease(peer: Peer, packetId: number, reasonCode: number): void {
    const writer = peer.writer;
    if (this.five && reasonCode !== SUCCESS) {
      const packet = encodeAck(5, PUBREL, packetId, reasonCode);
      writer.append(packet, 0, packet.length);
      return;
    }
    writer.reserve(ACK_BYTES);
    writeAck(writer.block, writer.at, PUBREL, packetId);
    writer.advance(ACK_BYTES);
  }

  /** Appends one PUBLISH. False when it is larger than the client takes: it is then treated as sent [MQTT-3.1.2-25]. */
  private write(
    peer: Peer,
    publication: Publication,
    qos: Qos,
    retain: boolean,
    dup: boolean,
    packetId: number,
    identifiers: readonly number[] | null,
  ): boolean {
    const start = publication.packetStart;
    if (
      start < 0 ||
      publication.qos !== qos ||
      this.five !== (publication.wireVersion === 5) ||
      identifiers !== null ||
      this.aliases !== null
    ) {
      return this.encode(peer, publication, qos, retain, dup, packetId, identifiers);
    }
    // The bytes that came in go out: only flags and identifier differ.
    const bytes = publication.payloadEnd - start;
    if (bytes > peer.maximumPacketSize) return this.tooLarge();
    const writer = peer.writer;
    writer.append(publication.buffer, start, publication.payloadEnd);
    const at = writer.at - bytes;
    const block = writer.block;
    block[at] = (PUBLISH << 4) | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0);
    if (qos > 0) {
      const idAt = at + publication.packetIdAt - start;
      block[idAt] = packetId >> 8;
      block[idAt + 1] = packetId & 255;
    }
    this.count(1, bytes);
    return true;
  }

  private encode(
    peer: Peer,
    publication: Publication,
    qos: Qos,
    retain: boolean,
    dup: boolean,
    packetId: number,
    identifiers: readonly number[] | null,
  ): boolean {
    const parts = this.parts;
    let alias = 0;
    parts.topic = publication.topic;
    parts.topicUtf8 = publication.topicUtf8;
    if (this.aliases !== null) {
      alias = this.aliases.find(publication.topic);
      parts.topicUtf8 = null;
      if (alias > 0) parts.topic = '';
      else alias = this.aliases.nextFree();
    }
    parts.version = peer.version;
    parts.qos = qos;
    parts.dup = dup;
    parts.retain = retain;
    parts.packetId = packetId;
    parts.topicBytes = parts.topicUtf8 === null ? Buffer.byteLength(parts.topic) : parts.topicUtf8.length;
    parts.properties = this.five ? this.outgoing(publication, identifiers, alias) : null;
    parts.propertyBytes = parts.properties === null ? 0 : encodedPropertiesBytes(parts.properties, PUBLISH);
    parts.payload = publication.buffer;
    parts.payloadStart = publication.payloadStart;
    parts.payloadEnd = publication.payloadEnd;
    const bytes = publishBytes(
      parts.version,
      qos,
      parts.topicBytes,
      parts.propertyBytes,
      parts.payloadEnd - parts.payloadStart,
    );
    if (bytes > peer.maximumPacketSize) return this.tooLarge();
    if (alias > 0 && parts.topicBytes > 0) this.aliases?.assign(publication.topic, alias);
    const writer = peer.writer;
    writer.reserve(bytes);
    writePublish(writer.block, writer.at, parts);
    writer.advance(bytes);
    this.count(1, bytes);
    return true;
  }

  private outgoing(publication: Publication, identifiers: readonly number[] | null, alias: number): Properties | null {
    const own = publication.properties;
    if (identifiers === null && alias === 0 && publication.expiresAt === 0) return own;
    const properties: Properties = own === null ? {} : { ...own };
    // The time left, not the time given [MQTT-3.3.2-6].
    if (publication.expiresAt > 0) {
      properties.messageExpiryInterval = Math.max(0, Math.ceil((publication.expiresAt - this.clock.now()) / 1000));
    }
    if (identifiers !== null) properties.subscriptionIdentifiers = [...identifiers];
    if (alias > 0) properties.topicAlias = alias;
    return properties;
  }

  private tooLarge(): false {
    this.dropped++;
    this.stats.droppedTooLarge++;
    return false;
  }
}
