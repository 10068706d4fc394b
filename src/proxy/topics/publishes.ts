// What a client publishes, led to the server of its topic, with the acknowledgements that belong to it. Made by
// exchange.ts. The client's packet identifiers are used towards every server as they are: each of them sees a part of
// one count. Sources: MQTT 5.0 sections 3.3, 3.3.2.3.4 (Topic Alias), 4.3; docs/proxy.md for what is refused.
import { ProtocolError } from '../../base/errors.ts';
import { encodeAck } from '../../codec/ack.ts';
import type { Frame } from '../../codec/codec.ts';
import { newScan, scanPublish } from '../../codec/publish.ts';
import { PUBACK, PUBREC, type Qos } from '../../mqtt/packet.ts';
import {
  MALFORMED_PACKET,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
  RECEIVE_MAXIMUM_EXCEEDED,
  TOPIC_ALIAS_INVALID,
  UNSPECIFIED_ERROR,
} from '../../mqtt/reason.ts';

import { newHead, readHead } from '../publishhead.ts';
import { type Ends, refusalOf } from './ends.ts';
import type { Leg } from './leg.ts';

const TOPIC_ALIAS = 0x23;

export class Publishes {
  /** What the CONNACK has allowed. */
  aliasMaximum = 0;
  private readonly ends: Ends;
  private readonly scan = newScan();
  private readonly aliases = new Map<number, Buffer>();
  /** Most of them at once, as the CONNACK has said. */
  receiveMaximum = 65_535;
  /** Upstreams by the identifier of a message above QoS 0 that is not complete. */
  private readonly upstreams = new Map<number, number>();

  constructor(ends: Ends) {
    this.ends = ends;
  }

  take(bytes: Buffer, frame: Frame): void {
    const { ends, scan } = this;
    scanPublish(bytes, frame, ends.version, scan);
    if (scan.hasProperties || scan.topicStart === scan.topicEnd) {
      const resolved = this.resolve(bytes, frame);
      if (resolved !== null) {
        this.lead(resolved.packet, 0, resolved.packet.length, ends.table.owner(resolved.topic));
        return;
      }
    }
    this.lead(bytes, frame.packetStart, frame.end, ends.table.owner(bytes, scan.topicStart, scan.topicEnd));
  }

  /** The leg that has an exchange under this identifier. */
  legOf(packetId: number): Leg | null {
    const upstream = this.upstreams.get(packetId);
    return upstream === undefined ? null : this.ends.leg(upstream);
  }

  /** A server has ended the exchange. */
  done(packetId: number): void {
    this.upstreams.delete(packetId);
  }

  /** Gives back what is held. */
  stop(): void {
    for (const topic of this.aliases.values()) this.ends.held.give(topic.length);
    this.aliases.clear();
  }

  /** The client is told that nobody has its message; before 5.0 only the end of the connection says so. */
  refuse(qos: Qos, packetId: number, code: number): void {
    const { ends } = this;
    ends.cells.refused.value++;
    if (qos === 0) return;
    if (ends.version < 5) {
      ends.close(UNSPECIFIED_ERROR, 'no server takes a message');
      return;
    }
    this.upstreams.delete(packetId);
    ends.toClient(encodeAck(5, qos === 1 ? PUBACK : PUBREC, packetId, code));
  }

  private lead(bytes: Buffer, start: number, end: number, owner: number): void {
    const { ends, scan } = this;
    const { qos, packetId } = scan;
    const leg = ends.leg(owner);
    if (leg?.takes(bytes[start]) === true && end - start <= leg.maxPacketBytes) {
      if (qos > 0 && !leg.backlog.note(bytes.subarray(start, end), packetId)) {
        this.refuse(qos, packetId, QUOTA_EXCEEDED);
        return;
      }
      if (qos > 0) this.enter(packetId, leg);
      ends.passToServer(leg, bytes, start, end);
      return;
    }
    ends.flushToServers();
    const refusal = refusalOf(leg, ends.options.topicRouting.lost);
    if (leg === null || refusal !== 0) this.refuse(qos, packetId, refusal);
    else if (end - start > leg.maxPacketBytes) this.refuse(qos, packetId, QUOTA_EXCEEDED);
    else if (!leg.send(bytes.subarray(start, end), packetId)) this.refuse(qos, packetId, QUOTA_EXCEEDED);
    else if (qos > 0) this.enter(packetId, leg);
  }

