// bus0: each message goes to every peer, and what peers send comes in; nothing is passed on from one peer to another.
// Named in protocol.ts. Source: sp-bus of the nanomsg RFCs, nng_bus(7).
import type { Host, Pattern, ProtocolRow } from '../pattern.ts';
import { Fanout } from './fanout.ts';

class Bus extends Fanout implements Pattern {
  readonly plain = true;

  received(): void {}
}

export const bus0: ProtocolRow = {
  number: 0x70,
  peer: 0x70,
  word: 'bus',
  peerWord: 'bus',
  sends: true,
  receives: true,
  single: false,
  headerBytes: 0,
  hops: false,
  open: (host: Host) => new Bus(host),
};
