// What servers send to the client of an exchange: messages under identifiers of the client's, acknowledgements,
// answers. Made by exchange.ts. A message comes through only from the upstream that its topic belongs to: copies that
// other servers have (a bridge between them, a topic that has moved) are acknowledged and counted. Sources: MQTT 5.0
// sections 3.3.4 (Receive Maximum), 4.3.
import { ProtocolError } from '../../base/errors.ts';
import { ackPacketId, encodeAck } from '../../codec/ack.ts';
import type { Frame } from '../../codec/codec.ts';
import { newScan, scanPublish } from '../../codec/publish.ts';
import { PUBACK, PUBCOMP, PUBREC } from '../../mqtt/packet.ts';
import { PROTOCOL_ERROR } from '../../mqtt/reason.ts';
import type { Ends } from './ends.ts';
import type { Leg } from './leg.ts';

export class Arrivals {
  /** Of the client: messages above QoS 0 that are under way at once. */
  private readonly receiveMaximum: number;
  private readonly ends: Ends;
  private readonly scan = newScan();

  constructor(ends: Ends, receiveMaximum: number) {
    this.ends = ends;
    this.receiveMaximum = receiveMaximum;
  }

  /** A PUBLISH of a server; false = the client has to acknowledge others first [MQTT-3.3.4-9]. */
  publish(leg: Leg, bytes: Buffer, frame: Frame): boolean {
    const { ends, scan } = this;
    const { version } = ends;
    scanPublish(bytes, frame, version, scan);
    const { qos, packetId, topicStart, topicEnd } = scan;
    if (topicStart === topicEnd) throw new ProtocolError(PROTOCOL_ERROR, 'PUBLISH without topic');
    if (ends.table.owner(bytes, topicStart, topicEnd) !== leg.index) {
      ends.cells.foreign.value++;
      if (qos > 0) leg.acknowledge(encodeAck(version, qos === 1 ? PUBACK : PUBREC, packetId));
      return true;
    }
    if (qos > 0) {
      const id = this.identifier(leg, packetId);
      if (id === 0) return false;
      // The chunk is ours: nobody else reads it.
      bytes.writeUInt16BE(id, scan.packetIdAt);
    }
    ends.passToClient(bytes, frame.packetStart, frame.end);
    return true;
  }

  /** PUBREL of a server. */
  release(leg: Leg, bytes: Buffer, frame: Frame): void {
    const { ends } = this;
    const serverId = ackPacketId(bytes, frame);
    const id = ends.deliveries.known(leg.index, serverId);
    if (id === 0) {
      // The client has completed it, or has never been given it.
      leg.acknowledge(encodeAck(ends.version, PUBCOMP, serverId));
      return;
    }
    bytes.writeUInt16BE(id, frame.bodyStart);
    ends.passToClient(bytes, frame.packetStart, frame.end);
  }

  /** PUBACK, PUBREC or PUBCOMP of the client. */
  acknowledged(bytes: Buffer, frame: Frame): void {
    const { ends } = this;
    const { deliveries } = ends;
    const id = ackPacketId(bytes, frame);
    const upstream = deliveries.upstreamOf(id);
    if (upstream < 0) return;
    const refused = ends.version === 5 && frame.end - frame.bodyStart > 2 && bytes[frame.bodyStart + 2] >= 0x80;
    const serverId = deliveries.serverIdOf(id);
    if (frame.type !== PUBREC || refused) deliveries.free(id);
    const leg = ends.leg(upstream);
    bytes.writeUInt16BE(serverId, frame.bodyStart);
    if (leg?.isReady === true) ends.passToServer(leg, bytes, frame.packetStart, frame.end);
    else {
      ends.flushToServers();
      leg?.acknowledge(bytes.subarray(frame.packetStart, frame.end));
    }
  }

  private identifier(leg: Leg, serverId: number): number {
    const { deliveries } = this.ends;
    const known = deliveries.known(leg.index, serverId);
    if (known !== 0) return known;
    if (deliveries.size >= this.receiveMaximum) return 0;
    return deliveries.take(leg.index, serverId, this.scan.qos);
  }
}
