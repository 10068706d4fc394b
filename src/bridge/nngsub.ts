// NNG to MQTT: one sub0 socket whose frames are taken apart by the bridge's rules and published as an internal client.
// Made by the supervisor. A frame gives one publish or none; what is not published is counted with its reason.
// While too many publishes wait for their acknowledgement (a store that commits), peers are not read from.
import { randomBytes } from 'node:crypto';
import { type Log, limitLog } from '../base/log.ts';
import type { Cell } from '../base/metrics.ts';
import type { LocalClient } from '../broker/broker.ts';
import type { PipeView, SpSocket } from '../sp/sp.ts';
import type { BridgeOptions, BridgeStatus, BridgeWorker, SubBridgeOptions, SubscriptionOptions } from './bridge.ts';
import { BRIDGE_METRICS, type DropReason, RuleCounters } from './counters.ts';
import { type BridgeParts, Link, sameSocket } from './link.ts';
import { RateLimit } from './rate.ts';
import { Extractor } from './rules.ts';
import { decodePayload } from './transform.ts';

/** Publishes that may wait for an acknowledgement before reading stops; it goes on at half of it. */
const MOST_HELD = 4096;
const SHOWN_BYTES = 32;
const WARN_EVERY_MS = 1000;
const EVERYTHING = new Uint8Array(0);

interface SubRule {
  readonly counters: RuleCounters;
  readonly rate: RateLimit | null;
}

export class NngSub implements BridgeWorker {
  options: SubBridgeOptions;
  readonly clientId: string;
  readonly link: Link;
  private readonly parts: BridgeParts;
  private readonly warn: Log;
  private readonly unmatched: Cell;
  private client: LocalClient | null = null;
  private extractor: Extractor;
  private rules: SubRule[] = [];
  /** 0.25.5: what goes to the topic `nng`. */
  private readonly fallback: RuleCounters | null;
  private held = 0;
  private paused = false;
  private readonly released = (): void => {
    this.held--;
    if (this.paused && this.held <= MOST_HELD / 2) {
      this.paused = false;
      this.link.socket?.resume();
    }
  };

  constructor(options: SubBridgeOptions, parts: BridgeParts) {
    this.options = options;
    this.parts = parts;
    this.clientId = options.clientId ?? `nng-${options.name}-${randomBytes(4).toString('hex')}`;
    this.link = new Link(options, parts, () => 0);
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
    this.unmatched = parts.metrics.cell(BRIDGE_METRICS.unmatched, { bridge: options.name, type: 'sub' });
    this.fallback =
      options.compat === '0.25.5' ? new RuleCounters(parts.metrics, options.name, 'sub', 'fallback') : null;
    this.extractor = new Extractor([], options.compat);
  }

  start(): Promise<void> {
    this.client = this.parts.broker.attach({
      clientId: this.clientId,
      username: 'nngproxy_bridge',
      kind: 'bridge',
      bridge: `nng:${this.options.name}`,
      trusted: false,
    });
    this.takeRules();
    return this.link.open('sub0', this.options, (socket: SpSocket) => {
      // Everything, so that frames which no rule takes are seen and counted.
      socket.subscribe(EVERYTHING);
      socket.onMessage((bytes, start, end, pipe) => this.received(bytes, start, end, pipe));
    });
  }

  change(options: BridgeOptions): boolean {
    if (options.type !== 'sub' || !sameSocket(this.options, options) || this.options.compat !== options.compat)
      return false;
    const before = this.options;
    this.options = options;
    this.link.change(before, options);
    this.takeRules();
    return true;
  }

  async stop(deadlineMs: number): Promise<void> {
    await this.link.stop(deadlineMs);
    this.client?.close();
    this.client = null;
  }

  status(): BridgeStatus {
    const { options, link } = this;
    return {
      type: 'sub',
      name: options.name,
      enabled: options.enable,
      state: link.state(),
      lastError: link.lastError(),
      options,
      clientId: this.clientId,
      endpoints: link.endpoints(),
      peers: link.socket?.pipes() ?? [],
      rules: this.rules.map((rule, index) => rule.counters.view(index)),
      refused: link.socket?.stats.refused ?? 0,
      unmatched: this.unmatched.value,
      dropped: 0,
    };
  }

