// The clients that work while a gateway is killed again and again, and the checks of what it promised them.
// Called by test/e2e/kill.test.ts: round() for each kill, settle() now and then: everything sent must then be everywhere it belongs.
//
//   load/#   four publishers (QoS 1 and 2, 3.1.1 and 5.0) to four durable receivers: prompt, slow, forgetful, and one that is away
//   sh/#     two publishers to a shared subscription of two durable members, one of them often away
//   ret/..   two publishers of retained values, one of them also deletes
//   up/#     one publisher to an MQTT bridge with a spool
//   nng/#    one publisher to an NNG bridge with a spool whose peer comes only when everything is let arrive
import path from 'node:path';
import type { Qos } from '../../src/mqtt/packet.ts';
import { KillClient, type KillClientOptions, type Received } from './killclient.ts';
import type { KillGateway } from './killgateway.ts';
import type { KillRemote } from './killremote.ts';
import { HELLO, RawSp } from './rawsp.ts';

const SETTLE_MS = 60_000;
const PAD = 'x'.repeat(3000);

export interface Tally {
  rounds: number;
  sent: number;
  acknowledged: number;
  delivered: number;
  lost: number;
  duplicatesQos2: number;
  outOfOrder: number;
  wrongRetained: number;
}

function publisher(
  clientId: string,
  version: 4 | 5,
  qos: Qos,
  window: number,
  topic: (n: number) => string,
  more: { body?: (n: number) => string; retain?: boolean } = {},
): KillClient {
  const { body = () => 'b', retain = false } = more;
  return new KillClient({ clientId, version, publishes: { topic, body, qos, retain, window } });
}

function receiver(
  clientId: string,
  version: 4 | 5,
  topicFilter: string,
  qos: Qos,
  more: Partial<KillClientOptions> = {},
): KillClient {
  return new KillClient({ clientId, version, subscriptions: [{ topicFilter, qos }], ...more });
}

/** Others who work beside the crew: their clients come and go with it. */
export interface Companion {
  readonly publishers: readonly KillClient[];
  readonly receivers: readonly KillClient[];
  /** All clients are online for the first time. */
  begin(): Promise<void>;
  roundBegins(random: () => number): void;
  /** Publishers have stopped and settled: checks what is theirs. */
  settle(crew: KillCrew): Promise<void>;
}

export class KillCrew {
  readonly tally: Tally = {
    rounds: 0,
    sent: 0,
    acknowledged: 0,
    delivered: 0,
    lost: 0,
    duplicatesQos2: 0,
    outOfOrder: 0,
    wrongRetained: 0,
  };
  /** Everything that must not happen, in words. */
  readonly faults: string[] = [];
  private readonly gateway: KillGateway;
  private readonly remote: KillRemote;
  private readonly random: () => number;
  private forgetful = true;
  private readonly loads: KillClient[];
  private readonly shares: KillClient[];
  private readonly keepers: KillClient[];
  private readonly members: KillClient[];
  private readonly setters: KillClient[];
  private readonly uplink: KillClient;
  private readonly toNng: KillClient;
  private readonly away: KillClient;
  /** Numbers before this were checked by an earlier settle(). */
  private readonly checked = new Map<KillClient, number>();
  private readonly companion: Companion | null;

