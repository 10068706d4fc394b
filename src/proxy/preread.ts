// Reads a client's first packet without consuming it: decides, after every chunk, whether a CONNECT is complete, may
// become one, or cannot. Called by relay.ts. Bounded by what the header announces and by `maxBytes`: a packet that is
// too large is refused from its header alone, bytes that are no CONNECT at the first one that shows it. Source: MQTT
// 5.0 sections 2.1, 3.1.2.1; RFC 8446 section 5.1 (TLS record).
import { ProtocolError } from '../base/errors.ts';
import { type Frame, newFrame } from '../codec/codec.ts';
import { readFrame } from '../codec/frame.ts';
import { CONNECT } from '../mqtt/packet.ts';
import { PACKET_TOO_LARGE } from '../mqtt/reason.ts';

/** `tls` and `not-mqtt` are bytes of another protocol, the others a CONNECT that cannot be taken. */
export type PrereadResult = 'more' | 'complete' | 'tls' | 'not-mqtt' | 'malformed' | 'too-large';

/** Why a first packet is not taken. */
export const UNTAKEN = {
  tls: 'TLS on a port for plain connections',
  'not-mqtt': 'not MQTT',
  malformed: 'malformed CONNECT',
  'too-large': 'CONNECT is too large',
} as const;

/** Length of the name and the name, as they begin the packet's body. */
const NAMES = [Buffer.from('\0\x04MQTT'), Buffer.from('\0\x06MQIsdp')];
/** A handshake record of any version of TLS. */
const TLS_RECORD = 0x16;
const TLS_MAJOR = 0x03;

const SMALLEST_ROOM = 64;
const NONE = Buffer.alloc(0);

export class Preread {
  /** What has come so far; after 'complete' the packet and what follows it. */
  bytes: Buffer = NONE;
  /** Offset behind the packet, known once its header is complete, else 0. */
  end = 0;
  private readonly maxBytes: number;
  private readonly frame: Frame = newFrame();
  /** Room for the announced packet, once it comes in more than one piece. */
  private room: Buffer | null = null;
  private filled = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /**
   * Takes the next chunk. It is kept when it is the first and otherwise copied, once the announced length is known to
   * be allowed.
   */
  push(chunk: Buffer): PrereadResult {
    this.append(chunk);
    return this.look();
  }

  private append(chunk: Buffer): void {
    if (this.bytes.length === 0) {
      this.bytes = chunk;
      this.filled = chunk.length;
      return;
    }
    const total = this.filled + chunk.length;
    if (this.room === null || this.room.length < total) {
      // Grows with what has come, not with what was announced: an announcement costs its sender nothing.
      const room = Buffer.allocUnsafe(Math.max(total, SMALLEST_ROOM, Math.min(this.end, 2 * total)));
      this.bytes.copy(room);
      this.room = room;
    }
    chunk.copy(this.room, this.filled);
    this.filled = total;
    this.bytes = this.room.subarray(0, total);
  }

  private look(): PrereadResult {
    const { bytes, frame } = this;
    const length = bytes.length;
    if (length === 0) return 'more';
    if (bytes[0] === TLS_RECORD) return length === 1 ? 'more' : bytes[1] === TLS_MAJOR ? 'tls' : 'not-mqtt';
    if (bytes[0] >> 4 !== CONNECT) return 'not-mqtt';
    let complete: 0 | 1;
    try {
      complete = readFrame(bytes, 0, length, frame, this.maxBytes);
    } catch (error) {
      return error instanceof ProtocolError && error.reasonCode === PACKET_TOO_LARGE ? 'too-large' : 'malformed';
    }
    this.end = frame.end;
    if (frame.end > 0 && !this.nameFits()) return 'not-mqtt';
    return complete === 1 ? 'complete' : 'more';
  }

  /** Whether the body begins like one of the two names, as far as it is there. */
  private nameFits(): boolean {
    const { bytes, frame } = this;
    const end = Math.min(bytes.length, frame.end);
    for (const name of NAMES) {
      const length = Math.min(name.length, end - frame.bodyStart);
      if (bytes.compare(name, 0, length, frame.bodyStart, frame.bodyStart + length) === 0) {
        // Too short for its own name: malformed, which decoding will say.
        return true;
      }
    }
    return false;
  }
}
