// A crowd of real clients on a proxy with `topics` in front of three real mosquitto processes that are stopped and started again, with a
// random workload from a seed. Says what was lost, doubled or out of order. Used by test/e2e/proxy-topics.test.ts; needs mosquitto.
// A server that is stopped saves its sessions, and saves them each second as well: what it has acknowledged it has when it is back.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { matches } from '../../src/mqtt/topic.ts';
import { testGateway } from './gateway.ts';
import { programPath } from './mosquitto.ts';
import { freePort } from './port.ts';
import { Random } from './random.ts';

export interface CrowdOptions {
  readonly seed: number;
  readonly clients: number;
  /** How often each server is stopped. */
  readonly kills: number;
  /** null = clients talk to the first server, which is stopped instead of the others: what mosquitto itself doubles and reorders. */
  readonly lost: 'close' | 'refuse' | 'wait' | null;
  /** Messages of each client between two stops. */
  readonly messages: number;
}

export interface CrowdReport {
  readonly sent: number;
  readonly acknowledged: number;
  readonly received: number;
  /** Up to ten of each. */
  readonly missing: string[];
  readonly doubled: string[];
  readonly unordered: string[];
  readonly doubledCount: number;
  readonly unorderedCount: number;
  /** Above QoS 0, neither acknowledged nor refused. */
  readonly unanswered: string[];
}

const UPSTREAMS = ['main', 'left', 'right'];
const RULES = '{ filter = "t/left/#", upstream = left }, { filter = "+/right/#", upstream = right }';
const FILTERS = ['t/#', 't/main/#', 't/left/#', 't/right/#', '+/+/+/1', 't/+/+/2', '#'];
const PATIENCE_MS = 60_000;

/** A mosquitto that keeps its port and its sessions over stops. */
class Server {
  readonly port: number;
  private readonly folder = mkdtempSync(join(tmpdir(), 'topiccrowd-'));
  private child: ChildProcess | null = null;

  constructor(port: number) {
    this.port = port;
    const user = process.getuid?.() === 0 ? 'user root\n' : '';
    writeFileSync(
      join(this.folder, 'conf'),
      `${user}listener ${port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location ${this.folder}/\n` +
        'autosave_interval 1\nmax_queued_messages 0\nmax_inflight_messages 20\n',
    );
  }

