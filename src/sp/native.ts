// The native SP driver: sockets in TypeScript over the gateway's own transports. No compiler needed, order kept, queues
// bounded in bytes. Opened by gateway/ and cli/, for bridge/ through the seam sp.ts. A pattern of protocols/ decides
// who gets a message and what one means; pipes carry them, endpoints find peers. Must not know MQTT. Passes
// test/contract/sp.ts.
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Turn } from '../base/turn.ts';
import { WordView } from '../base/words.ts';
import type { BlockPool } from '../base/writer.ts';
import type { Connection } from '../transport/transport.ts';
import { DialEndpoint, type Endpoint, type EndpointContext, ListenEndpoint } from './endpoint.ts';
import type { Host, Pattern, Peer, ProtocolRow } from './pattern.ts';
import { Pipe } from './pipe.ts';
import type { Framing, PipeContext, PipeOwner } from './pipeowner.ts';
import { PROTOCOLS } from './protocol.ts';
import {
  type Asking,
  type EndpointView,
  noStats,
  type OnMessage,
  type OnRequest,
  type OnRun,
  type Overflow,
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
  /** Where unfinished frames are counted, and their bytes of all peers together, 0 = no limit. */
  readonly ledger?: Ledger;
  readonly frameBytes?: () => number;
}

/** What the system is asked for at once. */
const READ_BYTES = 65_536;

/** A claim on memory for unfinished frames: granted while all of them fit. */
function claimOn({ ledger, frameBytes }: NativeParts, largest: number): (bytes: number) => boolean {
  if (ledger === undefined) return () => true;
  return (bytes) => {
    // At least two of the largest frames fit, whatever the memory.
    const most = Math.max(frameBytes?.() ?? 0, 2 * largest);
    if (bytes > 0 && most > 0 && ledger.of('sp') + bytes > most) return false;
    ledger.add('sp', bytes);
    return true;
  };
}

/** The driver `native`; it is always there. */
export function nativeDriver(parts: NativeParts): SpDriver {
  const place = Buffer.allocUnsafeSlow(READ_BYTES);
  return {
    name: 'native',
    open: (protocol, options) => new NativeSocket(protocol, options, parts, place),
    supports: (scheme) => SCHEMES.includes(scheme),
  };
}

const noMessage: OnMessage = () => {};
const noEvent = (): void => {};

class NativeSocket implements SpSocket, PipeOwner, Host {
  readonly protocol: Protocol;
  readonly knowsPeers = true;
  readonly stats: SpStats = noStats();
  waiting = false;
  private state: 'open' | 'stopping' | 'stopped' = 'open';
  readonly clock: Clock;
  readonly overflow: Overflow;
  readonly sendBuffer: number;
  private readonly row: ProtocolRow;
  private readonly pattern: Pattern;
  private readonly options: SpOptions;
  private readonly parts: NativeParts;
  private readonly pipeContext: PipeContext;
  private readonly endpointContext: EndpointContext;
  private readonly byUrl = new Map<string, Endpoint>();
  /** Every pipe, also those that have not greeted. */
  private readonly all = new Map<Pipe, Endpoint>();
  /** Those that have, in the order they came: what send() walks. */
  readonly peers: Pipe[] = [];
  private lastId = 0;
  private paused = false;
  private handler: OnMessage = noMessage;
  private runHandler: OnRun | null = null;
  private tell: (event: SpEvent) => void = noEvent;
  private room: () => void = noEvent;
  private emptied: (() => void) | null = null;

  constructor(protocol: Protocol, options: SpOptions, parts: NativeParts, place: Buffer) {
    this.protocol = protocol;
    this.options = options;
    this.parts = parts;
    const { clock, turn, pool } = parts;
    this.clock = clock;
    this.overflow = options.overflow;
    this.sendBuffer = options.sendBuffer;
    const row = PROTOCOLS[protocol];
    this.row = row;
    this.pattern = row.open(this);
    const claim = claimOn(parts, options.recvMaxSize);
    this.pipeContext = { row, options, clock, turn, pool, owner: this, claim, source: new WordView(), place };
    this.endpointContext = {
      row,
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
    this.pattern.subscribe?.(prefix);
  }

  unsubscribe(prefix: Uint8Array): void {
    this.pattern.unsubscribe?.(prefix);
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
    return this.pattern.send(head, body, start, end);
  }

  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    return this.pattern.sendMany(head, source, spans, count);
  }

  ready(bytes: number): boolean {
    return this.pattern.ready(bytes);
  }

  receipt(): Receipt {
    return this.pattern.receipt();
  }

  request(body: Uint8Array, timeoutMs: number, asking: Asking): (() => void) | null {
    if (this.state !== 'open') return null;
    return this.pattern.request?.(body, timeoutMs, asking) ?? null;
  }

  onRequest(handler: OnRequest): void {
    this.pattern.onRequest?.(handler);
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
    return this.peers.map((pipe) => pipe.view());
  }

  endpoints(): EndpointView[] {
    return [...this.byUrl.values()].map(viewOf);
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.state !== 'open') return;
    this.state = 'stopping';
    this.pattern.stop?.();
    const endpoints = [...this.byUrl.values()];
    const stopped = Promise.all(endpoints.map((endpoint) => endpoint.stop()));
    for (const pipe of [...this.all.keys()]) pipe.finish();
    if (this.all.size > 0) await this.untilEmpty(deadlineMs);
    for (const pipe of [...this.all.keys()]) pipe.destroy('stopped');
    await stopped;
    this.state = 'stopped';
    this.byUrl.clear();
  }

  // Host

  deliver(bytes: Uint8Array, start: number, end: number, peer: Peer): void {
    this.handler(bytes, start, end, peer);
  }

  // PipeOwner

  pipeUp(pipe: Pipe): void {
    const endpoint = this.all.get(pipe);
    if (this.row.single && this.peers.length > 0) {
      // nng's pair takes its first peer and sends others away.
      pipe.refuse('second-peer');
      return;
    }
    this.peers.push(pipe);
    if (this.paused) pipe.pause();
    if (endpoint instanceof DialEndpoint) endpoint.pipeUp();
    this.tell({ kind: 'pipe-up', pipe });
    this.pattern.peerReady?.();
    this.pipeRoom();
  }

  pipeDown(pipe: Pipe, reason: string): void {
    const endpoint = this.all.get(pipe);
    this.all.delete(pipe);
    const at = this.peers.indexOf(pipe);
    if (at >= 0) {
      this.peers.splice(at, 1);
      this.tell({ kind: 'pipe-down', pipe, reason });
      if (this.state === 'open') this.pattern.peerGone?.(pipe);
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
    if (this.row.receives) {
      this.stats.messagesReceived++;
      this.stats.bytesReceived += end - start;
    }
    if (this.pattern.plain) this.handler(bytes, start, end, pipe);
    else this.pattern.received(pipe, bytes, start, end);
  }

  pipeRun(pipe: Pipe, bytes: Uint8Array, start: number, length: number, stride: number, count: number): boolean {
    if (this.runHandler === null || !this.pattern.plain) return false;
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
    this.pattern.peerReady?.();
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
