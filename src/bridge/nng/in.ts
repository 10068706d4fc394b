// The receiving half of an NNG bridge, NNG to MQTT: frames are taken apart by the rules of `subscription` and
// published. Used by bridge.ts for sub, pull and pair. A frame gives one publish or none; what is not published is
// counted with its reason. Peers are not read from while too much waits for its acknowledgement (a store that commits)
// or the gateway is over its memory budget.
import { type Log, limitLog } from '../../base/log.ts';
import type { Cell } from '../../base/metrics.ts';
import type { LocalClient } from '../../broker/broker.ts';
import type { Qos } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import type { PipeView, SpSocket } from '../../sp/sp.ts';
import type { ReceivingBridgeOptions, RuleView, SubscriptionOptions } from '../bridge.ts';
import { BRIDGE_METRICS, DROPS, type DropReason, RuleCounters } from '../counters.ts';
import { RateLimit } from '../rate.ts';
import { Incoming, needsWork } from './incoming.ts';
import type { BridgeParts } from './link.ts';
import { Extractor } from './rules.ts';
import type { Taker } from './taps.ts';

/**
 * Publishes, and bytes of them, that may wait for an acknowledgement before reading stops; it goes on at half of that.
 */
const MOST_HELD = 4096;
const MOST_HELD_BYTES = 16 << 20;
/** The memory budget is looked at once for so many frames or bytes. */
const LOOK_FRAMES = 64;
const LOOK_BYTES = 65_536;
const SHOWN_BYTES = 32;
const WARN_EVERY_MS = 1000;
const EVERYTHING = new Uint8Array(0);

interface SubRule {
  readonly counters: RuleCounters;
  /** Whether its frames go through incoming.ts. */
  readonly works: boolean;
  readonly rate: RateLimit | null;
}

export class NngIn {
  options: ReceivingBridgeOptions;
  readonly unmatched: Cell;
  private readonly parts: BridgeParts;
  private readonly warn: Log;
  private client: LocalClient | null = null;
  private socket: SpSocket | null = null;
  private extractor: Extractor;
  private readonly incoming = new Incoming();
  private rules: SubRule[] = [];
  /** Whether all rules are plain: then frames of one kind go on together. */
  private plain = true;
  /** 0.25.5: what goes to the topic `nng`. */
  private readonly fallback: RuleCounters | null;
  private readonly takers: readonly Taker[];
  private held = 0;
  private heldBytes = 0;
  private paused = false;
  private ended = false;
  private framesUntilLook = LOOK_FRAMES;
  private bytesUntilLook = LOOK_BYTES;
  /** What the gateway's budget holds for a moment: the socket, unless it is held for another reason. */
  private readonly source = {
    pause: (): void => this.socket?.pause(),
    resume: (): void => {
      if (!this.paused && !this.ended) this.socket?.resume();
    },
  };

  constructor(options: ReceivingBridgeOptions, parts: BridgeParts) {
    const { name: bridge, type, compat } = options;
    this.options = options;
    this.parts = parts;
    this.warn = limitLog(parts.log, () => parts.clock.mono(), WARN_EVERY_MS);
    this.unmatched = parts.metrics.cell(BRIDGE_METRICS.unmatched, { bridge, type });
    this.fallback = compat === '0.25.5' ? new RuleCounters(parts.metrics, bridge, type, 'fallback', DROPS.in) : null;
    this.takers = parts.taps?.of(bridge) ?? [];
    this.extractor = new Extractor([], compat);
  }

  start(client: LocalClient): void {
    this.client = client;
    this.takeRules();
  }

  /** The socket is open. */
  attach(socket: SpSocket): void {
    this.socket = socket;
    // Everything, so that frames which no rule takes are seen and counted.
    if (socket.protocol === 'sub0') socket.subscribe(EVERYTHING);
    socket.onMessage((bytes, start, end, pipe) => this.received(bytes, start, end, pipe));
    socket.onRun?.((...run) => this.receivedRun(...run));
  }

  /** Reads no more. */
  quiet(): void {
    this.ended = true;
    this.socket?.pause();
  }

  change(options: ReceivingBridgeOptions): void {
    this.options = options;
    this.takeRules();
  }

  /** The socket has been stopped. */
  stop(): void {
    this.client?.relieved(this.source);
    this.client = null;
    this.socket = null;
  }

  views(): RuleView[] {
    return this.rules.map((rule, index) => rule.counters.view(index));
  }

  /** The rules in force, for the log. */
  describe(): string[] {
    return this.options.subscription.filter((rule) => rule.enable).map(describe);
  }

  private takeRules(): void {
    const { options, parts } = this;
    const { type } = options;
    this.extractor = new Extractor(options.subscription, options.compat);
    this.plain = options.subscription.every((rule) => !rule.enable || isPlain(rule));
    this.rules = options.subscription.map((rule, index) => ({
      counters: this.countersOf(type === 'pair' ? `subscription.${index}` : String(index)),
      works: needsWork(rule),
      rate: (rule.rateLimit ?? 0) > 0 ? new RateLimit(rule.rateLimit ?? 0, () => parts.clock.mono()) : null,
    }));
  }

  private countersOf(rule: string): RuleCounters {
    const { name, type } = this.options;
    return new RuleCounters(this.parts.metrics, name, type, rule, DROPS.in);
  }

