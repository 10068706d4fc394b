// Load that comes and goes, and what the gateway has kept of it: connections of all kinds, thousands of topics, bridges that flap.
// Used by run.ts (minutes to hours) and churn.test.ts (seconds). Drives one gateway process over sockets; looks at its metrics and its heap.
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { createServer, type Server, Socket } from 'node:net';
import path from 'node:path';
import { encodeConnect } from '../../src/codec/connect.ts';
import { PacketCutter } from '../../src/codec/cutter.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { encodeSubscribe } from '../../src/codec/subscribe.ts';
import { CONNECT, PUBLISH, type Qos, SUBSCRIBE, type Version, type Will } from '../../src/mqtt/packet.ts';
import { KillGateway, type Program } from '../harness/killgateway.ts';
import { freePort } from '../harness/port.ts';
import type { Random } from '../harness/random.ts';
import { reachable } from './snapshot.ts';

export interface ChurnOptions {
  readonly program: Program;
  readonly random: Random;
  /** How long connections come and go. */
  readonly loadMs: number;
  /** Windows in which the lowest heap is found. */
  readonly windowMs: number;
  /** How long everything rests before the end is judged. */
  readonly restMs: number;
  readonly onWindow?: (window: Window) => void;
}

/** Lowest figures of one window. */
export interface Window {
  readonly heapBytes: number;
  readonly externalBytes: number;
  readonly residentBytes: number;
  readonly connections: number;
}

export interface ChurnReport {
  readonly connections: number;
  /** Resident before connections come, with all topics known. */
  readonly idleBytes: number;
  readonly restedBytes: number;
  readonly windows: readonly Window[];
  /** Objects of connections that can still be reached, none of which is there any more. */
  readonly left: readonly { readonly name: string; readonly count: number; readonly path: string }[];
  /** Sessions that are kept, and those that may be. */
  readonly sessions: number;
  /** Through what one of them is reached. */
  readonly sessionPath: string;
  readonly kept: number;
}

/** Objects that belong to a connection. Sockets of metrics and bridges are not among them: those have a Client of their own. */
const OF_CONNECTIONS = ['Client', 'Reader', 'StreamConnection', 'Inbound', 'Acks', 'Admission'];
const KEPT_SESSIONS = 50;
/** Filters of each of them: no more than what they have after a minute, so that nothing but a leak grows later. */
const KEPT_FILTERS = 8;
const TOPICS = 30_000;
const RETAINED = 200;
const ALIVE = 60;
const SAMPLE_MS = 250;
/** A bridge's remote end is there and gone in turns. */
const FLAP_MS = 700;

export class Churn {
  private readonly options: ChurnOptions;
  private metricsPort = 0;
  private readonly live: Socket[] = [];
  private remote: Server | null = null;
  private connections = 0;

  constructor(options: ChurnOptions) {
    this.options = options;
  }

  async run(): Promise<ChurnReport> {
    const { loadMs, windowMs, restMs, program } = this.options;
    const remotePort = await freePort();
    this.metricsPort = await freePort();
    const gateway = new KillGateway(program, this.conf(remotePort), { nodeArgs: ['--heapsnapshot-signal=SIGUSR2'] });
    await gateway.start();
    try {
      await this.warmUp(gateway.port);
      await pause(2000);
      const idleBytes = (await this.metrics()).residentBytes;
      const windows: Window[] = [];
      const flapping = setInterval(() => void this.flap(remotePort), FLAP_MS);
      const endMs = performance.now() + loadMs;
      while (performance.now() < endMs) {
        const window = await this.window(gateway, Math.min(performance.now() + windowMs, endMs));
        windows.push(window);
        this.options.onWindow?.(window);
      }
      clearInterval(flapping);
      this.remote?.close();
      for (const socket of this.live.splice(0)) socket.destroy();
      await pause(restMs);
      const restedBytes = (await this.metrics()).residentBytes;
      const file = await this.snapshot(gateway);
      const found = reachable(file, [...OF_CONNECTIONS, 'Session']);
      const left = OF_CONNECTIONS.map((name) => ({ name, ...(found.get(name) ?? { count: 0, path: '' }) }));
      return {
        connections: this.connections,
        idleBytes,
        restedBytes,
        windows,
        left: left.filter(({ count }) => count > 0),
        sessions: found.get('Session')?.count ?? 0,
        sessionPath: found.get('Session')?.path ?? '',
        kept: KEPT_SESSIONS,
      };
    } finally {
      for (const socket of this.live) socket.destroy();
      await gateway.stop();
      this.remote?.close();
      await gateway.remove();
    }
  }

  private conf(remotePort: number): string {
    return `
      listeners.tcp { bind = "127.0.0.1:0" }
      metrics { bind = "127.0.0.1:${this.metricsPort}" }
      persistence { path = "{dir}/data/t.db" }
      mqtt { max_mqueue_len = 20, max_inflight_window = 20 }
      bridges.mqtt.flapping {
        server = "mqtt-tcp://127.0.0.1:${remotePort}", keepalive = 10s, proto_ver = 4, clientid = "churn", max_send_queue_len = 200
        forwards = [ { local_topic = "t/1/#", qos = 1 } ]
      }
      bridges.nng.pub.flapping {
        pub_url = "tcp://127.0.0.1:0", mode = listen, forwards = [ { local_topic = "t/2/#" } ]
      }`;
  }

