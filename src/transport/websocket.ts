// A Connection over a WebSocket that is open, of either side. Built by ws.ts and wsdial.ts. Incoming messages are
// chunks: packets may straddle them freely [MQTT-6.0.0-2]; each write leaves as one binary message. Text frames close
// with 1003 [MQTT-6.0.0-1]. There is no half close: RFC 6455 section 1.4.
import type { Socket } from 'node:net';
import type WebSocket from 'ws';
import type { Timer } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import type { Peer } from './stream.ts';
import { errorName, GRACE_MS } from './stream.ts';
import type { CloseReason, Connection, TlsInfo, TransportKind } from './transport.ts';

/** RFC 6455 section 7.4.1. */
const NORMAL = 1000;
const UNSUPPORTED_DATA = 1003;

const BINARY = { binary: true, compress: false, fin: true } as const;

export class WebSocketConnection implements Connection {
  readonly kind: TransportKind;
  readonly remote: string;
  readonly remoteAddress: string;
  readonly local: string;
  readonly tls: TlsInfo | null;
  private readonly webSocket: WebSocket;
  private readonly socket: Socket;
  /** The TCP socket, which alone can be reset. */
  private readonly carrier: Socket;
  private readonly framed: boolean;
  private state: 'open' | 'ending' | 'closed' = 'open';
  private paused = false;
  private by: CloseReason['by'] | null = null;
  private failure: string | undefined;
  private reader: ((chunk: Buffer) => void) | null = null;
  private onClosed: ((reason: CloseReason) => void) | null = null;
  private timer: Timer | null = null;

  /**
   * Made in the very call that opens `webSocket`, which is not read until there is a reader.
   * @param socket what the WebSocket runs over, TLS or TCP
   * @param framed messages mean something: empty ones are delivered and sent
   */
  constructor(webSocket: WebSocket, socket: Socket, carrier: Socket, peer: Peer, tls: TlsInfo | null, framed: boolean) {
    this.kind = tls === null ? 'ws' : 'wss';
    this.webSocket = webSocket;
    this.socket = socket;
    this.carrier = carrier;
    this.framed = framed;
    this.remote = peer.remote;
    this.remoteAddress = peer.remoteAddress;
    this.local = peer.local;
    this.tls = tls;
    webSocket.pause();
    webSocket.on('message', (data, isBinary) => this.message(data, isBinary));
    webSocket.on('error', (error) => this.failed(error));
    webSocket.on('close', () => this.closed());
    socket.on('error', (error) => this.failed(error));
  }

  get queuedBytes(): number {
    return this.socket.writableLength;
  }

  onData(handler: (chunk: Buffer) => void): void {
    this.reader = handler;
    if (!this.paused && this.state === 'open') this.webSocket.resume();
  }

  /** Never called: a peer that has sent its last byte has closed. */
  onEnd(_handler: () => void): void {}

  onClose(handler: (reason: CloseReason) => void): void {
    this.onClosed = handler;
    if (this.state === 'closed') process.nextTick(() => this.tellClosed());
  }

  write(bytes: Uint8Array, done: () => void): void {
    if (this.state !== 'open' || (bytes.length === 0 && !this.framed)) process.nextTick(done);
    else this.webSocket.send(bytes, BINARY, done);
  }

  cork(): void {
    this.socket.cork();
  }

  uncork(): void {
    this.socket.uncork();
  }

  pause(): void {
    this.paused = true;
    if (this.state === 'open') this.webSocket.pause();
  }

  resume(): void {
    this.paused = false;
    if (this.reader !== null && this.state === 'open') this.webSocket.resume();
  }

  shutdown(): void {
    this.end();
  }

  end(graceMs: number = GRACE_MS): void {
    if (this.state !== 'open') return;
    this.by ??= 'us';
    this.closeWith(NORMAL, graceMs);
  }

  destroy(reset = false): void {
    if (this.state === 'closed') return;
    this.by ??= 'us';
    this.state = 'ending';
    if (reset && !this.carrier.destroyed && !this.socket.writableEnded) this.carrier.resetAndDestroy();
    else this.webSocket.terminate();
  }

  private closeWith(code: number, graceMs: number): void {
    this.state = 'ending';
    this.timer = systemClock.after(graceMs, () => this.webSocket.terminate());
    this.webSocket.close(code);
    // The peer's answer has to be read; messages before it are thrown away.
    this.webSocket.resume();
  }

  private message(data: WebSocket.RawData, isBinary: boolean): void {
    if (this.state !== 'open' || this.reader === null) return;
    if (!isBinary) {
      this.by = 'error';
      this.failure = 'ws-text';
      this.closeWith(UNSUPPORTED_DATA, GRACE_MS);
    } else if (Buffer.isBuffer(data) && (data.length > 0 || this.framed)) this.reader(data);
  }

  private failed(error: Error): void {
    if (this.by === 'us' || this.failure !== undefined) return;
    this.by = 'error';
    this.failure = errorName(error);
  }

  private closed(): void {
    this.state = 'closed';
    this.timer?.cancel();
    this.timer = null;
    this.tellClosed();
  }

  private tellClosed(): void {
    const handler = this.onClosed;
    if (handler === null) return;
    this.onClosed = null;
    const by = this.by ?? 'peer';
    handler(by === 'error' && this.failure !== undefined ? { by, error: this.failure } : { by });
  }
}
