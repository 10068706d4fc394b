// The trace header that eKuiper and Neuron put in front of a payload, and its ids as W3C text (MQTT 5: the User
// Property traceparent). Used by outgoing.ts and incoming.ts. Pure. Sources: docs/local-analytics.md; W3C Trace
// Context, version 00.
//
//   | 0A CE | trace id, 16 bytes | span id, 8 bytes |       00-<trace id, 32 hex>-<span id, 16 hex>-01
import { randomBytes } from 'node:crypto';
import type { Properties } from '../../mqtt/property.ts';

export const TRACE_BYTES = 26;
export const TRACEPARENT = 'traceparent';
const TRACE_ID_BYTES = 16;
const W3C = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/;
const NO_ID = /^0+$/;

/** Whether bytes[start, end) begins with a trace header. No JSON text and no UTF-8 text does. */
export function hasTrace(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start >= TRACE_BYTES && bytes[start] === 0x0a && bytes[start + 1] === 0xce;
}

/** The ids of the header at `start` as W3C text; null where one of them is zero, which means none. */
export function traceparentAt(bytes: Uint8Array, start: number): string | null {
  const ids = Buffer.from(bytes.subarray(start + 2, start + TRACE_BYTES)).toString('hex');
  const trace = ids.slice(0, 2 * TRACE_ID_BYTES);
  const span = ids.slice(2 * TRACE_ID_BYTES);
  return NO_ID.test(trace) || NO_ID.test(span) ? null : `00-${trace}-${span}-01`;
}

/** The header for a message: with the ids of its traceparent, else with new ones. */
export function traceHeader(properties: Properties | null): Buffer {
  const header = Buffer.allocUnsafe(TRACE_BYTES);
  header.writeUInt16BE(0x0ace, 0);
  const text = properties?.userProperties?.findLast(([name]) => name === TRACEPARENT)?.[1] ?? '';
  const found = W3C.exec(text.toLowerCase());
  if (found === null || NO_ID.test(found[1]) || NO_ID.test(found[2])) randomBytes(TRACE_BYTES - 2).copy(header, 2);
  else header.write(found[1] + found[2], 2, 'hex');
  return header;
}
