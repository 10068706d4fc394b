// Every packet between one client and its server, with `inspect`: topics get the client's prefix on the way in and lose it on the way out,
// what is not allowed is answered here, user properties are added. Made by relay.ts when a client is joined to its server.
// Payloads are passed on in the pieces they come in; only the variable header of PUBLISH, and SUBSCRIBE, UNSUBSCRIBE and SUBACK as a whole are held,
// bounded by HELD_BYTES. Throws ProtocolError for what is no MQTT; the session has to end then.
// Source: MQTT 5.0 sections 3.3, 3.8 to 3.11, 3.3.2.3.4 (Topic Alias), 3.3.2.3.5 (Response Topic); 3.1.1 the same without properties.
import { ProtocolError } from '../base/errors.ts';
import type { Cell } from '../base/metrics.ts';
import { encodeAck } from '../codec/ack.ts';
import { newFrame } from '../codec/codec.ts';
import { readFrame, VARINT_MAX, varintBytes, writeVarint } from '../codec/frame.ts';
import { decodeProperties, propertiesBytes, writeProperties } from '../codec/property.ts';
import {
  decodeSuback,
  decodeSubscribe,
  decodeUnsubscribe,
  encodeSuback,
  encodeSubscribe,
  encodeUnsubscribe,
} from '../codec/subscribe.ts';
import { isText, TEXT_MAX_BYTES } from '../codec/text.ts';
import {
  CONNECT,
  PUBACK,
  PUBLISH,
  PUBREC,
  SUBACK,
  SUBSCRIBE,
  type SubscribePacket,
  UNSUBSCRIBE,
  type Version,
} from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { MALFORMED_PACKET, NOT_AUTHORIZED, PACKET_TOO_LARGE, PROTOCOL_ERROR, SUCCESS } from '../mqtt/reason.ts';
import type { ClientFilter } from './filter.ts';

/** A SUBSCRIBE with thousands of filters, or a PUBLISH whose properties are larger than most payloads, and no more. */
const HELD_BYTES = 256 * 1024;
const SUBACK_FAILURE = 0x80;

/** Where the bytes of one direction go. */
export type Out = (bytes: Buffer) => void;

export interface InspectCells {
  readonly publishDenied: Cell;
  readonly subscribeDenied: Cell;
  /** Messages of the server outside the client's prefix. */
  readonly foreign: Cell;
}

/** Cuts a stream into packets; `packet` decides about each. Ranges that are passed on unchanged are not copied. */
abstract class Stream {
  private readonly out: Out;
  private held: Buffer | null = null;
  /** Bytes of the present packet that are still to come, and whether they are passed on. */
  private left = 0;
  private passing = true;
  private pieces: Buffer[] = [];
  protected readonly frame = newFrame();

  constructor(out: Out) {
    this.out = out;
  }

  /** Takes a chunk, which must not change afterwards. */
  push(chunk: Buffer): void {
    let bytes = chunk;
    let at = 0;
    if (this.held !== null) {
      bytes = Buffer.concat([this.held, chunk]);
      this.held = null;
    } else if (this.left > 0) {
      at = Math.min(this.left, bytes.length);
      this.left -= at;
      if (this.passing) this.pass(bytes, 0, at);
    }
    while (at < bytes.length) {
      const next = this.one(bytes, at);
      if (next < 0) {
        this.held = at === 0 ? bytes : bytes.subarray(at);
        break;
      }
      at = next;
    }
    this.flush();
  }

  /** Deals with the packet at `at`; gives the offset behind it (or the end of the bytes), -1 when more are needed. */
  private one(bytes: Buffer, at: number): number {
    const { frame } = this;
    readFrame(bytes, at, bytes.length, frame, VARINT_MAX + 5);
    if (frame.end === 0) return -1;
    const whole = frame.end <= bytes.length;
    if (!whole && this.wantsWhole(frame.type)) {
      if (frame.end - at > HELD_BYTES) throw new ProtocolError(PACKET_TOO_LARGE, 'packet is too large to be inspected');
      return -1;
    }
    const verdict = this.packet(bytes, Math.min(frame.end, bytes.length));
    if (verdict === 'more') {
      if (bytes.length - at > HELD_BYTES)
        throw new ProtocolError(PACKET_TOO_LARGE, 'header is too large to be inspected');
      return -1;
    }
    const end = Math.min(frame.end, bytes.length);
    this.left = frame.end - end;
    this.passing = verdict !== 'drop';
    if (typeof verdict === 'number') this.pass(bytes, verdict, end);
    return end;
  }

  /** Packets that have to be there as a whole. */
  protected abstract wantsWhole(type: number): boolean;

  /**
   * Looks at the packet in `frame`, of which [packetStart, end) is there. Gives the offset from which the bytes are passed on (what comes
   * before has been replaced by put()), 'drop', or 'more'.
   */
  protected abstract packet(bytes: Buffer, end: number): number | 'drop' | 'more';

