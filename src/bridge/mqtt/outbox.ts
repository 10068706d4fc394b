// What waits for one remote broker, in order: a bounded queue, and what is in flight until PUBACK or PUBCOMP says that the remote has it.
// Used by bridge.ts; outlives connections and restarts of the bridge, through the journal's spool those of the process too. Knows no sockets.
// Nothing leaves it unseen: sent and acknowledged, or dropped with a reason that is counted.
//
//   waiting -> sent -> done            QoS 1
//   waiting -> sent -> received -> done   QoS 2
//
// The packet id follows from the sequence, so a message that a crash has interrupted is sent again under the id it had, and a remote that
// kept the session knows it (section 4.3.3, 4.4).
// Sources: MQTT 5.0 sections 4.3, 4.4, 4.9; 3.1.1 sections 4.3, 4.4.
import type { Clock } from '../../base/clock.ts';
import { Fifo } from '../../base/queue.ts';
import type { Message } from '../../mqtt/message.ts';
import type { AckPacket, Qos } from '../../mqtt/packet.ts';
import { PUBACK, PUBCOMP, PUBREC } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import type { SpoolEntry } from '../../store/store.ts';
import type { DropReason, RuleCounters } from '../counters.ts';
import { Keeping, type SpoolJournal } from '../keeping.ts';
import { decodeSpooled, encodeSpooled } from './spool.ts';

/** Packet ids 1 to 65,000 belong to PUBLISH; those above to SUBSCRIBE and UNSUBSCRIBE (remote.ts). */
export const PUBLISH_IDS = 65_000;

/** What a PUBLISH is made of. */
export interface Outgoing {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties: Properties | null;
  /** Wall-clock milliseconds, 0 = never. */
  readonly expiresAt: number;
}

export interface OutMessage extends Outgoing {
  readonly sequence: number;
  /** Memory it stands for. */
  readonly bytes: number;
  /** Position in `forwards`. */
  readonly rule: number;
  readonly spooled: boolean;
  /** It may have been sent before this process began. */
  again: boolean;
  state: 'waiting' | 'sent' | 'received' | 'done';
}

/** An open connection to the remote broker as the outbox sees it. */
export interface OutLink {
  /** How many may be in flight: the remote's Receive Maximum. */
  readonly window: number;
  /** How many of them at QoS 2. */
  readonly windowQos2: number;
  /** False while as many bytes are unsent as may be. */
  readonly room: boolean;
  /** Sends it; gives the QoS it went with, -1 when the remote does not take packets of its size. */
  publish(message: Outgoing, packetId: number, dup: boolean): Qos | -1;
  release(packetId: number): void;
}

export interface OutboxOptions {
  /** Of the bridge, as the journal knows it. */
  readonly name: string;
  readonly journal: SpoolJournal;
  readonly clock: Clock;
  /** Bytes of all messages together. */
  readonly maxBytes: number;
}

function packetIdOf(message: OutMessage): number {
  return 1 + (message.sequence % PUBLISH_IDS);
}

export class MqttOutbox {
  /** Of all messages, in flight or waiting. */
  bytes = 0;
  /** Messages; 0 = no limit. Set by the bridge. */
  maxLength = 0;
  /** Where to count, by rule. Set by the bridge. */
  counters: readonly RuleCounters[] = [];
  /** For messages of rules that are no more. */
  orphans: (() => RuleCounters) | null = null;
  /** Spooled messages that could not be read. */
  damaged = 0;
  private readonly options: OutboxOptions;
  private readonly waiting = new Fifo<OutMessage>();
  /** In the order sent; 'done' ones stay until all before them are done. */
  private flying = new Fifo<OutMessage>();
  private readonly byId = new Map<number, OutMessage>();
  /** What a resumed session is owed again, and how much of it has been sent. */
  private owed: OutMessage[] = [];
  private owedSent = 0;
  private resumed = false;
  private held = false;
  /** QoS 2 exchanges under way on this connection. */
  private exchanges = 0;
  private link: OutLink | null = null;
  private readonly keeping: Keeping;

