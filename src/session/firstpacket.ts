// The first packet of a connection by itself, for engines that read the packets after it on their own:
// broker/aedes/front.ts. Keeps nothing; what a peer may make its caller keep is bounded by `maxBytes`. Sources: MQTT
// 3.1.1 section 3.1, MQTT 5.0 section 3.1.2.2.
import { errorText } from '../base/errors.ts';
import { newFrame } from '../codec/codec.ts';
import { ConnectError, decodeConnect, encodeConnack, encodeRefusal } from '../codec/connect.ts';
import { readFrame } from '../codec/frame.ts';
import { CONNACK, CONNECT, type ConnectPacket } from '../mqtt/packet.ts';
import { UNSUPPORTED_PROTOCOL_VERSION } from '../mqtt/reason.ts';

export type FirstPacket =
  | { readonly kind: 'more' }
  | { readonly kind: 'connect'; readonly packet: ConnectPacket; readonly end: number }
  /** `answer` is to be sent before the connection is closed, null = nothing is. */
  | { readonly kind: 'refused'; readonly why: string; readonly answer: Buffer | null };

/** What buffer begins with, from whoever speaks 3.1 or 3.1.1; 5.0 is refused in its own form. Throws nothing. */
export function readFirstPacket(buffer: Buffer, maxBytes: number): FirstPacket {
  // [MQTT-3.1.0-1]
  if (buffer[0] !== CONNECT << 4) return { kind: 'refused', why: 'the first packet is not a CONNECT', answer: null };
  const frame = newFrame();
  try {
    if (readFrame(buffer, 0, buffer.length, frame, maxBytes) === 0) return { kind: 'more' };
    const packet = decodeConnect(buffer, frame);
    if (packet.version !== 5) return { kind: 'connect', packet, end: frame.end };
    const reasonCode = UNSUPPORTED_PROTOCOL_VERSION;
    const answer = encodeConnack(5, { type: CONNACK, sessionPresent: false, reasonCode, properties: null });
    return { kind: 'refused', why: 'MQTT 5.0, which this engine does not speak', answer }; // [MQTT-3.1.2-2]
  } catch (error) {
    const answer = error instanceof ConnectError ? encodeRefusal(error) : null;
    return { kind: 'refused', why: errorText(error), answer };
  }
}
