// push0: each message for one of the pullers, in turn. A puller that sends is closed, as in nng.
// Named in protocol.ts. Source: sp-pipeline of the nanomsg RFCs, nng_push(7).
import type { Host, Pattern, Peer, ProtocolRow } from '../pattern.ts';
import { Rotation } from './rotation.ts';

class Push extends Rotation implements Pattern {
  readonly plain = false;

  received(peer: Peer): void {
    peer.refuse('unexpected-message');
  }
}

export const push0: ProtocolRow = {
  number: 0x50,
  peer: 0x51,
  word: 'push',
  peerWord: 'pull',
  sends: true,
  receives: false,
  single: false,
  headerBytes: 0,
  hops: false,
  open: (host: Host) => new Push(host),
};
