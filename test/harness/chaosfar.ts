// What lies beyond the bridges of a gateway that is put to the test: a mosquitto at its default limits behind a link that flaps, with
// clients of its own, and an SP worker; and the checks of what crossed. Used by chaos.ts.
//
//   up4/#, up5/#    publishers at the gateway -> bridge of 3.1.1 or 5.0 -> mosquitto -> a durable subscriber there
//   down4/#, down5/# publishers at mosquitto -> the same bridges -> a durable subscriber at the gateway
//   work/#          a publisher at the gateway -> push bridge with a spool -> a worker that is there, reads slowly at times
//   will/#          clients that go without a word -> a durable subscriber at the gateway
import type { SpSocket } from '../../src/sp/sp.ts';
import { FlappyLink } from './flappylink.ts';
import { KillClient } from './killclient.ts';
import type { Companion, KillCrew } from './killcrew.ts';
import type { KillGateway } from './killgateway.ts';
import { Mosquitto } from './mosquitto.ts';
import { SP_DEFAULTS, testDriver, Watch } from './spsockets.ts';

interface Path {
  readonly name: string;
  readonly publisher: KillClient;
  /** Payloads in the order they came. */
  readonly got: () => readonly string[];
  /** QoS 2 all the way: nothing comes twice. */
  readonly exact: boolean;
  /** mosquitto 2.0 overtakes itself for a client whose acknowledgements are late: order is not to be had from it. */
  readonly ordered: boolean;
}

const PACE_MS = 5;
/** mosquitto keeps 1,000 messages for a client that is away: its publishers wait while more than this many are on their way. */
const MOST_UNDERWAY = 500;

function publisher(clientId: string, version: 4 | 5, qos: 1 | 2, topic: string, may?: () => boolean): KillClient {
  const publishes = {
    topic: () => `${topic}/${clientId}`,
    body: () => 'b',
    qos,
    retain: false,
    window: 10,
    everyMs: PACE_MS,
    ...(may === undefined ? {} : { may }),
  };
  return new KillClient({ clientId, version, publishes });
}

const texts = (client: KillClient) => (): readonly string[] => client.received.map(({ from, n }) => `${from} ${n}`);

export class ChaosFar implements Companion {
  readonly publishers: readonly KillClient[];
  readonly receivers: readonly KillClient[];
  readonly link: FlappyLink;
  port = 0;
  private readonly mosquitto: Mosquitto;
  private readonly gateway: () => KillGateway;
  private readonly there: readonly KillClient[];
  private readonly heir: KillClient;
  private readonly paths: readonly Path[];
  private worker: SpSocket | null = null;
  private watch: Watch | null = null;
  private wills: string[] = [];
  private willCount = 0;
  private readonly checked = new Map<KillClient, number>();
  /** How often each message of a publisher has come. */
  private readonly seen = new Map<KillClient, Map<number, number>>();

