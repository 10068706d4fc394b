// The answering side of requests and surveys: each message that comes has a way back, and its answer goes there. Used
// by rep.ts and respondent.ts. Requests may be answered in any order and later; without a request handler a message
// goes to the socket's message handler, and the next send() answers the one that came last. Source: sp-reqrep-01,
// nng_rep(7).
import type { Answer, Host, OnRequest, Pattern, Peer, Receipt } from '../pattern.ts';
import { bodyStart } from './backtrace.ts';
import { receiptOf } from './fanout.ts';

export class Answers implements Pattern {
  readonly plain = false;
  private readonly host: Host;
  private handler: OnRequest | null = null;
  private last: Answer | null = null;
  private lastPeer: Peer | null = null;

  constructor(host: Host) {
    this.host = host;
  }

  onRequest(handler: OnRequest): void {
    this.handler = handler;
  }

  received(peer: Peer, bytes: Uint8Array, start: number, end: number): void {
    const at = bodyStart(bytes, start, end);
    if (at === -1) {
      peer.refuse('bad-frame');
      return;
    }
    if (at < 0) {
      this.host.stats.dropped++;
      return;
    }
    const answer = this.answerTo(peer, Uint8Array.from(bytes.subarray(start, at)));
    if (this.handler !== null) {
      this.handler(bytes, at, end, answer);
      return;
    }
    this.last = answer;
    this.host.deliver(bytes, at, end, peer);
  }

  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    const { last } = this;
    this.last = null;
    if (last === null || !last(Buffer.concat([head, body.subarray(start, end)]))) this.host.stats.dropped++;
    return true;
  }

  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    for (let i = 0; i < count; i++) this.send(head, source, spans[2 * i], spans[2 * i + 1]);
    return count;
  }

  ready(): boolean {
    return this.last !== null;
  }

  receipt(): Receipt {
    return receiptOf(this.lastPeer === null ? [] : [this.lastPeer]);
  }

  private answerTo(peer: Peer, wayBack: Uint8Array): Answer {
    let open = true;
    return (body) => {
      const { host } = this;
      if (!open || !host.peers.includes(peer)) return false;
      open = false;
      this.lastPeer = peer;
      peer.send(wayBack, body, 0, body.length);
      host.stats.messagesSent++;
      host.stats.bytesSent += wayBack.length + body.length;
      return true;
    };
  }
}
