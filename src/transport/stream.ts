// A Connection over a socket of Node: tcp, tls and unix are the same but for their kind. Built by the listeners and by
// dial.ts once their handshakes are done. Must not know what the bytes mean, nor add work per chunk: the reader's
// function is attached to the socket itself, writes go to the socket with the caller's own `done`. Source: RFC 9293
// section 3.6 (half close), RFC 1122 section 4.2.2.13 (why a close with unread bytes loses what was sent).
import type { Socket } from 'node:net';
import type { Timer } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import { formatHostPort, plainAddress } from './address.ts';
import { ReadBuffer, readInto } from './readbuffers.ts';
import type { CloseReason, Connection, Intake, LentReader, ReadBuffers, TlsInfo, TransportKind } from './transport.ts';

/** Who is at the other end, as it will be shown. */
export interface Peer {
  readonly remote: string;
  readonly remoteAddress: string;
  readonly local: string;
  /** What a PROXY header says of the client's TLS, where that is believed. */
  readonly tls?: TlsInfo | null;
}

/** The names of both ends of a TCP socket, taken while it is connected. */
export function peerOf(socket: Socket): Peer {
  const remoteAddress = plainAddress(socket.remoteAddress);
  return {
    remote: formatHostPort(remoteAddress, socket.remotePort ?? 0),
    remoteAddress,
    local: formatHostPort(plainAddress(socket.localAddress), socket.localPort ?? 0),
  };
}

/** The name of an error that a socket ended with: an errno name or OpenSSL's code. */
export function errorName(error: Error): string {
  const code = (error as NodeJS.ErrnoException).code;
  return typeof code === 'string' && code !== '' ? code : error.name;
}

export const GRACE_MS = 5000;
/**
 * How long a closed sending side waits for the peer to close its own: closing with unread bytes would reset what is
 * under way.
 */
export const LINGER_MS = 1000;

type State = 'open' | 'shut' | 'ending' | 'closed';

export class StreamConnection implements Connection {
  readonly kind: TransportKind;
  readonly remote: string;
  readonly remoteAddress: string;
  readonly local: string;
  readonly tls: TlsInfo | null;
  readonly offers: boolean;
  private readonly socket: Socket;
  /** The TCP socket under TLS, which alone can be reset. */
  private readonly carrier: Socket;
  private state: State = 'open';
  private paused = false;
  private by: CloseReason['by'] | null = null;
  private failure: string | undefined;
  private reader: ((chunk: Buffer) => void) | null = null;
  /** Gets chunks that are lent, while nobody reads by onData. */
  private lentReader: LentReader | null = null;
  private readBuffer: ReadBuffer | null = null;
  private onEnded: (() => void) | null = null;
  private onClosed: ((reason: CloseReason) => void) | null = null;
  private timer: Timer | null = null;

  /** `socket` must be open and allow half-open; `carrier` is the socket below it where there is one. */
  constructor(kind: TransportKind, socket: Socket, peer: Peer, tls: TlsInfo | null = null, carrier: Socket = socket) {
    this.kind = kind;
    this.socket = socket;
    this.carrier = carrier;
    this.remote = peer.remote;
    this.remoteAddress = peer.remoteAddress;
    this.local = peer.local;
    this.tls = tls;
    this.offers = kind !== 'tls';
    socket.on('error', (error) => this.failed(error));
    socket.on('end', () => this.peerEnded());
    socket.on('close', () => this.closed());
  }

  get queuedBytes(): number {
    return this.socket.writableLength;
  }

  get taken(): boolean {
    // What failed at once was not taken: it is told to the next write.
    if (this.state !== 'open') return true;
    const { socket } = this;
    return socket.writableLength === 0 && socket.errored === null && !socket.destroyed;
  }

  onData(handler: (chunk: Buffer) => void): void {
    this.lentReader = null;
    this.read(handler);
  }

  readInto(buffers: ReadBuffers, reader: LentReader): boolean {
    if (this.kind === 'tls' || (this.state !== 'open' && this.state !== 'shut')) return false;
    if (this.readBuffer === null) {
      const buffer = new ReadBuffer(buffers, (chunk) => this.readLent(chunk));
      if (!buffer.attach(this.socket)) return false;
      this.readBuffer = buffer;
      // What the stream reads into buffers of its own stops here. Now it can be stopped at once, before it overtakes
      // what it still holds.
      this.socket.pause();
    }
    this.lentReader = reader;
    // Chunks that the stream has read before come this way.
    this.read((chunk) => {
      reader(chunk);
    });
    return true;
  }

