// Connections inside the process: a pair for tests, and the named places behind inproc:// and memory targets. Built by
// gateway/ (inproc), cli/ and tests. Behaves like a socket: nothing is delivered within the call that wrote it. Bytes
// are not copied: the reader sees the writer's own buffer, and done() is called when the reader has returned.
import type { Timer } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { GRACE_MS, LINGER_MS } from './stream.ts';
import type { Bound, CloseReason, Connection, Listener, ListenerOptions } from './transport.ts';

export interface MemoryOptions {
  /** Largest chunk that is delivered, for tests of packets in pieces; 0 = as written. */
  readonly chunkBytes?: number;
  /** Names of both ends, as `remote` of the other. */
  readonly names?: readonly [string, string];
}

interface Piece {
  bytes: Buffer;
  readonly done: () => void;
}

type State = 'open' | 'shut' | 'ending' | 'closed';

class MemoryConnection implements Connection {
  readonly kind = 'memory';
  readonly remoteAddress = '';
  readonly tls = null;
  readonly remote: string;
  readonly local: string;
  queuedBytes = 0;
  private readonly chunkBytes: number;
  private peer: MemoryConnection | null = null;
  private state: State = 'open';
  private by: CloseReason['by'] | null = null;
  private failure: string | undefined;
  /** Written here and not yet read by the peer. */
  private queue: Piece[] = [];
  private paused = false;
  private peerHasEnded = false;
  private scheduled = false;
  private reader: ((chunk: Buffer) => void) | null = null;
  private onEnded: (() => void) | null = null;
  private onClosed: ((reason: CloseReason) => void) | null = null;
  private closeTold = false;
  /** For whoever counts connections; tests and users have onClose. */
  onGone: (() => void) | null = null;
  private timer: Timer | null = null;
  private readonly pump = (): void => {
    this.scheduled = false;
    this.deliver();
  };

  constructor(local: string, remote: string, chunkBytes: number) {
    this.local = local;
    this.remote = remote;
    this.chunkBytes = chunkBytes;
  }

  join(peer: MemoryConnection): void {
    this.peer = peer;
  }

  onData(handler: (chunk: Buffer) => void): void {
    this.reader = handler;
    this.schedule();
  }

  onEnd(handler: () => void): void {
    this.onEnded = handler;
  }

  onClose(handler: (reason: CloseReason) => void): void {
    this.onClosed = handler;
    if (this.state === 'closed') setImmediate(() => this.tellClosed());
  }

  write(bytes: Uint8Array, done: () => void): void {
    if (this.state !== 'open') {
      process.nextTick(done);
      return;
    }
    this.queuedBytes += bytes.length;
    this.queue.push({ bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), done });
    this.peer?.schedule();
  }

  cork(): void {}

  uncork(): void {}

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.schedule();
  }

  shutdown(): void {
    if (this.state !== 'open') return;
    this.state = 'shut';
    this.peer?.schedule();
  }

  end(graceMs: number = GRACE_MS): void {
    if (this.state === 'ending' || this.state === 'closed') return;
    this.by ??= 'us';
    this.state = 'ending';
    this.timer = systemClock.after(graceMs, () => this.destroy());
    this.schedule();
    this.peer?.schedule();
  }

  destroy(reset = false): void {
    if (this.state === 'closed') return;
    this.by ??= 'us';
    const peer = this.peer;
    const unread = peer !== null && peer.queue.length > 0;
    this.close();
    // As TCP does: bytes that were never read turn a close into a reset.
    if (peer !== null) peer.lost(reset || unread);
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(this.pump);
  }

  /** Reads what the peer has written, as far as this side wants it. */
  private deliver(): void {
    const peer = this.peer;
    if (peer === null) return;
    // What is written while this runs comes in a later turn, as from a socket.
    for (let left = peer.queue.length; left > 0; left--) {
      if (!this.wants()) return;
      const piece = peer.queue[0];
      if (piece === undefined || !this.take(piece, peer)) {
        this.schedule();
        return;
      }
      if (peer.queue[0] !== piece) return;
      peer.queue.shift();
      piece.done();
    }
    if (!this.wants()) return;
    if (peer.queue.length > 0) this.schedule();
    else if (peer.state !== 'open') this.noticeEnd(peer);
  }

  private wants(): boolean {
    return this.state === 'ending' || (this.state !== 'closed' && this.reader !== null && !this.paused);
  }

  /** Hands over one chunk; false when a part of the piece is left. */
  private take(piece: Piece, peer: MemoryConnection): boolean {
    const all = piece.bytes;
    const part = this.chunkBytes > 0 && all.length > this.chunkBytes ? all.subarray(0, this.chunkBytes) : all;
    peer.queuedBytes -= part.length;
    piece.bytes = all.subarray(part.length);
    if (this.state !== 'ending' && this.reader !== null && part.length > 0) this.reader(part);
    return part.length === all.length;
  }

  private noticeEnd(peer: MemoryConnection): void {
    if (!this.peerHasEnded) {
      this.peerHasEnded = true;
      this.by ??= 'peer';
      peer.linger();
      if (this.state === 'open' || this.state === 'shut') {
        if (this.onEnded !== null) this.onEnded();
        else this.end();
      }
    }
    this.maybeClose();
    peer.maybeClose();
  }

  /** Everything has left; a peer that keeps its own side open holds this one only for a while. */
  private linger(): void {
    if (this.state !== 'ending' || this.peerHasEnded) return;
    this.timer?.cancel();
    this.timer = systemClock.after(LINGER_MS, () => this.destroy());
  }

  /** Both directions are done: nothing is left to send, and the peer has said its last. */
  private maybeClose(): void {
    if (this.state === 'open' || this.state === 'closed' || !this.peerHasEnded || this.queue.length > 0) return;
    if (this.peer?.peerHasEnded === true) this.close();
  }

  /** The peer is gone without a word. */
  private lost(reset: boolean): void {
    if (this.state === 'closed') return;
    if (reset && this.by !== 'us') {
      this.by = 'error';
      this.failure = 'ECONNRESET';
    }
    this.by ??= 'peer';
    this.close();
  }

  private close(): void {
    this.state = 'closed';
    this.timer?.cancel();
    this.timer = null;
    const queue = this.queue;
    this.queue = [];
    this.queuedBytes = 0;
    setImmediate(() => {
      for (const piece of queue) piece.done();
      this.onGone?.();
      this.tellClosed();
    });
  }

  private tellClosed(): void {
    const handler = this.onClosed;
    if (handler === null || this.closeTold) return;
    this.closeTold = true;
    const by = this.by ?? 'peer';
    handler(by === 'error' && this.failure !== undefined ? { by, error: this.failure } : { by });
  }
}

