// pair0 and pair1: two sockets, both ways. The first peer stays; others are refused, as in nng. pair1 counts hops in
// four bytes. Named in protocol.ts. Source: sp-pair of the nanomsg RFCs, nng_pair(7).
import type { Host, Pattern, ProtocolRow } from '../pattern.ts';
import { Rotation } from './rotation.ts';

class Pair extends Rotation implements Pattern {
  readonly plain = true;

  received(): void {}
}

export const pair0: ProtocolRow = {
  number: 0x10,
  peer: 0x10,
  word: 'pair',
  peerWord: 'pair',
  sends: true,
  receives: true,
  single: true,
  headerBytes: 0,
  hops: false,
  open: (host: Host) => new Pair(host),
};

export const pair1: ProtocolRow = {
  ...pair0,
  number: 0x11,
  peer: 0x11,
  word: 'pair1',
  peerWord: 'pair1',
  headerBytes: 4,
  hops: true,
};
