// The SP driver `nanomsg`: the C library through the npm package of that name, an optional dependency that is loaded on
// demand. For whoever shares inproc:// with other users of libnanomsg in the process. The library keeps its peers to
// itself and drops for peers that are not ready at once. Passes test/contract/sp.ts except for what that file's list of
// abilities says.
import { lookup } from 'node:dns/promises';
import { chmodSync } from 'node:fs';
import { isIP } from 'node:net';
import type { Clock, Timer } from '../base/clock.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import type { Turn } from '../base/turn.ts';
import { copyBytes } from '../base/writer.ts';
import { hasProtocol, type Library, loadLibrary, protocolNumber } from './libnanomsg.ts';
import { Prefixes } from './prefixes.ts';
import { PROTOCOLS } from './protocol.ts';
import {
  type EndpointState,
  type EndpointView,
  noStats,
  type OnMessage,
  type PipeView,
  type Protocol,
  type Receipt,
  type SpDriver,
  type SpEvent,
  type SpOptions,
  type SpSocket,
  type SpStats,
} from './sp.ts';
import { parseSpUrl, type SpUrl } from './url.ts';

const SCHEMES: readonly string[] = ['tcp', 'ipc', 'inproc', 'ws'];
const FIRST_RETRY_MS = 100;
/** Messages taken for one readiness event, so that a busy publisher leaves room for everything else. */
const RECEIVE_AT_ONCE = 1000;
/**
 * libnanomsg has no way to say that its workers have sent everything: what a socket that has just sent gets before it
 * is closed.
 */
const SETTLE_MS = 100;

export interface NanomsgParts {
  readonly clock: Clock;
  readonly turn: Turn;
}

/**
 * Loads the package. Rejects with SP-DRIVER and one line that says what to do when it is not there or was built for
 * another Node.
 */
export async function nanomsgDriver(parts: NanomsgParts): Promise<SpDriver> {
  const nn = await loadLibrary();
  return {
    name: 'nanomsg',
    open: (protocol, options) => new NanomsgSocket(protocol, options, nn, parts),
    supports: (scheme, protocol) => SCHEMES.includes(scheme) && hasProtocol(protocol),
  };
}

/** One URL: bound or connected by the library, which redials by itself; a bind that fails is tried again here. */
class NanomsgEndpoint implements EndpointView {
  readonly url: string;
  readonly mode: 'listen' | 'dial';
  state: EndpointState = 'starting';
  bound: string | null = null;
  lastError: string | null = null;
  /** The library's numbers, one for each address of a name. */
  ids: number[] = [];
  timer: Timer | null = null;
  retryMs = FIRST_RETRY_MS;
  readonly parsed: SpUrl;

  constructor(url: string, mode: 'listen' | 'dial', parsed: SpUrl) {
    this.url = url;
    this.mode = mode;
    this.parsed = parsed;
  }

  view(): EndpointView {
    const { url, mode, state, bound, lastError } = this;
    return { url, mode, state, bound, lastError };
  }
}

const noMessage: OnMessage = () => {};
const noEvent = (): void => {};

class NanomsgSocket implements SpSocket {
  readonly protocol: Protocol;
  readonly knowsPeers = false;
  readonly stats: SpStats = noStats();
  private readonly nn: Library;
  private readonly parts: NanomsgParts;
  private readonly options: SpOptions;
  private readonly socket: number;
  private state: 'open' | 'stopped' = 'open';
  private readonly byUrl = new Map<string, NanomsgEndpoint>();
  /** Of sub0; other protocols hand everything on. */
  private readonly prefixes: Prefixes | null;
  private handler: OnMessage = noMessage;
  private tell: (event: SpEvent) => void = noEvent;
  private room: () => void = noEvent;
  private reading: unknown = null;
  private roomPoll: unknown = null;
  private lastSentMs = Number.NEGATIVE_INFINITY;
  private readonly pipe: PipeView;

  constructor(protocol: Protocol, options: SpOptions, nn: Library, parts: NanomsgParts) {
    this.protocol = protocol;
    this.options = options;
    this.prefixes = protocol === 'sub0' ? new Prefixes() : null;
    this.nn = nn;
    this.parts = parts;
    this.socket = nn.Socket(nn.AF_SP, protocolNumber(nn, protocol));
    if (this.socket < 0) throw new GatewayError('SP-DRIVER', `nanomsg: ${nn.Err()}`);
    const { recvMaxSize, reconnectMaxMs } = options;
    this.set(nn.NN_RCVMAXSIZE, recvMaxSize > 0 ? Math.min(recvMaxSize, 0x7fffffff) : -1);
    this.set(nn.NN_RECONNECT_IVL, Math.min(FIRST_RETRY_MS, reconnectMaxMs));
    this.set(nn.NN_RECONNECT_IVL_MAX, reconnectMaxMs);
    // The binding passes prefixes as text, which would change bytes: the library lets everything through and the filter
    // is here.
    if (protocol === 'sub0') this.check(nn.Chan(this.socket, nn.NN_SUB_SUBSCRIBE, ''));
    this.pipe = this.anyPeer();
    this.resume();
  }

