// The trace header that eKuiper and Neuron put in front of a payload, and its ids as W3C text (MQTT 5: the User
// Property traceparent), and payloads with and without it. Used by nng/outgoing.ts, nng/incoming.ts and mqtt/rules.ts,
// and by `tidegate nng`. Pure. Sources: docs/local-analytics.md; W3C Trace Context, version 00.
//
//   | 0A CE | trace id, 16 bytes | span id, 8 bytes |       00-<trace id, 32 hex>-<span id, 16 hex>-01
import { randomBytes } from 'node:crypto';
import { parseJson } from '../base/json.ts';
import type { Properties } from '../mqtt/property.ts';
import { traceOf, traceparentOf, withTraceparent } from '../mqtt/traceparent.ts';
import type { TraceForm } from './bridge.ts';

export const TRACE_BYTES = 26;
const TRACE_ID_BYTES = 16;

/** Whether bytes[start, end) begins with a trace header. No JSON text and no UTF-8 text does. */
export function hasTrace(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start >= TRACE_BYTES && bytes[start] === 0x0a && bytes[start + 1] === 0xce;
}

/** The ids of the header at `start` as W3C text; null where one of them is zero, which means none. */
export function traceparentAt(bytes: Uint8Array, start: number): string | null {
  const ids = Buffer.from(bytes.subarray(start + 2, start + TRACE_BYTES)).toString('hex');
  return traceparentOf(ids.slice(0, 2 * TRACE_ID_BYTES), ids.slice(2 * TRACE_ID_BYTES));
}

/** The header for a message: with the ids of its traceparent, else with new ones. */
export function traceHeader(properties: Properties | null): Buffer {
  const header = Buffer.allocUnsafe(TRACE_BYTES);
  header.writeUInt16BE(0x0ace, 0);
  const found = traceOf(properties);
  if (found === null) randomBytes(TRACE_BYTES - 2).copy(header, 2);
  else header.write(found.traceId + found.spanId, 2, 'hex');
  return header;
}

const NO_BYTES = new Uint8Array(0);

/** A payload as `trace` of a rule leaves it: bytes[start, end), and its properties. */
export class Traced {
  bytes: Uint8Array = NO_BYTES;
  start = 0;
  end = 0;
  properties: Properties | null = null;

  take(mode: TraceForm, bytes: Uint8Array, start: number, end: number, properties: Properties | null): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.properties = properties;
    if (mode === 'keep' || (mode === 'add') === hasTrace(bytes, start, end)) return;
    if (mode === 'strip') this.strip();
    else {
      this.bytes = Buffer.concat([traceHeader(properties), bytes.subarray(start, end)]);
      this.start = 0;
      this.end = this.bytes.length;
    }
  }

  /** The ids of the header take the place of those that the message has. */
  private strip(): void {
    const traceparent = traceparentAt(this.bytes, this.start);
    this.start += TRACE_BYTES;
    if (traceparent !== null) this.properties = withTraceparent(this.properties, traceparent);
  }
}

/** The JSON of a payload, a trace header in front of it left out; undefined where it is none. */
export function jsonOf(bytes: Uint8Array, start: number, end: number): unknown {
  const from = hasTrace(bytes, start, end) ? start + TRACE_BYTES : start;
  return parseJson(Buffer.from(bytes.buffer, bytes.byteOffset + from, end - from).toString());
}
