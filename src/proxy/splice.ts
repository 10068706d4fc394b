// Two connections joined: what comes in on one goes out on the other, both ways, until one side ends. Made by
// session.ts. Knows nothing of MQTT; no work per packet, one call per chunk. Chunks are handed on without copying where
// the seam of transport/ says that they belong to the reader. Memory is bounded in bytes and in pieces: past a mark the
// side that sends is paused until the other has taken most of it.
import type { Connection, ReadBuffers } from '../transport/transport.ts';

/**
 * Unsent bytes that pause the sender, and what has to be left when it goes on. One chunk more may be on its way: at
 * most 64 KB.
 */
const HIGH_BYTES = 128 * 1024;
const LOW_BYTES = 16 * 1024;
/** Unsent chunks that pause the sender: small ones cost more than their bytes. */
const HIGH_PIECES = 256;
const LOW_PIECES = 16;

/** Written behind what waits, to be told when that is taken. */
const NOTHING = Buffer.alloc(0);

/** One direction. */
export class Flow {
  /** Bytes that came in, and that went out. */
  bytes = 0;
  sent = 0;
  /** Chunks handed to the sink and not yet taken. */
  private pieces = 0;
  private paused = false;
  private held = false;
  private sourceEnded = false;
  private readonly lent: boolean;
  /** The sink may take bytes at once. */
  private readonly offers: boolean;
  private readonly source: Connection;
  private readonly sink: Connection;
  private readonly onFlushed: () => void;
  /** Reads for this flow. */
  readonly onChunk: (chunk: Buffer) => void;
  private readonly onLent = (chunk: Buffer): boolean => {
    this.bytes += chunk.length;
    // A copy where it has to wait behind others: a buffer of its own size holds no more than it needs.
    if (this.sink.queuedBytes === 0) return !this.send(chunk);
    this.send(Buffer.from(chunk));
    return false;
  };
  private readonly taken = (): void => {
    this.pieces--;
    if (this.paused && this.pieces <= LOW_PIECES && this.sink.queuedBytes <= LOW_BYTES) {
      this.paused = false;
      if (!this.held) this.source.resume();
    }
    if (this.sourceEnded && this.pieces === 0) this.onFlushed();
  };

  /** `onFlushed` is called when the source has ended and all it sent was taken; it may be called again. */
  constructor(source: Connection, sink: Connection, onFlushed: () => void) {
    this.source = source;
    this.sink = sink;
    this.onFlushed = onFlushed;
    this.lent = source.kind === 'memory' || source.kind === 'ws' || source.kind === 'wss';
    this.offers = sink.offers === true;
    this.onChunk = this.counting((chunk) => this.send(chunk));
  }

  /** A reader for this flow that has its bytes counted and hands chunks that stay as they are to `next`. */
  counting(next: (chunk: Buffer) => void): (chunk: Buffer) => void {
    const { lent } = this;
    return (chunk) => {
      this.bytes += chunk.length;
      next(lent ? Buffer.from(chunk) : chunk);
    };
  }

  /** Reads for this flow, without a buffer for each chunk where both sides can. */
  read(buffers: ReadBuffers): void {
    const { source } = this;
    if (this.offers && source.readInto?.(buffers, this.onLent) === true) return;
    source.onData(this.onChunk);
  }

  /** Sends bytes that stay as they are until they are taken. True = they are already. */
  send(chunk: Uint8Array): boolean {
    const { sink } = this;
    this.sent += chunk.length;
    if (this.offers && sink.queuedBytes === 0) {
      if (sink.offer?.(chunk) === true) return true;
      chunk = NOTHING;
    }
    this.pieces++;
    sink.write(chunk, this.taken);
    if (!this.paused && (this.pieces > HIGH_PIECES || sink.queuedBytes > HIGH_BYTES)) {
      this.paused = true;
      this.source.pause();
    }
    return false;
  }

  /** Begins to read, unless something holds it. */
  resume(): void {
    if (!this.held && !this.paused) this.source.resume();
  }