  protected put(bytes: Buffer): void {
    this.pieces.push(bytes);
  }

  private pass(bytes: Buffer, start: number, end: number): void {
    if (start === end) return;
    const last = this.pieces.at(-1);
    // Packets that follow each other unchanged leave as one piece.
    if (
      last !== undefined &&
      last.buffer === bytes.buffer &&
      last.byteOffset + last.length === bytes.byteOffset + start
    ) {
      this.pieces[this.pieces.length - 1] = Buffer.from(bytes.buffer, last.byteOffset, last.length + end - start);
    } else this.pieces.push(bytes.subarray(start, end));
  }

  private flush(): void {
    const { pieces } = this;
    if (pieces.length === 0) return;
    this.pieces = [];
    this.out(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
  }
}

/** The variable header of a PUBLISH. */
interface Head {
  readonly qos: number;
  readonly topicStart: number;
  readonly topicEnd: number;
  readonly packetId: number;
  /** 5.0: decoded where they have to be looked at, else undefined. */
  readonly properties: Properties | null | undefined;
  readonly end: number;
}

/** Reads it in [frame.bodyStart, end); null = not all there. With `decode` the properties are decoded. */
function readHead(
  bytes: Buffer,
  frame: { flags: number; bodyStart: number; end: number },
  end: number,
  version: Version,
  decode: boolean,
): Head | null {
  const qos = (frame.flags >> 1) & 3;
  if (qos === 3) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH with QoS 3'); // [MQTT-3.3.1-4]
  const topicStart = frame.bodyStart + 2;
  if (missing(topicStart, frame.end, end)) return null;
  const topicEnd = topicStart + bytes.readUInt16BE(frame.bodyStart);
  const propertiesAt = topicEnd + (qos > 0 ? 2 : 0);
  if (missing(propertiesAt, frame.end, end)) return null;
  const packetId = qos > 0 ? bytes.readUInt16BE(topicEnd) : 0;
  if (version < 5) return { qos, topicStart, topicEnd, packetId, properties: null, end: propertiesAt };
  let at = propertiesAt;
  let length = 0;
  for (let shift = 0, byte = 128; byte > 127; shift += 7) {
    if (shift > 21) throw new ProtocolError(MALFORMED_PACKET, 'Property Length has more than four bytes');
    if (missing(at + 1, frame.end, end)) return null;
    byte = bytes[at++];
    length |= (byte & 127) << shift;
  }
  if (missing(at + length, frame.end, end)) return null;
  const properties = decode ? decodeProperties(bytes, propertiesAt, at + length, PUBLISH).properties : undefined;
  return { qos, topicStart, topicEnd, packetId, properties, end: at + length };
}

/** Whether bytes before `needed` have still to come. Throws ProtocolError when the packet ends before. */
function missing(needed: number, packetEnd: number, there: number): boolean {
  if (needed > packetEnd) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH ends in its header');
  return needed > there;
}

/** A PUBLISH up to its payload, with another topic and other properties. */
function newHead(
  bytes: Buffer,
  frame: { packetStart: number; end: number },
  head: Head,
  topic: readonly Buffer[],
  properties: Properties | null | undefined,
  version: Version,
): Buffer {
  const topicBytes = topic.reduce((sum, part) => sum + part.length, 0);
  const kept = properties === undefined ? head.end - head.topicEnd : head.qos > 0 ? 2 : 0;
  const ofProperties = properties === undefined || version < 5 ? 0 : propertiesBytes(properties, PUBLISH);
  const variable = 2 + topicBytes + kept + ofProperties;
  const remaining = variable + frame.end - head.end;
  if (remaining > VARINT_MAX) throw new ProtocolError(PACKET_TOO_LARGE, 'packet is too large with its new topic');
  const out = Buffer.allocUnsafe(1 + varintBytes(remaining) + variable);
  out[0] = bytes[frame.packetStart];
  let at = writeVarint(out, 1, remaining);
  at = out.writeUInt16BE(topicBytes, at);
  for (const part of topic) {
    out.set(part, at);
    at += part.length;
  }
  at += bytes.copy(out, at, head.topicEnd, head.topicEnd + kept);
  if (ofProperties > 0) writeProperties(out, at, properties ?? null, PUBLISH);
  return out;
}

export class Inspector {
  readonly fromClient: ClientStream;
  readonly fromServer: ServerStream;

