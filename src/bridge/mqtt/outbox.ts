// What waits for one remote broker, in order: a bounded queue, and what is in flight until PUBACK or PUBCOMP says that
// the remote has it. Used by bridge.ts; outlives connections and restarts of the bridge, through the journal's spool
// those of the process too. Knows no sockets. Nothing leaves it unseen: sent and acknowledged, or dropped with a reason
// that is counted.
//
//   waiting -> sent (-> doubted) -> done      QoS 1
//   waiting -> sent -> received -> done       QoS 2
//
// The packet id follows from the sequence, so a message that a crash has interrupted is sent again under the id it had,
// and a remote that kept the session knows it (section 4.3.3, 4.4). At QoS 2 each step waits until the one before is in
// the journal: PUBLISH for the message with its id, PUBREL for "received". At QoS 1 PUBLISH leaves at once:
// acknowledged before the commit, the message need not be written at all. Sources: MQTT 5.0 sections 4.3, 4.4, 4.9;
// 3.1.1 sections 4.3, 4.4.
import { Fifo } from '../../base/queue.ts';
import type { Message, Publication } from '../../mqtt/message.ts';
import type { AckPacket, Qos } from '../../mqtt/packet.ts';
import { PUBACK, PUBCOMP, PUBREC } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import type { SpoolEntry } from '../../store/store.ts';
import type { DropReason } from '../counters.ts';
import { Crowd } from './crowd.ts';
import { Doubts } from './doubt.ts';
import { Exchanges } from './exchanges.ts';
import {
  isOpen,
  type OutLink,
  type OutMessage,
  outMessage,
  PUBLISH_IDS,
  packetIdOf,
  restoredMessages,
} from './outmessage.ts';
import { Owed } from './owed.ts';
import { Passing } from './passing.ts';
import { Records, type RecordsOptions } from './records.ts';
import { encodeSpooled } from './spool.ts';
import { RuleTally } from './tally.ts';
import { Window } from './window.ts';

export interface OutboxOptions extends Omit<RecordsOptions<OutMessage>, 'stored'> {
  /** Bytes of all messages together. */
  readonly maxBytes: number;
}

/** What waits behind so many others may wait for long. */
const SHORT_QUEUE = 64;

export class MqttOutbox {
  /** Of all messages, in flight or waiting. */
  bytes = 0;
  /** Messages; 0 = no limit. Set by the bridge. */
  maxLength = 0;
  /** Messages that may be in flight; 0 = as many as the remote bears. Set by the bridge. */
  maxInflight = 0;
  /** Where messages are counted; the bridge sets its rules. */
  readonly tally = new RuleTally();
  /** Spooled messages that could not be read. */
  damaged = 0;
  private readonly options: OutboxOptions;
  private readonly waiting = new Fifo<OutMessage>();
  /** In the order sent; 'done' ones stay until all before them are done. */
  private flying = new Fifo<OutMessage>();
  private readonly byId = new Map<number, OutMessage>();
  private readonly owed = new Owed();
  private readonly passing = new Passing();
  private resumed = false;
  private held = false;
  private readonly exchanges: Exchanges;
  private readonly crowd: Crowd;
  private link: OutLink | null = null;
  private openedMs = 0;
  private readonly window = new Window();
  private readonly records: Records<OutMessage>;
  private readonly doubts: Doubts<OutMessage>;

  /** Takes up what an earlier process has left: messages, and marks of those that the remote had received. */
  constructor(options: OutboxOptions, restored: readonly SpoolEntry[], marks: readonly SpoolEntry[] = []) {
    this.options = options;
    const stored = (messages: readonly OutMessage[]): void => this.stored(messages);
    this.records = new Records({ ...options, stored }, restored, marks);
    this.doubts = new Doubts(options.clock, (message) => {
      this.sent(message);
      this.settle();
    });
    this.crowd = new Crowd(options.clock);
    this.exchanges = new Exchanges(options.clock);
    this.crowd.expect();
    this.restore(restored, new Set(marks.map(({ sequence }) => sequence)));
  }

  /** Messages that wait or are in flight. */
  get length(): number {
    return this.waiting.length + this.byId.size;
  }

  get inflight(): number {
    return this.byId.size - this.owed.left;
  }

  /**
   * Takes a message; it is sent in its turn. Anything but 'taken' is counted already.
   * @param from where `maxLength` is reached while the remote takes messages, its acknowledgement waits for room; null
   *   = it cannot wait
   */
  take(
    message: Message,
    topic: string,
    qos: Qos,
    retain: boolean,
    rule: number,
    properties: Properties | null = message.properties,
    from: Publication | null = null,
  ): 'taken' | Extract<DropReason, 'queue-full' | 'store-full'> {
    const { records } = this;
    const { maxBytes } = this.options;
    const crowded = this.maxLength > 0 && this.length >= this.maxLength;
    const waits = crowded && qos > 0 && !this.crowd.dispersed ? from : null;
    if ((crowded && waits === null) || this.bytes + message.bytes > maxBytes) {
      this.tally.drop(rule, 'queue-full');
      return 'queue-full';
    }
    const spooled = qos > 0 && records.durable;
    if (spooled && !records.accepting) {
      this.tally.drop(rule, 'store-full');
      return 'store-full';
    }
    if (this.link === null || this.length >= SHORT_QUEUE) message.settle();
    const { payload, expiresAt, bytes } = message;
    const form = { topic, payload, qos, retain, properties, expiresAt, rule };
    const sequence = spooled ? records.put(encodeSpooled(form)) : records.number();
    const taken = outMessage(form, sequence, bytes, spooled);
    this.waiting.push(taken);
    if (spooled && qos === 2) this.commit(taken);
    this.bytes += bytes;
    if (waits !== null) this.crowd.join(waits.hold());
    this.pump();
    return 'taken';
  }