  private constructor(mosquitto: Mosquitto, gateway: () => KillGateway) {
    this.mosquitto = mosquitto;
    this.gateway = gateway;
    this.link = new FlappyLink(mosquitto.port);
    const subscriber = new KillClient({
      clientId: 'far',
      version: 4,
      subscriptions: [
        // At QoS 0 each message that mosquitto takes is passed on at once: what comes twice, or late, has been sent so.
        { topicFilter: 'up4/#', qos: 0 },
        { topicFilter: 'up5/#', qos: 0 },
      ],
    });
    const near = new KillClient({
      clientId: 'near',
      version: 5,
      subscriptions: [
        { topicFilter: 'down4/#', qos: 2 },
        { topicFilter: 'down5/#', qos: 2 },
      ],
    });
    this.heir = new KillClient({ clientId: 'heir', version: 5, subscriptions: [{ topicFilter: 'will/#', qos: 2 }] });
    const local = [
      publisher('x1', 4, 1, 'up4'),
      publisher('x2', 5, 2, 'up4'),
      publisher('x3', 4, 2, 'up5'),
      publisher('x4', 5, 1, 'up5'),
    ];
    const may = (): boolean => {
      const sent = remote.reduce((sum, p) => sum + p.last - this.from(p) + 1, 0);
      return sent - near.received.length < MOST_UNDERWAY;
    };
    const remote: KillClient[] = [
      publisher('d1', 4, 1, 'down4', may),
      publisher('d2', 5, 2, 'down4', may),
      publisher('d3', 4, 2, 'down5', may),
      publisher('d4', 5, 1, 'down5', may),
    ];
    const work = publisher('k1', 4, 1, 'work');
    this.there = [...remote, subscriber];
    this.publishers = [...local, work];
    this.receivers = [near, this.heir];
    const exact = (client: KillClient): boolean => client.options.publishes?.qos === 2;
    this.paths = [
      ...local.map((p) => ({
        name: 'to mosquitto',
        publisher: p,
        got: texts(subscriber),
        exact: exact(p),
        ordered: true,
      })),
      ...remote.map((p) => ({
        name: 'from mosquitto',
        publisher: p,
        got: texts(near),
        exact: exact(p),
        ordered: false,
      })),
      { name: 'to the worker', publisher: work, got: () => this.worked(), exact: false, ordered: true },
    ];
  }

  static async start(gateway: () => KillGateway): Promise<ChaosFar> {
    const far = new ChaosFar(await Mosquitto.start(['allow_anonymous true']), gateway);
    far.port = await far.link.start();
    return far;
  }

  /** Configuration of the bridges. @param variant something that only a new worker can change */
  conf(variant: number): string {
    const bridge = (version: 4 | 5): string => `
bridges.mqtt.v${version} {
  enable = true, server = "mqtt-tcp://127.0.0.1:${this.port}", proto_ver = ${version}, clientid = "gw${version}", clean_start = false
  keepalive = ${60 + variant}s, backoff_max = 1s, max_send_queue_len = 0, conn_properties { session_expiry_interval = 86400 }
  forwards = [ { local_topic = "up${version}/#", remote_topic = "" } ]
  subscription = [ { remote_topic = "down${version}/#", local_topic = "", qos = 2 } ]
}`;
    return `${bridge(4)}${bridge(5)}
bridges.nng.push.work {
  enable = true, mode = listen, push_url = "ipc://{dir}/work.ipc", spool = 64MB, send_buffer = ${64 + variant}KB
  forwards = [ { local_topic = "work/#", remote_topic = "", nng_delimiter = ":", qos = 1 } ]
}
`;
  }

  /** Lets the sessions of bridges and clients come to be. */
  async begin(): Promise<void> {
    const socket = testDriver().open('pull0', { ...SP_DEFAULTS, reconnectMaxMs: 100 });
    this.watch = new Watch(socket);
    this.worker = socket;
    socket.dial(`ipc://${this.gateway().folder}/work.ipc`);
    for (const client of this.there) client.connect(this.mosquitto.port);
    await Promise.all(this.there.map((client) => client.until(() => client.online)));
    // mosquitto keeps nothing for a bridge that has not subscribed yet.
    const probe = new KillClient({
      clientId: 'probe',
      version: 4,
      durable: false,
      publishes: { topic: (n) => `down${4 + (n % 2)}/probe`, body: () => '', qos: 1, retain: false, window: 2 },
    });
    const seen = new Set<string>();
    const near = this.receivers[0];
    probe.connect(this.mosquitto.port);
    probe.publish(true);
    await near.until(() => {
      for (const { topic } of near.received) seen.add(topic);
      return seen.size === 2;
    });
    probe.publish(false);
    probe.cut();
  }

  roundBegins(random: () => number): void {
    for (const client of this.there) client.publish(true);
    if (random() < 0.5) void this.leaveWill(random() < 0.5 ? 4 : 5);
    if (random() < 0.3) this.worker?.pause();
    else this.worker?.resume();
  }