  constructor(gateway: KillGateway, remote: KillRemote, random: () => number, companion: Companion | null = null) {
    this.companion = companion;
    this.gateway = gateway;
    this.remote = remote;
    this.random = random;
    this.loads = [
      publisher('p1', 4, 1, 20, () => 'load/p1'),
      publisher('p2', 5, 2, 20, () => 'load/p2'),
      publisher('p3', 4, 2, 5, () => 'load/p3', { body: () => PAD }),
      publisher('p4', 5, 1, 50, () => 'load/p4'),
    ];
    this.shares = [publisher('s1', 5, 2, 10, () => 'sh/s1'), publisher('s2', 4, 1, 10, () => 'sh/s2')];
    this.setters = [
      publisher('v1', 5, 1, 10, (n) => `ret/1/${n % 5}`, { retain: true }),
      publisher('v2', 4, 2, 5, (n) => `ret/2/${n % 3}`, { retain: true, body: (n) => (n % 4 === 0 ? '' : 'v') }),
    ];
    this.uplink = publisher('u1', 5, 1, 20, () => 'up/u1');
    this.toNng = publisher('n1', 5, 1, 10, () => 'nng/n1');
    this.away = receiver('away', 5, 'load/#', 2, { receiveMaximum: 100 });
    this.keepers = [
      receiver('prompt', 5, 'load/#', 2),
      receiver('slow', 4, 'load/#', 1, { ackAfterMs: () => 5 }),
      receiver('forgetful', 5, 'load/#', 2, {
        receiveMaximum: 50,
        ackAfterMs: () => (this.forgetful && this.random() < 0.2 ? null : 0),
      }),
      this.away,
    ];
    this.members = [receiver('m1', 5, '$share/g/sh/#', 2), receiver('m2', 4, '$share/g/sh/#', 2)];
  }

  private get publishers(): KillClient[] {
    const others = this.companion?.publishers ?? [];
    return [...this.loads, ...this.shares, ...this.setters, this.uplink, this.toNng, ...others];
  }

  private get everybody(): KillClient[] {
    return [...this.publishers, ...this.keepers, ...this.members, ...(this.companion?.receivers ?? [])];
  }

  /** Lets all sessions come to be: the one that is away leaves again. */
  async begin(): Promise<void> {
    for (const client of this.everybody) client.connect(this.gateway.port);
    await this.all((client) => client.online);
    await this.companion?.begin();
    this.away.cut();
    for (const client of this.everybody) client.cut();
  }

  /** Starts work, lets `end` happen in the middle of it, and has the gateway run again afterwards. */
  async round(end: () => Promise<void> = () => this.gateway.kill()): Promise<void> {
    this.tally.rounds++;
    this.forgetful = true;
    for (const client of this.publishers) client.publish(true);
    const leftOut = this.random() < 0.5 ? this.members[Math.floor(this.random() * 2)] : null;
    for (const client of this.everybody)
      if (client !== this.away && client !== leftOut) client.connect(this.gateway.port);
    this.companion?.roundBegins(this.random);
    if (this.random() < 0.3) this.remote.cut();
    const afterMs = Math.floor(this.random() ** 2 * 500);
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await end();
    for (const client of this.everybody) client.cut();
    await this.gateway.start();
    await this.checkRetained(false);
  }

  /** Stops publishing, lets everything arrive and checks it. */
  async settle(): Promise<void> {
    this.forgetful = false;
    for (const client of this.publishers) client.publish(false);
    for (const client of this.everybody) client.connect(this.gateway.port);
    await this.all((client) => client.online);
    await this.each(this.publishers, (client) => client.settled);
    await this.companion?.settle(this);
    await this.each(this.keepers, (client) => this.loads.every((p) => this.has([client], p)));
    await this.within(
      Promise.all(this.shares.map((p) => this.members[0].until(() => this.has(this.members, p)))).catch(() => {}),
      this.members,
      () => this.shares.every((p) => this.has(this.members, p)),
    );
    await Promise.race([this.remote.until(() => this.uplinked()), this.deadline()]);
    for (const client of this.everybody) await Promise.race([client.ping(), this.deadline()]);
    for (const keeper of this.keepers) for (const p of this.loads) this.check([keeper], p, keeper.options.clientId);
    for (const p of this.shares) this.check(this.members, p, 'the shared group');
    this.checkBridge('the MQTT bridge', this.uplink, this.remote.received);
    this.checkBridge('the NNG bridge', this.toNng, await this.nngFrames());
    await this.checkRetained(true);
    for (const client of this.everybody) {
      this.tell(client);
      client.forget();
      client.cut();
    }
    this.remote.received = [];
  }

