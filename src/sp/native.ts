// The native SP driver: sockets in TypeScript over the gateway's own transports. No compiler needed, order kept, queues bounded in bytes.
// Opened by gateway/ and cli/, for bridge/ through the seam sp.ts. The patterns (who gets a message) are here; pipes carry them, endpoints find peers.
// Must not know MQTT. Passes test/contract/sp.ts.
import type { Clock } from '../base/clock.ts';
import type { Turn } from '../base/turn.ts';
import { WordView } from '../base/words.ts';
import type { BlockPool } from '../base/writer.ts';
import type { Connection } from '../transport/transport.ts';
import { DialEndpoint, type Endpoint, type EndpointContext, ListenEndpoint } from './endpoint.ts';
import { Pipe } from './pipe.ts';
import type { Framing, PipeContext, PipeOwner } from './pipeowner.ts';
import { Prefixes } from './prefixes.ts';
import { type ProtocolRow, ROWS } from './protocol.ts';
import {
  type EndpointView,
  noStats,
  type OnMessage,
  type OnRun,
  type PipeView,
  type Protocol,
  type Receipt,
  type SpDriver,
  type SpEvent,
  type SpOptions,
  type SpSocket,
  type SpStats,
} from './sp.ts';
import type { Transports } from './transports.ts';
import { parseSpUrl, SCHEMES, type SpUrl } from './url.ts';

export interface NativeParts {
  readonly transports: Transports;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly pool: BlockPool;
}

/** The driver `native`; it is always there. */
export function nativeDriver(parts: NativeParts): SpDriver {
  return {
    name: 'native',
    open: (protocol, options) => new NativeSocket(protocol, options, parts),
    supports: (scheme) => SCHEMES.includes(scheme),
  };
}

/** From so many messages on, sending them as one run is worth its preparation. */
const FEW = 4;

const noMessage: OnMessage = () => {};
const noEvent = (): void => {};

class NativeSocket implements SpSocket, PipeOwner {
  readonly protocol: Protocol;
  readonly knowsPeers = true;
  readonly stats: SpStats = noStats();
  waiting = false;
  private state: 'open' | 'stopping' | 'stopped' = 'open';
  private readonly row: ProtocolRow;
  private readonly options: SpOptions;
  private readonly parts: NativeParts;
  private readonly pipeContext: PipeContext;
  private readonly endpointContext: EndpointContext;
  private readonly byUrl = new Map<string, Endpoint>();
  /** Every pipe, also those that have not greeted. */
  private readonly all = new Map<Pipe, Endpoint>();
  /** Those that have, in the order they came: what send() walks. */
  private ups: Pipe[] = [];
  private next = 0;
  private lastId = 0;
  private paused = false;
  private readonly prefixes: Prefixes;
  /** Whom the last message of a socket that sends to one went to. */
  private lastPipe: Pipe | null = null;
  private handler: OnMessage = noMessage;
  private runHandler: OnRun | null = null;
  private tell: (event: SpEvent) => void = noEvent;
  private room: () => void = noEvent;
  private emptied: (() => void) | null = null;

  constructor(protocol: Protocol, options: SpOptions, parts: NativeParts) {
    this.protocol = protocol;
    this.options = options;
    this.parts = parts;
    this.row = ROWS[protocol];
    this.prefixes = new Prefixes(protocol);
    const { clock, turn, pool } = parts;
    this.pipeContext = { protocol, options, clock, turn, pool, owner: this, source: new WordView() };
    this.endpointContext = {
      protocol,
      options,
      clock: parts.clock,
      transports: parts.transports,
      connected: (endpoint, connection) => this.connected(endpoint, connection),
      rejected: (endpoint, reason, remote) => this.refused(endpoint.url, remote, reason),
      changed: (endpoint) => this.tell({ kind: 'endpoint', endpoint: viewOf(endpoint) }),
    };
  }

  onMessage(handler: OnMessage): void {
    this.handler = handler;
  }

  onRun(handler: OnRun): void {
    this.runHandler = handler;
  }

  onEvent(handler: (event: SpEvent) => void): void {
    this.tell = handler;
  }

  onRoom(handler: () => void): void {
    this.room = handler;
  }

  subscribe(prefix: Uint8Array): void {
    this.prefixes.add(prefix);
  }

  unsubscribe(prefix: Uint8Array): void {
    this.prefixes.remove(prefix);
  }

  listen(url: string): void {
    this.add(url, (parsed) => new ListenEndpoint(url, parsed, this.endpointContext));
  }