  fill(intake: Intake): boolean {
    if (this.kind === 'tls' || this.state !== 'open' || this.readBuffer !== null) return false;
    const attached = readInto(
      this.socket,
      intake.place(),
      (bytes, into) => {
        if (this.state === 'open' || this.state === 'shut') intake.take(into, bytes);
      },
      () => intake.place(),
    );
    if (!attached) return false;
    // As in readInto(): what the stream has read before comes first, and this way.
    this.socket.pause();
    this.read((chunk) => intake.take(chunk, chunk.length));
    return true;
  }

  onEnd(handler: () => void): void {
    this.onEnded = handler;
  }

  onClose(handler: (reason: CloseReason) => void): void {
    this.onClosed = handler;
    if (this.state === 'closed') process.nextTick(() => this.tellClosed());
  }

  write(bytes: Uint8Array, done: () => void): void {
    if (this.state === 'open') this.socket.write(bytes, done);
    else process.nextTick(done);
  }

  offer(bytes: Uint8Array): boolean {
    if (this.state !== 'open') return true;
    // Without a callback: Node then schedules nothing for after the write.
    this.socket.write(bytes);
    return this.taken;
  }

  cork(): void {
    this.socket.cork();
  }

  uncork(): void {
    this.socket.uncork();
  }

  pause(): void {
    this.paused = true;
    if (this.state === 'open' || this.state === 'shut') this.socket.pause();
  }

  resume(): void {
    this.paused = false;
    if (this.reader !== null && !this.socket.destroyed) this.socket.resume();
  }

  shutdown(): void {
    if (this.state !== 'open') return;
    this.state = 'shut';
    this.socket.end();
  }

  end(graceMs: number = GRACE_MS): void {
    if (this.state === 'ending' || this.state === 'closed') return;
    this.by ??= 'us';
    this.state = 'ending';
    if (this.reader !== null) this.socket.removeListener('data', this.reader);
    // Reads on, into nothing: a peer's close is noticed, and unread bytes cannot turn our close into a reset.
    this.socket.resume();
    this.timer = systemClock.after(graceMs, () => this.socket.destroy());
    this.socket.end(() => this.linger(graceMs));
  }

  destroy(reset = false): void {
    if (this.state === 'closed') return;
    this.by ??= 'us';
    this.state = 'ending';
    // The system refuses to reset a socket that is shutting down, and Node would then never close it.
    const can = reset && this.kind !== 'unix' && !this.carrier.destroyed && !this.socket.writableEnded;
    if (this.reader !== null) this.socket.removeListener('data', this.reader);
    // Under TLS the reset of the carrier closes both; closing both here would close one handle twice.
    if (can) this.carrier.resetAndDestroy();
    else this.socket.destroy();
  }

  private read(handler: (chunk: Buffer) => void): void {
    if (this.reader !== null) this.socket.removeListener('data', this.reader);
    this.reader = handler;
    if (this.state !== 'open' && this.state !== 'shut') return;
    this.socket.on('data', handler);
    if (!this.paused) this.socket.resume();
  }

  private readLent(chunk: Buffer): boolean {
    if (this.state !== 'open' && this.state !== 'shut') return false;
    if (this.lentReader !== null) return this.lentReader(chunk);
    // The reader of today may keep what it gets.
    this.reader?.(Buffer.from(chunk));
    return false;
  }

  private linger(graceMs: number): void {
    if (this.state !== 'ending' || this.socket.destroyed) return;
    this.timer?.cancel();
    this.timer = systemClock.after(Math.min(graceMs, LINGER_MS), () => this.socket.destroy());
  }

  private peerEnded(): void {
    this.by ??= 'peer';
    if (this.state === 'ending' || this.state === 'closed') return;
    if (this.onEnded !== null) this.onEnded();
    else this.end();
  }

  private failed(error: Error): void {
    if (this.by === 'us') return;
    this.by = 'error';
    this.failure = errorName(error);
  }

  private closed(): void {
    this.state = 'closed';
    this.readBuffer?.close();
    this.timer?.cancel();
    this.timer = null;
    this.tellClosed();
  }

  private tellClosed(): void {
    const handler = this.onClosed;
    if (handler === null) return;
    this.onClosed = null;
    const by = this.by ?? 'peer';
    handler(this.failure === undefined || by !== 'error' ? { by } : { by, error: this.failure });
  }
}