  async start(): Promise<void> {
    const child = spawn(programPath('mosquitto') ?? 'mosquitto', ['-c', join(this.folder, 'conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.child = child;
    let text = '';
    while (!/ running/.test(text)) {
      const [chunk] = (await once(child.stderr ?? child, 'data')) as [Buffer];
      text += chunk.toString();
    }
    child.stderr?.resume();
  }

  async stop(): Promise<void> {
    const { child } = this;
    this.child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    await gone;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface Member {
  readonly name: string;
  readonly client: MqttClient;
  readonly filter: string;
  readonly qos: 0 | 1 | 2;
  /** Times each message has come, by topic and number. */
  readonly got: Map<string, number>;
  /** Last new number by topic. */
  readonly last: Map<string, number>;
  readonly counts: Map<string, number>;
}

class Crowd {
  private readonly options: CrowdOptions;
  private readonly random: Random;
  private readonly members: Member[] = [];
  private readonly acknowledged: string[] = [];
  private readonly unordered: string[] = [];
  private sent = 0;
  private readonly open = new Set<string>();
  private received = 0;
  private waiting: { until: () => boolean; go: () => void }[] = [];

  constructor(options: CrowdOptions) {
    this.options = options;
    this.random = new Random(options.seed);
  }

  async run(port: number, servers: readonly Server[]): Promise<CrowdReport> {
    for (let i = 0; i < this.options.clients; i++) this.members.push(await this.join(port, `c${i}`));
    for (let kill = 0; kill < this.options.kills; kill++)
      for (const server of servers) {
        this.talk();
        await this.turns(1 + this.random.below(20));
        await server.stop();
        this.talk();
        await this.turns(1 + this.random.below(40));
        await server.start();
      }
    this.talk();
    await this.when(() => this.open.size === 0);
    const expected = this.expected();
    await this.when(() => expected.every(([member, key]) => member.got.has(key)));
    // A message more that nobody asked for would come before this answer.
    await this.turns(20);
    return this.report(expected);
  }

  async end(): Promise<void> {
    await Promise.all(this.members.map(({ client }) => client.endAsync(true)));
  }

  private async join(port: number, name: string): Promise<Member> {
    const { random } = this;
    const protocolVersion = random.pick([4, 5] as const);
    const options: IClientOptions = {
      clientId: name,
      protocolVersion,
      clean: false,
      reconnectPeriod: 100,
      connectTimeout: 20_000,
      resubscribe: false,
      // What this client library queues at QoS 0 while it is away, it sends behind what it is given when it is back.
      queueQoSZero: false,
      ...(protocolVersion === 5 ? { properties: { sessionExpiryInterval: 3600 } } : {}),
    };
    const client = await connectAsync(`mqtt://127.0.0.1:${port}`, options);
    client.on('error', () => {});
    const member: Member = {
      name,
      client,
      filter: random.pick(FILTERS),
      qos: random.pick([0, 1, 2, 2] as const),
      got: new Map(),
      last: new Map(),
      counts: new Map(),
    };
    client.on('message', (topic, payload) => this.take(member, topic, Number(payload.toString())));
    await client.subscribeAsync(member.filter, { qos: member.qos });
    return member;
  }

  private take(member: Member, topic: string, number: number): void {
    const key = `${topic} ${number}`;
    const before = member.got.get(key) ?? 0;
    member.got.set(key, before + 1);
    this.received++;
    const last = member.last.get(topic) ?? -1;
    if (before === 0 && number < last) this.unordered.push(`${member.name} got ${key} after ${last}`);
    if (number > last) member.last.set(topic, number);
    this.check();
  }

  /** Everybody publishes; what is not acknowledged waits in the client. */
  private talk(): void {
    for (const member of this.members)
      for (let i = 0; i < this.options.messages; i++) {
        const qos = this.random.pick([0, 1, 2] as const);
        const topic = `t/${this.random.pick(UPSTREAMS)}/${member.name}/${qos}`;
        const number = member.counts.get(topic) ?? 0;
        member.counts.set(topic, number + 1);
        this.sent++;
        if (qos > 0) this.open.add(`${topic} ${number}`);
        member.client.publish(topic, String(number), { qos }, (error) => {
          this.open.delete(`${topic} ${number}`);
          if (!error && qos > 0) this.acknowledged.push(`${topic} ${number}`);
          this.check();
        });
      }
  }

  /** Who has to have what: acknowledged, and subscribed above QoS 0. */
  private expected(): [Member, string][] {
    return this.members
      .filter((member) => member.qos > 0)
      .flatMap((member) =>
        this.acknowledged
          .filter((key) => matches(member.filter, key.slice(0, key.indexOf(' '))))
          .map((key): [Member, string] => [member, key]),
      );
  }

  private report(expected: readonly [Member, string][]): CrowdReport {
    const missing = expected.filter(([member, key]) => !member.got.has(key)).map(([m, key]) => `${m.name} ${key}`);
    const doubled = this.members.flatMap((member) =>
      [...member.got]
        .filter(([key, count]) => count > 1 && isOnce(Number(key.split(/[/ ]/)[3]), member.qos))
        .map(([key, count]) => `${member.name} got ${key} ${count} times`),
    );
    return {
      sent: this.sent,
      acknowledged: this.acknowledged.length,
      received: this.received,
      missing: missing.slice(0, 10),
      doubled: doubled.slice(0, 10),
      unordered: this.unordered.slice(0, 10),
      doubledCount: doubled.length,
      unorderedCount: this.unordered.length,
      unanswered: [...this.open].slice(0, 10),
    };
  }

  /** Resolves when it is so, or when there is no more patience: the report then says what is not. */
  private when(until: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, PATIENCE_MS);
      const go = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.waiting.push({ until, go });
      this.check();
    });
  }

  private check(): void {
    for (const one of this.waiting.filter(({ until }) => until())) {
      this.waiting = this.waiting.filter((other) => other !== one);
      one.go();
    }
  }

  /** Lets some traffic pass: a random part of it is under way when something happens. */
  private async turns(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Whether a message of this QoS may come only once to a subscription of that one. */
function isOnce(published: number, subscribed: number): boolean {
  return published === 0 || (published === 2 && subscribed !== 1);
}

export async function topicCrowd(options: CrowdOptions): Promise<CrowdReport> {
  const servers: Server[] = [];
  for (let i = 0; i < UPSTREAMS.length; i++) servers.push(new Server(await freePort()));
  for (const server of servers) await server.start();
  const port = await freePort();
  const pools = UPSTREAMS.map(
    (name, i) => `upstreams.${name} { servers = [ { addr = "127.0.0.1:${servers[i].port}", max_fails = 0 } ] }`,
  );
  const gateway = await testGateway(
    `listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\nauth.allow_anonymous = true\n${pools.join('\n')}
     proxy.front { bind = "127.0.0.1:${port}", default = main, topics = [ ${RULES} ], topic_routing { lost = ${options.lost ?? 'close'} } }`,
  );
  const crowd = new Crowd(options);
  try {
    const [first] = servers;
    return await (options.lost === null ? crowd.run(first.port, [first, first, first]) : crowd.run(port, servers));
  } finally {
    await crowd.end();
    await gateway.stop();
    for (const server of servers) await server.remove();
  }
}
