// The programs at the other end of an interop cell: nngcat, nanocat, the npm package nanomsg, and our own sockets.
// Used by run.ts. Each can receive and count, or send; what it cannot do it says in words, and the table shows them.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import type { Protocol, SpSocket } from '../../src/sp/sp.ts';
import { type Authority, clientTls, type KeyPair, serverTls } from '../harness/certificates.ts';
import { SP_DEFAULTS, testDriver, Watch } from '../harness/spsockets.ts';

export type Scheme = 'tcp' | 'ipc' | 'abstract' | 'ws' | 'tls+tcp';
export type Pattern = 'pub' | 'push';
export type Mode = 'listen' | 'dial';

/** What a receiving peer has got so far. */
export interface Receiver {
  /** All bodies one after the other; asked often. */
  bytes(): number;
  all(): Buffer;
  stop(): Promise<void>;
}
export interface Sender {
  /** Whether the messages it sends can differ: programs send one and the same text. */
  readonly distinct: boolean;
  /** True once it has sent as many as it was asked for; null where it does not count. */
  readonly finished: (() => boolean) | null;
  /** Sends message i, where they differ; else it sends by itself. False: not now. */
  send(i: number, body: Buffer): boolean;
  stop(): Promise<void>;
}

/** Where and how the peer connects. */
export interface Place {
  readonly scheme: Scheme;
  readonly url: string;
  readonly mode: Mode;
  readonly pattern: Pattern;
  readonly authority: Authority;
  readonly pair: KeyPair;
}

export interface PeerProgram {
  readonly name: string;
  /** Whether it can listen at a WebSocket URL with a path: libnanomsg cannot. */
  readonly hasPaths: boolean;
  /** Null, or why there can be no such cell. */
  cannot(scheme: Scheme, mode: Mode): string | null;
  receive(place: Place): Promise<Receiver>;
  /** @param text what a program that cannot do more sends @param count how often, where it can count */
  send(place: Place, text: string, count: number): Promise<Sender>;
}

function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

function installed(program: string): string | null {
  return spawnSync(program, ['--help']).error === undefined ? null : 'not installed';
}

/** nngcat and nanocat take nearly the same words. */
class Cat implements PeerProgram {
  readonly name: string;
  readonly hasPaths: boolean;
  private readonly missing: string | null;

  constructor(name: 'nngcat' | 'nanocat') {
    this.name = name;
    this.hasPaths = name === 'nngcat';
    this.missing = installed(name);
  }

  cannot(scheme: Scheme): string | null {
    if (this.missing !== null) return this.missing;
    if (this.name === 'nanocat' && (scheme === 'abstract' || scheme === 'tls+tcp')) return `no ${scheme}`;
    return null;
  }

  async receive(place: Place): Promise<Receiver> {
    const child = this.run(place, place.pattern === 'pub' ? '--sub' : '--pull', ['--raw']);
    const chunks: Buffer[] = [];
    let bytes = 0;
    child.stdout?.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      bytes += chunk.length;
    });
    return { bytes: () => bytes, all: () => Buffer.concat(chunks), stop: () => killed(child) };
  }

  async send(place: Place, text: string, count: number): Promise<Sender> {
    // A publisher goes on for ever, for it drops what its queue cannot hold; a pusher of nngcat can count and drops nothing.
    const counting = place.pattern === 'push' && this.name === 'nngcat' ? ['--count', String(count)] : [];
    const flag = place.pattern === 'pub' ? '--pub' : '--push';
    const child = this.run(place, flag, ['--data', text, '--interval', '0', ...counting]);
    const finished = counting.length === 0 ? null : () => child.exitCode !== null;
    return { distinct: false, finished, send: () => true, stop: () => killed(child) };
  }

  private run(place: Place, protocol: string, more: string[]): ChildProcess {
    const { url, mode, scheme, authority, pair } = place;
    const tls =
      scheme !== 'tls+tcp'
        ? []
        : mode === 'listen'
          ? ['--cert', pair.cert, '--key', pair.key]
          : ['--cacert', authority.ca];
    return spawn(this.name, [protocol, mode === 'listen' ? '--bind' : '--connect', url, ...tls, ...more], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  }
}

