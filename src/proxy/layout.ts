// Where the fields of a CONNECT stand: what rewrite.ts needs to change three of them and leave every other byte alone.
// Called once for each client, after the whole packet is there. The packet is decoded first (codec/), so the walk meets
// no surprise. Source: MQTT 5.0 section 3.1, 3.1.1 section 3.1, 3.1 section 3.1.
//
//   fixed header | name, level, flags, keep alive, 5.0: properties | client id | will | user name | password
import { newFrame } from '../codec/codec.ts';
import { decodeConnect } from '../codec/connect.ts';
import { readFrame } from '../codec/frame.ts';
import { isText } from '../codec/text.ts';
import type { ConnectPacket } from '../mqtt/packet.ts';
import { skipVarint, varintAt } from '../mqtt/varint.ts';

/**
 * Offsets into `bytes`; those of fields point at the content, two bytes behind the length. A field that is absent has
 * start -1.
 */
export interface ConnectLayout {
  readonly bytes: Buffer;
  readonly packet: ConnectPacket;
  /** null = absent, or bytes that are no text (3.1 allows them). */
  readonly username: string | null;
  readonly bodyStart: number;
  readonly flagsAt: number;
  readonly idStart: number;
  readonly idEnd: number;
  /** The will with its properties and lengths; empty when idEnd equals it. */
  readonly willEnd: number;
  readonly usernameStart: number;
  readonly usernameEnd: number;
  readonly passwordStart: number;
  readonly passwordEnd: number;
  readonly end: number;
}

const USERNAME_FLAG = 0x80;
const PASSWORD_FLAG = 0x40;
const WILL_FLAG = 0x04;

/** `bytes` must hold the whole packet at its start; what follows is not looked at. Throws ConnectError. */
export function readLayout(bytes: Buffer, maxBytes: number): ConnectLayout {
  const frame = newFrame();
  readFrame(bytes, 0, bytes.length, frame, maxBytes);
  const packet = decodeConnect(bytes, frame);
  const { bodyStart, end } = frame;
  const flagsAt = bodyStart + 2 + bytes.readUInt16BE(bodyStart) + 1;
  const flags = bytes[flagsAt];
  let at = flagsAt + 3;
  if (packet.version === 5) at = skipProperties(bytes, at);
  const idStart = at + 2;
  const idEnd = skipField(bytes, at);
  at = idEnd;
  if ((flags & WILL_FLAG) !== 0) {
    if (packet.version === 5) at = skipProperties(bytes, at);
    at = skipField(bytes, skipField(bytes, at));
  }
  const willEnd = at;
  let usernameStart = -1;
  let usernameEnd = -1;
  // 3.1: a flag without bytes is no field.
  if ((flags & USERNAME_FLAG) !== 0 && at < end) {
    usernameStart = at + 2;
    at = usernameEnd = skipField(bytes, at);
  }
  let passwordStart = -1;
  let passwordEnd = -1;
  if ((flags & PASSWORD_FLAG) !== 0 && at < end) {
    passwordStart = at + 2;
    passwordEnd = skipField(bytes, at);
  }
  const username = usernameStart >= 0 && isText(bytes, usernameStart, usernameEnd) ? packet.username : null;
  return {
    bytes,
    packet,
    username,
    bodyStart,
    flagsAt,
    idStart,
    idEnd,
    willEnd,
    usernameStart,
    usernameEnd,
    passwordStart,
    passwordEnd,
    end,
  };
}

function skipField(bytes: Buffer, at: number): number {
  return at + 2 + bytes.readUInt16BE(at);
}

function skipProperties(bytes: Buffer, at: number): number {
  return skipVarint(bytes, at) + varintAt(bytes, at);
}
