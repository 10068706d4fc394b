// The packet table that drives the codec tests: test/vectors/mqtt/*.json read and typed, packets in the form they have there
// (type by name, bytes as hex, defaults left out), and one decode/encode pair for every packet type.
// Used by test/codec, test/fuzz and test/e2e. The expectations come from the specifications, not from the code.
import { readdirSync, readFileSync } from 'node:fs';
import { type Frame, newFrame, type Sender } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { checkFrame, decodePacket, encodePacket } from '../../src/codec/packet.ts';
import { decodePublish, encodePublish, newScan } from '../../src/codec/publish.ts';
import { type Origin, Publication } from '../../src/mqtt/message.ts';
import * as types from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';

export interface PublishPacket {
  type: typeof types.PUBLISH;
  topic: string;
  payload: Uint8Array;
  qos: types.Qos;
  dup: boolean;
  retain: boolean;
  packetId: number;
  properties: Properties | null;
}
export type AnyPacket = types.ControlPacket | PublishPacket;

interface VectorBase {
  name: string;
  /** [MQTT-x.y.z-n] of the version without brackets, or a section: v5:2.2.2.2, 3.1.1:3.4, 3.1:3.8. */
  clause: string[];
  version: types.Version;
  from?: Sender;
  hex: string;
}
export interface PacketVector extends VectorBase {
  packet?: Record<string, unknown>;
  /** What encoding the packet gives where that differs from `hex`. */
  encodes?: string;
  /** Reason code of the ProtocolError. */
  error?: number;
  /** CONNECT: the CONNACK that answers it, null for none. */
  answer?: string | null;
}
export interface FrameVector extends VectorBase {
  remaining?: number;
  error?: number;
  maxBytes?: number;
  /** More bytes are needed; the value is where the packet will end, 0 while unknown. */
  incomplete?: number;
}

const FOLDER = new URL('../vectors/mqtt/', import.meta.url);

export function loadVectors<T>(file: string): T[] {
  return JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as T[];
}

/** Files of packet vectors: all but frames and conversations. */
export function packetFiles(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json') && name !== 'frame.json' && !name.startsWith('talk-'))
    .sort();
}

export const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');

export const NAMES: readonly string[] = [
  'reserved',
  'CONNECT',
  'CONNACK',
  'PUBLISH',
  'PUBACK',
  'PUBREC',
  'PUBREL',
  'PUBCOMP',
  'SUBSCRIBE',
  'SUBACK',
  'UNSUBSCRIBE',
  'UNSUBACK',
  'PINGREQ',
  'PINGRESP',
  'DISCONNECT',
  'AUTH',
];

const REASONED = { reasonCode: 0, properties: null };
/** What a packet in a vector has where it says nothing. */
const DEFAULTS: Readonly<Record<string, Record<string, unknown>>> = {
  CONNECT: {
    bridge: false,
    cleanStart: true,
    keepAlive: 60,
    username: null,
    password: null,
    will: null,
    properties: null,
  },
  CONNACK: { sessionPresent: false, ...REASONED },
  PUBLISH: { qos: 0, dup: false, retain: false, packetId: 0, properties: null },
  PUBACK: REASONED,
  PUBREC: REASONED,
  PUBREL: REASONED,
  PUBCOMP: REASONED,
  SUBSCRIBE: { properties: null },
  SUBACK: { properties: null },
  UNSUBSCRIBE: { properties: null },
  UNSUBACK: { properties: null },
  PINGREQ: {},
  PINGRESP: {},
  DISCONNECT: REASONED,
  AUTH: REASONED,
};
const WILL_DEFAULTS = { qos: 0, retain: false, properties: null, delayInterval: 0 };
const REQUEST_DEFAULTS = { noLocal: false, retainAsPublished: false, retainHandling: 0 };

/** The packet of a vector with its defaults filled in. */
export function expected(vector: PacketVector): Record<string, unknown> {
  const packet = { ...DEFAULTS[String(vector.packet?.type)], ...vector.packet };
  if (packet.type === 'CONNECT') packet.version = vector.version;
  if (packet.will) packet.will = { ...WILL_DEFAULTS, ...(packet.will as object) };
  if (packet.type === 'SUBSCRIBE') {
    packet.subscriptions = (packet.subscriptions as object[]).map((one) => ({ ...REQUEST_DEFAULTS, ...one }));
  }
  return packet;
}

/** A decoded packet in the form of the vectors: bytes as hex, the type by name. */
export function shown(packet: AnyPacket): Record<string, unknown> {
  return { ...(hexed(packet) as object), type: NAMES[packet.type] };
}

function hexed(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(hexed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hexed(one)]));
}

const NOBODY: Origin = { kind: 'client', clientId: '', username: null, bridge: null };
/** No packet of a test is larger. */
const LIMIT = 300_000_000;

/** Decodes the one packet in buffer[start, end). Throws ProtocolError. */
export function decodeAny(
  version: types.Version,
  buffer: Buffer,
  from: Sender = 'client',
  start = 0,
  end = buffer.length,
): AnyPacket {
  const frame = newFrame();
  if (readFrame(buffer, start, end, frame, LIMIT) === 0 || frame.end !== end) throw new Error('not one whole packet');
  return decodeFrame(version, buffer, frame, from);
}

/** Decodes the packet in `frame`, whatever it is. Throws ProtocolError. */
export function decodeFrame(version: types.Version, buffer: Buffer, frame: Frame, from: Sender): AnyPacket {
  if (frame.type !== types.PUBLISH) return decodePacket(version, buffer, frame, from);
  checkFrame(version, frame, from);
  const publication = new Publication(NOBODY);
  decodePublish(buffer, frame, version, newScan(), publication);
  const { topic, qos, dup, retain, packetId, properties } = publication;
  return {
    type: types.PUBLISH,
    topic,
    payload: Buffer.from(publication.payload()),
    qos,
    dup,
    retain,
    packetId,
    properties,
  };
}

/** Encodes any packet. Throws ProtocolError. */
export function encodeAny(version: types.Version, packet: AnyPacket): Buffer {
  return packet.type === types.PUBLISH ? encodePublish(version, packet) : encodePacket(version, packet);
}