  /** One frame; called within the turn of its chunk. */
  private received(bytes: Uint8Array, start: number, end: number, pipe: PipeView): void {
    this.bytesUntilLook -= end - start;
    if (--this.framesUntilLook <= 0 || this.bytesUntilLook <= 0) this.look();
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

  /** Frames of one length in a row: those that one rule takes in the same way go on together. */
  private receivedRun(
    bytes: Uint8Array,
    start: number,
    length: number,
    stride: number,
    count: number,
    pipe: PipeView,
  ): void {
    const { extractor } = this;
    for (let i = 0; i < count; ) {
      const at = start + i * stride;
      const matched = this.plain && extractor.extract(bytes, at, at + length) === 'match';
      const same = matched ? extractor.alike(bytes, at, stride, count - i) : 1;
      if (!matched) this.received(bytes, at, at + length, pipe);
      else this.handMany(bytes, extractor.payloadStart, at + length, stride, same);
      i += same;
    }
  }

  private handMany(bytes: Uint8Array, start: number, end: number, stride: number, count: number): void {
    const { client, extractor } = this;
    const { counters } = this.rules[extractor.index];
    this.framesUntilLook -= count;
    this.bytesUntilLook -= stride * count;
    if (this.framesUntilLook <= 0 || this.bytesUntilLook <= 0) this.look();
    counters.matched.value += count;
    if (client === null) return;
    const outcome = client.publishSoon(extractor.topic, bytes, start, end, count, stride);
    if (outcome !== 'accepted' && outcome !== 'no-subscribers') {
      for (let i = 0; i < count; i++) counters.drop(outcome satisfies DropReason);
      return;
    }
    counters.forwarded.value += count;
    counters.bytes.value += (end - start) * count;
    if (this.takers.length === 0) return;
    for (let i = 0, at = start; i < count; i++, at += stride)
      this.tell(extractor.topic, bytes, at, at + end - start, 0, false);
  }

  private publish(rule: SubRule, options: SubscriptionOptions, bytes: Uint8Array, start: number, end: number): void {
    const { counters } = rule;
    counters.matched.value++;
    if (rule.rate !== null && !rule.rate.allow()) {
      counters.drop('rate');
      return;
    }
    if (!rule.works) {
      this.hand(counters, this.extractor.topic, bytes, start, end, options, null);
      return;
    }
    const { incoming } = this;
    const fault = incoming.take(this.extractor, options, bytes, end);
    if (fault !== null) counters.drop(fault);
    else {
      const { topic, properties } = incoming;
      this.hand(counters, topic, incoming.bytes, incoming.start, incoming.end, options, properties);
    }
  }

  private publishFallback(bytes: Uint8Array, start: number, end: number): void {
    if (this.fallback === null) return;
    this.fallback.matched.value++;
    this.hand(this.fallback, this.extractor.topic, bytes, start, end, { qos: 0, retain: false }, null);
  }

  private hand(
    counters: RuleCounters,
    topic: string,
    bytes: Uint8Array,
    start: number,
    end: number,
    options: Pick<SubscriptionOptions, 'qos' | 'retain'>,
    properties: Properties | null,
  ): void {
    const { client } = this;
    if (client === null) return;
    const { qos, retain } = options;
    const outcome =
      qos === 0 && !retain && properties === null
        ? client.publishSoon(topic, bytes, start, end)
        : client.publish(topic, bytes, start, end, qos, retain, properties);
    if (outcome !== 'accepted' && outcome !== 'no-subscribers') {
      counters.drop(outcome satisfies DropReason);
      return;
    }
    counters.forwarded.value++;
    counters.bytes.value += end - start;
    if (qos > 0) this.hold(client, end - start);
    if (this.takers.length > 0) this.tell(topic, bytes, start, end, qos, retain);
  }

  private tell(topic: string, bytes: Uint8Array, start: number, end: number, qos: Qos, retain: boolean): void {
    for (let i = 0; i < this.takers.length; i++) this.takers[i](topic, bytes, start, end, qos, retain);
  }

  /** Sources are slowed down while the gateway is over its memory budget, these like any client. */
  private look(): void {
    this.framesUntilLook = LOOK_FRAMES;
    this.bytesUntilLook = LOOK_BYTES;
    this.client?.relieve(this.source);
  }

  private hold(client: LocalClient, bytes: number): void {
    const hold = client.lastHold();
    if (hold === null || !hold.open) return;
    this.held++;
    this.heldBytes += bytes;
    hold.whenDone(() => this.released(bytes));
    if (this.paused || (this.held < MOST_HELD && this.heldBytes < MOST_HELD_BYTES)) return;
    this.paused = true;
    this.socket?.pause();
  }

  private released(bytes: number): void {
    this.held--;
    this.heldBytes -= bytes;
    if (!this.paused || this.held > MOST_HELD / 2 || this.heldBytes > MOST_HELD_BYTES / 2) return;
    this.paused = false;
    if (!this.ended) this.socket?.resume();
  }

  private lost(bytes: Uint8Array, start: number, end: number, pipe: PipeView): void {
    this.unmatched.value++;
    this.warn('warn', 'NNG-UNMATCHED', {
      bridge: this.options.name,
      type: this.options.type,
      peer: pipe.remote,
      bytes: end - start,
      begins: escapeBytes(bytes, start, Math.min(end, start + SHOWN_BYTES)),
    });
  }
}

/** Whether a rule passes payloads on as they are, as fast as they come, and needs no acknowledgement. */
function isPlain(rule: SubscriptionOptions): boolean {
  return rule.qos === 0 && !rule.retain && !needsWork(rule) && (rule.rateLimit ?? 0) === 0;
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
  const from = rule.frame === 'payload' ? '(payload)' : `${rule.remoteTopic} ${JSON.stringify(rule.nngDelimiter)}`;
  const trace = (rule.trace ?? 'keep') === 'keep' ? '' : `, trace ${rule.trace}`;
  return `${from} -> ${to} qos ${rule.qos}${rule.retain ? ', retain' : ''}${match}${trace}`;
}
