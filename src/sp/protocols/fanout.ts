// A copy for every peer: how pub0, bus0 and surveys send. Used by pub.ts, bus.ts and surveyor.ts.
// With no peer the message is gone, as with every publisher. Source: sp-pubsub and sp-bus of the nanomsg RFCs.
import type { Host, Peer, Receipt } from '../pattern.ts';

/** From this many messages on, sending them as one run is worth its preparation. */
const FEW = 4;

export class Fanout {
  protected readonly host: Host;

  constructor(host: Host) {
    this.host = host;
  }

  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    const { host } = this;
    const { peers, stats } = host;
    const bytes = head.length + end - start;
    if (host.overflow === 'block') {
      for (let i = 0; i < peers.length; i++) {
        if (peers[i].fits(bytes)) continue;
        host.waiting = true;
        return false;
      }
    }
    for (let i = 0; i < peers.length; i++) peers[i].send(head, body, start, end);
    stats.messagesSent += peers.length;
    stats.bytesSent += bytes * peers.length;
    return true;
  }

  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    const { host } = this;
    const { peers } = host;
    if (count >= FEW && host.overflow !== 'block') {
      for (let i = 0; i < peers.length; i++) this.sendAll(peers[i], head, source, spans, count);
      return count;
    }
    if (count >= FEW && peers.length === 1) return this.sendToSingle(peers[0], head, source, spans, count);
    return this.sendEach(head, source, spans, 0, count);
  }

  ready(bytes: number): boolean {
    return readyPeer(this.host, bytes);
  }

  receipt(): Receipt {
    return receiptOf(this.host.peers.slice());
  }

  /** Everything to one peer, whatever others do: the socket drops where it must. */
  private sendAll(peer: Peer, head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): void {
    for (let i = peer.sendReady(head, source, spans, 0, count); i < count; i++)
      peer.send(head, source, spans[2 * i], spans[2 * i + 1]);
    countRun(this.host, head, spans, count);
  }

  private sendToSingle(peer: Peer, head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    const sent = peer.sendReady(head, source, spans, 0, count);
    countRun(this.host, head, spans, sent);
    return this.sendEach(head, source, spans, sent, count);
  }

  private sendEach(head: Uint8Array, source: Uint8Array, spans: Int32Array, from: number, count: number): number {
    let sent = from;
    while (sent < count && this.send(head, source, spans[2 * sent], spans[2 * sent + 1])) sent++;
    return sent;
  }
}

/** Counts the first `count` messages of a run as sent to one peer. */
export function countRun(host: Host, head: Uint8Array, spans: Int32Array, count: number): void {
  let bytes = count * head.length;
  for (let i = 0; i < count; i++) bytes += spans[2 * i + 1] - spans[2 * i];
  host.stats.messagesSent += count;
  host.stats.bytesSent += bytes;
}

/** Whether some peer would take `bytes` now; when not, the host is asked to tell of room. */
export function readyPeer(host: Host, bytes: number): boolean {
  const { peers } = host;
  for (let i = 0; i < peers.length; i++) if (peers[i].takes(bytes)) return true;
  host.waiting = true;
  return false;
}

/** The receipt of what was last sent to each of `peers`. */
export function receiptOf(peers: readonly Peer[]): Receipt {
  const positions = peers.map((peer) => peer.position);
  return {
    state: () => {
      const states = peers.map((peer, i) => peer.settled(positions[i]));
      return states.includes('taken') ? 'taken' : states.includes('waiting') ? 'waiting' : 'lost';
    },
  };
}