  constructor(filter: ClientFilter, version: Version, cells: InspectCells, toServer: Out, toClient: Out) {
    const pending = new Map<number, readonly boolean[]>();
    this.fromClient = new ClientStream(filter, version, cells, pending, toServer, toClient);
    this.fromServer = new ServerStream(filter, version, cells, pending, toClient, toServer);
  }
}

class ClientStream extends Stream {
  /** PUBLISH packets so far: what a rate limit counts. */
  messages = 0;
  private readonly filter: ClientFilter;
  private readonly version: Version;
  private readonly cells: InspectCells;
  /** SUBSCRIBE packets of which a part was denied: which filters, by packet identifier. */
  private readonly pending: Map<number, readonly boolean[]>;
  private readonly answer: Out;
  /** Topic aliases whose topic was denied: the server never heard of them. */
  private readonly deniedAliases = new Set<number>();
  private readonly decode: boolean;
  private first = true;

  constructor(
    filter: ClientFilter,
    version: Version,
    cells: InspectCells,
    pending: Map<number, readonly boolean[]>,
    toServer: Out,
    toClient: Out,
  ) {
    super(toServer);
    this.filter = filter;
    this.version = version;
    this.cells = cells;
    this.pending = pending;
    this.answer = toClient;
    this.decode = version === 5 && (filter.prefix !== '' || filter.userProperties.length > 0 || filter.checksTopics);
  }

  protected wantsWhole(type: number): boolean {
    return type === SUBSCRIBE || type === UNSUBSCRIBE;
  }

  protected packet(bytes: Buffer, end: number): number | 'drop' | 'more' {
    const { frame } = this;
    const { first } = this;
    switch (frame.type) {
      case CONNECT:
        if (!first) throw new ProtocolError(PROTOCOL_ERROR, 'CONNECT twice'); // [MQTT-3.1.0-2]
        this.first = false;
        return frame.packetStart;
      case PUBLISH:
        return this.publish(bytes, end);
      case SUBSCRIBE:
        return this.subscribe(bytes);
      case UNSUBSCRIBE:
        return this.unsubscribe(bytes);
      default:
        return frame.packetStart;
    }
  }

  private publish(bytes: Buffer, end: number): number | 'drop' | 'more' {
    const { filter, frame, version } = this;
    const head = readHead(bytes, frame, end, version, this.decode);
    if (head === null) return 'more';
    this.messages++;
    if (!this.allowed(bytes, head)) return this.deny(head);
    const { prefix, prefixBytes, userProperties } = filter;
    const named = head.topicEnd > head.topicStart;
    if ((prefix === '' || !named) && head.properties?.responseTopic === undefined && userProperties.length === 0)
      return frame.packetStart;
    if (head.topicEnd - head.topicStart + prefixBytes.length > TEXT_MAX_BYTES) return this.deny(head);
    const topic = named ? [prefixBytes, bytes.subarray(head.topicStart, head.topicEnd)] : [];
    this.put(newHead(bytes, frame, head, topic, this.newProperties(head), version));
    return head.end;
  }

  /** undefined = as they are. */
  private newProperties(head: Head): Properties | null | undefined {
    if (this.version < 5 || head.properties === undefined) return undefined;
    const { prefix, userProperties } = this.filter;
    const properties: Properties = { ...head.properties };
    if (properties.responseTopic !== undefined) properties.responseTopic = prefix + properties.responseTopic;
    if (userProperties.length > 0)
      properties.userProperties = [...(properties.userProperties ?? []), ...userProperties];
    return Object.keys(properties).length === 0 ? null : properties;
  }

  private allowed(bytes: Buffer, head: Head): boolean {
    if (!this.filter.checksTopics) return true;
    const alias = head.properties?.topicAlias;
    if (head.topicStart === head.topicEnd) return alias !== undefined && !this.deniedAliases.has(alias);
    if (!isText(bytes, head.topicStart, head.topicEnd))
      throw new ProtocolError(MALFORMED_PACKET, 'topic name is not well-formed UTF-8'); // [MQTT-3.3.2-1]
    const allowed = this.filter.mayPublish(bytes.toString('utf8', head.topicStart, head.topicEnd));
    if (alias !== undefined) {
      if (allowed) this.deniedAliases.delete(alias);
      else this.deniedAliases.add(alias);
    }
    return allowed;
  }

  private deny(head: Head): 'drop' {
    const { version, filter } = this;
    this.cells.publishDenied.value++;
    if (filter.options.denied === 'disconnect') throw new ProtocolError(NOT_AUTHORIZED, 'topic is not allowed');
    if (head.qos === 0) return 'drop';
    // Before 5.0 there is no way to say no: it is acknowledged and goes nowhere [MQTT-3.3.5-2 of 3.1.1].
    const reasonCode = version === 5 ? NOT_AUTHORIZED : SUCCESS;
    this.answer(encodeAck(version, head.qos === 1 ? PUBACK : PUBREC, head.packetId, reasonCode));
    return 'drop';
  }

