// The interop matrix: bridges of a whole gateway against nngcat, nanocat, the nanomsg package and our own sockets, over every transport,
// listening and dialing, 10,000 messages a cell. `npx tsx test/interop/run.ts [--only TEXT] [--count N] [--write]`; --write makes
// docs/interop.md. Exit code 1 when a cell fails that can work.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { NngBridgeOptions } from '../../src/bridge/bridge.ts';
import type { LocalClient } from '../../src/broker/broker.ts';
import { Authority, clientTls, serverTls } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { freePort } from '../harness/port.ts';
import { type Mode, type PeerProgram, type Place, peerPrograms, type Scheme, type Sender } from './peers.ts';

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, count: { type: 'string' }, write: { type: 'boolean' } },
});
const COUNT = Number(options.count ?? 10_000);
const BYTES = 64;
const CELL_MS = 30_000;
/** Subscribers of nng and nanomsg drop what their queue of a hundred or so messages has no room for: that many are on their way at most. */
const IN_FLIGHT = 64;
const SCHEMES: readonly Scheme[] = ['tcp', 'ipc', 'abstract', 'ws', 'tls+tcp'];
const MODES: readonly Mode[] = ['listen', 'dial'];
const OURS = ['pub', 'sub', 'push', 'pull'] as const;
type Ours = (typeof OURS)[number];

const HEAD = 'm:';
const TEXT = `${HEAD}${'interop text that is always the same, quotes " and \u00e4 included.'.padEnd(80, '.')}`;

/** Body of message i: what no text is made of is in it, and no two are alike. */
function body(i: number): Buffer {
  const bytes = Buffer.alloc(BYTES);
  bytes.write(HEAD + String(i).padStart(8, '0'));
  for (let at = HEAD.length + 8; at < BYTES; at++) bytes[at] = (i * 31 + at * 7) & 255;
  return bytes;
}