  /** Publishers of 3.1.1 connect again. */
  returnOld(): void {
    for (const client of this.publishers) {
      if (client.options.version !== 4) continue;
      client.cut();
      client.connect(this.gateway.port);
    }
  }

  // ---- what companions find

  /** Counts what a client has done since it was told of last. */
  tell(client: KillClient): void {
    this.faults.push(...client.complaints.splice(0));
    this.tally.acknowledged += client.acknowledged.size;
    this.tally.delivered += client.received.length;
    this.tally.sent += client.last - (this.checked.get(client) ?? 0);
    this.checked.set(client, client.last);
  }

  lost(texts: readonly string[]): void {
    this.tally.lost += texts.length;
    for (const text of texts) this.fault(text);
  }

  repeated(texts: readonly string[]): void {
    this.tally.duplicatesQos2 += texts.length;
    for (const text of texts) this.fault(text);
  }

  reordered(texts: readonly string[]): void {
    this.tally.outOfOrder += texts.length;
    for (const text of texts) this.fault(text);
  }

  /** Waits until `done`, looked at every few milliseconds; a fault when that takes too long. */
  async until(what: string, done: () => boolean): Promise<void> {
    const endMs = performance.now() + SETTLE_MS;
    while (!done()) {
      if (performance.now() > endMs) {
        this.fault(`not done in time: ${what}`);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  // ---- checks

  private from(p: KillClient): number {
    return (this.checked.get(p) ?? 0) + 1;
  }

  /** Whether these receivers together have all that `p` has sent. Cheap while the last one is missing. */
  private has(receivers: readonly KillClient[], p: KillClient): boolean {
    const name = p.options.clientId;
    const first = this.from(p);
    const there = new Set<number>();
    // A copy of an earlier message does not stand for one that is missing.
    for (const r of receivers) for (const m of r.received) if (m.from === name && m.n >= first) there.add(m.n);
    return there.size >= p.last - first + 1;
  }

  private check(receivers: readonly KillClient[], p: KillClient, who: string): void {
    const name = p.options.clientId;
    const exact = p.options.publishes?.qos === 2 && receivers.every((r) => r.options.subscriptions?.[0].qos === 2);
    const seen = new Map<number, number>();
    for (const r of receivers) {
      let highest = 0;
      const own = new Set<number>();
      for (const m of r.received) {
        if (m.from !== name) continue;
        seen.set(m.n, (seen.get(m.n) ?? 0) + 1);
        if (own.has(m.n)) continue;
        own.add(m.n);
        // A repeated QoS 1 publish may go to the other member of a group: only QoS 2 has one order there.
        if (m.n < highest && (receivers.length === 1 || exact)) {
          this.tally.outOfOrder++;
          this.fault(`${who}: ${name} ${m.n} came after ${highest}`);
        }
        highest = Math.max(highest, m.n);
      }
    }
    for (let n = this.from(p); n <= p.last; n++) {
      const times = seen.get(n) ?? 0;
      if (times === 0) {
        this.tally.lost++;
        this.fault(`${who}: ${name} ${n} is lost${p.acknowledged.has(n) ? ' and was acknowledged' : ''}`);
      } else if (times > 1 && exact) {
        this.tally.duplicatesQos2++;
        this.fault(`${who}: ${name} ${n} at QoS 2 came ${times} times`);
      }
    }
  }

  private uplinked(): boolean {
    const last = `${this.uplink.options.clientId} ${this.uplink.last} `;
    return this.uplink.last < this.from(this.uplink) || this.remote.received.some((text) => text.startsWith(last));
  }

  /** Lets the SP peer come: it gets what the bridge has kept, oldest first. */
  private async nngFrames(): Promise<string[]> {
    const { last } = this.toNng;
    const frames: string[] = [];
    if (last < this.from(this.toNng)) return frames;
    const peer = new RawSp(path.join(this.gateway.folder, 'nng.ipc'));
    peer.write(HELLO.sub);
    const end = this.deadline().then(() => peer.destroy());
    await Promise.race([peer.take(8), end]);
    while (!peer.ended && !frames.at(-1)?.startsWith(`n1 ${last} `)) {
      // ipc: a byte 1, the length, the body: topic, delimiter, payload.
      const head = await peer.take(9);
      if (head.length < 18) break;
      const bytes = Number(BigInt(`0x${head.slice(2)}`));
      const body = Buffer.from(await peer.take(bytes), 'hex').toString('latin1');
      frames.push(body.slice(body.indexOf(':') + 1));
    }
    peer.destroy();
    return frames;
  }

  private checkBridge(bridge: string, p: KillClient, texts: readonly string[]): void {
    const seen = new Set<number>();
    let highest = 0;
    for (const text of texts) {
      const n = Number(text.split(' ')[1]);
      if (!seen.has(n) && n < highest) {
        this.tally.outOfOrder++;
        this.fault(`${bridge}: ${n} came after ${highest}`);
      }
      seen.add(n);
      highest = Math.max(highest, n);
    }
    for (let n = this.from(p); n <= p.last; n++) {
      if (seen.has(n)) continue;
      this.tally.lost++;
      this.fault(`${bridge}: ${n} is lost${p.acknowledged.has(n) ? ' and was acknowledged' : ''}`);
    }
  }

  /** A stored value is never older than the last one that was acknowledged; `exactly`: it is the last one sent. */
  private async checkRetained(exactly: boolean): Promise<void> {
    const reader = new KillClient({
      clientId: `reader${this.tally.rounds}${exactly}`,
      version: 5,
      durable: false,
      subscriptions: [{ topicFilter: 'ret/#', qos: 0 }],
    });
    reader.connect(this.gateway.port);
    await Promise.race([reader.until(() => reader.online), this.deadline()]);
    await Promise.race([reader.ping(), this.deadline()]);
    const found = new Map(reader.received.map((m: Received) => [m.topic, m]));
    reader.cut();
    for (const [setter, topics, deletes] of [
      [this.setters[0], 5, 0],
      [this.setters[1], 3, 4],
    ] as const) {
      const { last, acknowledged } = setter;
      for (let k = 0; k < topics; k++) {
        let floor = 0;
        for (const n of acknowledged) if (n % topics === k && n > floor) floor = n;
        const latest = last - ((((last - k) % topics) + topics) % topics);
        if (exactly) floor = latest;
        if (floor <= 0) continue;
        const topic = `ret/${setter === this.setters[0] ? 1 : 2}/${k}`;
        const value = found.get(topic);
        const mayBeGone =
          deletes > 0 &&
          Array.from({ length: latest - floor + 1 }, (_, i) => floor + i).some(
            (n) => n % topics === k && n % deletes === 0,
          );
        if (value === undefined ? mayBeGone : value.n >= floor && value.n <= latest && value.retain) continue;
        this.tally.wrongRetained++;
        this.fault(`${topic} holds ${value?.n ?? 'nothing'}, acknowledged was ${floor}, sent was ${latest}`);
      }
    }
  }

  private fault(text: string): void {
    if (this.faults.length < 50) this.faults.push(text);
  }

  // ---- waiting

  private all(done: (client: KillClient) => boolean): Promise<void> {
    return this.each(this.everybody, done);
  }

  async each(clients: readonly KillClient[], done: (client: KillClient) => boolean): Promise<void> {
    for (const client of clients)
      await this.within(
        client.until(() => done(client)),
        [client],
        () => done(client),
      );
  }

  private async within(promise: Promise<unknown>, clients: readonly KillClient[], done: () => boolean): Promise<void> {
    await Promise.race([promise, this.deadline()]);
    if (!done()) this.fault(`not done in time: ${clients.map((c) => c.options.clientId).join(', ')}`);
  }

  private deadline(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, SETTLE_MS).unref());
  }
}
