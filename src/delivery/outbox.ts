// What one session is to be sent: its queue, its flow control and, while a client is connected, its output bytes. One
// per session, made by the engines; router/ delivers to it, session/ attaches, detaches and acknowledges, its writer
// says when there is room. Must not know subscriptions or sockets. Sources: MQTT 5.0 sections 4.3 to 4.6 and 4.9, 3.1.1
// sections 4.3 to 4.6.
import type { Clock } from '../base/clock.ts';
import { Hold, type Message, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import { propertiesMemory } from '../mqtt/property.ts';
import { PACKET_IDENTIFIER_NOT_FOUND, QUOTA_EXCEEDED, SUCCESS } from '../mqtt/reason.ts';
import type { Journal, StoredMessage } from '../store/store.ts';
import { AlteringSender } from './alteringsender.ts';
import { Backlogs } from './backlogs.ts';
import type { Backlog, OutboxLimits, OutboxOptions, Peer, SessionOutbox, Target } from './delivery.ts';
import { type Entry, entryOf, identifiersOf, newEntry } from './entry.ts';
import { FREE, Inflight, RELEASED, SENT_QOS1, SENT_QOS2 } from './inflight.ts';
import { Sender } from './sender.ts';
import { Tally } from './tally.ts';
import { TracedSender } from './tracedsender.ts';
import { Waiting } from './waiting.ts';

/** What waits behind so many others may wait for long. */
const SHORT_QUEUE = 64;

export class Outbox implements SessionOutbox {
  readonly clientId: string;
  /** True when the session outlives its connection: what is not acknowledged is kept. */
  resumable: boolean;
  /** True when the journal is told. */
  durable = false;
  limits: OutboxLimits;
  private readonly clock: Clock;
  private readonly journal: Journal;
  private readonly tally: Tally;
  private readonly readable: (topic: string) => boolean;
  private readonly redeliver: OutboxOptions['redeliver'];
  private readonly queue = new Waiting();
  private readonly inflight = new Inflight();
  private readonly view: Publication;
  private nextSequence = 1;
  private readonly backlogs: Backlogs;
  /** The client, while one is connected. */
  private peer: Sender | null = null;
  private window = 0;
  /** Messages that have their Packet Identifier and wait for its commit. */
  private unsettled = 0;

  constructor(options: OutboxOptions, resumable: boolean) {
    this.clientId = options.clientId;
    this.clock = options.clock;
    this.journal = options.journal;
    this.limits = options.limits;
    this.tally = new Tally(options.stats, options.onTrouble);
    this.backlogs = new Backlogs(
      options.later,
      () => this.pump(),
      (bytes) => this.tally.weigh(bytes),
    );
    this.readable = options.mayReceive;
    this.redeliver = options.redeliver;
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

  get stores(): boolean {
    return this.durable;
  }

  get sent(): number {
    return this.tally.sent;
  }

  get dropped(): number {
    return this.tally.dropped;
  }

  get inflightCount(): number {
    return this.inflight.count;
  }

  get queuedCount(): number {
    return this.queue.length;
  }

  get queuedBytes(): number {
    return this.queue.bytes;
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
      else if (!this.hasRoom(peer)) this.tally.slow(1);
      else if (!peer.publish(publication, 0, retain, false, 0, target.subscriptionIdentifiers))
        this.pass(target.share, publication.message());
      return;
    }
    const direct = peer !== null && this.queue.length === 0 && this.inflight.count < this.window && this.hasRoom(peer);
    if (direct && !this.resumable && target.share === null) {
      // The session ends with this connection and nothing is ever sent again on it [MQTT-4.4.0-1]: only the identifier
      // is kept.
      const packetId = this.inflight.take(qos === 1 ? SENT_QOS1 : SENT_QOS2, null);
      if (!peer.publish(publication, qos, retain, false, packetId, target.subscriptionIdentifiers))
        this.inflight.free(packetId);
      return;
    }
    if (!direct && !this.fits(publication)) return;
    if (this.durable) {
      if (!this.journal.accepting && !publication.promised) {
        this.refuse(publication);
        return;
      }
      publication.stored = true;
    }
    const entry = this.entryFor(publication.message(), qos, retain, target, this.durable);
    if (direct) {
      if (this.send(peer, entry, publication)) publication.stored = true;
    } else {
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
        this.tally.offline(count);
        return;
      }
    } else if (!this.hasRoom(peer)) {
      this.tally.slow(count);
      return;
    } else if (peer.run(publication, target, start, end, count, longest)) return;
    for (let at = start; at < end; ) {
      at = publication.step(at);
      this.deliver(publication, target);
    }
  }

  /** Sends what a new subscription is owed of stored messages, as fast as the client takes them. */
  deliverBacklog(backlog: Backlog): void {
    this.backlogs.add(backlog);
    this.pump();
  }

  dropBacklog(filter: string): void {
    if (this.backlogs.drop(filter)) this.pump();
  }

  // ---- from the client

  /** PUBACK. False when the identifier waits for none. */
  acknowledge(packetId: number): boolean {
    if (this.inflight.state(packetId) !== SENT_QOS1) return false;
    this.finish(packetId);
    return true;
  }

  /**
   * PUBREC: answers PUBREL, or nothing when the client refused the message (reason code 0x80 and above) [MQTT-4.3.3-4].
   */
  received(packetId: number, reasonCode: number): boolean {
    const peer = this.peer;
    const state = this.inflight.state(packetId);
    if (state === SENT_QOS1) return false;
    if (state === SENT_QOS2 && reasonCode >= 0x80) {
      this.finish(packetId);
      return true;
    }
    if (state === SENT_QOS2) {
      this.inflight.setState(packetId, RELEASED);
      const entry = this.inflight.entry(packetId);
      if (entry !== null) entry.state = 'received';
      if (entry?.stored === true) {
        // PUBREL frees the identifier at the client: from then on a PUBLISH under it would be another message, also
        // after a crash.
        this.journal.messageState(this.clientId, entry.sequence, 'received', packetId);
        this.releaseWhenStored(peer, packetId);
        return true;
      }
    }
    if (peer === null || reasonCode >= 0x80) return true;
    const known = state === SENT_QOS2 || state === RELEASED;
    peer.release(packetId, known ? SUCCESS : PACKET_IDENTIFIER_NOT_FOUND);
    return true;
  }

  waits(packetId: number): boolean {
    return this.inflight.state(packetId) !== FREE;
  }

  /** PUBCOMP. False when the identifier waits for none. */
  complete(packetId: number): boolean {
    if (this.inflight.state(packetId) !== RELEASED) return false;
    this.finish(packetId);
    return true;
  }

  /**
   * A client has connected: sends again what was not acknowledged, in the original order [MQTT-4.4.0-1] [MQTT-4.6.0-1],
   * then what waited.
   */
  attach(client: Peer): void {
    const plain = (client.mount ?? '') === '' && (client.alter ?? null) === null;
    const watched = (client.sent ?? null) !== null;
    const Kind = !plain ? AlteringSender : watched ? TracedSender : Sender;
    const peer = new Kind(client, this.limits.topicAliases, this.clock, this.tally);
    this.peer = peer;
    // Nothing from the queue may overtake what is sent again: the window opens when that is done.
    this.window = 0;
    const window = Math.min(client.receiveMaximum, this.limits.inflight === 0 ? 65_534 : this.limits.inflight, 65_534);
    this.tally.recovered();
    const kept = this.inflight.kept();
    let under = 0;
    // What exceeds the client's present Receive Maximum goes back to the front of the queue and keeps its identifier
    // and DUP.
    const later: Entry[] = [];
    for (const entry of kept) {
      if (this.inflight.state(entry.packetId) === RELEASED) {
        peer.release(entry.packetId, SUCCESS);
        under++;
      } else if (under < window) {
        under++;
        this.resend(peer, entry);
      } else later.push(entry);
    }
    for (let i = later.length - 1; i >= 0; i--) {
      this.inflight.free(later[i].packetId);
      this.queue.unshift(later[i]);
    }
    this.window = window;
    this.pump();
  }

  /** The client has gone. What a session that goes on has not seen acknowledged stays. */
  detach(): void {
    this.peer = null;
    if (!this.resumable) {
      this.end();
      return;
    }
    for (const entry of this.inflight.kept()) entry.message.settle();
    for (const entry of this.queue) entry.message.settle();
  }

  /** The session has ended: everything is forgotten, and messages of shared subscriptions go to other members. */
  end(): void {
    this.peer = null;
    this.backlogs.clear();
    const shared: Entry[] = [];
    for (const entries of [this.inflight.kept(), this.queue]) {
      for (const entry of entries) {
        this.tally.hold(entry.message, -1);
        // A QoS 2 message that was sent to this member is for no other [MQTT-4.8.2-5].
        if (entry.share !== null && !(entry.qos === 2 && entry.state !== 'queued')) shared.push(entry);
      }
    }
    this.inflight.clear();
    this.queue.clear();
    for (const { share, message } of shared) if (share !== null) this.redeliver(share, message, this);
    // Their new places are written before this session's end, which follows, can be.
    if (shared.length > 0 && this.journal.durable) this.journal.barrierAll(new Hold());
  }

  /** Takes over the messages of a session found in the store. */
  restore(messages: readonly StoredMessage[]): void {
    for (const stored of messages) {
      const entry = entryOf(stored);
      this.nextSequence = Math.max(this.nextSequence, entry.sequence + 1);
      this.tally.hold(entry.message, 1);
      if (stored.state === 'queued') this.queue.push(entry);
      else {
        const state = stored.state === 'received' ? RELEASED : entry.qos === 1 ? SENT_QOS1 : SENT_QOS2;
        this.inflight.restore(entry.packetId, state, entry);
      }
    }
  }

  /** Sends from the queue and the backlogs while the client takes more. Called whenever room may have come. */
  pump(): void {
    const peer = this.peer;
    if (peer === null || this.window === 0) return;
    if (this.queue.length > 0) this.pumpQueue(peer);
    if (!this.backlogs.empty && this.queue.length === 0) {
      this.backlogs.send(
        () => this.inflight.count < this.window && this.hasRoom(peer),
        (message, target) => this.deliverStored(peer, message, target),
      );
    }
    if (this.hasRoom(peer)) this.tally.recovered('slow');
  }

  // ---- inside

  private hasRoom(peer: Sender): boolean {
    return this.limits.writeBuffer === 0 || peer.writer.queuedBytes < this.limits.writeBuffer;
  }

  private entryFor(message: Message, qos: Qos, retain: boolean, target: Target, stored: boolean): Entry {
    return newEntry(this.nextSequence++, message, qos, retain, target, stored);
  }

  private offlineQos0(publication: Publication, target: Target, retain: boolean): void {
    if (!this.limits.queueQos0 || !this.resumable) {
      this.tally.offline(1);
    } else if (this.fits(publication)) this.enqueue(this.entryFor(publication.message(), 0, retain, target, false));
  }

  /** Whether the queue takes one more; counts the drop when not. */
  private fits(publication: Publication): boolean {
    const { limits } = this;
    const bytes = publication.payloadEnd - publication.payloadStart + propertiesMemory(publication.properties);
    if (this.queue.fits(limits, bytes) && !this.tally.crowded(limits.totalBytes ?? 0)) return true;
    this.tally.full();
    return false;
  }

  /** The store cannot take it: the publisher is told, so nothing acknowledged is lost. */
  private refuse(publication: Publication): void {
    this.tally.refused();
    const hold = publication.hold();
    hold.add();
    hold.done(QUOTA_EXCEEDED);
  }

  private enqueue(entry: Entry): void {
    if (this.peer === null || this.queue.length >= SHORT_QUEUE) entry.message.settle();
    this.queue.push(entry);
    this.tally.hold(entry.message, 1);
  }

  private tell(entry: Entry): void {
    this.journal.messageQueued(this.clientId, entry);
  }

  /**
   * Sends an entry that is kept until it is acknowledged. `publication` is its view. True when another session has
   * stored it instead.
   */
  private send(peer: Sender, entry: Entry, publication: Publication): boolean {
    entry.packetId = this.inflight.take(entry.qos === 1 ? SENT_QOS1 : SENT_QOS2, entry);
    this.tally.hold(entry.message, 1);
    entry.state = 'sent';
    if (entry.stored) this.tell(entry);
    if (this.mustWait(entry)) {
      this.writeWhenStored(peer, entry, false);
      return false;
    }
    return this.write(peer, publication, entry, false);
  }

  /**
   * A QoS 2 PUBLISH leaves when its Packet Identifier is durable: after a crash it has to come again under the same
   * one, or the client would take it for another message. What comes behind such a message waits with it: order is kept
   * over QoS levels.
   */
  private mustWait(entry: Entry): boolean {
    return entry.stored && (entry.qos === 2 || this.unsettled > 0);
  }

  private writeWhenStored(peer: Sender, entry: Entry, again: boolean): void {
    const { packetId, qos } = entry;
    this.unsettled++;
    this.whenStored(() => {
      this.unsettled--;
      const waits = qos === 1 ? SENT_QOS1 : SENT_QOS2;
      if (this.peer !== peer || this.inflight.state(packetId) !== waits || this.inflight.entry(packetId) !== entry)
        return;
      this.view.load(entry.message);
      this.write(peer, this.view, entry, again);
    });
  }

  /** In a method of its own: a function made in received() would cost every message memory, stored or not. */
  private releaseWhenStored(peer: Sender | null, packetId: number): void {
    this.whenStored(() => {
      if (this.peer === peer) peer?.release(packetId, SUCCESS);
    });
  }

  /** Calls `then` when what the journal has been told so far is durable, or cannot be made so. */
  private whenStored(then: () => void): void {
    const hold = new Hold();
    this.journal.barrierAll(hold);
    hold.whenDone(then);
  }

  /** One that is too large for the client counts as done, and is another member's if it is of a shared subscription. */
  private write(peer: Sender, publication: Publication, entry: Entry, dup: boolean): boolean {
    const { qos, retain, packetId, share } = entry;
    if (peer.publish(publication, qos, retain, dup, packetId, identifiersOf(entry))) return false;
    const stored = this.pass(share, entry.message);
    this.finish(packetId);
    return stored;
  }

  /**
   * Leaves a message that the client cannot take to another member of the shared subscription. True when it was stored
   * there.
   */
  private pass(share: string | null, message: Message): boolean {
    if (share === null || !this.redeliver(share, message, this)) return false;
    // Its new place is written before it is gone from here.
    this.journal.barrierAll(new Hold());
    return true;
  }

  private resend(peer: Sender, entry: Entry): void {
    if (!this.deliverable(entry)) {
      this.finish(entry.packetId);
      return;
    }
    this.view.load(entry.message);
    this.write(peer, this.view, entry, true);
  }

  /**
   * Whether a message that waited may still go out: not expired [MQTT-3.3.2-5], and the user may still read the topic.
   */
  private deliverable(entry: Entry): boolean {
    const message = entry.message;
    if (message.expiresAt > 0 && message.expiresAt <= this.clock.steady() && entry.state === 'queued') {
      this.tally.expired();
      return false;
    }
    if (this.readable(message.topic)) return true;
    this.tally.forbidden();
    return false;
  }

  private finish(packetId: number): void {
    const entry = this.inflight.free(packetId);
    if (entry !== null) {
      this.tally.hold(entry.message, -1);
      if (entry.stored) this.journal.messageDone(this.clientId, entry.sequence);
    }
    if (this.queue.length > 0 || !this.backlogs.empty) this.pump();
  }

  private pumpQueue(peer: Sender): void {
    while (this.queue.length > 0 && this.hasRoom(peer)) {
      const entry = this.queue.peek() as Entry;
      if (entry.qos > 0 && this.inflight.count >= this.window) return;
      this.queue.shift();
      this.tally.recovered('queue-full');
      if (!this.deliverable(entry)) {
        this.tally.hold(entry.message, -1);
        if (entry.stored) this.journal.messageDone(this.clientId, entry.sequence);
        continue;
      }
      this.view.load(entry.message);
      const again = entry.state !== 'queued';
      if (entry.qos === 0) {
        this.tally.hold(entry.message, -1);
        if (!peer.publish(this.view, 0, entry.retain, false, 0, identifiersOf(entry)))
          this.pass(entry.share, entry.message);
        continue;
      }
      const state = entry.qos === 1 ? SENT_QOS1 : SENT_QOS2;
      if (entry.packetId > 0 && this.inflight.state(entry.packetId) === FREE)
        this.inflight.restore(entry.packetId, state, entry);
      else entry.packetId = this.inflight.take(state, entry);
      entry.state = 'sent';
      if (entry.stored) this.journal.messageState(this.clientId, entry.sequence, 'sent', entry.packetId);
      if (this.mustWait(entry)) {
        this.writeWhenStored(peer, entry, again);
        continue;
      }
      this.write(peer, this.view, entry, again);
    }
  }

  /** A retained message for a new subscription goes out with RETAIN 1 [MQTT-3.3.1-8]. */
  private deliverStored(peer: Sender, message: Message, target: Target): void {
    if (message.expiresAt > 0 && message.expiresAt <= this.clock.steady()) return;
    if (!this.readable(message.topic)) return;
    const qos = message.qos < target.qos ? message.qos : target.qos;
    this.view.load(message);
    if (qos === 0) {
      peer.publish(this.view, 0, true, false, 0, target.subscriptionIdentifiers);
      return;
    }
    this.send(peer, this.entryFor(message, qos, true, target, this.durable), this.view);
  }
}