  private enter(packetId: number, leg: Leg): void {
    const { upstreams } = this;
    upstreams.set(packetId, leg.index);
    if (upstreams.size > this.receiveMaximum)
      throw new ProtocolError(RECEIVE_MAXIMUM_EXCEEDED, 'more than Receive Maximum at once'); // [MQTT-3.3.4-7]
  }

  /** The packet with its topic in the place of an alias; null = it has none. */
  private resolve(bytes: Buffer, frame: Frame): { packet: Buffer; topic: Buffer } | null {
    const { scan, ends } = this;
    const named = scan.topicEnd > scan.topicStart;
    const alias = ends.version === 5 ? aliasOf(bytes, scan.propertiesAt, scan.payloadStart) : 0;
    if (alias === 0) {
      // [MQTT-3.3.2-8]
      if (!named && ends.version === 5) throw new ProtocolError(PROTOCOL_ERROR, 'neither topic nor alias');
      return null;
    }
    // [MQTT-3.3.2-9]
    if (alias > this.aliasMaximum) throw new ProtocolError(TOPIC_ALIAS_INVALID, 'alias above Topic Alias Maximum');
    if (named) this.learn(alias, bytes.subarray(scan.topicStart, scan.topicEnd));
    const topic = this.aliases.get(alias);
    if (topic === undefined) throw new ProtocolError(PROTOCOL_ERROR, 'topic alias is not known');
    const head = readHead(bytes, frame, frame.end, 5, true);
    if (head === null) throw new ProtocolError(MALFORMED_PACKET, 'PUBLISH ends in its header');
    const { topicAlias: _gone, ...rest } = head.properties ?? {};
    const properties = Object.keys(rest).length === 0 ? null : rest;
    const packet = Buffer.concat([
      newHead(bytes, frame, head, [topic], properties, 5),
      bytes.subarray(head.end, frame.end),
    ]);
    return { packet, topic };
  }

  private learn(alias: number, topic: Buffer): void {
    const { held } = this.ends;
    held.give(this.aliases.get(alias)?.length ?? 0);
    this.aliases.delete(alias);
    if (!held.take(topic.length)) throw new ProtocolError(QUOTA_EXCEEDED, 'too much memory in topic aliases');
    this.aliases.set(alias, Buffer.from(topic));
  }
}

/** Bytes of the value of a property by its identifier; -1 text, -2 pair of texts, -3 Variable Byte Integer. */
const VALUES: Readonly<Record<number, number>> = { 1: 1, 2: 4, 3: -1, 8: -1, 9: -1, 11: -3, 35: 2, 38: -2 };

/** The Topic Alias in the properties of a PUBLISH at [at, end), 0 = none; what is malformed is left to the server. */
function aliasOf(bytes: Buffer, at: number, end: number): number {
  while (bytes[at++] > 127);
  while (at < end) {
    const id = bytes[at++];
    if (id === TOPIC_ALIAS) {
      const alias = at + 2 <= end ? bytes.readUInt16BE(at) : 0;
      if (alias === 0) throw new ProtocolError(TOPIC_ALIAS_INVALID, 'topic alias 0'); // [MQTT-3.3.2-8]
      return alias;
    }
    const kind = VALUES[id];
    if (kind === undefined) return 0;
    if (kind > 0) at += kind;
    else if (kind === -3) {
      while (at < end && bytes[at++] > 127);
    } else
      for (let texts = -kind; texts > 0; texts--) {
        if (at + 2 > end) return 0;
        at += 2 + bytes.readUInt16BE(at);
      }
  }
  return 0;
}
