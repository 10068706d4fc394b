// pull0: what pushers send, from whichever has something.
// Named in protocol.ts. Source: sp-pipeline of the nanomsg RFCs, nng_pull(7).
import type { Pattern, ProtocolRow } from '../pattern.ts';
import { Silent } from './silent.ts';

class Pull extends Silent implements Pattern {
  readonly plain = true;

  received(): void {}
}

export const pull0: ProtocolRow = {
  number: 0x51,
  peer: 0x50,
  word: 'pull',
  peerWord: 'push',
  sends: false,
  receives: true,
  single: false,
  headerBytes: 0,
  hops: false,
  open: () => new Pull(),
};
