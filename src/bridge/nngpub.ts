// MQTT to NNG: one pub0 socket fed by the broker through one subscription for each rule.
// Made by the supervisor. A subscriber of the broker like any other, so order, QoS and limits hold; frames go from the publication's bytes
// straight into each pipe's output. With overflow = block messages wait in a bounded outbox and QoS 1 and 2 publishers wait for them.
import { randomBytes } from 'node:crypto';
import { limitLog } from '../base/log.ts';
import { Fifo } from '../base/queue.ts';
import type { LocalClient, LocalReceiver, LocalSubscription } from '../broker/broker.ts';
import type { Hold, Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import type { SpSocket } from '../sp/sp.ts';
import type { BridgeOptions, BridgeStatus, BridgeWorker, ForwardOptions, PubBridgeOptions } from './bridge.ts';
import { RuleCounters } from './counters.ts';
import { type BridgeParts, Link, sameSocket } from './link.ts';
import { RateLimit } from './rate.ts';
import { ForwardHead, joinFrame } from './rules.ts';
import { encodePayload } from './transform.ts';

/**
 * overflow = block: bytes that QoS 1 and 2 may fill, at least four times send_buffer, which is the bound of QoS 0. Publishers that wait for
 * an acknowledgement stop by themselves at their Receive Maximum; past this bound they are told "quota exceeded".
 */
const HELD_BYTES = 16 << 20;
const HELD_FACTOR = 4;
const WARN_EVERY_MS = 1000;
const NO_BYTES = new Uint8Array(0);

/** A frame that waits for room in the peers' queues. */
interface Waiting {
  readonly frame: Buffer;
  readonly payloadBytes: number;
  readonly rule: ForwardRule;
  readonly hold: Hold | null;
}

export class NngPub implements BridgeWorker {
  options: PubBridgeOptions;
  readonly clientId: string;
  readonly link: Link;
  private readonly parts: BridgeParts;
  private readonly warn: ReturnType<typeof limitLog>;
  private client: LocalClient | null = null;
  private rules: { readonly rule: ForwardRule; readonly subscription: LocalSubscription }[] = [];
  private socket: SpSocket | null = null;
  private readonly outbox = new Fifo<Waiting>();
  private outboxBytes = 0;

  constructor(options: PubBridgeOptions, parts: BridgeParts) {
    this.options = options;
    this.parts = parts;
    this.clientId = options.clientId ?? `nng-${options.name}-${randomBytes(4).toString('hex')}`;
    this.link = new Link(
      options,
      parts,
      () => this.outboxBytes,
      () => this.sendStored(),
    );
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
  }

  start(): Promise<void> {
    // Trusted: what may be published has been asked of the publisher, a bridge out needs no right to read.
    this.client = this.parts.broker.attach({
      clientId: this.clientId,
      username: 'nngproxy_bridge',
      kind: 'bridge',
      bridge: `nng:${this.options.name}`,
      trusted: true,
    });
    this.subscribe(false);
    this.showRules();
    return this.link.open('pub0', this.options, (socket) => {
      socket.onRoom(() => this.drain());
      this.socket = socket;
      // Where nobody tells of peers, stored messages go out at once.
      if (!socket.knowsPeers) this.sendStored();
    });
  }

  change(options: BridgeOptions): boolean {
    if (options.type !== 'pub' || !sameSocket(this.options, options)) return false;
    const before = this.options;
    this.options = options;
    this.link.change(before, options);
    this.unsubscribe();
    this.subscribe(false);
    this.showRules();
    return true;
  }

  async stop(deadlineMs: number): Promise<void> {
    this.unsubscribe();
    this.client?.close();
    this.client = null;
    for (let next = this.outbox.shift(); next !== undefined; next = this.outbox.shift()) {
      next.rule.counters.drop('stopped');
      next.hold?.done();
    }
    this.outboxBytes = 0;
    this.socket = null;
    await this.link.stop(deadlineMs);
  }

  status(): BridgeStatus {
    const { options, link } = this;
    return {
      type: 'pub',
      name: options.name,
      enabled: options.enable,
      state: link.state(),
      lastError: link.lastError(),
      options,
      clientId: this.clientId,
      endpoints: link.endpoints(),
      peers: link.socket?.pipes() ?? [],
      rules: this.rules.map(({ rule }) => rule.counters.view(rule.index)),
      refused: link.socket?.stats.refused ?? 0,
      unmatched: 0,
      dropped: link.socket?.stats.dropped ?? 0,
    };
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
    const { socket } = this;
    if (socket === null || (this.link.peers === 0 && socket.knowsPeers)) {
      rule.counters.drop('no-peer');
      return;
    }
    if (this.outbox.length === 0 && socket.send(head, bytes, start, end)) {
      rule.counters.forwarded.value++;
      rule.counters.bytes.value += end - start;
      return;
    }
    this.wait(rule, head, bytes, start, end, from, qos);
  }

  private wait(
    rule: ForwardRule,
    head: Uint8Array,
    bytes: Uint8Array,
    start: number,
    end: number,
    from: Publication,
    qos: Qos,
  ): void {
    const size = head.length + end - start;
    const { sendBuffer } = this.options;
    const bound = qos === 0 ? sendBuffer : Math.max(HELD_BYTES, sendBuffer * HELD_FACTOR);
    if (this.outbox.length > 0 && this.outboxBytes + size > bound) {
      rule.counters.drop('overflow');
      this.warn('warn', 'NNG-DROPPED', {
        bridge: this.options.name,
        type: 'pub',
        reason: 'overflow',
        qos,
        outbox: this.outboxBytes,
      });
      if (qos > 0) {
        const hold = from.hold();
        hold.add();
        hold.done(QUOTA_EXCEEDED);
      }
      return;
    }
    let hold: Hold | null = null;
    if (qos > 0) {
      hold = from.hold();
      hold.add();
    }
    this.outbox.push({ frame: joinFrame(head, bytes, start, end), payloadBytes: end - start, rule, hold });
    this.outboxBytes += size;
  }

  private drain(): void {
    const { socket, outbox } = this;
    if (socket === null) return;
    for (let next = outbox.peek(); next !== undefined; next = outbox.peek()) {
      if (!socket.send(NO_BYTES, next.frame, 0, next.frame.length)) break;
      outbox.shift();
      this.outboxBytes -= next.frame.length;
      const { counters } = next.rule;
      if (this.link.peers === 0 && socket.knowsPeers) counters.drop('no-peer');
      else {
        counters.forwarded.value++;
        counters.bytes.value += next.payloadBytes;
      }
      next.hold?.done();
    }
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
      const receiver = new ForwardRule(index, rule, this, this.parts);
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

  private showRules(): void {
    const { options } = this;
    this.parts.log('info', 'NNG-RULES', {
      bridge: options.name,
      type: 'pub',
      clientid: this.clientId,
      rules: this.rules.map(({ rule }) => describe(rule.options)),
    });
  }

  private unsubscribe(): void {
    for (const { subscription } of this.rules) this.client?.unsubscribe(subscription);
    this.rules = [];
  }
}

function describe(rule: ForwardOptions): string {
  const from = rule.from === 'mqtt' ? ', from mqtt' : '';
  const retain = rule.retain === 'any' ? '' : `, retain ${rule.retain}`;
  return `${rule.localTopic} -> ${rule.remoteTopic === '' ? '(topic)' : rule.remoteTopic} ${JSON.stringify(rule.nngDelimiter)} qos ${rule.qos}${from}${retain}`;
}

/** One rule as a receiver of the broker. */
class ForwardRule implements LocalReceiver {
  readonly index: number;
  readonly options: ForwardOptions;
  readonly counters: RuleCounters;
  private readonly worker: NngPub;
  private readonly head: ForwardHead;
  private readonly rate: RateLimit | null;
  private readonly bridge: string;
  private readonly mqttOnly: boolean;
  private readonly liveOnly: boolean;

  constructor(index: number, options: ForwardOptions, worker: NngPub, parts: BridgeParts) {
    this.index = index;
    this.options = options;
    this.worker = worker;
    const { name, compat } = worker.options;
    this.counters = new RuleCounters(parts.metrics, name, 'pub', String(index));
    this.head = new ForwardHead(options, compat);
    this.rate = (options.rateLimit ?? 0) > 0 ? new RateLimit(options.rateLimit ?? 0, () => parts.clock.mono()) : null;
    this.bridge = `nng:${name}`;
    this.mqttOnly = options.from === 'mqtt';
    this.liveOnly = options.retain === 'live';
  }

  receive(publication: Publication, qos: Qos): void {
    const { counters } = this;
    const { origin } = publication;
    if (origin.bridge !== null) {
      if (this.mqttOnly) return;
      if (origin.bridge === this.bridge) {
        counters.drop('loop');
        return;
      }
    }
    if (this.liveOnly && publication.retain) return;
    counters.matched.value++;
    if (this.rate !== null && !this.rate.allow()) {
      counters.drop('rate');
      return;
    }
    const head = this.head.of(publication.topic);
    const form = this.options.payload;
    if (form === undefined || form === 'raw') {
      this.worker.forward(
        this,
        head,
        publication.buffer,
        publication.payloadStart,
        publication.payloadEnd,
        publication,
        qos,
      );
      return;
    }
    const payload = encodePayload(form, publication);
    this.worker.forward(this, head, payload, 0, payload.length, publication, qos);
  }
}
