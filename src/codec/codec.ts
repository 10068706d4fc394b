// SEAM of codec/: bytes <-> packets, pure functions, one file per packet group. Used by session/, bridge/, proxy/,
// cli/. Decoders read [start, end) of a buffer that may hold more, and never look past `end`; they throw ProtocolError
// and nothing else. Encoders return whole packets. PUBLISH and the acknowledgements also have forms that write into a
// given buffer: the hot path.
//
// Map (made by `make docs`):
//   ack.ts        PUBACK, PUBREC, PUBREL, PUBCOMP (MQTT 5.0 sections 3.4 to 3.7): one layout, four meanings
//   assembler.ts  A packet that arrives in pieces: its bytes are collected here once
//   connect.ts    CONNECT and CONNACK (MQTT 5.0 sections 3.1 and 3.2, 3.1.1 the same, 3.1 sections 3.1 and 3.2)
//   cutter.ts     Whole packets out of the chunks of a connection
//   frame.ts      The fixed header (MQTT 5.0 section 2.1, 3.1.1 section 2.2)
//   hint.ts       What a peer that does not speak MQTT seems to speak: a word for the log
//   packet.ts     Any Control Packet but PUBLISH by its type: the one switch between bytes and packets
//   property.ts   MQTT 5.0 properties (section 2.2.2): a Property Length, then identifier and value
//   publish.ts    PUBLISH (MQTT 5.0 section 3.3, 3.1.1 section 3.3), the packet everything else exists for
//   reader.ts     A place in a packet that only moves forward and never past the packet's end
//   session.ts    The packets that keep and end a connection: PINGREQ, PINGRESP, DISCONNECT, AUTH
//   sp.ts         Bytes of the Scalability Protocols on a stream: the greeting and the frames of both mappings
//   subscribe.ts  SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK (MQTT 5.0 sections 3.8 to 3.11, 3.1.1 the same)
//   text.ts       UTF-8 Encoded Strings and Binary Data (MQTT 5.0 sections 1.5.4 and 1.5.6): two bytes of length

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