  private takeRules(): void {
    const { options, parts } = this;
    this.extractor = new Extractor(options.subscription, options.compat);
    this.rules = options.subscription.map((rule, index) => ({
      counters: new RuleCounters(parts.metrics, options.name, 'sub', String(index)),
      rate: (rule.rateLimit ?? 0) > 0 ? new RateLimit(rule.rateLimit ?? 0, () => parts.clock.mono()) : null,
    }));
    parts.log('info', 'NNG-RULES', {
      bridge: options.name,
      type: 'sub',
      clientid: this.clientId,
      compat: options.compat,
      rules: options.subscription.filter((rule) => rule.enable).map(describe),
    });
  }

  /** One frame; called within the turn of its chunk. */
  private received(bytes: Uint8Array, start: number, end: number, pipe: PipeView): void {
    const { extractor } = this;
    const outcome = extractor.extract(bytes, start, end);
    if (outcome === 'match') {
      const { index, rule } = extractor;
      if (rule !== null) this.publish(this.rules[index], rule, bytes, extractor.payloadStart, end);
    } else if (outcome === 'unmatched') this.lost(bytes, start, end, pipe);
    else if (outcome === 'fallback') this.publishFallback(bytes, start, end);
    else {
      const { counters } = this.rules[extractor.index];
      counters.matched.value++;
      counters.drop(outcome);
    }
  }

  private publish(rule: SubRule, options: SubscriptionOptions, bytes: Uint8Array, start: number, end: number): void {
    const { counters } = rule;
    counters.matched.value++;
    if (rule.rate !== null && !rule.rate.allow()) {
      counters.drop('rate');
      return;
    }
    const form = options.payload;
    if (form !== undefined && form !== 'raw') {
      const payload = decodePayload(form, bytes, start, end);
      if (payload === null) {
        counters.drop('payload-form');
        return;
      }
      this.hand(counters, this.extractor.topic, payload, 0, payload.length, options);
      return;
    }
    this.hand(counters, this.extractor.topic, bytes, start, end, options);
  }

  private publishFallback(bytes: Uint8Array, start: number, end: number): void {
    if (this.fallback === null) return;
    this.fallback.matched.value++;
    this.hand(this.fallback, this.extractor.topic, bytes, start, end, { qos: 0, retain: false });
  }

  private hand(
    counters: RuleCounters,
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    options: Pick<SubscriptionOptions, 'qos' | 'retain'>,
  ): void {
    const { client } = this;
    if (client === null) return;
    const outcome = client.publish(topic, bytes, start, end, options.qos, options.retain);
    if (outcome !== 'accepted' && outcome !== 'no-subscribers') {
      counters.drop(outcome satisfies DropReason);
      return;
    }
    counters.forwarded.value++;
    counters.bytes.value += end - start;
    if (options.qos > 0) this.hold(client);
  }

  private hold(client: LocalClient): void {
    const hold = client.lastHold();
    if (hold === null || !hold.open) return;
    this.held++;
    hold.whenDone(this.released);
    if (this.held < MOST_HELD || this.paused) return;
    this.paused = true;
    this.link.socket?.pause();
  }

  private lost(bytes: Uint8Array, start: number, end: number, pipe: PipeView): void {
    this.unmatched.value++;
    this.warn('warn', 'NNG-UNMATCHED', {
      bridge: this.options.name,
      type: 'sub',
      peer: pipe.remote,
      bytes: end - start,
      begins: escapeBytes(bytes, start, Math.min(end, start + SHOWN_BYTES)),
    });
  }
}

/** Bytes as printable text: what is no plain ASCII becomes \xNN. */
export function escapeBytes(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (byte === 0x5c) text += '\\\\';
    else if (byte >= 0x20 && byte < 0x7f) text += String.fromCharCode(byte);
    else text += `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return text;
}

function describe(rule: SubscriptionOptions): string {
  const to = rule.localTopic === '' ? '(topic)' : rule.localTopic;
  const match = rule.match === 'prefix' ? '' : `, match ${rule.match}`;
  return `${rule.remoteTopic} ${JSON.stringify(rule.nngDelimiter)} -> ${to} qos ${rule.qos}${rule.retain ? ', retain' : ''}${match}`;
}
