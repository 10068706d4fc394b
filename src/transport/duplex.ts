// A Connection over any Duplex of Node.js that an embedding program hands over: a tunnel, a serial line, a worker. Made
// by index.ts. As stream.ts for what every Duplex can do; there are no addresses but what the program says. Bytes given
// to write() are taken when the stream says so.
import type { Duplex } from 'node:stream';
import { systemClock, type Timer } from '../base/clock.ts';
import { errorName, GRACE_MS } from './stream.ts';
import type { CloseReason, Connection } from './transport.ts';

export class DuplexConnection implements Connection {
  readonly kind = 'memory';
  readonly remote: string;
  readonly remoteAddress: string;
  readonly local = 'program';
  readonly tls = null;
  private readonly stream: Duplex;
  private reading = false;
  private paused = false;
  private state: 'open' | 'shut' | 'ending' | 'closed' = 'open';
  private by: CloseReason['by'] = 'peer';
  private failure: string | undefined;
  private onEnded: (() => void) | null = null;
  private onClosed: ((reason: CloseReason) => void) | null = null;
  private onChunk: ((chunk: Buffer) => void) | null = null;
  private timer: Timer | null = null;

  /** @param remoteAddress an IP address for limits and ACL rules, or "" */
  constructor(stream: Duplex, remote: string, remoteAddress: string) {
    this.stream = stream;
    this.remote = remote;
    this.remoteAddress = remoteAddress;
    stream.on('error', (error) => {
      this.by = 'error';
      this.failure ??= errorName(error);
    });
    stream.on('end', () => this.peerEnded());
    stream.on('close', () => this.closed());
  }

  get queuedBytes(): number {
    return this.stream.writableLength;
  }

  write(bytes: Uint8Array, done: () => void): void {
    if (this.state !== 'open' || !this.stream.writable) {
      queueMicrotask(done);
      return;
    }
    this.stream.write(bytes, () => done());
  }

  cork(): void {
    this.stream.cork();
  }

  uncork(): void {
    this.stream.uncork();
  }

  onData(handler: (chunk: Buffer) => void): void {
    this.onChunk = handler;
    if (this.reading) return;
    this.reading = true;
    this.stream.on('data', (chunk: unknown) => {
      if (this.state === 'open' || this.state === 'shut') this.onChunk?.(bytesOf(chunk));
    });
    if (this.paused) this.stream.pause();
  }

  onClose(handler: (reason: CloseReason) => void): void {
    this.onClosed = handler;
  }

  onEnd(handler: () => void): void {
    this.onEnded = handler;
  }

  pause(): void {
    this.paused = true;
    this.stream.pause();
  }

  resume(): void {
    this.paused = false;
    if (this.reading) this.stream.resume();
  }

  shutdown(): void {
    if (this.state !== 'open') return;
    this.state = 'shut';
    this.stream.end();
  }

  end(graceMs = GRACE_MS): void {
    if (this.state === 'ending' || this.state === 'closed') return;
    this.by = 'us';
    this.state = 'ending';
    this.timer = systemClock.after(graceMs, () => this.stream.destroy());
    // What still comes in is thrown away, or the stream would never see its end.
    this.stream.resume();
    this.stream.end(() => this.stream.destroy());
  }

  destroy(): void {
    if (this.state === 'closed') return;
    this.by = 'us';
    this.stream.destroy();
  }

  private peerEnded(): void {
    if (this.state === 'ending' || this.state === 'closed') return;
    if (this.onEnded !== null) this.onEnded();
    else this.end();
  }

  private closed(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.timer?.cancel();
    this.onClosed?.({ by: this.by, error: this.failure });
  }
}

/** A stream in object mode, or with an encoding, gives other things than bytes. */
function bytesOf(chunk: unknown): Buffer {
  if (Buffer.isBuffer(chunk)) return chunk;
  if (chunk instanceof Uint8Array) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return typeof chunk === 'string' ? Buffer.from(chunk, 'utf8') : Buffer.alloc(0);
}