  private async window(gateway: KillGateway, endMs: number): Promise<Window> {
    let [heapBytes, externalBytes, residentBytes] = [Infinity, Infinity, Infinity];
    let nextSampleMs = performance.now();
    while (performance.now() < endMs) {
      await this.come(gateway.port);
      while (this.live.length > ALIVE) this.leave();
      if (performance.now() < nextSampleMs) continue;
      nextSampleMs = performance.now() + SAMPLE_MS;
      const now = await this.metrics();
      heapBytes = Math.min(heapBytes, now.heapBytes);
      externalBytes = Math.min(externalBytes, now.externalBytes);
      residentBytes = Math.min(residentBytes, now.residentBytes);
    }
    return { heapBytes, externalBytes, residentBytes, connections: this.connections };
  }

  /** Publishes once on every topic: what the gateway remembers of topics is there before the first window. */
  private async warmUp(port: number): Promise<void> {
    const socket = await this.connect(port, 4, 'warm', true, null);
    const answered = once(socket, 'data');
    for (let at = 0; at < TOPICS; at++) {
      const last = at === TOPICS - 1;
      const publish = {
        topic: topicOf(at),
        payload: Buffer.alloc(10),
        qos: last ? 1 : 0,
        retain: at < RETAINED,
      } as const;
      socket.write(encodePublish(4, { ...publish, dup: false, packetId: 1, properties: null }));
    }
    await answered;
    socket.destroy();
  }

  /** A client of some kind, which subscribes, publishes, and stays for a while. */
  private async come(port: number): Promise<void> {
    const { random } = this.options;
    const n = this.connections++;
    const version: Version = random.below(2) === 0 ? 4 : 5;
    const keeps = random.below(10) === 0;
    const who = random.below(KEPT_SESSIONS);
    const will: Will = {
      topicName: 'will',
      payload: Buffer.from('x'),
      qos: 1,
      retain: false,
      properties: null,
      delayInterval: 0,
    };
    const dies = random.below(5) === 0 ? will : null;
    const socket = await this.connect(port, version, keeps ? `kept${who}` : `passing${n}`, !keeps, dies);
    const topic = `t/${keeps ? (who * KEPT_FILTERS + random.below(KEPT_FILTERS)) % 100 : random.below(100)}`;
    const topicFilter = random.below(4) === 0 ? `$share/g/${topic}/#` : `${topic}/#`;
    const qos = random.below(3) as Qos;
    const request = { topicFilter, qos, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
    socket.write(
      encodeSubscribe(version, { type: SUBSCRIBE, packetId: 1, subscriptions: [request], properties: null }),
    );
    for (let i = 0; i < 3; i++) {
      const at = random.below(TOPICS);
      const publish = {
        topic: topicOf(at),
        payload: Buffer.alloc(random.below(400)),
        qos: random.below(3) as Qos,
        retain: at < RETAINED,
        dup: false,
        packetId: i + 2,
        properties: null,
      };
      socket.write(encodePublish(version, publish));
    }
    this.live.push(socket);
  }

  private async connect(
    port: number,
    version: Version,
    clientId: string,
    cleanStart: boolean,
    will: Will | null,
  ): Promise<Socket> {
    const socket = new Socket();
    socket.on('error', () => {});
    socket.connect(port, '127.0.0.1');
    const answered = once(socket, 'data');
    const properties = !cleanStart && version === 5 ? { sessionExpiryInterval: 3600 } : null;
    const identity = { clientId, cleanStart, keepAlive: 60, username: null, password: null };
    socket.write(encodeConnect({ type: CONNECT, version, bridge: false, ...identity, will, properties }));
    await answered;
    socket.resume();
    return socket;
  }

  private leave(): void {
    const { random } = this.options;
    const [socket] = this.live.splice(random.below(this.live.length), 1);
    if (random.below(2) === 0) socket.destroy();
    else socket.end(Buffer.from([0xe0, 0]));
  }

  /** The remote broker of a bridge comes, takes what it gets, and goes. */
  private async flap(port: number): Promise<void> {
    if (this.remote !== null) {
      this.remote.close();
      this.remote = null;
      return;
    }
    const remote = createServer((socket) => {
      socket.on('error', () => {});
      socket.write(Buffer.from([0x20, 2, 0, 0]));
      acknowledge(socket);
      setTimeout(() => socket.destroy(), FLAP_MS / 2);
    });
    remote.on('error', () => {});
    remote.listen(port, '127.0.0.1');
    this.remote = remote;
  }

  private async metrics(): Promise<{ heapBytes: number; externalBytes: number; residentBytes: number }> {
    const text = await (await fetch(`http://127.0.0.1:${this.metricsPort}/metrics`)).text();
    const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    return {
      heapBytes: value('nodejs_heap_used_bytes'),
      externalBytes: value('nodejs_external_memory_bytes'),
      residentBytes: value('process_resident_memory_bytes'),
    };
  }

  /** Where the gateway has written its heap. */
  private async snapshot(gateway: KillGateway): Promise<string> {
    gateway.signal('SIGUSR2');
    for (let size = -1; ; ) {
      await pause(500);
      const name = readdirSync(gateway.folder).find((file) => file.endsWith('.heapsnapshot'));
      if (name === undefined) continue;
      const file = path.join(gateway.folder, name);
      const now = statSync(file).size;
      if (now > 0 && now === size) return file;
      size = now;
    }
  }
}

/** Answers PUBLISH of QoS 1. Otherwise messages of publishers that have gone wait for room until the end. */
function acknowledge(socket: Socket): void {
  const cutter = new PacketCutter(1 << 20);
  socket.on('data', (chunk) =>
    cutter.feed(chunk, (bytes) => {
      const { type, flags, bodyStart } = cutter.frame;
      if (type !== PUBLISH || (flags & 6) === 0) return true;
      const at = bodyStart + 2 + bytes.readUInt16BE(bodyStart);
      socket.write(Buffer.from([0x40, 2, bytes[at], bytes[at + 1]]));
      return true;
    }),
  );
}

function topicOf(n: number): string {
  return `t/${n % 100}/${n}`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
