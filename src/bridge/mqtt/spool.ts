// Messages for a remote broker as bytes of the journal's spool, and back. Called by outbox.ts. Pure.
// Bytes come back from a file that may be damaged: what cannot be read gives null and is counted by the caller.
//
//   byte 0       format, 1
//   bytes 1-8    wall-clock milliseconds when the message expires, float64 big-endian, 0 = never
//   bytes 9-10   rule (position in `forwards`), for counting
//   rest         PUBLISH packet of MQTT 5.0 under its remote topic
import { newFrame } from '../../codec/codec.ts';
import { readFrame } from '../../codec/frame.ts';
import { decodePublish, encodePublish, newScan } from '../../codec/publish.ts';
import { Publication } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import { PUBLISH } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import { isTopicName } from '../../mqtt/topic.ts';
import { VARINT_MAX } from '../../mqtt/varint.ts';

const FORMAT = 1;
const HEAD_BYTES = 11;
const NOBODY = { kind: 'server', clientId: '', username: null, bridge: null } as const;

export interface SpooledMessage {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties: Properties | null;
  readonly expiresAt: number;
  readonly rule: number;
}

export function encodeSpooled(message: SpooledMessage): Uint8Array {
  // The packet id is not part of it: it follows from the sequence (outbox.ts).
  const packet = encodePublish(5, { ...message, dup: false, packetId: 1 });
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + packet.length);
  bytes[0] = FORMAT;
  bytes.writeDoubleBE(message.expiresAt, 1);
  bytes.writeUInt16BE(Math.min(message.rule, 0xffff), 9);
  packet.copy(bytes, HEAD_BYTES);
  return bytes;
}

export function decodeSpooled(stored: Uint8Array): SpooledMessage | null {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  if (bytes.length < HEAD_BYTES || bytes[0] !== FORMAT) return null;
  const frame = newFrame();
  const publication = new Publication(NOBODY);
  try {
    if (readFrame(bytes, HEAD_BYTES, bytes.length, frame, VARINT_MAX) !== 1 || frame.type !== PUBLISH) return null;
    decodePublish(bytes, frame, 5, newScan(), publication);
  } catch {
    return null;
  }
  const { topic, qos, retain, properties } = publication;
  if (!isTopicName(topic)) return null;
  const expiresAt = bytes.readDoubleBE(1);
  return {
    topic,
    payload: Buffer.from(publication.payload()),
    qos,
    retain,
    properties,
    expiresAt: Number.isFinite(expiresAt) ? expiresAt : 0,
    rule: bytes.readUInt16BE(9),
  };
}
