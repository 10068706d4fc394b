// The packets that go to one connected client: PUBLISH in the form its version, aliases and limits want, and PUBREL.
// Made by outbox.ts when a client comes, gone with it. Writes into the client's output buffer; knows no queue and no
// session. Sources: MQTT 5.0 sections 3.1.2.11.4, 3.3 and 3.6, 3.1.1 sections 3.3 and 3.6.
import type { Clock } from '../base/clock.ts';
import type { Writer } from '../base/writer.ts';
import { ACK_BYTES, encodeAck, writeAck } from '../codec/ack.ts';
import { encodedPropertiesBytes } from '../codec/property.ts';
import { type PublishParts, publishBytes, writePublish, writePublishHead } from '../codec/publish.ts';
import type { Publication } from '../mqtt/message.ts';
import { PUBLISH, PUBREL, type Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { SUCCESS } from '../mqtt/reason.ts';
import { AliasTable } from './alias.ts';
import type { Peer, Target } from './delivery.ts';
import type { Tally } from './tally.ts';

const NO_BYTES = Buffer.alloc(0);

export class Sender {
  readonly writer: Writer;
  private readonly five: boolean;
  private readonly maximumPacketSize: number;
  private readonly clock: Clock;
  private readonly tally: Tally;
  private readonly aliases: AliasTable | null;
  private readonly parts: PublishParts;

  /** `topicAliases`: how many we would assign; the client's Topic Alias Maximum lowers it. */
  constructor(peer: Peer, topicAliases: number, clock: Clock, tally: Tally) {
    this.writer = peer.writer;
    this.five = peer.version === 5;
    this.maximumPacketSize = peer.maximumPacketSize;
    this.clock = clock;
    this.tally = tally;
    const aliases = this.five ? Math.min(peer.topicAliasMaximum, topicAliases) : 0;
    this.aliases = aliases > 0 ? new AliasTable(aliases) : null;
    this.parts = {
      version: peer.version,
      qos: 0,
      dup: false,
      retain: false,
      packetId: 0,
      topic: '',
      topicUtf8: null,
      topicBytes: 0,
      properties: null,
      propertyBytes: 0,
      payload: NO_BYTES,
      payloadStart: 0,
      payloadEnd: 0,
    };
  }

  /** Appends a run of QoS 0 packets as they came; false when they have to be written one by one in another form. */
  run(publication: Publication, target: Target, start: number, end: number, count: number, longest: number): boolean {
    if (
      this.five !== (publication.wireVersion === 5) ||
      target.subscriptionIdentifiers !== null ||
      this.aliases !== null ||
      longest > this.maximumPacketSize
    )
      return false;
    if (publication.shared === null) this.writer.spread(publication.buffer, start, end);
    else this.writer.refer(publication.shared, start, end);
    this.tally.wrote(count, end - start);
    return true;
  }

  /** Appends one PUBLISH. False when it is larger than the client takes: it is then treated as sent [MQTT-3.1.2-25]. */
  publish(
    publication: Publication,
    qos: Qos,
    retain: boolean,
    dup: boolean,
    packetId: number,
    identifiers: readonly number[] | null,
  ): boolean {
    const start = publication.packetStart;
    if (
      start < 0 ||
      publication.qos !== qos ||
      this.five !== (publication.wireVersion === 5) ||
      identifiers !== null ||
      this.aliases !== null
    ) {
      return this.encode(publication, qos, retain, dup, packetId, identifiers);
    }
    // The bytes that came in go out: only flags and identifier differ.
    const bytes = publication.payloadEnd - start;
    if (bytes > this.maximumPacketSize) return this.tooLarge();
    const writer = this.writer;
    const shared = publication.large;
    const copied = shared === null ? bytes : publication.payloadStart - start;
    writer.append(publication.buffer, start, start + copied);
    const at = writer.at - copied;
    const block = writer.block;
    block[at] = (PUBLISH << 4) | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0);
    if (qos > 0) {
      const idAt = at + publication.packetIdAt - start;
      block[idAt] = packetId >> 8;
      block[idAt + 1] = packetId & 255;
    }
    if (shared !== null) writer.refer(shared, publication.payloadStart, publication.payloadEnd);
    this.tally.wrote(1, bytes);
    return true;
  }

  /** Appends a PUBREL. */
  release(packetId: number, reasonCode: number): void {
    const writer = this.writer;
    if (this.five && reasonCode !== SUCCESS) {
      const packet = encodeAck(5, PUBREL, packetId, reasonCode);
      writer.append(packet, 0, packet.length);
      return;
    }
    writer.reserve(ACK_BYTES);
    writeAck(writer.block, writer.at, PUBREL, packetId);
    writer.advance(ACK_BYTES);
  }

  // ---- inside

  private encode(
    publication: Publication,
    qos: Qos,
    retain: boolean,
    dup: boolean,
    packetId: number,
    identifiers: readonly number[] | null,
  ): boolean {
    const parts = this.parts;
    let alias = 0;
    parts.topic = publication.topic;
    parts.topicUtf8 = publication.topicUtf8;
    if (this.aliases !== null) {
      alias = this.aliases.find(publication.topic);
      parts.topicUtf8 = null;
      if (alias > 0) parts.topic = '';
      else alias = this.aliases.nextFree(publication.topic);
    }
    parts.qos = qos;
    parts.dup = dup;
    parts.retain = retain;
    parts.packetId = packetId;
    parts.topicBytes = parts.topicUtf8 === null ? Buffer.byteLength(parts.topic) : parts.topicUtf8.length;
    parts.properties = this.five ? this.outgoing(publication, identifiers, alias) : null;
    parts.propertyBytes = parts.properties === null ? 0 : encodedPropertiesBytes(parts.properties, PUBLISH);
    parts.payload = publication.buffer;
    parts.payloadStart = publication.payloadStart;
    parts.payloadEnd = publication.payloadEnd;
    const payloadBytes = parts.payloadEnd - parts.payloadStart;
    const bytes = publishBytes(parts.version, qos, parts.topicBytes, parts.propertyBytes, payloadBytes);
    if (bytes > this.maximumPacketSize) return this.tooLarge();
    if (alias > 0 && parts.topicBytes > 0) this.aliases?.assign(publication.topic, alias);
    const writer = this.writer;
    const shared = publication.large;
    const copied = shared === null ? bytes : bytes - payloadBytes;
    writer.reserve(copied);
    if (shared === null) writePublish(writer.block, writer.at, parts);
    else writePublishHead(writer.block, writer.at, parts);
    writer.advance(copied);
    if (shared !== null) writer.refer(shared, parts.payloadStart, parts.payloadEnd);
    this.tally.wrote(1, bytes);
    return true;
  }

  private outgoing(publication: Publication, identifiers: readonly number[] | null, alias: number): Properties | null {
    const own = publication.properties;
    if (identifiers === null && alias === 0 && publication.expiresAt === 0) return own;
    const properties: Properties = own === null ? {} : { ...own };
    // The time left, not the time given [MQTT-3.3.2-6].
    if (publication.expiresAt > 0) {
      properties.messageExpiryInterval = Math.max(0, Math.ceil((publication.expiresAt - this.clock.steady()) / 1000));
    }
    if (identifiers !== null) properties.subscriptionIdentifiers = [...identifiers];
    if (alias > 0) properties.topicAlias = alias;
    return properties;
  }

  private tooLarge(): false {
    this.tally.tooLarge();
    return false;
  }
}
