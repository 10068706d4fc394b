// One rule of `forwards` as a receiver of the broker: which messages it takes (loops, rate, retained, from where), and
// how a message becomes a frame. Made by out.ts, which sends what comes of it or lets it wait.
import type { LocalReceiver } from '../../broker/broker.ts';
import type { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import type { ForwardOptions, SendingBridgeOptions } from '../bridge.ts';
import type { RuleCounters } from '../counters.ts';
import { RateLimit } from '../rate.ts';
import type { BridgeParts } from './link.ts';
import { Outgoing } from './outgoing.ts';

/** Where frames go. */
export interface Forwarding {
  readonly options: SendingBridgeOptions;
  /** A message of QoS 1 or 2 that came now would go to the store, or be refused with it. */
  readonly stores: boolean;
  /** Sends head + bytes[start, end) or lets it wait. */
  forward(
    rule: ForwardRule,
    head: Uint8Array,
    bytes: Uint8Array,
    start: number,
    end: number,
    from: Publication,
    qos: Qos,
  ): void;
  /** The same for the packets of one topic in publication.buffer[start, end); returns how many there are. */
  forwardRun(rule: ForwardRule, head: Uint8Array, publication: Publication, start: number, end: number): number;
}

/** One rule as a receiver of the broker. */
export class ForwardRule implements LocalReceiver {
  readonly index: number;
  readonly options: ForwardOptions;
  readonly counters: RuleCounters;
  private readonly out: Forwarding;
  private readonly outgoing: Outgoing;
  private readonly rate: RateLimit | null;
  private readonly bridge: string;
  private readonly mqttOnly: boolean;
  private readonly liveOnly: boolean;

  constructor(index: number, options: ForwardOptions, out: Forwarding, parts: BridgeParts, counters: RuleCounters) {
    this.index = index;
    this.options = options;
    this.out = out;
    const { name, compat } = out.options;
    this.counters = counters;
    this.outgoing = new Outgoing(options, compat);
    this.rate = (options.rateLimit ?? 0) > 0 ? new RateLimit(options.rateLimit ?? 0, () => parts.clock.mono()) : null;
    this.bridge = `nng:${name}`;
    this.mqttOnly = options.from === 'mqtt';
    this.liveOnly = options.retain === 'live';
  }

  get stores(): boolean {
    return this.out.stores;
  }

  receiveRun(publication: Publication, start: number, end: number): void {
    if (publication.origin.bridge !== null || this.rate !== null || !this.outgoing.plain) {
      for (let at = start; at < end; ) {
        at = publication.step(at);
        this.receive(publication, 0);
      }
      return;
    }
    this.counters.matched.value += this.out.forwardRun(
      this,
      this.outgoing.headOf(publication.topic),
      publication,
      start,
      end,
    );
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
    this.send(publication, qos);
  }

  send(publication: Publication, qos: Qos): void {
    const { outgoing } = this;
    outgoing.make(publication);
    this.out.forward(this, outgoing.head, outgoing.bytes, outgoing.start, outgoing.end, publication, qos);
  }
}

/** The rule in a line, for the log. */
export function describe(rule: ForwardOptions): string {
  const from = rule.from === 'mqtt' ? ', from mqtt' : '';
  const retain = rule.retain === 'any' ? '' : `, retain ${rule.retain}`;
  const { frame, trace = 'keep', remoteTopic, nngDelimiter } = rule;
  const topic = `${remoteTopic === '' ? '(topic)' : remoteTopic} ${JSON.stringify(nngDelimiter)}`;
  const to = frame === 'payload' ? '(payload)' : topic;
  return `${rule.localTopic} -> ${to} qos ${rule.qos}${from}${retain}${trace === 'keep' ? '' : `, trace ${trace}`}`;
}
