// Messages of the gateway as packets of aedes, with what other gateways need to know of their publishers. Used by
// engine.ts, router.ts, publishing.ts and sharing.ts. Sends nothing itself but what gateways tell each other.
import { packArrival } from '../../mqtt/arrival.ts';
import type { Publication } from '../../mqtt/message.ts';
import type { Aedes, AedesPacket } from './parts.ts';

export class Packets {
  /** null until the broker has started. */
  aedes: Aedes | null = null;
  /** Other gateways share the broker. */
  shared = false;

  get brokerId(): string {
    return this.aedes?.id ?? '';
  }

  /** The packet of a publication, at QoS 0. */
  of(publication: Publication): AedesPacket {
    const { aedes } = this;
    const { kind, clientId, username, bridge, arrival } = publication.origin;
    const packet: AedesPacket = {
      cmd: 'publish',
      topic: publication.topic,
      payload: asBuffer(publication.message().payload),
      qos: 0,
      retain: false,
      dup: false,
      brokerId: this.brokerId,
      brokerCounter: aedes === null ? 0 : ++aedes.counter,
      clientId,
    };
    if (kind !== 'server') packet.kind = kind;
    if (username !== null) packet.username = username;
    if (bridge !== null) packet.bridge = bridge;
    // Others need it only where the message outlives its publisher.
    if (arrival && publication.retain && this.shared) packet.arrival = packArrival(arrival);
    return packet;
  }
}

/** Tells all gateways of the broker something, this one included. Rejects when Redis does not take it. */
export function tell(aedes: Aedes, topic: string, payload: Buffer): Promise<void> {
  const brokerId = aedes.id;
  const brokerCounter = ++aedes.counter;
  return new Promise((resolve, reject) => {
    aedes.mq.emit(
      { cmd: 'publish', topic, payload, qos: 0, retain: false, dup: false, brokerId, brokerCounter },
      (error) => (error ? reject(error) : resolve()),
    );
  });
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
