// One peer for each message, in turn: how push0 and pair send. Used by push.ts, pair.ts. A peer that is ready goes
// first, so that a slow one holds no work that another could do. Without `block` a message may also wait in a peer's
// queue, or push an older one out of it. Source: sp-pipeline and sp-pair of the nanomsg RFCs.
import type { Host, Peer, Receipt } from '../pattern.ts';
import { countRun, readyPeer, receiptOf } from './fanout.ts';

const FEW = 4;

export class Rotation {
  protected readonly host: Host;
  private next = 0;
  /** The peer the last message went to. */
  private last: Peer | null = null;

  constructor(host: Host) {
    this.host = host;
  }

  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    const { host } = this;
    const { overflow, stats } = host;
    const bytes = head.length + end - start;
    let peer = this.pick(bytes, 'ready');
    if (peer === null && overflow !== 'block') peer = this.pick(bytes, 'queue');
    if (peer === null && overflow === 'drop_oldest') peer = this.pick(bytes, 'any');
    if (peer !== null) {
      this.last = peer;
      peer.send(head, body, start, end);
      stats.messagesSent++;
      stats.bytesSent += bytes;
      return true;
    }
    if (overflow === 'block') {
      host.waiting = true;
      return false;
    }
    this.last = null;
    stats.dropped++;
    return true;
  }

  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    const { host } = this;
    const { peers } = host;
    let sent = 0;
    if (count >= FEW && peers.length === 1) {
      this.last = peers[0];
      sent = peers[0].sendReady(head, source, spans, 0, count);
      countRun(host, head, spans, sent);
    }
    while (sent < count && this.send(head, source, spans[2 * sent], spans[2 * sent + 1])) sent++;
    return sent;
  }

  ready(bytes: number): boolean {
    return readyPeer(this.host, bytes);
  }

  receipt(): Receipt {
    return receiptOf(this.last === null ? [] : [this.last]);
  }

  /** The next peer in turn that is ready, whose queue has room, or whichever it is. */
  private pick(bytes: number, wanted: 'ready' | 'queue' | 'any'): Peer | null {
    const { peers } = this.host;
    for (let i = 0; i < peers.length; i++) {
      if (this.next >= peers.length) this.next = 0;
      const peer = peers[this.next++];
      if (wanted === 'any' || (wanted === 'queue' ? peer.fits(bytes) : peer.takes(bytes))) return peer;
    }
    return null;
  }
}