  /**
   * Sends a message of QoS 0 without keeping it. False when it has to be taken: no connection, no room, or others come
   * first.
   */
  pass(publication: Publication, topic: string, retain: boolean, properties: Properties | null, rule: number): boolean {
    const { link, passing } = this;
    if (link === null || this.held || !link.room || this.waiting.length > 0 || this.owed.left > 0) return false;
    passing.load(publication, topic, retain, properties);
    if (link.publish(passing, 0, false) < 0) this.tally.drop(rule, 'too-large');
    else this.tally.forwarded(rule, passing.payload.length);
    return true;
  }

  /**
   * A connection is open. `resumed`: the remote still has the session, so what is in flight is sent again under its
   * packet ids [MQTT-4.4.0-1].
   */
  attach(link: OutLink, resumed: boolean): void {
    this.link = link;
    this.crowd.back();
    this.held = false;
    this.resumed = resumed;
    this.exchanges.open();
    this.openedMs = this.options.clock.mono();
    this.window.open(link.receiveMaximum, this.maxInflight);
    this.owed.clear();
    if (resumed) {
      // What the remote has received already is released first: that makes room.
      for (const message of this.flying) {
        if (message.state !== 'received') continue;
        this.exchanges.begin();
        if (message.commits === 0) link.release(packetIdOf(message));
      }
      for (const message of this.flying) if (message.state === 'sent') this.owed.add(message);
    } else this.startAgain();
    this.pump();
  }

  /** A new session knows nothing of what is in flight: these are new messages, in front of the others. */
  private startAgain(): void {
    // A mark that survived a crash would have the remote asked to release what it has not got.
    const unmarked = this.records.unmark();
    for (const message of [...this.flying].reverse()) {
      if (isOpen(message)) {
        message.state = 'waiting';
        if (unmarked && message.qos === 2) this.commit(message);
      }
      this.waiting.unshift(message);
    }
    this.flying = new Fifo();
    this.byId.clear();
    for (const message of this.waiting) message.again = false;
  }

  /**
   * The connection has gone. Messages of QoS 0 are dropped unless `keepQos0`.
   * @param cut the remote has closed it, or the network
   */
  detach(keepQos0: boolean, cut: boolean): void {
    if (cut && this.link !== null && this.exchanges.mix) this.doubt();
    this.link = null;
    this.crowd.expect();
    if (keepQos0) return;
    for (let left = this.waiting.length; left > 0; left--) {
      const message = this.waiting.shift();
      if (message === undefined) return;
      if (message.qos > 0 || message.state === 'done') this.waiting.push(message);
      else this.drop(message, 'away');
    }
  }

  /** The remote may not have what it has acknowledged last. */
  private doubt(): void {
    this.window.cut(this.options.clock.mono() - this.openedMs);
    for (const message of this.doubts.take()) {
      message.state = 'sent';
      this.byId.set(packetIdOf(message), message);
    }
  }

  /** The connection is about to be closed from this side: what was acknowledged is there. */
  trust(): void {
    for (const message of this.doubts.take()) this.sent(message);
    this.settle();
  }

  /** Nothing new is sent on this connection; what is on its way may be acknowledged. */
  hold(): void {
    this.held = true;
  }

  /** Sends what may be sent now. Called when the window or the connection has room again. */
  pump(): void {
    const { link } = this;
    if (link === null || this.held) return;
    for (let message = this.owed.peek(); message !== undefined; message = this.owed.peek()) {
      if (!link.room || !this.fits) return;
      this.owed.shift();
      if (message.state === 'sent') this.flew(message, link.publish(message, packetIdOf(message), true));
    }
    const nowMs = this.options.clock.steady();
    for (let message = this.waiting.peek(); message !== undefined; message = this.waiting.peek()) {
      if (!isOpen(message)) this.flying.push(message);
      else if (message.expiresAt > 0 && message.expiresAt <= nowMs && !this.mayBeOpen(message))
        this.skip(message, 'expired');
      else if (!link.room || !this.mayFly(message) || !this.send(message, link)) break;
      this.waiting.shift();
    }
    this.settle();
  }

