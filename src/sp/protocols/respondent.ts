// respondent0: answers surveys, each once and as long as the surveyor waits.
// Named in protocol.ts. Source: sp-survey of the nanomsg RFCs, nng_respondent(7).
import type { Host, ProtocolRow } from '../pattern.ts';
import { Answers } from './answers.ts';
import { BACKTRACE_BYTES } from './backtrace.ts';

export const respondent0: ProtocolRow = {
  number: 0x63,
  peer: 0x62,
  word: 'respondent',
  peerWord: 'surveyor',
  sends: true,
  receives: true,
  single: false,
  headerBytes: BACKTRACE_BYTES,
  hops: false,
  open: (host: Host) => new Answers(host),
};