interface NanomsgSocket {
  bind(url: string): void;
  connect(url: string): void;
  send(body: Buffer): number;
  on(event: 'data', handler: (body: Buffer) => void): void;
  on(event: 'error', handler: (error: Error) => void): void;
  close(): void;
}

class NanomsgPackage implements PeerProgram {
  readonly name = 'nanomsg (npm)';
  readonly hasPaths = false;
  private readonly open: ((type: string) => NanomsgSocket) | null;

  private constructor(open: ((type: string) => NanomsgSocket) | null) {
    this.open = open;
  }

  static async load(): Promise<NanomsgPackage> {
    const name: string = 'nanomsg';
    try {
      const loaded = (await import(name)) as { default: { socket(type: string): NanomsgSocket } };
      return new NanomsgPackage((type) => loaded.default.socket(type));
    } catch {
      return new NanomsgPackage(null);
    }
  }

  cannot(scheme: Scheme): string | null {
    if (this.open === null) return 'not installed';
    return scheme === 'abstract' || scheme === 'tls+tcp' ? `no ${scheme}` : null;
  }

  async receive(place: Place): Promise<Receiver> {
    const socket = this.socket(place, place.pattern === 'pub' ? 'sub' : 'pull');
    const chunks: Buffer[] = [];
    let bytes = 0;
    socket.on('data', (body) => {
      chunks.push(Buffer.from(body));
      bytes += body.length;
    });
    return { bytes: () => bytes, all: () => Buffer.concat(chunks), stop: async () => socket.close() };
  }

  async send(place: Place): Promise<Sender> {
    const socket = this.socket(place, place.pattern);
    return {
      distinct: true,
      finished: null,
      send: (_, body) => {
        socket.send(body);
        return true;
      },
      stop: async () => socket.close(),
    };
  }

  private socket({ url, mode }: Place, type: string): NanomsgSocket {
    if (this.open === null) throw new Error('not installed');
    const socket = this.open(type);
    socket.on('error', () => {});
    if (mode === 'listen') socket.bind(url);
    else socket.connect(url);
    return socket;
  }
}

const NONE = new Uint8Array(0);

class OwnSockets implements PeerProgram {
  readonly name = 'Tidegate';
  readonly hasPaths = true;

  cannot(): string | null {
    return null;
  }

  async receive(place: Place): Promise<Receiver> {
    const socket = await this.socket(place, place.pattern === 'pub' ? 'sub0' : 'pull0');
    if (place.pattern === 'pub') socket.subscribe(NONE);
    const chunks: Buffer[] = [];
    let bytes = 0;
    socket.onMessage((chunk, start, end) => {
      chunks.push(Buffer.from(chunk.subarray(start, end)));
      bytes += end - start;
    });
    return { bytes: () => bytes, all: () => Buffer.concat(chunks), stop: () => socket.stop(100) };
  }

  async send(place: Place): Promise<Sender> {
    const socket = await this.socket(place, place.pattern === 'pub' ? 'pub0' : 'push0');
    return {
      distinct: true,
      finished: null,
      send: (_, body) => socket.pipes().length > 0 && socket.send(NONE, body, 0, body.length),
      stop: () => socket.stop(100),
    };
  }

  private async socket({ url, mode, authority, pair }: Place, protocol: Protocol): Promise<SpSocket> {
    const tls = { tlsServer: serverTls(pair), tlsClient: clientTls(authority.ca) };
    const socket = testDriver().open(protocol, { ...SP_DEFAULTS, ...tls, overflow: 'block' });
    if (mode === 'dial') socket.dial(url);
    else {
      const watch = new Watch(socket);
      socket.listen(url);
      await watch.state(url, 'listening');
    }
    return socket;
  }
}

export async function peerPrograms(): Promise<PeerProgram[]> {
  return [new Cat('nngcat'), new Cat('nanocat'), await NanomsgPackage.load(), new OwnSockets()];
}
