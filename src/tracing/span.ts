// One step of one traced message, as it waits to be exported. Made by sampler.ts, queued by exporter.ts, written by
// otlp.ts. Holds no payload.
import type { Qos } from '../mqtt/packet.ts';

/** Of SpanKind in OTLP's trace.proto. */
export const INTERNAL = 1;
export const PRODUCER = 4;
export const CONSUMER = 5;

export interface Span {
  /** Few different ones: what was handled is in the attributes. */
  readonly name: 'receive' | 'rule' | 'bridge' | 'deliver';
  readonly kind: typeof INTERNAL | typeof PRODUCER | typeof CONSUMER;
  /** In hexadecimal, 32 and 16 digits. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | null;
  /** Milliseconds since the epoch, with a fraction. */
  readonly startMs: number;
  readonly endMs: number;
  readonly topic: string;
  /** Of the payload. */
  readonly bytes: number;
  readonly qos: Qos;
  /** Of the publisher or the receiver; null inside the gateway. */
  readonly clientId: string | null;
  /** The rule, "nng:<name>" or "mqtt:<name>" of the bridge, or the name of another part of the gateway. */
  readonly part: string | null;
  /** What the message was refused with; 0 = it was not. */
  readonly reasonCode: number;
}

/** Takes spans; never waits and never throws. */
export interface SpanTaker {
  take(span: Span): void;
}
