// What a frame that a rule of `subscription` took becomes: topic and payload, byte for byte. Used by in.ts for each
// frame that is not plain, and by gateway/ for the tester: what it shows is what the bridge publishes. What the
// extractor found comes in; trace header, payload form and topics from JSON fields are decided here.
import type { Properties } from '../../mqtt/property.ts';
import { fillFromJson } from '../../mqtt/template.ts';
import { isTopicName } from '../../mqtt/topic.ts';
import type { Compat, SubscriptionOptions } from '../bridge.ts';
import { jsonOf, Traced } from '../trace.ts';
import { Extractor } from './rules.ts';
import { decodePayload } from './transform.ts';

/** Why a frame that a rule took is not published. */
export type IncomingFault = 'payload-form' | 'missing-field' | 'invalid-topic';

const NO_BYTES = new Uint8Array(0);

/** Whether frames of this rule pass through here at all. */
export function needsWork({ payload = 'raw', trace = 'keep', localTopic }: SubscriptionOptions): boolean {
  return payload !== 'raw' || trace !== 'keep' || localTopic.includes('{json:');
}

export class Incoming {
  /** Of the last take() without a fault: payload = bytes[start, end). */
  topic = '';
  bytes: Uint8Array = NO_BYTES;
  start = 0;
  end = 0;
  /** Only what the trace header says; null = none. */
  properties: Properties | null = null;
  private readonly traced = new Traced();

  /** Works on what `extractor` has just matched in bytes[..., end). */
  take(extractor: Extractor, rule: SubscriptionOptions, bytes: Uint8Array, end: number): IncomingFault | null {
    this.topic = extractor.topic;
    this.bytes = bytes;
    this.start = extractor.payloadStart;
    this.end = end;
    this.properties = null;
    const { trace = 'keep', payload = 'raw' } = rule;
    if (trace === 'strip') this.applyTrace('strip');
    if (payload !== 'raw') {
      const decoded = decodePayload(payload, this.bytes, this.start, this.end);
      if (decoded === null) return 'payload-form';
      this.replace(decoded);
    }
    const fault = extractor.template?.json === true ? this.fillTopic(extractor, rule) : null;
    if (fault === null && trace === 'add') this.applyTrace('add');
    return fault;
  }

  private applyTrace(mode: 'strip' | 'add'): void {
    const { traced } = this;
    traced.take(mode, this.bytes, this.start, this.end, this.properties);
    this.bytes = traced.bytes;
    this.start = traced.start;
    this.end = traced.end;
    this.properties = traced.properties;
  }

  /** Fields come from the JSON of the payload; a trace header that stays in front of it is not part of that. */
  private fillTopic(extractor: Extractor, rule: SubscriptionOptions): IncomingFault | null {
    const { template, extracted, suffix } = extractor;
    if (template === null) return null;
    const value = jsonOf(this.bytes, this.start, this.end);
    const filled = fillFromJson(template, extracted, suffix, [], value) ?? rule.fallbackTopic ?? '';
    if (filled === '') return 'missing-field';
    if (!isTopicName(filled)) return 'invalid-topic';
    this.topic = filled;
    return null;
  }

  private replace(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.start = 0;
    this.end = bytes.length;
  }
}

/** What becomes of a frame under one rule alone; a text: why nothing is published. */
export function publishOf(rule: SubscriptionOptions, compat: Compat, frame: Uint8Array): Incoming | string {
  const extractor = new Extractor([rule], compat);
  const found = extractor.extract(frame, 0, frame.length);
  if (found !== 'match' && found !== 'fallback') return found;
  const incoming = new Incoming();
  // What 0.25.5 sends to its one topic goes there as it came.
  const plain = { ...rule, payload: 'raw', trace: 'keep' } as const;
  return incoming.take(extractor, found === 'match' ? rule : plain, frame, frame.length) ?? incoming;
}