/** Two connections that are each other's peer. */
export function memoryPair(options: MemoryOptions = {}): [Connection, Connection] {
  const [a, b] = options.names ?? ['memory:a', 'memory:b'];
  const chunkBytes = options.chunkBytes ?? 0;
  const one = new MemoryConnection(a, b, chunkBytes);
  const other = new MemoryConnection(b, a, chunkBytes);
  one.join(other);
  other.join(one);
  return [one, other];
}

interface Place {
  readonly options: ListenerOptions;
  open: number;
}

/** The named places of one process or test: what listens under a name can be dialled under it. */
export class MemoryNetwork {
  private readonly places = new Map<string, Place>();
  private count = 0;

  /** Takes the name; false when it is taken. */
  open(name: string, options: ListenerOptions): boolean {
    if (this.places.has(name)) return false;
    this.places.set(name, { options, open: 0 });
    return true;
  }

  close(name: string): void {
    this.places.delete(name);
  }

  /** Connects to a name; throws TRANSPORT-DIAL when nothing listens there. */
  dial(name: string): Connection {
    const place = this.places.get(name);
    if (place === undefined) throw new GatewayError('TRANSPORT-DIAL', `memory:${name}: nothing listens there`);
    const near = new MemoryConnection(`memory:${++this.count}`, `memory:${name}`, 0);
    const far = new MemoryConnection(near.remote, near.local, 0);
    near.join(far);
    far.join(near);
    setImmediate(() => enter(place, far));
    return near;
  }
}

function enter(place: Place, connection: MemoryConnection): void {
  const { maxConnections, reject, accept } = place.options;
  if (maxConnections > 0 && place.open >= maxConnections) {
    connection.destroy(true);
    reject('full', connection.remote);
    return;
  }
  place.open++;
  connection.onGone = () => {
    place.open--;
  };
  accept(connection);
}

export interface MemoryListenerOptions extends ListenerOptions {
  readonly network: MemoryNetwork;
  readonly name: string;
}

class MemoryListener implements Listener {
  private readonly options: MemoryListenerOptions;
  private state: 'closed' | 'listening' = 'closed';

  constructor(options: MemoryListenerOptions) {
    this.options = options;
  }

  async start(): Promise<Bound[]> {
    const { network, name } = this.options;
    if (!network.open(name, this.options))
      throw new GatewayError('TRANSPORT-BIND', `memory:${name}: address already in use (EADDRINUSE)`);
    this.state = 'listening';
    return [{ kind: 'memory', address: `memory:${name}`, port: 0 }];
  }

  async stop(): Promise<void> {
    // The name may be another's: that of whoever won it when start() failed.
    if (this.state === 'listening') this.options.network.close(this.options.name);
    this.state = 'closed';
  }
}

/** A listener for connections inside the process. */
export function listenMemory(options: MemoryListenerOptions): Listener {
  return new MemoryListener(options);
}
