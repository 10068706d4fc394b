// Every packet between one client and its server, with `inspect`: topics get the client's prefix on the way in and lose
// it on the way out, what is not allowed is answered here, user properties are added. Made by guard.ts when a client is
// joined to its server. Only the variable header of PUBLISH, and SUBSCRIBE, UNSUBSCRIBE and SUBACK as a whole are held
// (packetstream.ts). Throws ProtocolError for what is no MQTT; the session has to end then. Source: MQTT 5.0 sections
// 3.3, 3.8 to 3.11, 3.3.2.3.4 (Topic Alias), 3.3.2.3.5 (Response Topic); 3.1.1 the same without properties.
import { ProtocolError } from '../base/errors.ts';
import type { Cell } from '../base/metrics.ts';
import { encodeAck } from '../codec/ack.ts';
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
import { MALFORMED_PACKET, NOT_AUTHORIZED, PROTOCOL_ERROR, SUCCESS } from '../mqtt/reason.ts';
import type { ClientFilter } from './filter.ts';
import { type Out, PacketStream } from './packetstream.ts';
import { type Head, newHead, readHead } from './publishhead.ts';

const SUBACK_FAILURE = 0x80;

export interface InspectCells {
  readonly publishDenied: Cell;
  readonly subscribeDenied: Cell;
  /** Messages of the server outside the client's prefix, or on topics that it may not get. */
  readonly foreign: Cell;
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

class ClientStream extends PacketStream {
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
    if (head.topicEnd - head.topicStart + prefixBytes.length > TEXT_MAX_BYTES) {
      const alias = head.properties?.topicAlias;
      if (alias !== undefined) this.deniedAliases.add(alias);
      return this.deny(head);
    }
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
    const alias = head.properties?.topicAlias;
    const named = head.topicEnd > head.topicStart;
    if (!this.filter.checksTopics) {
      if (alias === undefined || !named) return alias === undefined || !this.deniedAliases.has(alias);
      this.deniedAliases.delete(alias);
      return true;
    }
    if (!named) return alias !== undefined && !this.deniedAliases.has(alias);
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

class ServerStream extends PacketStream {
  private readonly filter: ClientFilter;
  private readonly version: Version;
  private readonly cells: InspectCells;
  private readonly pending: Map<number, readonly boolean[]>;
  private readonly answer: Out;
  /** Topic aliases of topics that are not the client's: it never heard of them. */
  private readonly foreignAliases = new Set<number>();
  private readonly looksAt: boolean;

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
    this.looksAt = filter.prefix !== '' || filter.checksDeliveries;
  }

  protected wantsWhole(type: number): boolean {
    return type === SUBACK && this.pending.size > 0;
  }

  protected packet(bytes: Buffer, end: number): number | 'drop' | 'more' {
    const { frame } = this;
    if (frame.type === PUBLISH && this.looksAt) return this.publish(bytes, end);
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
      ? this.isInside(bytes, topicStart, topicEnd)
      : alias !== undefined && !this.foreignAliases.has(alias);
    if (named && alias !== undefined) {
      if (inside) this.foreignAliases.delete(alias);
      else this.foreignAliases.add(alias);
    }
    if (!inside) return this.drop(head);
    if (filter.prefix === '') return frame.packetStart;
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

  /** Whether the topic is below the client's prefix, and one that it may get. */
  private isInside(bytes: Buffer, start: number, end: number): boolean {
    const { filter } = this;
    const { prefixBytes } = filter;
    const at = start + prefixBytes.length;
    if (end <= at || bytes.subarray(start, at).compare(prefixBytes) !== 0) return false;
    return !filter.checksDeliveries || filter.mayReceive(bytes.toString('utf8', at, end));
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
