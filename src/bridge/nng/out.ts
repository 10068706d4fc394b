// The sending half of an NNG bridge, MQTT to NNG: a subscription of the broker for each rule of `forwards`, frames to
// the bridge's socket. Used by bridge.ts for pub, push and pair. Frames go from the publication's bytes straight into
// each pipe's output; what cannot leave at once waits in the backlog, or is dropped and counted, as `overflow` and
// `spool` say.
import { type Log, limitLog } from '../../base/log.ts';
import type { LocalClient, LocalSubscription } from '../../broker/broker.ts';
import type { Hold, Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import { QUOTA_EXCEEDED, UNSPECIFIED_ERROR } from '../../mqtt/reason.ts';
import type { SpSocket } from '../../sp/sp.ts';
import type { ForwardOptions, RuleView, SendingBridgeOptions } from '../bridge.ts';
import { DROPS, type DropReason, RuleCounters } from '../counters.ts';
import { Backlog } from './backlog.ts';
import { describe, type Forwarding, ForwardRule } from './forward.ts';
import type { BridgeParts, Link } from './link.ts';
import { joinFrame } from './rules.ts';
import { Spool, spoolCost } from './spool.ts';

/**
 * What frames of QoS 1 and 2 may fill while they wait, whatever `send_buffer` is. Clients stop long before: those whose
 * acknowledgements wait are not read any further (session/held.ts). Past it publishers are told "quota exceeded".
 */
const HELD_BYTES = 256 << 20;
const HELD_FACTOR = 4;
/** Messages handed to the socket at once. */
const MOST_SPANS = 1024;
const WARN_EVERY_MS = 1000;

export class NngOut implements Forwarding {
  options: SendingBridgeOptions;
  private readonly parts: BridgeParts;
  private readonly link: Link;
  private readonly warn: Log;
  private readonly spool: Spool;
  private readonly backlog: Backlog;
  private client: LocalClient | null = null;
  private rules: { readonly rule: ForwardRule; readonly subscription: LocalSubscription }[] = [];
  private socket: SpSocket | null = null;
  private greeted = false;
  /** What inject() goes by; made when it is needed. */
  private injected: ForwardRule | null = null;
  /** Where the payloads of a run lie. */
  private readonly spans = new Int32Array(2 * MOST_SPANS);

  constructor(options: SendingBridgeOptions, parts: BridgeParts, link: Link) {
    this.options = options;
    this.parts = parts;
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
    this.spool = parts.spools?.of(options) ?? new Spool(options.name, null, parts.clock, []);
    this.backlog = new Backlog({
      clock: parts.clock,
      spool: this.spool,
      away: () => link.away,
      countersOf: (rule) => this.countersOf(rule),
    });
    this.link = link;
    this.policy();
  }

  /** Bytes that wait here, in memory or in the spool. */
  get waitingBytes(): number {
    return this.backlog.bytes + this.spool.bytes;
  }

  /** A message of QoS 1 or 2 that came now would go to the store, or be refused with it. */
  get stores(): boolean {
    const { spool, overflow } = this.options;
    return spool > 0 && overflow !== 'block' && this.spool.durable;
  }

  /** Takes the rules' messages from now on. */
  start(client: LocalClient): void {
    this.client = client;
    this.subscribe(false);
  }

  /** The socket is open. */
  attach(socket: SpSocket): void {
    socket.onRoom(() => this.backlog.drain());
    this.socket = socket;
    this.backlog.socket = socket;
    // Where nobody tells of peers, stored messages go out at once.
    if (!socket.knowsPeers) this.peerUp();
  }

  /** A peer is there. */
  peerUp(): void {
    this.backlog.drain();
    if (this.greeted) return;
    this.greeted = true;
    this.sendStored();
  }

  change(options: SendingBridgeOptions): void {
    this.options = options;
    this.policy();
    this.injected = null;
    this.unsubscribe();
    this.subscribe(false);
  }

  /** Takes up what an earlier worker or process has left in the spool. */
  adopt(): void {
    this.backlog.adopt();
  }

  /** Takes no more messages. */
  leave(): void {
    this.unsubscribe();
    this.client = null;
  }

  /** Gives frames that wait up to `deadlineMs` to leave. */
  async finish(deadlineMs: number): Promise<void> {
    await this.backlog.emptiedWithin(deadlineMs);
  }

  /** Lets go of what is left. The socket has been stopped. Publishers are told that their messages were not taken. */
  stop(): void {
    this.socket = null;
    this.backlog.stop(UNSPECIFIED_ERROR);
  }

  views(): RuleView[] {
    return this.rules.map(({ rule }) => rule.counters.view(rule.index));
  }

  waiting(): { frames: number; bytes: number; spooled: number } {
    return { frames: this.backlog.length, bytes: this.waitingBytes, spooled: this.backlog.spooledFrames };
  }

  /** The rules in force, for the log. */
  describe(): string[] {
    return this.rules.map(({ rule }) => describe(rule.options));
  }

  /**
   * Sends a message that no rule of `forwards` took, as the first one of them that is enabled would: rules of the
   * gateway have chosen this bridge. With none of them the frame is the payload.
   */
  inject(publication: Publication, qos: Qos): void {
    const first = this.options.forwards.findIndex((rule) => rule.enable);
    if (this.injected === null || this.injected.index !== first) {
      const options = first < 0 ? PAYLOAD_ALONE : this.options.forwards[first];
      const rule = { ...options, qos: 2, from: 'any', retain: 'any', rateLimit: 0 } as const;
      this.injected = new ForwardRule(first, rule, this, this.parts, this.countersOf(first));
    }
    this.injected.send(publication, qos);
  }

  /** Sends head + bytes[start, end) or lets it wait; called by the rules for each message. */
  forward(
    rule: ForwardRule,
    head: Uint8Array,
    bytes: Uint8Array,
    start: number,
    end: number,
    from: Publication,
    qos: Qos,
  ): void {
    const { socket, backlog, spool } = this;
    // Acknowledged is kept: what a peer's connection has not taken yet would go down with this process.
    const kept = qos > 0 && this.options.spool > 0 && rule.options.qos > 0 && spool.durable;
    if (!kept && socket !== null && backlog.length === 0 && !this.link.away && socket.send(head, bytes, start, end)) {
      rule.counters.forwarded.value++;
      rule.counters.bytes.value += end - start;
      return;
    }
    const away = this.link.away;
    if (this.options.spool > 0 && rule.options.qos > 0 && (kept || away || backlog.spooling)) {
      if (this.keepInSpool(rule, head, bytes, start, end, from, qos)) {
        if (!away) backlog.drain();
        return;
      }
    } else if (away && !backlog.keeps) {
      rule.counters.drop('no-peer');
      return;
    }
    this.keepInMemory(rule, head, bytes, start, end, from, qos);
  }

  /**
   * Sends the packets of one topic in publication.buffer[start, end), as forward() would each of them. Returns how many
   * there are.
   */
  forwardRun(rule: ForwardRule, head: Uint8Array, publication: Publication, start: number, end: number): number {
    const { socket, backlog, link, spans } = this;
    let at = start;
    let all = 0;
    while (at < end && socket !== null && backlog.length === 0 && !link.away) {
      const first = at;
      let count = 0;
      let bytes = 0;
      for (; at < end && count < MOST_SPANS; count++) {
        at = publication.step(at);
        spans[2 * count] = publication.payloadStart;
        spans[2 * count + 1] = publication.payloadEnd;
        bytes += publication.payloadEnd - publication.payloadStart;
      }
      const sent = socket.sendMany(head, publication.buffer, spans, count);
      all += sent;
      rule.counters.forwarded.value += sent;
      if (sent < count) {
        // The rest one by one: it waits or is dropped.
        at = first;
        bytes = 0;
        for (let i = 0; i < sent; i++) {
          at = publication.step(at);
          bytes += spans[2 * i + 1] - spans[2 * i];
        }
      }
      rule.counters.bytes.value += bytes;
      if (sent < count) break;
    }
    for (; at < end; all++) {
      at = publication.step(at);
      this.forward(rule, head, publication.buffer, publication.payloadStart, publication.payloadEnd, publication, 0);
    }
    return all;
  }

  // ---- what waits

  /** False when the frame has to wait in memory instead, its publisher with it (overflow = block). */
  private keepInSpool(
    rule: ForwardRule,
    head: Uint8Array,
    bytes: Uint8Array,
    start: number,
    end: number,
    from: Publication,
    qos: Qos,
  ): boolean {
    const { spool, backlog } = this;
    const { spool: bound, overflow } = this.options;
    const cost = spoolCost(head.length + end - start);
    const full = spool.bytes + cost > bound;
    if (full && overflow === 'block') return false;
    if (full && (overflow === 'drop_newest' || !backlog.makeRoom(cost, bound))) {
      this.dropped(rule, 'overflow', qos);
      return true;
    }
    if (!spool.accepting) {
      if (overflow === 'block') return false;
      this.dropped(rule, 'store-full', qos);
      refuse(from, qos);
      return true;
    }
    backlog.spooled(spool.put(rule.index, head, bytes, start, end), rule.counters);
    // The broker then lets the acknowledgement wait for the commit.
    if (qos > 0 && spool.durable) from.stored = true;
    return true;
  }

  private keepInMemory(
    rule: ForwardRule,
    head: Uint8Array,
    bytes: Uint8Array,
    start: number,
    end: number,
    from: Publication,
    qos: Qos,
  ): void {
    const { backlog } = this;
    const size = head.length + end - start;
    const { sendBuffer } = this.options;
    const bound = qos === 0 ? sendBuffer : Math.max(HELD_BYTES, sendBuffer * HELD_FACTOR);
    if (backlog.length > 0 && backlog.bytes + size > bound) {
      this.dropped(rule, 'overflow', qos);
      refuse(from, qos);
      return;
    }
    let hold: Hold | null = null;
    if (qos > 0) {
      hold = from.hold();
      hold.add();
    }
    backlog.keep(joinFrame(head, bytes, start, end), end - start, rule.counters, hold);
  }

  private dropped(rule: ForwardRule, reason: DropReason, qos: Qos): void {
    const { name: bridge, type } = this.options;
    rule.counters.drop(reason);
    this.warn('warn', 'NNG-DROPPED', { bridge, type, reason, qos, waiting: this.waitingBytes });
  }

  private policy(): void {
    const { type, overflow, spool } = this.options;
    this.backlog.paced = overflow !== 'block';
    // What is published to nobody is gone, as with any publisher; a pipeline waits for its worker.
    this.backlog.keeps = spool > 0 || (type !== 'pub' && overflow === 'block');
  }

  // ---- rules

  private countersOf(rule: number): RuleCounters {
    const { name, type } = this.options;
    const label = rule < 0 ? 'rules' : type === 'pair' ? `forwards.${rule}` : String(rule);
    return new RuleCounters(this.parts.metrics, name, type, label, DROPS.out);
  }

  /** `retain = retained`: stored messages would be lost on a socket without peers, so the first one gets them. */
  private sendStored(): void {
    if (!this.options.forwards.some((rule) => rule.enable && rule.retain === 'retained')) return;
    this.unsubscribe();
    this.subscribe(true);
  }

  /** @param stored whether rules that want them get the stored messages now */
  private subscribe(stored: boolean): void {
    const { client, options } = this;
    if (client === null) return;
    for (const [index, rule] of options.forwards.entries()) {
      if (!rule.enable) continue;
      const receiver = new ForwardRule(index, rule, this, this.parts, this.countersOf(index));
      const subscription: LocalSubscription = {
        topicFilter: rule.localTopic,
        qos: rule.qos,
        receiver,
        retainHandling: stored && rule.retain === 'retained' ? 0 : 2,
      };
      this.rules.push({ rule: receiver, subscription });
      client.subscribe(subscription);
    }
  }

  private unsubscribe(): void {
    for (const { subscription } of this.rules) this.client?.unsubscribe(subscription);
    this.rules = [];
  }
}

/** Tells a publisher of QoS 1 or 2 that its message was not taken. */
function refuse(from: Publication, qos: Qos): void {
  if (qos === 0) return;
  const hold = from.hold();
  hold.add();
  hold.done(QUOTA_EXCEEDED);
}

const PAYLOAD_ALONE: ForwardOptions = {
  enable: true,
  localTopic: '#',
  remoteTopic: '',
  nngDelimiter: '/',
  qos: 2,
  retain: 'any',
  from: 'any',
  frame: 'payload',
};
