// Which bytes of a bridge's frame are topic, delimiter and payload. Pure; used by the rule tester and its tests.
// The gateway says what a rule makes of an input; this only finds the borders in it.

export type Part = 'topic' | 'delimiter' | 'trace' | 'payload' | 'frame';

/** A trace header in front of a payload: 0A CE and 24 bytes of ids. */
const TRACE_BYTES = 26;

export interface Segment {
  readonly part: Part;
  readonly start: number;
  /** Behind its last byte. */
  readonly end: number;
}

function endsWith(bytes: Uint8Array, end: number, tail: Uint8Array): boolean {
  const start = end - tail.length;
  if (start < 0) return false;
  for (let i = 0; i < tail.length; i++) if (bytes[start + i] !== tail[i]) return false;
  return true;
}

/** Where `part` stands in `bytes` for the first time, -1 when it does not. */
export function indexOf(bytes: Uint8Array, part: Uint8Array): number {
  if (part.length === 0) return -1;
  for (let at = 0; at + part.length <= bytes.length; at++) if (endsWith(bytes, at + part.length, part)) return at;
  return -1;
}

function filled(segments: readonly Segment[]): Segment[] {
  return segments.filter(({ start, end }) => end > start);
}

/** Where a payload that ends at `end` and may have a trace header in front of it begins, header included. */
function tracedStart(frame: Uint8Array, payloadStart: number): number {
  const at = payloadStart - TRACE_BYTES;
  return at >= 0 && frame[at] === 0x0a && frame[at + 1] === 0xce ? at : payloadStart;
}

/** A frame without topic: a trace header, if there is one, and the payload in whatever form. */
export function cutPayload(frame: Uint8Array): Segment[] {
  const start = frame.length >= TRACE_BYTES && tracedStart(frame, TRACE_BYTES) === 0 ? TRACE_BYTES : 0;
  return filled([
    { part: 'trace', start: 0, end: start },
    { part: 'payload', start, end: frame.length },
  ]);
}

/**
 * Cuts a frame at the payload that ends it, and at the delimiter before that. A payload that was packed on its way
 * (base64, JSON) does not stand in the frame: then the first delimiter is the border, and without one the frame is one
 * piece.
 */
export function cut(frame: Uint8Array, payload: Uint8Array, delimiter: Uint8Array): Segment[] {
  let payloadStart = -1;
  let delimiterStart = -1;
  if (endsWith(frame, frame.length, payload)) {
    payloadStart = frame.length - payload.length;
    const head = tracedStart(frame, payloadStart);
    delimiterStart = endsWith(frame, head, delimiter) ? head - delimiter.length : head;
  } else {
    delimiterStart = indexOf(frame, delimiter);
    payloadStart = delimiterStart < 0 ? -1 : delimiterStart + delimiter.length;
    // A header in front of what was packed.
    if (payloadStart >= 0 && tracedStart(frame, payloadStart + TRACE_BYTES) === payloadStart)
      payloadStart += TRACE_BYTES;
  }
  if (payloadStart < 0) return filled([{ part: 'frame', start: 0, end: frame.length }]);
  const delimiterEnd = tracedStart(frame, payloadStart);
  return filled([
    { part: 'topic', start: 0, end: delimiterStart },
    { part: 'delimiter', start: delimiterStart, end: Math.min(payloadStart, delimiterEnd) },
    { part: 'trace', start: delimiterEnd, end: payloadStart },
    { part: 'payload', start: payloadStart, end: frame.length },
  ]);
}

/** The part that a byte belongs to. */
export function partAt(segments: readonly Segment[], at: number): Part {
  return segments.find(({ start, end }) => at >= start && at < end)?.part ?? 'frame';
}
