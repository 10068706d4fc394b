// req0: asks one of its peers and gets one answer. A request whose peer goes away, or that has no answer for a minute,
// is sent again to whichever peer is ready. request() has many under way; send() is nng's plain socket: a new request
// takes the place of the one before. Named in protocol.ts. Requests without an answer hold at most `send_buffer` bytes.
// Source: sp-reqrep of the nanomsg RFCs, nng_req(7).
import type { Timer } from '../../base/clock.ts';
import type { Asking, Host, Pattern, Peer, ProtocolRow, Receipt } from '../pattern.ts';
import { bodyStart, firstNumber, joinRequest, nextNumber, readWord, WORD_BYTES } from './backtrace.ts';
import { receiptOf } from './fanout.ts';

/** NNG_OPT_REQ_RESENDTIME: 60 s. */
const RESEND_MS = 60_000;
const NO_BYTES = new Uint8Array(0);

interface Request {
  readonly number: number;
  readonly message: Buffer;
  readonly asking: Asking;
  /** Who was asked last; null: waits for a peer. */
  peer: Peer | null;
  limit: Timer | null;
  resend: Timer | null;
}

class Req implements Pattern {
  readonly plain = false;
  private readonly host: Host;
  private number = firstNumber();
  private readonly open = new Map<number, Request>();
  private heldBytes = 0;
  private turn = 0;
  /** Of send(). */
  private only: Request | null = null;
  /** Whose reply is being handed over. */
  private source: Peer | null = null;

  constructor(host: Host) {
    this.host = host;
  }

  request(body: Uint8Array, timeoutMs: number, asking: Asking): (() => void) | null {
    const request = this.ask(NO_BYTES, body, 0, body.length, asking);
    if (request === null) return null;
    if (timeoutMs > 0) request.limit = this.host.clock.after(timeoutMs, () => this.end(request, 'timeout'));
    return () => this.close(request);
  }

  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    if (this.only !== null) this.close(this.only);
    this.only = this.ask(head, body, start, end, {
      reply: (bytes, from, to) => {
        if (this.source !== null) this.host.deliver(bytes, from, to, this.source);
      },
      ended: () => {},
    });
    return true;
  }

  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    for (let i = 0; i < count; i++) this.send(head, source, spans[2 * i], spans[2 * i + 1]);
    return count;
  }

  ready(bytes: number): boolean {
    if (this.host.peers.some((peer) => peer.takes(bytes + WORD_BYTES))) return true;
    this.host.waiting = true;
    return false;
  }

  receipt(): Receipt {
    const { only } = this;
    if (only !== null && only.peer === null) return { state: () => (only.peer === null ? 'waiting' : 'taken') };
    return receiptOf(only === null || only.peer === null ? [] : [only.peer]);
  }

  received(peer: Peer, bytes: Uint8Array, start: number, end: number): void {
    const at = bodyStart(bytes, start, end);
    if (at !== start + WORD_BYTES) {
      peer.refuse('bad-frame');
      return;
    }
    // A reply to what was given up, or a second one, is nothing new.
    const request = this.open.get(readWord(bytes, start));
    if (request === undefined) return;
    this.close(request);
    this.source = peer;
    request.asking.reply(bytes, at, end);
    this.source = null;
    request.asking.ended('answered');
  }

  peerReady(): void {
    for (const request of this.open.values()) if (request.peer === null) this.dispatch(request);
  }

  peerGone(peer: Peer): void {
    for (const request of this.open.values()) {
      if (request.peer !== peer) continue;
      request.peer = null;
      this.dispatch(request);
    }
  }

  stop(): void {
    for (const request of [...this.open.values()]) this.end(request, 'stopped');
  }

  private ask(head: Uint8Array, body: Uint8Array, start: number, end: number, asking: Asking): Request | null {
    const size = WORD_BYTES + head.length + end - start;
    if (this.open.size > 0 && this.heldBytes + size > this.host.sendBuffer) {
      this.host.stats.dropped++;
      return null;
    }
    this.number = nextNumber(this.number);
    const message = joinRequest(this.number, head, body, start, end);
    const request: Request = { number: this.number, message, asking, peer: null, limit: null, resend: null };
    this.open.set(request.number, request);
    this.heldBytes += size;
    this.dispatch(request);
    return request;
  }

  /** Sends a request to the next peer that is ready; with none it waits. */
  private dispatch(request: Request): void {
    const { host } = this;
    const { peers, stats } = host;
    for (let i = 0; i < peers.length; i++) {
      const peer = peers[(this.turn + i) % peers.length];
      if (!peer.takes(request.message.length)) continue;
      this.turn = (this.turn + i + 1) % peers.length;
      request.peer = peer;
      peer.send(NO_BYTES, request.message, 0, request.message.length);
      stats.messagesSent++;
      stats.bytesSent += request.message.length;
      request.resend?.cancel();
      request.resend = host.clock.after(RESEND_MS, () => {
        request.peer = null;
        this.dispatch(request);
      });
      return;
    }
    host.waiting = true;
  }

  private end(request: Request, how: 'timeout' | 'stopped'): void {
    this.close(request);
    request.asking.ended(how);
  }

  private close(request: Request): void {
    if (!this.open.delete(request.number)) return;
    this.heldBytes -= request.message.length;
    request.limit?.cancel();
    request.resend?.cancel();
    if (this.only === request) this.only = null;
  }
}

export const req0: ProtocolRow = {
  number: 0x30,
  peer: 0x31,
  word: 'req',
  peerWord: 'rep',
  sends: true,
  receives: true,
  single: false,
  headerBytes: WORD_BYTES,
  hops: false,
  open: (host: Host) => new Req(host),
};
