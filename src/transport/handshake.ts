// A socket between its accept and the moment it becomes a Connection: PROXY protocol header, TLS, WebSocket. Made by
// acceptor.ts where a listener needs one; tls.ts and ws.ts finish it. One deadline holds for all of it, and whatever
// goes wrong is told once, with a stable word. It reads only the PROXY header and gives back what follows.
import type { Socket } from 'node:net';
import type { Timer } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import { formatHostPort } from './address.ts';
import { PROXY_HEADER_LONGEST, parseProxyHeader } from './proxyline.ts';
import type { Peer } from './stream.ts';
import type { ProxyTls, Reject } from './transport.ts';

type Stage = 'proxy' | 'tls' | 'ws';

export class Handshake {
  readonly socket: Socket;
  /** Who the peer is; a PROXY header changes it. */
  peer: Peer;
  /** What the peer is expected to send now; part of the reason when it goes away instead. */
  stage: Stage = 'proxy';
  private state: 'waiting' | 'finished' | 'failed' = 'waiting';
  private failure: Error | null = null;
  private readonly reject: Reject;
  private readonly all: Set<Handshake>;
  private readonly timer: Timer;
  private readonly onClose = (): void => {
    // The TLS socket above closes in this turn too and may know better why.
    if (this.stage === 'tls') setImmediate(() => this.fail(this.reasonOfClose()));
    else this.fail(this.reasonOfClose());
  };

  /** Counts itself in `all` until it is over. `timeoutMs` runs from now to finish(). */
  constructor(socket: Socket, peer: Peer, timeoutMs: number, reject: Reject, all: Set<Handshake>) {
    this.socket = socket;
    this.peer = peer;
    this.reject = reject;
    this.all = all;
    all.add(this);
    this.timer = systemClock.after(timeoutMs, () => this.fail('handshake-timeout'));
    // Stays for the socket's life: under TLS nobody else listens to it.
    socket.on('error', (error) => {
      this.failure ??= error;
    });
    socket.once('close', this.onClose);
  }

  get over(): boolean {
    return this.state !== 'waiting';
  }

  /**
   * Reads the PROXY protocol header, puts back what follows it and calls `next`; a bad one ends the connection, and
   * with `tls` required one that does not tell of a verified certificate of the client.
   */
  readProxyHeader(tls: ProxyTls, next: () => void): void {
    const { socket } = this;
    let held: Buffer = Buffer.alloc(0);
    const onEnd = (): void => this.fail(this.reasonOfClose());
    const onData = (chunk: Buffer): void => {
      // Only what can belong to a header is looked at, and nothing more is read meanwhile.
      const rest = Math.max(0, PROXY_HEADER_LONGEST - held.length);
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk.subarray(0, rest)]);
      const header = parseProxyHeader(bytes.subarray(0, PROXY_HEADER_LONGEST));
      if (header === 'bad') {
        this.fail('proxy-header');
        return;
      }
      if (header === 'more') {
        held = bytes;
        return;
      }
      socket.removeListener('data', onData);
      socket.removeListener('end', onEnd);
      socket.pause();
      if (header.source !== null) {
        const { host, port } = header.source;
        this.peer = { remote: formatHostPort(host, port), remoteAddress: host, local: this.peer.local };
      }
      if (tls === 'required' && !header.tls?.peer) {
        this.fail('proxy-certificate');
        return;
      }
      if (tls !== 'ignored') this.peer = { ...this.peer, tls: header.tls };
      const after = chunk.subarray(header.bytes - held.length);
      if (after.length > 0) socket.unshift(after);
      next();
    };
    socket.on('data', onData);
    socket.on('end', onEnd);
  }

  /** The listener's part has come to its end; false when the peer has been given up meanwhile. */
  finish(): boolean {
    if (this.state !== 'waiting') return false;
    this.settle('finished');
    return true;
  }

  /** Ends the connection and says why, once. */
  fail(reason: string): void {
    if (this.state !== 'waiting') return;
    this.settle('failed');
    this.socket.destroy();
    this.reject(reason, this.peer.remote);
  }

  /** Says why, once, and leaves closing to the caller, who still has an answer to send. */
  refuse(reason: string): void {
    if (this.state !== 'waiting') return;
    this.settle('failed');
    this.reject(reason, this.peer.remote);
  }

  /** Ends the connection because the listener stops: nobody's fault, not counted. */
  abandon(): void {
    if (this.state !== 'waiting') return;
    this.settle('failed');
    this.socket.destroy();
  }

  /** "silent" for a peer that sent nothing at all, as load balancers do to see whether a port is open. */
  reasonOfClose(): string {
    if (this.failure !== null) return 'reset';
    return this.socket.bytesRead === 0 ? 'silent' : `${this.stage}-truncated`;
  }

  private settle(state: 'finished' | 'failed'): void {
    this.state = state;
    this.timer.cancel();
    this.all.delete(this);
    this.socket.removeListener('close', this.onClose);
  }
}
