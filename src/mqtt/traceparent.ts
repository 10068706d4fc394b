// The trace that a message belongs to, as W3C Trace Context writes it (MQTT 5.0: the User Property traceparent). Used
// by bridge/trace.ts, which joins it to the trace header of local analytics, and by tracing/. Pure. What is not of the
// form counts as none. Source: W3C Trace Context, section 3.2 (version 00).
//
//   00-<trace id, 32 hex>-<span id, 16 hex>-<flags, 2 hex; 01 = sampled>
import type { Properties } from './property.ts';

export const TRACEPARENT = 'traceparent';
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
/** Longer texts are not looked at: later versions may append fields. */
const LONGEST = 512;
const NO_ID = /^0+$/;
const SAMPLED = 1;

export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
}

/** The trace of a message by its properties, the last one where there are several; null where there is none. */
export function traceOf(properties: Properties | null): TraceParent | null {
  const pairs = properties?.userProperties;
  if (pairs === undefined) return null;
  for (let i = pairs.length - 1; i >= 0; i--) if (pairs[i][0] === TRACEPARENT) return parseTraceparent(pairs[i][1]);
  return null;
}

export function parseTraceparent(text: string): TraceParent | null {
  if (text.length > LONGEST) return null;
  const found = FORM.exec(text.toLowerCase());
  if (found === null || found[1] === 'ff' || NO_ID.test(found[2]) || NO_ID.test(found[3])) return null;
  return { traceId: found[2], spanId: found[3], sampled: (Number.parseInt(found[4], 16) & SAMPLED) !== 0 };
}

/** The text for ids in hexadecimal; null where one of them is zero, which means none. */
export function traceparentOf(traceId: string, spanId: string): string | null {
  return NO_ID.test(traceId) || NO_ID.test(spanId) ? null : `00-${traceId}-${spanId}-01`;
}

/** Properties with this traceparent in the place of those that there are. */
export function withTraceparent(properties: Properties | null, traceparent: string): Properties {
  const others = (properties?.userProperties ?? []).filter(([name]) => name !== TRACEPARENT);
  return { ...properties, userProperties: [...others, [TRACEPARENT, traceparent]] };
}