  /** PUBACK, PUBREC or PUBCOMP of the remote. */
  acknowledge(type: AckPacket['type'], packetId: number, reasonCode: number): void {
    const message = this.byId.get(packetId);
    if (message === undefined) {
      // An exchange that is known to the remote alone is led to its end.
      if (type === PUBREC && reasonCode < 0x80) this.link?.release(packetId);
      return;
    }
    if (reasonCode >= 0x80 && type !== PUBCOMP) this.finish(message, 'refused-by-remote');
    else if (type === PUBACK || type === PUBCOMP) this.finish(message, null);
    else if (type === PUBREC) this.received(message);
  }

  private received(message: OutMessage): void {
    if (message.state !== 'received') {
      message.state = 'received';
      if (message.spooled) {
        this.records.mark(message.sequence);
        this.commit(message);
      }
    }
    if (message.commits === 0) this.link?.release(packetIdOf(message));
  }

  /** The next packet of this message waits until the journal has what was told of it. */
  private commit(message: OutMessage): void {
    message.commits++;
    this.records.settle(message);
  }

  private stored(messages: readonly OutMessage[]): void {
    for (const message of messages) {
      if (--message.commits > 0 || message.state !== 'received') continue;
      if (this.byId.get(packetIdOf(message)) === message) this.link?.release(packetIdOf(message));
    }
    this.pump();
  }

  /** Drops everything, here and in the journal: the bridge is no more. */
  clear(): void {
    this.trust();
    this.crowd.release(0);
    for (const message of this.byId.values()) this.drop(message, 'stopped');
    for (const message of this.waiting) if (message.state !== 'done') this.drop(message, 'stopped');
    this.waiting.clear();
    this.flying = new Fifo();
    this.byId.clear();
    this.owed.clear();
    this.records.clear();
  }

  // ---- inside

  private restore(entries: readonly SpoolEntry[], marks: ReadonlySet<number>): void {
    for (const message of restoredMessages(entries, marks)) {
      if (message === null) this.damaged++;
      else {
        this.bytes += message.bytes;
        if (message.state === 'waiting') this.waiting.push(message);
        else this.fly(message);
      }
    }
  }

  private get fits(): boolean {
    return this.inflight < this.window.size;
  }

  /** QoS 0 needs no place in flight, but keeps its place in the order. */
  private mayFly(message: OutMessage): boolean {
    if (message.qos === 0) return true;
    if (message.commits > 0) return false;
    const oldest = this.flying.peek();
    return this.fits && (oldest === undefined || message.sequence - oldest.sequence < PUBLISH_IDS);
  }

  /** An exchange of an earlier process may be open at the remote: a dropped message would count there for good. */
  private mayBeOpen({ again, qos }: OutMessage): boolean {
    return again && qos === 2 && this.resumed;
  }

  /** False when it has to wait after all. */
  private send(message: OutMessage, link: OutLink): boolean {
    const packetId = packetIdOf(message);
    if (message.qos > 0 && this.byId.has(packetId)) return false;
    const qos = link.publish(message, packetId, message.again && this.resumed && message.qos > 0);
    if (qos < 0) this.skip(message, 'too-large');
    else if (qos === 0) {
      this.sent(message);
      if (message.spooled) this.flying.push(message);
    } else {
      message.state = 'sent';
      this.fly(message);
      this.flew(message, qos);
    }
    return true;
  }

  private fly(message: OutMessage): void {
    this.byId.set(packetIdOf(message), message);
    this.flying.push(message);
  }

  /** @param qos with which it has left, -1 = it is too large */
  private flew(message: OutMessage, qos: Qos | -1): void {
    if (qos < 0) {
      this.finish(message, 'too-large');
      return;
    }
    message.sentQos = qos as Qos;
    if (qos === 2) this.exchanges.begin();
  }

  private skip(message: OutMessage, reason: DropReason): void {
    this.drop(message, reason);
    if (message.spooled) this.flying.push(message);
  }

  private finish(message: OutMessage, failure: DropReason | null): void {
    this.byId.delete(packetIdOf(message));
    if (message.sentQos === 2) this.exchanges.end();
    this.window.done();
    if (failure !== null) this.drop(message, failure);
    else if (message.sentQos === 1 && this.mayBeLost && this.doubts.add(message)) message.state = 'doubted';
    else this.sent(message);
    this.settle();
  }

  /** A remote that cuts the connection now may not have what it has acknowledged. */
  private get mayBeLost(): boolean {
    return this.window.untold && this.exchanges.mix;
  }

  private sent(message: OutMessage): void {
    message.state = 'done';
    this.bytes -= message.bytes;
    this.tally.forwarded(message.rule, message.payload.length);
  }

  private drop(message: OutMessage, reason: DropReason): void {
    message.state = 'done';
    this.bytes -= message.bytes;
    this.tally.drop(message.rule, reason);
  }

  /** Forgets what is done, as far as everything before it is done too. */
  private settle(): void {
    let last = -1;
    for (let head = this.flying.peek(); head?.state === 'done'; head = this.flying.peek()) {
      this.flying.shift();
      if (head.spooled) last = head.sequence;
    }
    if (last >= 0) this.records.forget(last);
    if (this.crowd.size > 0) this.crowd.release(Math.max(0, this.length - this.maxLength));
  }
}