class Matrix {
  private readonly folder = mkdtempSync(join(tmpdir(), 'interop-'));
  private readonly authority = new Authority();
  private readonly pair = this.authority.issue({ name: 'localhost', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
  private readonly gateway: TestGateway;
  private readonly client: LocalClient;
  private cells = 0;
  private received: Buffer[] = [];

  private constructor(gateway: TestGateway) {
    this.gateway = gateway;
    this.client = gateway.gateway.broker.attach({
      clientId: 'interop',
      username: null,
      kind: 'api',
      bridge: null,
      trusted: true,
    });
    this.client.subscribe({
      topicFilter: 'l',
      qos: 0,
      retainHandling: 2,
      receiver: { receive: (publication) => this.received.push(Buffer.from(publication.payload())) },
    });
  }

  static async start(): Promise<Matrix> {
    return new Matrix(await testGateway());
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    this.authority.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** "ok", or what went wrong. */
  async cell(ours: Ours, program: PeerProgram, scheme: Scheme, mode: Mode): Promise<string> {
    const place: Place = {
      scheme,
      url: await this.url(scheme, program.hasPaths),
      mode: mode === 'listen' ? 'dial' : 'listen',
      pattern: ours === 'pub' || ours === 'sub' ? 'pub' : 'push',
      authority: this.authority,
      pair: this.pair,
    };
    const sends = ours === 'pub' || ours === 'push';
    this.received = [];
    await this.gateway.gateway.bridges.add(this.bridge(ours, place.url, mode, sends));
    try {
      return await (sends ? this.outward(ours, program, place) : this.inward(ours, program, place));
    } finally {
      await this.gateway.gateway.bridges.remove(ours, 'cell');
    }
  }

  // ---- inside

  private async outward(ours: Ours, program: PeerProgram, place: Place): Promise<string> {
    const receiver = await program.receive(place);
    try {
      if (!(await this.until(() => this.peers(ours) > 0))) return 'no connection';
      // A subscription of a program is on its way when its connection is there; nothing tells of its end.
      await new Promise((resolve) => setTimeout(resolve, 50));
      let sent = 0;
      const done = await this.until(() => {
        while (sent < COUNT && sent * BYTES - receiver.bytes() < IN_FLIGHT * BYTES) {
          const bytes = body(sent++);
          this.client.publish('m', bytes, HEAD.length, bytes.length, 0, false);
        }
        return receiver.bytes() >= COUNT * BYTES;
      });
      if (!done) return `${Math.floor(receiver.bytes() / BYTES)} of ${COUNT}`;
      const expected = Buffer.concat(Array.from({ length: COUNT }, (_, i) => body(i)));
      return receiver.all().equals(expected) ? 'ok' : 'other bytes';
    } finally {
      await receiver.stop();
    }
  }

  private async inward(ours: Ours, program: PeerProgram, place: Place): Promise<string> {
    const sender = await program.send(place, TEXT, COUNT);
    try {
      if (!(await this.until(() => this.peers(ours) > 0 || this.received.length > 0))) return 'no connection';
      if (!sender.distinct) return await this.same(sender);
      // The package does not tell when a peer is there: marks go first, until one has arrived.
      const mark = Buffer.from(`${HEAD}mark`);
      if (!(await this.until(() => sender.send(-1, mark) && this.received.length > 0))) return 'nothing arrives';
      const marks = (): number => this.received.filter((one) => one.toString() === 'mark').length;
      let sent = 0;
      const done = await this.until(() => {
        while (sent < COUNT && sent - this.received.length < IN_FLIGHT && sender.send(sent, body(sent))) sent++;
        return this.received.length >= COUNT && this.received.length - marks() >= COUNT;
      });
      const bodies = this.received.filter((one) => one.toString() !== 'mark');
      if (!done) return `${bodies.length} of ${COUNT}`;
      const exact = bodies.every((one, i) => one.equals(body(i).subarray(HEAD.length)));
      return exact ? 'ok' : 'other bytes';
    } finally {
      await sender.stop();
    }
  }

  private async same({ finished }: Sender): Promise<string> {
    const done = await this.until(() => this.received.length >= COUNT && finished?.() !== false);
    if (!done || (finished !== null && this.received.length !== COUNT)) return `${this.received.length} of ${COUNT}`;
    const expected = Buffer.from(TEXT.slice(HEAD.length));
    return this.received.slice(0, COUNT).every((one) => one.equals(expected)) ? 'ok' : 'other bytes';
  }

  private peers(ours: Ours): number {
    return this.gateway.gateway.bridges.get(ours, 'cell')?.peers.length ?? 0;
  }

  private async until(done: () => boolean): Promise<boolean> {
    const end = performance.now() + CELL_MS;
    while (!done()) {
      if (performance.now() > end) return false;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return true;
  }

  private async url(scheme: Scheme, withPath: boolean): Promise<string> {
    const n = ++this.cells;
    if (scheme === 'ipc') return `ipc://${this.folder}/${n}.ipc`;
    if (scheme === 'abstract') return `abstract://interop-${process.pid}-${n}`;
    const port = await freePort();
    if (scheme === 'ws') return `ws://127.0.0.1:${port}${withPath ? '/sp' : ''}`;
    return scheme === 'tcp' ? `tcp://127.0.0.1:${port}` : `tls+tcp://localhost:${port}`;
  }

  private bridge(type: Ours, url: string, mode: Mode, sends: boolean): NngBridgeOptions {
    const common = {
      name: 'cell',
      enable: true,
      urls: [url],
      mode,
      clientId: null,
      driver: 'native',
      compat: 'documented',
      recvMaxSize: 16 << 20,
      reconnectMaxMs: 200,
      ipcMode: null,
      ipcGroup: null,
      tlsServer: mode === 'listen' ? serverTls(this.pair) : null,
      tlsClient: mode === 'dial' ? clientTls(this.authority.ca) : null,
    } as const;
    const rule = { enable: true, nngDelimiter: ':', qos: 0 } as const;
    if (sends)
      return {
        ...common,
        type: type as 'pub' | 'push',
        sendBuffer: 4 << 20,
        overflow: type === 'pub' ? 'drop_oldest' : 'block',
        spool: 0,
        forwards: [{ ...rule, localTopic: 'm', remoteTopic: 'm', retain: 'any', from: 'any' }],
      };
    const subscription = [{ ...rule, remoteTopic: 'm', localTopic: 'l', retain: false, match: 'prefix' } as const];
    return { ...common, type: type as 'sub' | 'pull', subscription };
  }
}

/** "1.5.2", or "" when the program does not say. */
function versionOf(program: string): string {
  const said = spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout ?? '';
  return /\d+\.\d+[.\d]*/.exec(said)?.[0] ?? '';
}

function page(rows: readonly string[]): string {
  return `# Interop of NNG bridges
Made by \`npx tsx test/interop/run.ts --write\` (\`make interop\`). Each cell is a bridge of a running gateway and another program, ${COUNT.toLocaleString('en')} messages
from MQTT through the bridge to the program, or the other way. Every byte that arrives is compared.

- Where the gateway sends, and from the npm package \`nanomsg\` and Tidegate's own sockets, no two messages are alike and they hold bytes of every value
  (${BYTES} bytes each): all of them have to arrive, in order. At most ${IN_FLIGHT} are on their way, because subscribers of nng and nanomsg drop what
  their receive queue has no room for.
- \`nngcat\` and \`nanocat\` can send only one text again and again (\`--data\`, \`--interval 0\`): ${COUNT.toLocaleString('en')} that arrive have to be that text. As publishers they drop
  what their own queue cannot hold, so order and completeness cannot be seen there; \`nngcat --push0 --count ${COUNT}\` sends exactly as many and all have to arrive.
- libnanomsg cannot listen at a WebSocket URL with a path; its cells have none, the others have one.
- A word instead of \`ok\` says why there is no such cell, or what happened.

nngcat ${versionOf('nngcat')}, npm package nanomsg 4.2.1 (libnanomsg), Node ${process.versions.node}.

| the gateway's bridge | peer | transport | the gateway listens | the gateway dials |
|---|---|---|---|---|
${rows.join('\n')}
`;
}

const matrix = await Matrix.start();
const programs = await peerPrograms();
const rows: string[] = [];
let failed = 0;
for (const ours of OURS) {
  for (const program of programs) {
    for (const scheme of SCHEMES) {
      const cells: string[] = [];
      for (const mode of MODES) {
        const name = `${ours} ${program.name} ${scheme} ${mode}`;
        if (options.only !== undefined && !name.includes(options.only)) continue;
        const cannot = program.cannot(scheme, mode);
        const started = performance.now();
        const result = cannot ?? (await matrix.cell(ours, program, scheme, mode));
        if (cannot === null && result !== 'ok') failed++;
        process.stdout.write(`${name}: ${result} (${Math.round(performance.now() - started)} ms)\n`);
        cells.push(result);
      }
      if (cells.length > 0) rows.push(`| ${ours} | ${program.name} | ${scheme} | ${cells.join(' | ')} |`);
    }
  }
}
await matrix.stop();
if (options.write === true) writeFileSync(fileURLToPath(new URL('../../docs/interop.md', import.meta.url)), page(rows));
process.stdout.write(`${rows.length} rows, ${failed} failed\n`);
process.exitCode = failed > 0 ? 1 : 0;