  private subscribe(bytes: Buffer): number | 'drop' {
    const { filter, frame, version } = this;
    const packet: SubscribePacket = decodeSubscribe(bytes, frame, version);
    const denied = packet.subscriptions.map(({ topicFilter }) => !filter.maySubscribe(topicFilter));
    const refused = denied.filter(Boolean).length;
    if (refused === 0 && filter.prefix === '') return frame.packetStart;
    this.cells.subscribeDenied.value += refused;
    const kept = packet.subscriptions.filter((_, i) => !denied[i]);
    if (kept.length === 0) {
      const reasonCodes = denied.map(() => refusal(version));
      this.answer(encodeSuback(version, { type: SUBACK, packetId: packet.packetId, reasonCodes, properties: null }));
      return 'drop';
    }
    if (refused > 0) this.pending.set(packet.packetId, denied);
    const subscriptions = kept.map((one) => ({ ...one, topicFilter: filter.outside(one.topicFilter) }));
    this.put(encodeSubscribe(version, { ...packet, subscriptions }));
    return 'drop';
  }

  private unsubscribe(bytes: Buffer): number | 'drop' {
    const { filter, frame, version } = this;
    if (filter.prefix === '') return frame.packetStart;
    const packet = decodeUnsubscribe(bytes, frame, version);
    const topicFilters = packet.topicFilters.map((one) => filter.outside(one));
    this.put(encodeUnsubscribe(version, { ...packet, topicFilters }));
    return 'drop';
  }
}

function refusal(version: Version): number {
  return version === 5 ? NOT_AUTHORIZED : SUBACK_FAILURE;
}

class ServerStream extends Stream {
  private readonly filter: ClientFilter;
  private readonly version: Version;
  private readonly cells: InspectCells;
  private readonly pending: Map<number, readonly boolean[]>;
  private readonly answer: Out;
  /** Topic aliases of topics that are not the client's: it never heard of them. */
  private readonly foreignAliases = new Set<number>();

  constructor(
    filter: ClientFilter,
    version: Version,
    cells: InspectCells,
    pending: Map<number, readonly boolean[]>,
    toClient: Out,
    toServer: Out,
  ) {
    super(toClient);
    this.filter = filter;
    this.version = version;
    this.cells = cells;
    this.pending = pending;
    this.answer = toServer;
  }

  protected wantsWhole(type: number): boolean {
    return type === SUBACK && this.pending.size > 0;
  }

  protected packet(bytes: Buffer, end: number): number | 'drop' | 'more' {
    const { frame } = this;
    if (frame.type === PUBLISH && this.filter.prefix !== '') return this.publish(bytes, end);
    if (frame.type === SUBACK && this.pending.size > 0) return this.suback(bytes);
    return frame.packetStart;
  }

  private publish(bytes: Buffer, end: number): number | 'drop' | 'more' {
    const { filter, frame, version } = this;
    const head = readHead(bytes, frame, end, version, version === 5);
    if (head === null) return 'more';
    const { topicStart, topicEnd } = head;
    const alias = head.properties?.topicAlias;
    const named = topicEnd > topicStart;
    const inside = named
      ? bytes.subarray(topicStart, topicEnd).indexOf(filter.prefixBytes) === 0 &&
        topicEnd - topicStart > filter.prefixBytes.length
      : alias !== undefined && !this.foreignAliases.has(alias);
    if (named && alias !== undefined) {
      if (inside) this.foreignAliases.delete(alias);
      else this.foreignAliases.add(alias);
    }
    if (!inside) return this.drop(head);
    const responseTopic = head.properties?.responseTopic;
    const back = responseTopic?.startsWith(filter.prefix) === true && responseTopic.length > filter.prefix.length;
    if (!named && !back) return frame.packetStart;
    const properties = back
      ? { ...head.properties, responseTopic: responseTopic.slice(filter.prefix.length) }
      : undefined;
    const topic = named ? [bytes.subarray(topicStart + filter.prefixBytes.length, topicEnd)] : [];
    this.put(newHead(bytes, frame, head, topic, properties, version));
    return head.end;
  }

  /** Not the client's: it does not see it, the server is told that it arrived. */
  private drop(head: Head): 'drop' {
    this.cells.foreign.value++;
    if (head.qos > 0) this.answer(encodeAck(this.version, head.qos === 1 ? PUBACK : PUBREC, head.packetId, SUCCESS));
    return 'drop';
  }

  /** Puts the refusals of denied filters back where the client expects them. */
  private suback(bytes: Buffer): number | 'drop' {
    const { frame, version } = this;
    const packet = decodeSuback(bytes, frame, version);
    const denied = this.pending.get(packet.packetId);
    if (denied === undefined) return frame.packetStart;
    this.pending.delete(packet.packetId);
    let next = 0;
    const reasonCodes = denied.map((isDenied) =>
      isDenied ? refusal(version) : (packet.reasonCodes[next++] ?? refusal(version)),
    );
    this.put(encodeSuback(version, { ...packet, reasonCodes }));
    return 'drop';
  }
}
