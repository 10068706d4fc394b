// sub0: what publishers send, as far as it begins with a subscribed prefix. Publishers send everything; the filter is
// here. Named in protocol.ts. Source: sp-pubsub of the nanomsg RFCs, nng_sub(7).
import type { Host, Pattern, Peer, ProtocolRow } from '../pattern.ts';
import { Prefixes } from '../prefixes.ts';
import { Silent } from './silent.ts';

class Sub extends Silent implements Pattern {
  plain = false;
  private readonly host: Host;
  private readonly prefixes = new Prefixes();

  constructor(host: Host) {
    super();
    this.host = host;
  }

  subscribe(prefix: Uint8Array): void {
    this.prefixes.add(prefix);
    this.plain = this.prefixes.everything;
  }

  unsubscribe(prefix: Uint8Array): void {
    this.prefixes.remove(prefix);
    this.plain = this.prefixes.everything;
  }

  received(peer: Peer, bytes: Uint8Array, start: number, end: number): void {
    if (this.prefixes.matches(bytes, start, end)) this.host.deliver(bytes, start, end, peer);
  }
}

export const sub0: ProtocolRow = {
  number: 0x21,
  peer: 0x20,
  word: 'sub',
  peerWord: 'pub',
  sends: false,
  receives: true,
  single: false,
  headerBytes: 0,
  hops: false,
  open: (host: Host) => new Sub(host),
};
