// Bytes of the Scalability Protocols on a stream: the greeting and the frames of both mappings.
// Called by sp/ for every pipe. Must not know sockets, queues or topics; never throws at what a peer sends.
// Sources: sp-tcp-mapping-01 and sp-ipc-mapping-01 of the nanomsg RFCs, and what nng and nanomsg put on the wire.
//
//   greeting | 00 | 53 'S' | 50 'P' | 00 version | protocol u16 | 00 00 reserved |
//   tcp      | length u64, big-endian | body |
//   ipc      | 01 | length u64, big-endian | body |     (the RFC says type 0; every implementation sends 1)

export const GREETING_BYTES = 8;
export const TCP_HEADER_BYTES = 8;
export const IPC_HEADER_BYTES = 9;
/** The only message type of the ipc mapping that is in use. */
const IPC_MESSAGE = 1;

/** The eight bytes that each side sends first. */
export function encodeGreeting(protocol: number): Uint8Array {
  return Uint8Array.of(0, 0x53, 0x50, 0, protocol >> 8, protocol & 0xff, 0, 0);
}

/** What a greeting turned out to be. `wrong-protocol`: SP, but a socket that does not fit this one. */
export type GreetingResult = 'more' | 'ok' | 'bad-greeting' | 'wrong-protocol';

/** Reads a peer's greeting in whatever pieces it comes, and says no at the first byte that cannot be right. */
export class GreetingReader {
  /** Bytes seen so far, at most GREETING_BYTES. */
  have = 0;
  private readonly wanted: Uint8Array;

  /** @param protocol the number the peer has to announce */
  constructor(protocol: number) {
    this.wanted = encodeGreeting(protocol);
  }

  /** Takes bytes from `at`; afterwards `have` tells how many of the greeting are there. */
  push(chunk: Uint8Array, at: number): GreetingResult {
    let wrongProtocol = false;
    for (let i = at; i < chunk.length && this.have < GREETING_BYTES; i++) {
      const position = this.have++;
      if (chunk[i] === this.wanted[position]) continue;
      if (position !== 4 && position !== 5) return 'bad-greeting';
      wrongProtocol = true;
    }
    if (wrongProtocol) return 'wrong-protocol';
    return this.have < GREETING_BYTES ? 'more' : 'ok';
  }
}

/** Writes a frame header for `bodyBytes` at `at`, which must have room; returns the offset behind it. */
export function writeFrameHeader(target: Uint8Array, at: number, bodyBytes: number, ipc: boolean): number {
  if (ipc) target[at++] = IPC_MESSAGE;
  const high = Math.floor(bodyBytes / 0x100000000);
  target[at] = 0;
  target[at + 1] = high >>> 16;
  target[at + 2] = high >>> 8;
  target[at + 3] = high;
  target[at + 4] = bodyBytes >>> 24;
  target[at + 5] = bodyBytes >>> 16;
  target[at + 6] = bodyBytes >>> 8;
  target[at + 7] = bodyBytes;
  return at + 8;
}

/**
 * The u64 at `at` as a number; Infinity when it is 2^53 or more, which no limit lets pass and no arithmetic rounds
 * down.
 */
