// rep0: answers requests. Named in protocol.ts. Source: sp-reqrep of the nanomsg RFCs, nng_rep(7).
import type { Host, ProtocolRow } from '../pattern.ts';
import { Answers } from './answers.ts';
import { BACKTRACE_BYTES } from './backtrace.ts';

export const rep0: ProtocolRow = {
  number: 0x31,
  peer: 0x30,
  word: 'rep',
  peerWord: 'req',
  sends: true,
  receives: true,
  single: false,
  headerBytes: BACKTRACE_BYTES,
  hops: false,
  open: (host: Host) => new Answers(host),
};
