// What a message becomes under one rule of `forwards`: head and payload of the frame, byte for byte.
// Used by forward.ts for each message, and by gateway/ for the tester: what it shows is what the bridge sends.
// Allocates nothing where the payload goes as it is. Source: docs/nng-bridges.md, docs/local-analytics.md.
//
//   frame = [topic part + delimiter +] [trace header] + payload
import { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import type { Compat, ForwardOptions } from '../bridge.ts';
import { hasTrace, TRACE_BYTES, traceHeader } from '../trace.ts';
import { ForwardHead, joinFrame } from './rules.ts';
import { encodePayload } from './transform.ts';

const NO_BYTES = new Uint8Array(0);

/** What of a rule decides how its frames look. */
export type FrameRule = Pick<
  ForwardOptions,
  'localTopic' | 'remoteTopic' | 'nngDelimiter' | 'payload' | 'frame' | 'trace'
>;

export class Outgoing {
  /** Whether every payload goes as it is: then head() is all there is to do. */
  readonly plain: boolean;
  /** The frame of the last make(): head + bytes[start, end). The head is shared: do not change it. */
  head: Uint8Array = NO_BYTES;
  bytes: Uint8Array = NO_BYTES;
  start = 0;
  end = 0;
  private readonly rule: FrameRule;
  private readonly topicHead: ForwardHead | null;

  constructor(rule: FrameRule, compat: Compat) {
    this.rule = rule;
    const { frame = 'topic', trace = 'keep', payload = 'raw' } = rule;
    this.topicHead = frame === 'payload' ? null : new ForwardHead(rule, compat);
    this.plain = trace === 'keep' && payload === 'raw';
  }

  /** What stands in front of the payload of a message on `topic`, without a trace header. */
  headOf(topic: string): Uint8Array {
    return this.topicHead === null ? NO_BYTES : this.topicHead.of(topic);
  }

  make(publication: Publication): void {
    this.head = this.headOf(publication.topic);
    this.bytes = publication.buffer;
    this.start = publication.payloadStart;
    this.end = publication.payloadEnd;
    if (this.plain) return;
    const { trace = 'keep', payload = 'raw' } = this.rule;
    const traced = trace !== 'keep' && hasTrace(this.bytes, this.start, this.end);
    if (payload !== 'raw') {
      const skip = traced ? TRACE_BYTES : 0;
      this.bytes = encodePayload(payload, publication, skip);
      // A header that was there stays in front of what is packed.
      if (traced && trace === 'add') this.header(publication.buffer, publication.payloadStart);
      this.start = 0;
      this.end = this.bytes.length;
    } else if (traced && trace === 'strip') this.start += TRACE_BYTES;
    if (trace === 'add' && !traced) this.header(traceHeader(publication.properties), 0);
  }

  private header(from: Uint8Array, at: number): void {
    this.head = joinFrame(this.head, from, at, at + TRACE_BYTES);
  }
}

/** A message to try a rule on. */
export interface FrameSample {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties?: Properties | null;
}

/** The whole frame that `rule` makes of a message; whether it takes the message is the caller's matter. */
export function buildFrame(rule: FrameRule, compat: Compat, sample: FrameSample): Buffer {
  const publication = new Publication({ kind: 'api', clientId: '', username: null, bridge: null });
  publication.topic = sample.topic;
  publication.qos = sample.qos;
  publication.retain = sample.retain;
  publication.properties = sample.properties ?? null;
  publication.buffer = sample.payload;
  publication.payloadEnd = sample.payload.length;
  const outgoing = new Outgoing(rule, compat);
  outgoing.make(publication);
  return joinFrame(outgoing.head, outgoing.bytes, outgoing.start, outgoing.end);
}
