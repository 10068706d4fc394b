// pub0: a copy of each message for every subscriber. A subscriber that sends is closed, as in nng.
// Named in protocol.ts. Source: sp-pubsub of the nanomsg RFCs, nng_pub(7).
import type { Host, Pattern, Peer, ProtocolRow } from '../pattern.ts';
import { Fanout } from './fanout.ts';

class Pub extends Fanout implements Pattern {
  readonly plain = false;

  received(peer: Peer): void {
    peer.refuse('unexpected-message');
  }
}

export const pub0: ProtocolRow = {
  number: 0x20,
  peer: 0x21,
  word: 'pub',
  peerWord: 'sub',
  sends: true,
  receives: false,
  single: false,
  headerBytes: 0,
  hops: false,
  open: (host: Host) => new Pub(host),
};