  onMessage(handler: OnMessage): void {
    this.handler = handler;
  }

  onEvent(handler: (event: SpEvent) => void): void {
    this.tell = handler;
  }

  onRoom(handler: () => void): void {
    this.room = handler;
  }

  subscribe(prefix: Uint8Array): void {
    this.prefixes?.add(prefix);
  }

  unsubscribe(prefix: Uint8Array): void {
    this.prefixes?.remove(prefix);
  }

  listen(url: string): void {
    this.add(url, 'listen');
  }

  dial(url: string): void {
    this.add(url, 'dial');
  }

  close(url: string): Promise<void> {
    const endpoint = this.byUrl.get(url);
    if (endpoint !== undefined) {
      this.byUrl.delete(url);
      endpoint.timer?.cancel();
      for (const id of endpoint.ids) this.nn.Shutdown(this.socket, id);
      endpoint.ids = [];
      this.enter(endpoint, 'stopped', null);
    }
    return Promise.resolve();
  }

  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean {
    if (this.state !== 'open' || !PROTOCOLS[this.protocol].sends) return true;
    const message = Buffer.allocUnsafe(head.length + end - start);
    copyBytes(head, 0, message, 0, head.length);
    copyBytes(body, start, message, head.length, end - start);
    if (this.nn.Send(this.socket, message, this.nn.NN_DONTWAIT) >= 0) {
      this.stats.messagesSent++;
      this.stats.bytesSent += message.length;
      this.lastSentMs = this.parts.clock.mono();
      return true;
    }
    if (this.nn.Errno() === this.nn.EAGAIN && this.options.overflow === 'block') {
      this.waitForRoom();
      return false;
    }
    this.stats.dropped++;
    return true;
  }

  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number {
    for (let i = 0; i < count; i++) if (!this.send(head, source, spans[2 * i], spans[2 * i + 1])) return i;
    return count;
  }

  /** The library does not tell; send() does, where it is asked not to drop. */
  ready(): boolean {
    return true;
  }

  /** Nor does it tell what became of a message. */
  receipt(): Receipt {
    return { state: () => 'taken' };
  }

  pause(): void {
    if (this.reading !== null) this.nn.PollStop(this.reading);
    this.reading = null;
  }

  resume(): void {
    if (this.state !== 'open' || this.reading !== null || !PROTOCOLS[this.protocol].receives) return;
    this.reading = this.nn.PollSocket(this.socket, false, () => this.receive());
  }

  /** The library does not tell who is connected. */
  pipes(): PipeView[] {
    return [];
  }