  dial(url: string): void {
    this.add(url, (parsed) => new DialEndpoint(url, parsed, this.endpointContext));
  }

  async close(url: string): Promise<void> {
    const endpoint = this.byUrl.get(url);
    if (endpoint === undefined) return;
    this.byUrl.delete(url);
    const stopped = endpoint.stop();
    for (const [pipe, owner] of [...this.all]) if (owner === endpoint) pipe.destroy('stopped');
    await stopped;
  }

  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    if (this.protocol === 'pub0') return this.broadcast(head, body, start, end);
    return this.sendToOne(head, body, start, end);
  }

  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    const pipes = this.ups;
    let sent = 0;
    if (count >= FEW && this.protocol === 'pub0' && this.options.overflow !== 'block') {
      for (let i = 0; i < pipes.length; i++) this.sendAll(pipes[i], head, source, spans, count);
      return count;
    }
    if (count >= FEW && this.row.sends && pipes.length === 1) {
      this.lastPipe = pipes[0];
      sent = pipes[0].sendReady(head, source, spans, 0, count);
      this.count(head, spans, 0, sent);
    }
    while (sent < count && this.send(head, source, spans[2 * sent], spans[2 * sent + 1])) sent++;
    return sent;
  }

  ready(bytes: number): boolean {
    for (let i = 0; i < this.ups.length; i++) if (this.ups[i].takes(bytes)) return true;
    this.waiting = true;
    return false;
  }

  receipt(): Receipt {
    const pipes = this.protocol === 'pub0' ? this.ups.slice() : this.lastPipe === null ? [] : [this.lastPipe];
    const positions = pipes.map((pipe) => pipe.position);
    return {
      state: () => {
        const states = pipes.map((pipe, i) => pipe.settled(positions[i]));
        return states.includes('taken') ? 'taken' : states.includes('waiting') ? 'waiting' : 'lost';
      },
    };
  }

  pause(): void {
    this.paused = true;
    for (const pipe of this.all.keys()) pipe.pause();
  }

  resume(): void {
    this.paused = false;
    for (const pipe of this.all.keys()) pipe.resume();
  }

  pipes(): PipeView[] {
    return this.ups.map((pipe) => pipe.view());
  }

  endpoints(): EndpointView[] {
    return [...this.byUrl.values()].map(viewOf);
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.state !== 'open') return;
    this.state = 'stopping';
    const endpoints = [...this.byUrl.values()];
    const stopped = Promise.all(endpoints.map((endpoint) => endpoint.stop()));
    for (const pipe of [...this.all.keys()]) pipe.finish();
    if (this.all.size > 0) await this.untilEmpty(deadlineMs);
    for (const pipe of [...this.all.keys()]) pipe.destroy('stopped');
    await stopped;
    this.state = 'stopped';
    this.byUrl.clear();
  }

  // PipeOwner

  pipeUp(pipe: Pipe): void {
    const endpoint = this.all.get(pipe);
    if (this.row.single && this.ups.length > 0) {
      // nng's pair takes its first peer and sends others away.
      pipe.refuse('second-peer');
      return;
    }
    this.ups.push(pipe);
    if (this.paused) pipe.pause();
    if (endpoint instanceof DialEndpoint) endpoint.pipeUp();
    this.tell({ kind: 'pipe-up', pipe });
    this.pipeRoom();
  }

  pipeDown(pipe: Pipe, reason: string): void {
    const endpoint = this.all.get(pipe);
    this.all.delete(pipe);
    const at = this.ups.indexOf(pipe);
    if (at >= 0) {
      this.ups.splice(at, 1);
      this.tell({ kind: 'pipe-down', pipe, reason });
    }
    if (endpoint instanceof DialEndpoint) endpoint.pipeDown(reason);
    // Its full queue may have been what the others waited for.
    this.pipeRoom();
    if (this.all.size === 0) this.emptied?.();
  }

  pipeRefused(pipe: Pipe, reason: string, size?: number): void {
    this.refused(pipe.url, pipe.remote, reason, size);
  }

  pipeMessage(pipe: Pipe, bytes: Uint8Array, start: number, end: number): void {
    if (!this.row.receives) {
      // nng closes a subscriber or puller that sends.
      pipe.refuse('unexpected-message');
      return;
    }
    this.stats.messagesReceived++;
    this.stats.bytesReceived += end - start;
    if (this.prefixes.everything || this.prefixes.matches(bytes, start, end)) this.handler(bytes, start, end, pipe);
  }

  pipeRun(pipe: Pipe, bytes: Uint8Array, start: number, length: number, stride: number, count: number): boolean {
    if (this.runHandler === null || !this.row.receives || !this.prefixes.everything) return false;
    this.stats.messagesReceived += count;
    this.stats.bytesReceived += length * count;
    this.runHandler(bytes, start, length, stride, count, pipe);
    return true;
  }

  pipeDropped(count: number): void {
    this.stats.dropped += count;
  }

  pipeRoom(): void {
    if (!this.waiting || this.state !== 'open') return;
    this.waiting = false;
    this.room();
  }

  private add(url: string, make: (parsed: SpUrl) => Endpoint): void {
    if (this.state !== 'open' || this.byUrl.has(url)) return;
    const endpoint = make(parseSpUrl(url));
    this.byUrl.set(url, endpoint);
    endpoint.start();
  }

  private connected(endpoint: Endpoint, connection: Connection): void {
    if (this.state !== 'open' || !this.byUrl.has(endpoint.url)) {
      connection.destroy();
      return;
    }
    const { scheme } = endpoint.parsed;
    const framing: Framing =
      scheme === 'ws' || scheme === 'wss' ? 'message' : scheme === 'ipc' || scheme === 'abstract' ? 'ipc' : 'tcp';
    const pipe = new Pipe(++this.lastId, endpoint.url, connection, framing, this.pipeContext);
    this.all.set(pipe, endpoint);
    pipe.start();
  }

  private refused(url: string, remote: string, reason: string, size?: number): void {
    this.stats.refused++;
    const limit = size === undefined ? {} : { size, limit: this.options.recvMaxSize };
    this.tell({ kind: 'refused', url, remote, reason, ...limit });
  }

  /** pub0: a copy for every peer; with nobody there the message is gone, as in every publisher. */
  private broadcast(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    const pipes = this.ups;
    const bytes = head.length + end - start;
    if (this.options.overflow === 'block') {
      for (let i = 0; i < pipes.length; i++) {
        if (!pipes[i].fits(bytes)) {
          this.waiting = true;
          return false;
        }
      }
    }
    for (let i = 0; i < pipes.length; i++) pipes[i].send(head, body, start, end);
    this.stats.messagesSent += pipes.length;
    this.stats.bytesSent += bytes * pipes.length;
    return true;
  }

  /** pub0 that drops: everything to one peer, whatever others do. */
  private sendAll(pipe: Pipe, head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): void {
    for (let i = pipe.sendReady(head, source, spans, 0, count); i < count; i++)
      pipe.send(head, source, spans[2 * i], spans[2 * i + 1]);
    this.count(head, spans, 0, count);
  }

  private count(head: Uint8Array, spans: Int32Array, from: number, to: number): void {
    let bytes = (to - from) * head.length;
    for (let i = from; i < to; i++) bytes += spans[2 * i + 1] - spans[2 * i];
    this.stats.messagesSent += to - from;
    this.stats.bytesSent += bytes;
  }

  /**
   * push0: the next peer that is ready, so that a slow one holds no work that another could do; pair: the one there is.
   * Without `block` a message may also wait in a peer's queue, or push an older one out of it.
   */
  private sendToOne(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    if (!this.row.sends) return true;
    const { overflow } = this.options;
    const bytes = head.length + end - start;
    let pipe = this.pick(bytes, 'ready');
    if (pipe === null && overflow !== 'block') pipe = this.pick(bytes, 'queue');
    if (pipe === null && overflow === 'drop_oldest') pipe = this.pick(bytes, 'any');
    if (pipe !== null) {
      this.lastPipe = pipe;
      pipe.send(head, body, start, end);
      this.stats.messagesSent++;
      this.stats.bytesSent += bytes;
      return true;
    }
    if (overflow === 'block') {
      this.waiting = true;
      return false;
    }
    this.lastPipe = null;
    this.stats.dropped++;
    return true;
  }

  /** The next pipe in turn that is ready, whose queue has room, or whichever it is. */
  private pick(bytes: number, wanted: 'ready' | 'queue' | 'any'): Pipe | null {
    const { ups } = this;
    for (let i = 0; i < ups.length; i++) {
      if (this.next >= ups.length) this.next = 0;
      const pipe = ups[this.next++];
      if (wanted === 'any' || (wanted === 'queue' ? pipe.fits(bytes) : pipe.takes(bytes))) return pipe;
    }
    return null;
  }

  private untilEmpty(deadlineMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.parts.clock.after(deadlineMs, resolve);
      this.emptied = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

function viewOf(endpoint: Endpoint): EndpointView {
  const { url, mode, state, bound, lastError } = endpoint;
  return { url, mode, state, bound, lastError };
}