  /** Stops reading for a reason of the owner's, or goes on. */
  hold(on: boolean): void {
    if (this.held === on) return;
    this.held = on;
    if (on) this.source.pause();
    else this.resume();
  }

  /** The source sends nothing more. */
  end(): void {
    this.sourceEnded = true;
    if (this.pieces === 0) this.onFlushed();
  }

  get ended(): boolean {
    return this.sourceEnded;
  }

  /** Chunks under way. */
  get waiting(): number {
    return this.pieces;
  }
}

/** Which side ended the session first, or why it was ended. */
export type SpliceEnd = 'client' | 'server' | 'client-error' | 'server-error';

export class Splice {
  readonly up: Flow;
  readonly down: Flow;
  private readonly client: Connection;
  private readonly server: Connection;
  private readonly halfClose: boolean;
  private readonly onOver: (end: SpliceEnd) => void;
  private over = false;
  private first: SpliceEnd | null = null;
  private firstFlow: Flow | null = null;
  /** Sides that are not closed. */
  private open = 2;
  private onGone: (() => void) | null = null;
  /** Called when the server has ended, before that is handed on: for bytes that somebody holds back. */
  beforeServerEnd: (() => void) | null = null;

  /**
   * `onOver` is called once, when nothing is left to do but closing both: what one side had sent before has been handed
   * on.
   */
  constructor(client: Connection, server: Connection, halfClose: boolean, onOver: (end: SpliceEnd) => void) {
    this.client = client;
    this.server = server;
    this.halfClose = halfClose;
    this.onOver = onOver;
    this.up = new Flow(client, server, () => this.flushed());
    this.down = new Flow(server, client, () => this.flushed());
  }

  /** Begins to watch for ends; reading begins when the flows' onChunk are attached. */
  start(): void {
    const { client, server } = this;
    client.onEnd(() => this.ended(this.up, 'client', server));
    server.onEnd(() => this.ended(this.down, 'server', client));
    client.onClose((reason) => this.closed(this.up, reason.by === 'error' ? 'client-error' : 'client'));
    server.onClose((reason) => this.closed(this.down, reason.by === 'error' ? 'server-error' : 'server'));
  }

  get bytesIn(): number {
    return this.up.bytes;
  }

  get bytesOut(): number {
    return this.down.sent;
  }

  /** Chunks under way in both directions. */
  get waiting(): number {
    return this.up.waiting + this.down.waiting;
  }

  /** One side has ended. */
  get ending(): boolean {
    return this.first !== null;
  }

  /** Ends both sides, after what is under way; onOver is not called any more. Resolves when both are closed. */
  stop(): Promise<void> {
    this.over = true;
    this.client.end();
    this.server.end();
    if (this.open === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.onGone = resolve;
    });
  }

  /** Closes both at once. */
  destroy(): void {
    this.over = true;
    this.client.destroy();
    this.server.destroy();
  }

  private ended(flow: Flow, by: SpliceEnd, sink: Connection): void {
    if (flow === this.down) this.beforeServerEnd?.();
    this.begin(flow, by);
    if (this.halfClose) sink.shutdown();
    flow.end();
  }

  /** A side is gone: what it sent is still handed on, what is meant for it has nowhere to go. */
  private closed(flow: Flow, by: SpliceEnd): void {
    if (--this.open === 0) this.onGone?.();
    if (this.over) return;
    this.begin(flow, by);
    flow.end();
    if (this.halfClose) (flow === this.up ? this.down : this.up).end();
  }

  private begin(flow: Flow, by: SpliceEnd): void {
    if (this.first !== null) return;
    this.first = by;
    this.firstFlow = flow;
  }

  /**
   * Without half close one end is enough, once its own bytes have been taken; those of the other side are not waited
   * for.
   */
  private flushed(): void {
    const done = (flow: Flow): boolean => flow.ended && flow.waiting === 0;
    if (this.halfClose ? done(this.up) && done(this.down) : this.firstFlow !== null && done(this.firstFlow))
      this.finish();
  }

  private finish(): void {
    if (this.over) return;
    this.over = true;
    this.client.end();
    this.server.end();
    this.onOver(this.first ?? 'client');
  }
}