export function readLength(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0 || bytes[at + 1] >= 0x20) return Number.POSITIVE_INFINITY;
  const low = ((bytes[at + 4] << 24) | (bytes[at + 5] << 16) | (bytes[at + 6] << 8) | bytes[at + 7]) >>> 0;
  const high = ((bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
  return high * 0x100000000 + low;
}

/** Why a stream of frames cannot go on. */
export type FrameFault = 'too-large' | 'bad-frame' | 'no-memory';

/** Gets each body: bytes[start, end), valid until it returns. Answering false stops the reader: its pipe is closed. */
export type OnFrame = (bytes: Uint8Array, start: number, end: number) => boolean;

/**
 * Gets `count` bodies of `length` bytes each, the first at bytes[start], every other `stride` bytes behind the one
 * before.
 */
export type OnRun = (bytes: Uint8Array, start: number, length: number, stride: number, count: number) => boolean;

/** So many frames of one length in a row are a run. */
const RUN_FRAMES = 4;

/** A body that comes in pieces starts with at most this much memory and doubles as bytes really arrive. */
const FIRST_PIECE_BYTES = 65536;
/** The memory of a cut body this small stays with its reader: small frames are cut at the end of every read. */
const SMALL_BODY_BYTES = 1024;

/** What fill() returns where memory for a body was refused. */
const STARVED = -2;

/** Used up once read: a reader in between holds no memory. */
const NOTHING = Buffer.alloc(0);

/**
 * Cuts a stream of chunks into bodies. Whole frames are handed out in place, without allocation; only a frame that ends
 * in a later chunk is copied. A length above the limit is a fault before any memory is spent on it.
 */
export class FrameReader {
  /** Length of the frame that was refused, Infinity when it is beyond 2^53; valid after a fault 'too-large'. */
  refusedBytes = 0;
  /** Bodies handed out, and their bytes. */
  frames = 0;
  bytes = 0;
  private readonly ipc: boolean;
  private readonly headerBytes: number;
  private readonly maxBytes: number;
  private readonly onFrame: OnFrame;
  private readonly onRun: OnRun | null;
  private readonly claim: (bytes: number) => boolean;
  /** A header that was cut. */
  private readonly header = new Uint8Array(IPC_HEADER_BYTES);
  private headerHave = 0;
  /** A body that was cut: `partHave` of `partWant` bytes are in `part`; partWant is -1 when there is none. */
  private part: Buffer = NOTHING;
  private partHave = 0;
  private partWant = -1;
  /** For small ones; empty until there was one. */
  private small: Buffer = NOTHING;

  /**
   * @param maxBytes largest body taken, 0 = no limit
   * @param onRun gets frames of one length that lie in one chunk; null: they come one by one
   * @param claim asked before memory for a cut body is taken, and told with a negative number when it is given back
   */
  constructor(
    ipc: boolean,
    maxBytes: number,
    onFrame: OnFrame,
    onRun: OnRun | null = null,
    claim: (bytes: number) => boolean = () => true,
  ) {
    this.onRun = onRun;
    this.claim = claim;
    this.ipc = ipc;
    this.headerBytes = ipc ? IPC_HEADER_BYTES : TCP_HEADER_BYTES;
    this.maxBytes = maxBytes > 0 ? maxBytes : Number.MAX_SAFE_INTEGER;
    this.onFrame = onFrame;
  }

  /** Whether a frame has begun and not ended. */
  get midFrame(): boolean {
    return this.headerHave > 0 || this.partWant >= 0;
  }

  /** Reads chunk[at, chunk.length). Returns why the stream is at its end, or null. */
  push(chunk: Uint8Array, at: number): FrameFault | null {
    const end = chunk.length;
    if (this.partWant >= 0) {
      at = this.fill(chunk, at);
      if (at === STARVED) return 'no-memory';
      if (at < 0) return null;
    }
    if (this.headerHave > 0) {
      const missing = this.headerBytes - this.headerHave;
      const take = Math.min(missing, end - at);
      for (let i = 0; i < take; i++) this.header[this.headerHave++] = chunk[at++];
      if (this.header[0] !== IPC_MESSAGE && this.ipc) return 'bad-frame';
      if (take < missing) return null;
      this.headerHave = 0;
      const length = this.lengthAt(this.header, 0);
      if (length < 0) return 'too-large';
      if (end - at < length) return this.begin(chunk, at, length) ? null : 'no-memory';
      if (!this.give(chunk, at, at + length)) return null;
      at += length;
    }
    return this.whole(chunk, at, end);
  }

  /** The fast path: frames that begin and end in this chunk. */
  private whole(chunk: Uint8Array, at: number, end: number): FrameFault | null {
    const headerBytes = this.headerBytes;
    while (end - at >= headerBytes) {
      if (this.ipc && chunk[at] !== IPC_MESSAGE) return 'bad-frame';
      const length = this.lengthAt(chunk, at);
      if (length < 0) return 'too-large';
      at += headerBytes;
      if (end - at < length) return this.begin(chunk, at, length) ? null : 'no-memory';
      const count = this.onRun === null ? 1 : this.alike(chunk, at, length, end);
      if (count >= RUN_FRAMES) {
        if (!this.giveRun(chunk, at, length, count)) return null;
        at += (headerBytes + length) * count - headerBytes;
        continue;
      }
      if (!this.give(chunk, at, at + length)) return null;
      at += length;
    }
    if (at < end && this.ipc && chunk[at] !== IPC_MESSAGE) return 'bad-frame';
    while (at < end) this.header[this.headerHave++] = chunk[at++];
    return null;
  }

  /** The body length that the header at `at` announces, -1 when it is above the limit. */
  private lengthAt(bytes: Uint8Array, at: number): number {
    const length = readLength(bytes, this.ipc ? at + 1 : at);
    if (length <= this.maxBytes) return length;
    this.refusedBytes = length;
    return -1;
  }

  /** How many whole frames from the one whose body is at `at` have its header. */
  private alike(chunk: Uint8Array, at: number, length: number, end: number): number {
    const { headerBytes } = this;
    const stride = headerBytes + length;
    const most = Math.floor((end - at + headerBytes) / stride);
    // The low bytes of the length are the ones that differ.
    let header = at - headerBytes;
    for (let count = 1; count < most; count++, header += stride) {
      for (let i = headerBytes - 1; i >= 0; i--) if (chunk[header + i] !== chunk[header + stride + i]) return count;
    }
    return most;
  }

  private giveRun(bytes: Uint8Array, start: number, length: number, count: number): boolean {
    this.frames += count;
    this.bytes += length * count;
    return this.onRun?.(bytes, start, length, this.headerBytes + length, count) ?? false;
  }

  private give(bytes: Uint8Array, start: number, end: number): boolean {
    this.frames++;
    this.bytes += end - start;
    return this.onFrame(bytes, start, end);
  }

  /** Forgets a body that was cut: nothing more is read. */
  close(): void {
    if (this.part.length > 0) this.claim(-this.part.length);
    this.part = NOTHING;
    this.partWant = -1;
  }

  /** Keeps the beginning of a body that goes on in a later chunk; false when there is no memory for it. */
  private begin(chunk: Uint8Array, at: number, length: number): boolean {
    const have = chunk.length - at;
    // A length alone is a claim: memory follows the bytes that are there, not the ones that are promised.
    const small = length <= SMALL_BODY_BYTES;
    const bytes = small ? SMALL_BODY_BYTES : Math.min(length, Math.max(FIRST_PIECE_BYTES, have * 2));
    if (!this.claim(bytes)) return false;
    if (small && this.small.length === 0) this.small = Buffer.allocUnsafeSlow(SMALL_BODY_BYTES);
    this.part = small ? this.small : Buffer.allocUnsafeSlow(bytes);
    this.part.set(at === 0 ? chunk : chunk.subarray(at), 0);
    this.partHave = have;
    this.partWant = length;
    return true;
  }

  /**
   * Adds to the kept body and hands it out when it is whole. Returns where the chunk goes on, -1 when it is used up or
   * reading ends, STARVED when there is no memory for more of it.
   */
  private fill(chunk: Uint8Array, at: number): number {
    const take = Math.min(this.partWant - this.partHave, chunk.length - at);
    if (this.part.length < this.partHave + take) {
      const bytes = Math.min(this.partWant, Math.max(this.part.length * 2, this.partHave + take));
      if (!this.claim(bytes - this.part.length)) return STARVED;
      const grown = Buffer.allocUnsafeSlow(bytes);
      grown.set(this.part.subarray(0, this.partHave), 0);
      this.part = grown;
    }
    this.part.set(chunk.subarray(at, at + take), this.partHave);
    this.partHave += take;
    if (this.partHave < this.partWant) return -1;
    const body = this.part;
    const length = this.partWant;
    this.claim(-body.length);
    this.part = NOTHING;
    this.partWant = -1;
    return this.give(body, 0, length) ? at + take : -1;
  }
}
