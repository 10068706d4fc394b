// A watched gateway (watched.ts) as a test uses it: started with a small heap, asked for its memory and for what held its loop, and a plain
// MQTT connection to it that sends bytes as they are. What the others notice is measured as processor time of the gateway between a
// PINGREQ and its PINGRESP, so that a busy machine does not count.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Started {
  readonly kind: 'started';
  readonly port: number;
  readonly nng: readonly string[];
}
export interface Hold {
  /** Processor time of the loop's thread in one go. */
  readonly cpuMs: number;
  /** Garbage collection about then. */
  readonly garbageMs: number;
  readonly stack: readonly string[];
}
export interface Report {
  readonly kind: 'report';
  /** Heap and buffers. */
  readonly usedBytes: number;
  readonly counted: Readonly<Record<string, number>>;
  readonly numbers: Readonly<Record<string, number>>;
  readonly held: readonly Hold[];
}
export type Request = { readonly kind: 'report'; readonly collect: boolean } | { readonly kind: 'stop' };

const START_MS = 60_000;

export class WatchedGateway {
  readonly port: number;
  readonly nng: readonly string[];
  private readonly child: ChildProcess;
  private readonly folder: string;
  /** How it ended, null while it lives. */
  ended: string | null = null;
  errors = '';

  private constructor(child: ChildProcess, folder: string, started: Started) {
    this.child = child;
    this.folder = folder;
    this.port = started.port;
    this.nng = started.nng;
    child.on('exit', (code, signal) => {
      this.ended = `${code ?? signal}`;
    });
    child.stderr?.on('data', (text) => {
      this.errors = `${this.errors}${text}`.slice(-4000);
    });
  }

  /** @param limitMs processor time in one go that counts as a held loop; 0 = nobody looks */
  static async start(conf: string, limitMs = 0, heapMb = 256): Promise<WatchedGateway> {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'watched-'));
    const file = path.join(folder, 'test.conf');
    writeFileSync(file, conf.replaceAll('FOLDER', folder));
    const child = fork(fileURLToPath(new URL('watched.ts', import.meta.url)), [JSON.stringify({ file, limitMs })], {
      execArgv: ['--import', 'tsx', '--expose-gc', `--max-old-space-size=${heapMb}`],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let errors = '';
    child.stderr?.on('data', (text) => {
      errors += text;
    });
    const started = await new Promise<Started>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`not started: ${errors}`)), START_MS);
      child.once('message', (message: Started) => {
        clearTimeout(timer);
        resolve(message);
      });
      child.once('exit', (code) => reject(new Error(`ended with ${code}: ${errors}`)));
    });
    return new WatchedGateway(child, folder, started);
  }

  report(collect = true): Promise<Report> {
    return new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error(`the gateway has ended: ${this.errors}`));
      this.child.once('exit', onExit);
      this.child.once('message', (message: Report) => {
        this.child.off('exit', onExit);
        resolve(message);
      });
      const request: Request = { kind: 'report', collect };
      this.child.send(request);
    });
  }

  /** Processor milliseconds of the event loop's thread so far. */
  cpuMs(): number {
    const { pid } = this.child;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e6;
  }

  async stop(): Promise<void> {
    if (this.ended === null) {
      const gone = new Promise((resolve) => this.child.once('exit', resolve));
      this.child.send({ kind: 'stop' } satisfies Request);
      const timer = setTimeout(() => this.child.kill('SIGKILL'), 5000);
      await gone;
      clearTimeout(timer);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The sum of what is counted. */
export function total(report: Report): number {
  return Object.values(report.counted).reduce((sum, bytes) => sum + bytes, 0);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function packet(first: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(first), varint(body.length), body]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  do {
    bytes.push((value & 127) | (value > 127 ? 128 : 0));
    value >>= 7;
  } while (value > 0);
  return Buffer.from(bytes);
}

function uint(value: number, bytes: number): Buffer {
  const out = Buffer.alloc(bytes);
  out.writeUIntBE(value, 0, bytes);
  return out;
}

export interface Coming {
  readonly username?: string;
  readonly password?: string;
  readonly will?: { readonly topic: string; readonly payload: Uint8Array };
  /** Seconds; 0 = ends with the connection. */
  readonly expiry?: number;
}

export const bytesOf = {
  connect(clientId: string, { username, password, will, expiry = 0 }: Coming = {}): Buffer {
    const flags = 2 | (will ? 4 : 0) | (username === undefined ? 0 : 0x80) | (password === undefined ? 0 : 0x40);
    const properties = Buffer.concat([Buffer.of(0x11), uint(expiry, 4)]);
    const delay = Buffer.concat([Buffer.of(5, 0x18), uint(3600, 4)]);
    return packet(
      0x10,
      text('MQTT'),
      Buffer.of(5, flags, 0, 0),
      varint(properties.length),
      properties,
      text(clientId),
      ...(will ? [delay, text(will.topic), uint(will.payload.length, 2), will.payload] : []),
      ...(username === undefined ? [] : [text(username)]),
      ...(password === undefined ? [] : [text(password)]),
    );
  },
  publish(
    topic: string,
    payload: Uint8Array,
    how: { qos?: 0 | 1; retain?: boolean; packetId?: number; properties?: Uint8Array } = {},
  ): Buffer {
    const { qos = 0, retain = false, packetId = 1, properties = Buffer.alloc(0) } = how;
    const id = qos > 0 ? [uint(packetId, 2)] : [];
    return packet(
      0x30 | (qos << 1) | (retain ? 1 : 0),
      text(topic),
      ...id,
      varint(properties.length),
      properties,
      payload,
    );
  },
  subscribe(filters: readonly string[], packetId = 1, identifier = 0): Buffer {
    const properties = identifier === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.of(0x0b), varint(identifier)]);
    const list = filters.flatMap((filter) => [text(filter), Buffer.of(1)]);
    return packet(0x82, uint(packetId, 2), varint(properties.length), properties, ...list);
  },
  unsubscribe(filters: readonly string[], packetId = 1): Buffer {
    return packet(0xa2, uint(packetId, 2), Buffer.of(0), ...filters.map(text));
  },
  ping: Buffer.of(0xc0, 0),
};