  constructor(options: OutboxOptions, restored: readonly SpoolEntry[]) {
    this.options = options;
    this.keeping = new Keeping(options.name, options.journal, options.clock, restored);
    for (const entry of restored) this.restore(entry);
  }

  /** Messages that wait or are in flight. */
  get length(): number {
    return this.waiting.length + this.byId.size;
  }

  get inflight(): number {
    return this.byId.size - (this.owed.length - this.owedSent);
  }

  /** Takes a message; it is sent in its turn. Anything but 'taken' is counted already. */
  take(
    message: Message,
    topic: string,
    qos: Qos,
    retain: boolean,
    rule: number,
    properties: Properties | null = message.properties,
  ): 'taken' | Extract<DropReason, 'queue-full' | 'store-full'> {
    const { keeping } = this;
    const { maxBytes } = this.options;
    const { payload, expiresAt, bytes } = message;
    if ((this.maxLength > 0 && this.length >= this.maxLength) || this.bytes + bytes > maxBytes) {
      this.count(rule)?.drop('queue-full');
      return 'queue-full';
    }
    const spooled = qos > 0 && keeping.durable;
    if (spooled && !keeping.accepting) {
      this.count(rule)?.drop('store-full');
      return 'store-full';
    }
    const sequence = spooled
      ? keeping.put(encodeSpooled({ topic, payload, qos, retain, properties, expiresAt, rule }))
      : keeping.number();
    this.waiting.push({
      sequence,
      topic,
      payload,
      qos,
      retain,
      properties,
      expiresAt,
      bytes,
      rule,
      spooled,
      again: false,
      state: 'waiting',
    });
    this.bytes += bytes;
    this.pump();
    return 'taken';
  }

  /** Sends a message of QoS 0 without keeping it. False when it has to be taken: no connection, no room, or others come first. */
  pass(message: Outgoing, rule: number): boolean {
    const { link } = this;
    if (link === null || this.held || !link.room || this.waiting.length > 0 || this.owedSent < this.owed.length)
      return false;
    const counters = this.count(rule);
    if (link.publish(message, 0, false) < 0) counters?.drop('too-large');
    else if (counters !== null) {
      counters.forwarded.value++;
      counters.bytes.value += message.payload.length;
    }
    return true;
  }

  /** A connection is open. `resumed`: the remote still has the session, so what is in flight is sent again under its packet ids [MQTT-4.4.0-1]. */
  attach(link: OutLink, resumed: boolean): void {
    this.link = link;
    this.held = false;
    this.resumed = resumed;
    this.exchanges = 0;
    const pending = [...this.flying];
    if (resumed) this.owed = pending.filter((message) => message.state !== 'done');
    else {
      // A new session knows nothing of them: they are new messages, in front of the others.
      for (const message of pending.reverse()) {
        if (message.state !== 'done') message.state = 'waiting';
        this.waiting.unshift(message);
      }
      this.flying = new Fifo();
      this.byId.clear();
      for (const message of this.waiting) message.again = false;
      this.owed = [];
    }
    this.owedSent = 0;
    this.pump();
  }

  /** The connection has gone. Messages of QoS 0 are dropped unless `keepQos0`. */
  detach(keepQos0: boolean): void {
    this.link = null;
    if (keepQos0) return;
    for (let left = this.waiting.length; left > 0; left--) {
      const message = this.waiting.shift();
      if (message === undefined) return;
      if (message.qos > 0 || message.state === 'done') this.waiting.push(message);
      else this.drop(message, 'away');
    }
  }

  /** Nothing new is sent on this connection; what is on its way may be acknowledged. */
  hold(): void {
    this.held = true;
  }