  /** One client comes and goes without DISCONNECT, if it is let in in time. */
  private async leaveWill(version: 4 | 5): Promise<void> {
    const clientId = `w${++this.willCount}`;
    const client = new KillClient({ clientId, version, will: { topic: `will/${clientId}`, qos: 2 } });
    client.connect(this.gateway().port);
    await Promise.race([client.until(() => client.online), new Promise((resolve) => setTimeout(resolve, 400).unref())]);
    if (client.online) this.wills.push(clientId);
    client.cut();
  }

  /** Mosquitto stops for a moment: nothing is acknowledged. */
  async stall(ms: number): Promise<void> {
    this.link.hold(true);
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.link.hold(false);
  }

  async settle(crew: KillCrew): Promise<void> {
    this.worker?.resume();
    for (const client of this.there) client.publish(false);
    await crew.each(this.there, (client) => client.settled);
    for (const path of this.paths) {
      const { publisher: p } = path;
      const all = (): boolean => new Set(this.fresh(path)).size > p.last - this.from(p);
      await crew.until(`${path.name} from ${p.options.clientId}`, all);
      this.check(path, crew);
    }
    const left = (): string[] => this.wills.filter((id) => !this.heir.received.some(({ from }) => from === id));
    await crew.until('wills', () => left().length === 0);
    crew.lost(left().map((id) => `the will of ${id} is lost`));
    const twice = this.wills.filter((id) => this.heir.received.filter(({ from }) => from === id).length > 1);
    crew.repeated(twice.map((id) => `the will of ${id} came twice`));
    this.wills = [];
    if (this.watch !== null) this.watch.bodies.length = 0;
    for (const client of this.there) {
      crew.tell(client);
      client.forget();
    }
  }

  /** What mosquitto says. */
  get log(): string {
    return this.mosquitto.log.slice(-3000);
  }

  async stop(): Promise<void> {
    for (const client of [...this.there, ...this.publishers, ...this.receivers]) client.cut();
    await this.worker?.stop(50);
    this.link.stop();
    await this.mosquitto.stop();
  }

  // ---- inside

  private worked(): readonly string[] {
    return (this.watch?.bodies ?? []).map((body) => body.slice(body.indexOf(':') + 1));
  }

  private from(p: KillClient): number {
    return (this.checked.get(p) ?? 0) + 1;
  }

  /** Numbers that came since the last check and belong to it: a copy of an earlier message does not stand for one that is missing. */
  private fresh(path: Path): number[] {
    const { publisher: p } = path;
    return this.numbers(path).filter((n) => n >= this.from(p));
  }

  /** Numbers of the path's publisher, in the order they came. */
  private numbers({ publisher: p, got }: Path): number[] {
    const start = `${p.options.clientId} `;
    const own = got().filter((text) => text.startsWith(start));
    return own.map((text) => Number(text.split(' ', 2)[1]));
  }

  private check(path: Path, crew: KillCrew): void {
    const { name, publisher: p, exact, ordered } = path;
    const { clientId } = p.options;
    // What comes again after an earlier check is known here.
    const counts = this.seen.get(p) ?? new Map<number, number>();
    this.seen.set(p, counts);
    let highest = 0;
    for (const n of this.numbers(path)) {
      const before = counts.get(n) ?? 0;
      counts.set(n, before + 1);
      if (exact && before > 0) crew.repeated([`${name}: ${clientId} ${n} at QoS 2 came again`]);
      if (ordered && before === 0 && n < highest) crew.reordered([`${name}: ${clientId} ${n} came after ${highest}`]);
      highest = Math.max(highest, n);
    }
    for (let n = this.from(p); n <= p.last; n++) {
      if (counts.has(n)) continue;
      crew.lost([`${name}: ${clientId} ${n} is lost${p.acknowledged.has(n) ? ' and was acknowledged' : ''}`]);
    }
    this.checked.set(p, p.last);
  }
}