  endpoints(): EndpointView[] {
    return [...this.byUrl.values()].map((endpoint) => endpoint.view());
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.state === 'stopped') return;
    this.state = 'stopped';
    for (const endpoint of this.byUrl.values()) endpoint.timer?.cancel();
    this.pause();
    this.stopRoomPoll();
    const settleMs = Math.min(deadlineMs, this.lastSentMs + SETTLE_MS - this.parts.clock.mono());
    if (settleMs > 0) await new Promise<void>((resolve) => setTimeout(resolve, settleMs));
    this.nn.Close(this.socket);
    this.byUrl.clear();
  }

  private set(option: number, value: number): void {
    this.check(this.nn.Setopt(this.socket, this.nn.NN_SOL_SOCKET, option, value));
  }

  private check(result: number): void {
    if (result < 0) throw new GatewayError('SP-DRIVER', `nanomsg: ${this.nn.Err()}`);
  }

  private add(url: string, mode: 'listen' | 'dial'): void {
    if (this.state !== 'open' || this.byUrl.has(url)) return;
    const parsed = parseSpUrl(url);
    if (!SCHEMES.includes(parsed.scheme))
      throw new GatewayError('SP-DRIVER', `the driver nanomsg has no ${parsed.scheme}://, use driver = native`);
    if (this.options.ipcGroup !== null && parsed.scheme === 'ipc')
      throw new GatewayError('SP-DRIVER', 'ipc_group needs driver = native');
    // The library aborts the process when it connects with IPv6 switched on (an assertion in usock_posix.inc).
    if (mode === 'dial' && 'host' in parsed && isIP(parsed.host) === 6)
      throw new GatewayError('SP-DRIVER', 'the driver nanomsg dials IPv4 only, use driver = native');
    const endpoint = new NanomsgEndpoint(url, mode, parsed);
    this.byUrl.set(url, endpoint);
    this.begin(endpoint);
  }

  private begin(endpoint: NanomsgEndpoint): void {
    this.open(endpoint).catch((error: unknown) => {
      for (const id of endpoint.ids) this.nn.Shutdown(this.socket, id);
      endpoint.ids = [];
      if (this.gone(endpoint)) return;
      const delayMs = endpoint.retryMs;
      endpoint.retryMs = Math.min(endpoint.retryMs * 2, this.options.reconnectMaxMs);
      endpoint.timer = this.parts.clock.after(delayMs, () => this.begin(endpoint));
      this.enter(endpoint, 'retrying', errorText(error));
    });
  }

  private async open(endpoint: NanomsgEndpoint): Promise<void> {
    const urls = await addressesOf(endpoint);
    if (this.gone(endpoint)) return;
    for (const url of urls) {
      const id = endpoint.mode === 'dial' ? this.nn.Connect(this.socket, url) : this.bind(url, endpoint.parsed);
      if (id < 0) throw new Error(`${url}: ${this.nn.Err()}`);
      endpoint.ids.push(id);
    }
    endpoint.bound = endpoint.url;
    // Whether a dialed peer has answered is the library's secret.
    this.enter(endpoint, endpoint.mode === 'dial' ? 'starting' : 'listening', null);
  }

  private bind(url: string, parsed: SpUrl): number {
    const six = 'host' in parsed && url.includes('[');
    if (six) this.set(this.nn.NN_IPV4ONLY, 0);
    const id = this.nn.Bind(this.socket, url);
    if (six) this.set(this.nn.NN_IPV4ONLY, 1);
    if (id >= 0 && parsed.scheme === 'ipc' && this.options.ipcMode !== null)
      chmodSync(parsed.path, Number.parseInt(this.options.ipcMode, 8));
    return id;
  }

  private gone(endpoint: NanomsgEndpoint): boolean {
    return this.state !== 'open' || this.byUrl.get(endpoint.url) !== endpoint;
  }

  private enter(endpoint: NanomsgEndpoint, state: EndpointState, error: string | null): void {
    endpoint.state = state;
    endpoint.lastError = error;
    this.tell({ kind: 'endpoint', endpoint: endpoint.view() });
  }

  private receive(): void {
    const { nn, parts } = this;
    parts.turn.enter();
    for (let i = 0; i < RECEIVE_AT_ONCE && this.reading !== null; i++) {
      const body = nn.Recv(this.socket, nn.NN_DONTWAIT);
      if (typeof body === 'number') break;
      this.stats.messagesReceived++;
      this.stats.bytesReceived += body.length;
      if (this.prefixes === null || this.prefixes.matches(body, 0, body.length))
        this.handler(body, 0, body.length, this.pipe);
    }
    parts.turn.leave();
  }

  private waitForRoom(): void {
    this.roomPoll ??= this.nn.PollSocket(this.socket, true, () => {
      this.stopRoomPoll();
      if (this.state === 'open') this.room();
    });
  }

  private stopRoomPoll(): void {
    if (this.roomPoll !== null) this.nn.PollStop(this.roomPoll);
    this.roomPoll = null;
  }

  /** Stands for whichever peer a message came from. */
  private anyPeer(): PipeView {
    const { stats } = this;
    return {
      id: 0,
      url: '',
      remote: 'nanomsg',
      since: this.parts.clock.now(),
      queuedBytes: 0,
      messagesSent: 0,
      dropped: 0,
      get messagesReceived() {
        return stats.messagesReceived;
      },
    };
  }
}

/**
 * The URL in the library's own words: it binds addresses and "*", not names; names are bound on every address they
 * have.
 */
async function addressesOf(endpoint: NanomsgEndpoint): Promise<string[]> {
  const { parsed, url, mode } = endpoint;
  if (mode === 'dial' || !('port' in parsed) || parsed.host === '*' || isIP(parsed.host) !== 0) return [url];
  const found = await lookup(parsed.host, { all: true });
  const rest = `${parsed.port}${'path' in parsed ? parsed.path : ''}`;
  return [
    ...new Set(
      found.map(({ address, family }) => `${parsed.scheme}://${family === 6 ? `[${address}]` : address}:${rest}`),
    ),
  ];
}