  /** Sends what may be sent now. Called when the window or the connection has room again. */
  pump(): void {
    const { link } = this;
    if (link === null || this.held) return;
    while (this.owedSent < this.owed.length) {
      const message = this.owed[this.owedSent];
      if (!link.room || !this.fits(message, link)) return;
      this.owedSent++;
      this.resend(message, link);
    }
    const nowMs = this.options.clock.steady();
    for (let message = this.waiting.peek(); message !== undefined; message = this.waiting.peek()) {
      if (message.state === 'done') this.flying.push(message);
      else if (message.expiresAt > 0 && message.expiresAt <= nowMs) this.skip(message, 'expired');
      else if (!link.room || !this.mayFly(message, link) || !this.send(message, link)) break;
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
    else if (type === PUBREC) {
      message.state = 'received';
      this.link?.release(packetId);
    }
  }

  /** Drops everything, here and in the journal: the bridge is no more. */
  clear(): void {
    for (const message of this.byId.values()) this.drop(message, 'stopped');
    for (const message of this.waiting) if (message.state !== 'done') this.drop(message, 'stopped');
    this.waiting.clear();
    this.flying = new Fifo();
    this.byId.clear();
    this.owed = [];
    this.owedSent = 0;
    this.keeping.clear();
  }

  // ---- inside

  private restore({ sequence, bytes: stored }: SpoolEntry): void {
    const message = decodeSpooled(stored);
    if (message === null) {
      this.damaged++;
      return;
    }
    const bytes = message.payload.length + message.topic.length * 2 + 200;
    this.waiting.push({ ...message, sequence, bytes, spooled: true, again: true, state: 'waiting' });
    this.bytes += bytes;
  }

  /** QoS 0 needs no place in flight, but keeps its place in the order. */
  private mayFly(message: OutMessage, link: OutLink): boolean {
    if (message.qos === 0) return true;
    const oldest = this.flying.peek();
    return this.fits(message, link) && (oldest === undefined || message.sequence - oldest.sequence < PUBLISH_IDS);
  }

  private fits(message: OutMessage, link: OutLink): boolean {
    return this.inflight < link.window && (message.qos < 2 || this.exchanges < link.windowQos2);
  }

  private resend(message: OutMessage, link: OutLink): void {
    const packetId = packetIdOf(message);
    if (message.state === 'received') {
      this.exchanges++;
      link.release(packetId);
    } else if (message.state === 'sent') {
      const qos = link.publish(message, packetId, true);
      if (qos < 0) this.finish(message, 'too-large');
      else if (qos === 2) this.exchanges++;
    }
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
      if (qos === 2) this.exchanges++;
      message.state = 'sent';
      this.byId.set(packetId, message);
      this.flying.push(message);
    }
    return true;
  }

  private skip(message: OutMessage, reason: DropReason): void {
    this.drop(message, reason);
    if (message.spooled) this.flying.push(message);
  }

  private finish(message: OutMessage, failure: DropReason | null): void {
    this.byId.delete(packetIdOf(message));
    if (message.qos === 2 && this.exchanges > 0) this.exchanges--;
    if (failure === null) this.sent(message);
    else this.drop(message, failure);
    this.settle();
  }

  private sent(message: OutMessage): void {
    message.state = 'done';
    this.bytes -= message.bytes;
    const counters = this.count(message.rule);
    if (counters === null) return;
    counters.forwarded.value++;
    counters.bytes.value += message.payload.length;
  }

  private drop(message: OutMessage, reason: DropReason): void {
    message.state = 'done';
    this.bytes -= message.bytes;
    this.count(message.rule)?.drop(reason);
  }

  /** Forgets what is done, as far as everything before it is done too. */
  private settle(): void {
    let last = -1;
    for (let head = this.flying.peek(); head?.state === 'done'; head = this.flying.peek()) {
      this.flying.shift();
      if (head.spooled) last = head.sequence;
    }
    if (last >= 0) this.keeping.forget(last);
  }

  private count(rule: number): RuleCounters | null {
    return this.counters[rule] ?? this.orphans?.() ?? null;
  }
}
