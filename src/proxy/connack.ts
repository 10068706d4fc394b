// Watches what a server sends until its CONNACK: result, Server Keep Alive, and the place for an Assigned Client
// Identifier. Called by session.ts for the first bytes from the server only. Bounded: an answer that is none, or too
// large to be one, is passed on as it is. Source: MQTT 5.0 sections 3.2 and 3.15 (AUTH packets may come first),
// 3.2.2.3.7 (Assigned Client Identifier), 3.2.2.3.14 (Server Keep Alive).
import { ProtocolError } from '../base/errors.ts';
import { newFrame } from '../codec/codec.ts';
import { decodeConnack } from '../codec/connect.ts';
import { readFrame } from '../codec/frame.ts';
import { AUTH, CONNACK, type Version } from '../mqtt/packet.ts';
import { skipVarint, varintAt, varintBytes, writeVarint } from '../mqtt/varint.ts';

/** More than properties of any server; a larger CONNACK is not looked into. */
const MAX_BYTES = 64 * 1024;
const ASSIGNED_CLIENT_IDENTIFIER = 0x12;

export interface ConnackSeen {
  /** null: what came was no CONNACK that could be read. */
  readonly reasonCode: number | null;
  /** Seconds. */
  readonly serverKeepAlive: number | null;
  /** All bytes so far, the identifier put in. */
  readonly bytes: Buffer;
}

export class ConnackWatch {
  private readonly version: Version;
  /** The id to tell a client that came without one; null = it knows its id. */
  private readonly assigned: string | null;
  private held: Buffer | null = null;

  constructor(version: Version, assigned: string | null) {
    this.version = version;
    this.assigned = assigned;
  }

  /** Takes a chunk (which must not change); null = more is needed, nothing can be passed on yet. */
  push(chunk: Buffer): ConnackSeen | null {
    const bytes = this.held === null ? chunk : Buffer.concat([this.held, chunk]);
    this.held = null;
    const seen = this.look(bytes);
    if (seen === null) this.held = bytes;
    return seen;
  }

  /** What is held back when the server ends in the middle. */
  rest(): Buffer | null {
    const { held } = this;
    this.held = null;
    return held;
  }

  private look(bytes: Buffer): ConnackSeen | null {
    const frame = newFrame();
    const none = { reasonCode: null, serverKeepAlive: null, bytes };
    try {
      for (let at = 0; ; at = frame.end) {
        if (readFrame(bytes, at, bytes.length, frame, MAX_BYTES) === 0) {
          return bytes.length > at && !possible(bytes[at] >> 4) ? none : null;
        }
        if (frame.type === CONNACK) break;
        if (this.version !== 5 || frame.type !== AUTH) return none;
      }
      const { reasonCode, properties } = decodeConnack(bytes, frame, this.version);
      const { assigned } = this;
      const put =
        assigned !== null &&
        this.version === 5 &&
        reasonCode === 0 &&
        properties?.assignedClientIdentifier === undefined;
      return {
        reasonCode,
        serverKeepAlive: properties?.serverKeepAlive ?? null,
        bytes: put ? withIdentifier(bytes, frame.packetStart, frame.bodyStart, frame.end, assigned) : bytes,
      };
    } catch (error) {
      if (error instanceof ProtocolError) return none;
      throw error;
    }
  }
}

function possible(type: number): boolean {
  return type === CONNACK || type === AUTH;
}

/** The same bytes with one property more, before those that are there. */
function withIdentifier(bytes: Buffer, start: number, bodyStart: number, end: number, clientId: string): Buffer {
  const text = Buffer.from(clientId);
  const propertiesAt = skipVarint(bytes, bodyStart + 2);
  const newLength = varintAt(bytes, bodyStart + 2) + 3 + text.length;
  const remaining = 2 + varintBytes(newLength) + newLength;
  const packet = Buffer.allocUnsafe(1 + varintBytes(remaining) + remaining);
  packet[0] = bytes[start];
  let at = writeVarint(packet, 1, remaining);
  at += bytes.copy(packet, at, bodyStart, bodyStart + 2);
  at = writeVarint(packet, at, newLength);
  packet[at] = ASSIGNED_CLIENT_IDENTIFIER;
  at = packet.writeUInt16BE(text.length, at + 1);
  packet.set(text, at);
  bytes.copy(packet, at + text.length, propertiesAt, end);
  return Buffer.concat([bytes.subarray(0, start), packet, bytes.subarray(end)]);
}
