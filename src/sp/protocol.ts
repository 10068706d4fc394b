// What the socket types of the Scalability Protocols do, as data: who talks to whom and in which direction.
// Read by the drivers. Sources: the nanomsg RFCs (sp-pubsub, sp-pipeline, sp-pair) and nng's pair1.
import { PROTOCOLS, type Protocol } from './sp.ts';

export interface ProtocolRow {
  readonly peer: Protocol;
  readonly sends: boolean;
  readonly receives: boolean;
  /** One peer at a time; others are refused. */
  readonly single: boolean;
  /** Bytes of the protocol's own header in front of each body: pair1 counts hops in four. */
  readonly headerBytes: 0 | 4;
  /** The first part of the WebSocket subprotocol `<word>.sp.nanomsg.org`. */
  readonly word: string;
}

export const ROWS: { readonly [P in Protocol]: ProtocolRow } = {
  pair0: { peer: 'pair0', sends: true, receives: true, single: true, headerBytes: 0, word: 'pair' },
  pair1: { peer: 'pair1', sends: true, receives: true, single: true, headerBytes: 4, word: 'pair1' },
  pub0: { peer: 'sub0', sends: true, receives: false, single: false, headerBytes: 0, word: 'pub' },
  sub0: { peer: 'pub0', sends: false, receives: true, single: false, headerBytes: 0, word: 'sub' },
  push0: { peer: 'pull0', sends: true, receives: false, single: false, headerBytes: 0, word: 'push' },
  pull0: { peer: 'push0', sends: false, receives: true, single: false, headerBytes: 0, word: 'pull' },
};

/** The number that a peer of `protocol` has to announce. */
export function peerNumber(protocol: Protocol): number {
  return PROTOCOLS[ROWS[protocol].peer];
}

/** The WebSocket subprotocol of a connection: that of its listening side (sp-websocket-mapping). */
export function subprotocol(listening: Protocol): string {
  return `${ROWS[listening].word}.sp.nanomsg.org`;
}
