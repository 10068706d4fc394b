// SEAM of codec/: bytes <-> packets, pure functions, one file per packet group. Used by session/, bridge/, proxy/, cli/.
// Decoders read [start, end) of a buffer that may hold more, and never look past `end`; they throw ProtocolError and nothing else.
// Encoders return whole packets. PUBLISH and the acknowledgements also have forms that write into a given buffer: the hot path.
//
//   frame.ts      readFrame(buffer, at, end, frame, maxBytes): 0 need more | 1 complete | throws; writeVarint, varintBytes
//   connect.ts    decodeConnect, encodeConnect, decodeConnack, encodeConnack
//   publish.ts    decodePublish (in place, into a Publication), encodePublish
//   ack.ts        decodeAck, encodeAck, writeAck (4 bytes into a buffer)
//   subscribe.ts  decodeSubscribe, encodeSubscribe, decodeSuback, encodeSuback and the same for UNSUBSCRIBE
//   session.ts    DISCONNECT, AUTH, PINGREQ, PINGRESP
//   property.ts   decodeProperties, encodeProperties (by the table of mqtt/property.ts)
//   reader.ts     Reader: a bounded walk over the fields of one packet
//   text.ts       UTF-8 Encoded Strings and Binary Data (MQTT 5.0 section 1.5.4, 1.5.6)
//   packet.ts     decodePacket(version, buffer, frame): any packet but PUBLISH, by type; encodePacket
//   sp.ts         SP greeting and frames

/** Which side has sent a packet: some packets and properties may come from one side only. */
export type Sender = 'client' | 'server';

/** One fixed header, reused by its reader (MQTT 5.0 section 2.1). */
export interface Frame {
  /** High four bits of the first byte. */
  type: number;
  /** Low four bits. */
  flags: number;
  /** Offset of the first byte of the packet. */
  packetStart: number;
  /** Offset of the variable header. */
  bodyStart: number;
  /** Offset behind the packet. */
  end: number;
}

export function newFrame(): Frame {
  return { type: 0, flags: 0, packetStart: 0, bodyStart: 0, end: 0 };
}
