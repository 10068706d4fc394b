// What a peer that does not speak MQTT seems to speak: a word for the log, so that a person sees the mistake. Called by
// session/reader.ts, session/client.ts and proxy/entrance.ts for a first byte that is not CONNECT. Looks at a few bytes
// and keeps nothing.
import { CONNECT } from '../mqtt/packet.ts';

export function hintFor(buffer: Buffer, at: number, end: number): string {
  const first = buffer[at];
  if (first === 0x16) return 'this looks like TLS on a plain port';
  if (first === 0x0d) return 'this looks like a PROXY protocol header, which this listener does not expect';
  if (first === 0 && end - at >= 3 && buffer[at + 1] === 0x53 && buffer[at + 2] === 0x50)
    return 'this looks like an SP (nng) peer on an MQTT port';
  const text = buffer.toString('latin1', at, Math.min(end, at + 8));
  if (/^(GET|POST|HEAD|PUT|OPTIONS) /.test(text)) return 'this looks like HTTP on an MQTT port';
  if (text.startsWith('PROXY ')) return 'this looks like a PROXY protocol header, which this listener does not expect';
  return `first byte 0x${first.toString(16).padStart(2, '0')}`;
}

/**
 * False when buffer[at, end) cannot become a CONNECT. The flags of the fixed header are left to the decoder, which
 * knows the version: 3.1 leaves them open. A TLS hello (0x16 0x03) has the packet type of CONNECT; no CONNECT is 3
 * bytes long.
 */
export function mayBeConnect(buffer: Buffer, at: number, end: number): boolean {
  if (buffer[at] >> 4 !== CONNECT) return false;
  return buffer[at] !== 0x16 || at + 1 >= end || buffer[at + 1] !== 0x03;
}
