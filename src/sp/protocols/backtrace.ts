// The header of requests and surveys: the way back as 32-bit words, big-endian. Devices put one word each in front,
// without the high bit; the last word has it set and is the number of the request. An answer carries the same words
// back. Pure. Used by answers.ts, req.ts and surveyor.ts. Source: sp-reqrep-01 of the nanomsg RFCs (4. Message header).
//
//   | hop u32, high bit 0 | ... | request number u32, high bit 1 | body |

export const WORD_BYTES = 4;
/** Words before a body: hops (nng's NNG_OPT_MAXTTL is 8) and the number. */
const MOST_WORDS = 9;
export const BACKTRACE_BYTES = MOST_WORDS * WORD_BYTES;

/** Where the body begins, -1 when no word ends the header, -2 when it has come too far. */
export function bodyStart(bytes: Uint8Array, start: number, end: number): number {
  for (let words = 0, at = start; words < MOST_WORDS; words++, at += WORD_BYTES) {
    if (end - at < WORD_BYTES) return -1;
    if (bytes[at] >= 0x80) return at + WORD_BYTES;
  }
  return -2;
}

/** The word at `at`. */
export function readWord(bytes: Uint8Array, at: number): number {
  return ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
}

/** A random first number of requests; those that follow count up. */
export function firstNumber(): number {
  return (Math.floor(Math.random() * 0x80000000) | 0x80000000) >>> 0;
}

/** The number after `number`. */
export function nextNumber(number: number): number {
  return (((number + 1) & 0x7fffffff) | 0x80000000) >>> 0;
}

/** A request: its number and its body in one buffer. */
export function joinRequest(number: number, head: Uint8Array, body: Uint8Array, start: number, end: number): Buffer {
  const message = Buffer.allocUnsafe(WORD_BYTES + head.length + end - start);
  message.writeUInt32BE(number, 0);
  message.set(head, WORD_BYTES);
  message.set(body.subarray(start, end), WORD_BYTES + head.length);
  return message;
}