/** A connection to the gateway that sends bytes as they are and counts the packets that come back by their type. */
export class Wire {
  readonly socket: Socket;
  /** Packets received, by type. */
  readonly came: number[] = new Array(16).fill(0);
  /** Reason codes of PUBACK and SUBACK, counted. */
  readonly codes = new Map<number, number>();
  closed = false;
  private rest: Buffer = Buffer.alloc(0);
  private waiting: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => this.read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.wake();
    });
  }

  static open(port: number): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve(new Wire(socket)));
      socket.once('error', reject);
    });
  }

  /** A connection that has been let in. */
  static async client(port: number, clientId: string, how: Coming = {}): Promise<Wire> {
    const wire = await Wire.open(port);
    wire.send(bytesOf.connect(clientId, how));
    await wire.until(() => wire.came[2] > 0);
    return wire;
  }

  send(bytes: Uint8Array): void {
    if (!this.closed) this.socket.write(bytes);
  }

  /** Sends, and resolves when the system has taken the bytes or the connection has gone. */
  async sent(bytes: Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.closed) resolve();
      else this.socket.write(bytes, () => resolve());
    });
  }

  /** Waits until `done` holds or the connection has gone. */
  async until(done: () => boolean): Promise<void> {
    while (!this.closed && !done()) {
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
      });
    }
  }

  /** Processor milliseconds that the gateway spends between this PINGREQ and its answer. */
  async ping(gateway: WatchedGateway): Promise<number> {
    const before = this.came[13];
    const from = gateway.cpuMs();
    this.send(bytesOf.ping);
    await this.until(() => this.came[13] > before);
    if (this.closed) throw new Error('the connection of a client that does no harm was closed');
    return gateway.cpuMs() - from;
  }

  drop(): void {
    this.socket.destroy();
  }

  private read(chunk: Buffer): void {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    this.packets();
    this.wake();
  }

  private wake(): void {
    for (const go of this.waiting.splice(0)) go();
  }

  private packets(): void {
    for (;;) {
      let at = 1;
      let length = 0;
      let shift = 0;
      for (; at < this.rest.length; shift += 7) {
        length |= (this.rest[at] & 127) << shift;
        if (this.rest[at++] < 128) break;
        if (at >= this.rest.length) return;
      }
      if (this.rest.length < 2 || this.rest.length < at + length) return;
      const type = this.rest[0] >> 4;
      this.came[type]++;
      if (type === 4) this.code(length > 2 ? this.rest[at + 2] : 0);
      else if (type === 2) this.code(this.rest[at + 1]);
      else if (type === 9) {
        const codes = this.rest.subarray(at + 3 + this.rest[at + 2], at + length);
        for (const code of codes) this.code(code);
      } else if (type === 14) this.code(length > 0 ? this.rest[at] : 0);
      this.rest = this.rest.subarray(at + length);
    }
  }

  private code(code: number): void {
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
  }
}
