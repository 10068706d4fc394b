// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// One client and the servers of several upstreams, by topic: packets in and out of a proxy without sockets, with a clock of our own.
import { afterEach, describe, expect, it } from 'vitest';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import * as types from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import { matches } from '../../src/mqtt/topic.ts';
import { Proxies } from '../../src/proxy/proxies.ts';
import type { ProxyOptions, TopicRoutingOptions } from '../../src/proxy/proxy.ts';
import { TopicTable } from '../../src/proxy/topics/table.ts';
import { listenMemory } from '../../src/transport/memory.ts';
import type { Connection, Listener } from '../../src/transport/transport.ts';
import { type AnyPacket, decodeFrame, encodeAny, type PublishPacket } from '../harness/packets.ts';
import {
  connectPacket,
  memoryParts,
  OPEN_FILTER,
  proxyOptions,
  serverOptions,
  settled,
  upstreamOptions,
} from '../harness/proxyparts.ts';
import { Random } from '../harness/random.ts';

const RULES = [
  { filter: 'plant/+/alarm/#', upstream: 'alarms', clientId: null },
  { filter: 'plant/#', upstream: 'plant', clientId: '${clientid}-p' },
];
const PLACES: Readonly<Record<string, string>> = { main: '10.0.0.1:1', alarms: '10.0.0.2:1', plant: '10.0.0.3:1' };

let running: Proxies | null = null;
afterEach(async () => {
  await running?.stop(0);
  running = null;
});

/** One end of a conversation: what came, decoded; what is sent, encoded. */
class Talker {
  readonly got: AnyPacket[] = [];
  closed = false;
  version: types.Version = 4;
  readonly connection: Connection;
  private bytes: Buffer = Buffer.alloc(0);
  private readonly from: 'client' | 'server';

  constructor(connection: Connection, from: 'client' | 'server', version: types.Version = 4) {
    this.connection = connection;
    this.from = from;
    this.version = version;
    connection.onData((chunk) => this.take(chunk));
    connection.onClose(() => {
      this.closed = true;
    });
  }

  send(...packets: AnyPacket[]): void {
    this.connection.write(Buffer.concat(packets.map((packet) => encodeAny(this.version, packet))), () => {});
  }

  /** What came since the last call, as short texts. */
  news(): string[] {
    return this.got.splice(0).map(short);
  }

  private take(chunk: Buffer): void {
    this.bytes = Buffer.concat([this.bytes, chunk]);
    const frame = newFrame();
    while (readFrame(this.bytes, 0, this.bytes.length, frame, 1 << 28) === 1) {
      const packet = decodeFrame(this.version, this.bytes, frame, this.from);
      if (packet.type === types.CONNECT) this.version = packet.version;
      this.got.push(packet);
      this.bytes = this.bytes.subarray(frame.end);
    }
  }
}

function short(packet: AnyPacket): string {
  switch (packet.type) {
    case types.CONNECT:
      return `CONNECT ${packet.clientId}${packet.cleanStart ? '' : ' resume'}${packet.will === null ? '' : ' will'}`;
    case types.CONNACK:
      return `CONNACK ${packet.sessionPresent ? 'present ' : ''}${packet.reasonCode}`;
    case types.PUBLISH:
      return `PUBLISH ${packet.topic} q${packet.qos} ${packet.packetId}${packet.dup ? ' dup' : ''}`;
    case types.SUBSCRIBE:
      return `SUBSCRIBE ${packet.packetId} ${packet.subscriptions.map((one) => one.topicFilter).join(' ')}`;
    case types.UNSUBSCRIBE:
      return `UNSUBSCRIBE ${packet.packetId} ${packet.topicFilters.join(' ')}`;
    case types.SUBACK:
      return `SUBACK ${packet.packetId} ${packet.reasonCodes.join(' ')}`;
    case types.UNSUBACK:
      return `UNSUBACK ${packet.packetId} ${packet.reasonCodes.join(' ')}`.trim();
    case types.PUBACK:
    case types.PUBREC:
    case types.PUBREL:
    case types.PUBCOMP:
      return `${['PUBACK', 'PUBREC', 'PUBREL', 'PUBCOMP'][packet.type - 4]} ${packet.packetId} ${packet.reasonCode}`;
    case types.DISCONNECT:
      return `DISCONNECT ${packet.reasonCode}`;
    default:
      return ['PINGREQ', 'PINGRESP'][packet.type - 12] ?? 'AUTH';
  }
}

const connack = (sessionPresent = false, properties: Properties | null = null, reasonCode = 0): AnyPacket => ({
  type: types.CONNACK,
  sessionPresent,
  reasonCode,
  properties,
});
const publish = (topic: string, qos: types.Qos = 0, packetId = 0, more: Partial<PublishPacket> = {}): AnyPacket => ({
  type: types.PUBLISH,
  topic,
  payload: Buffer.from('x'),
  qos,
  retain: false,
  dup: false,
  packetId,
  properties: null,
  ...more,
});
const subscribe = (packetId: number, ...filters: string[]): AnyPacket => ({
  type: types.SUBSCRIBE,
  packetId,
  subscriptions: filters.map((topicFilter) => ({
    topicFilter,
    qos: 2,
    noLocal: false,
    retainAsPublished: false,
    retainHandling: 0,
  })),
  properties: null,
});
const suback = (packetId: number, ...reasonCodes: number[]): AnyPacket => ({
  type: types.SUBACK,
  packetId,
  reasonCodes,
  properties: null,
});
type AckType = typeof types.PUBACK | typeof types.PUBREC | typeof types.PUBREL | typeof types.PUBCOMP;
const ack = (type: AckType, packetId: number, reasonCode = 0): AnyPacket => ({
  type,
  packetId,
  reasonCode,
  properties: null,
});
const DISCONNECT: AnyPacket = { type: types.DISCONNECT, reasonCode: 0, properties: null };

interface Stage {
  readonly servers: Map<string, Talker[]>;
  /** The last connection to an upstream. */
  at(upstream: string): Talker;
  dial(fields?: Partial<types.ConnectPacket>, bytes?: Buffer): Promise<Talker>;
  /** A client that is in; answers of the servers that are asked at once are given. */
  enter(fields?: Partial<types.ConnectPacket>, present?: boolean): Promise<Talker>;
  away(upstream: string): Promise<void>;
  back(upstream: string): Promise<void>;
  advance(ms: number): Promise<void>;
  value(name: string): number | undefined;
}

async function stage(routing: Partial<TopicRoutingOptions> = {}, fields: Partial<ProxyOptions> = {}): Promise<Stage> {
  const memory = memoryParts();
  const topicRouting = { ...proxyOptions().topicRouting, ...routing };
  const options = proxyOptions({ default: 'main', topics: RULES, topicRouting, ...fields });
  const upstreams = Object.entries(PLACES).map(([name, addr]) => upstreamOptions(name, [serverOptions(addr)]));
  const proxies = new Proxies(memory.parts, { proxies: [options], upstreams });
  running = proxies;
  await proxies.start();
  const servers = new Map<string, Talker[]>();
  const listeners = new Map<string, Listener>();
  const back = async (upstream: string): Promise<void> => {
    const list = servers.get(upstream) ?? [];
    servers.set(upstream, list);
    const listener = listenMemory({
      network: memory.network,
      name: PLACES[upstream],
      accept: (connection) => list.push(new Talker(connection, 'client')),
      reject: () => {},
      maxConnections: 0,
      handshakeTimeoutMs: 1000,
      proxyProtocol: false,
    });
    await listener.start();
    listeners.set(upstream, listener);
  };
  for (const upstream of Object.keys(PLACES)) await back(upstream);
  const at = (upstream: string): Talker => {
    const last = servers.get(upstream)?.at(-1);
    if (last === undefined) throw new Error(`nobody has come to ${upstream}`);
    return last;
  };
  const dial = async (connectFields: Partial<types.ConnectPacket> = {}, bytes?: Buffer): Promise<Talker> => {
    const packet = connectPacket(connectFields);
    const client = new Talker(await memory.network.dial('proxy:1'), 'server', packet.version);
    if (bytes === undefined) client.send(packet);
    else client.connection.write(bytes, () => {});
    await settled();
    return client;
  };
  return {
    servers,
    at,
    dial,
    enter: async (connectFields = {}, present = false) => {
      const before = new Map([...servers].map(([name, list]) => [name, list.length]));
      const client = await dial(connectFields);
      for (const [name, list] of servers) for (const one of list.slice(before.get(name))) one.send(connack(present));
      await settled();
      client.got.length = 0;
      for (const list of servers.values()) for (const one of list) one.got.length = 0;
      return client;
    },
    away: async (upstream) => {
      await listeners.get(upstream)?.stop();
      for (const one of servers.get(upstream) ?? []) one.connection.destroy();
      await settled();
    },
    back,
    advance: async (ms) => {
      await memory.clock.advanceAsync(ms);
      await settled();
    },
    value: (name) => memory.metrics.value(`tidegate_proxy_${name}`, { proxy: 'p' }),
  };
}

describe('a table of topics', () => {
  const table = new TopicTable([...RULES, { filter: '$SYS/x/#', upstream: 'sys', clientId: null }], 'main');
  const names = (list: readonly number[]): string[] => list.map((index) => table.upstreams[index]);

  it.each([
    ['plant/1/alarm/high', 'alarms'],
    ['plant/1/alarm', 'alarms'],
    ['plant/1/temp', 'plant'],
    ['other', 'main'],
    ['$SYS/x/y', 'sys'],
    ['$SYS/y', 'main'],
  ])('gives %s to %s', (topic, upstream) => {
    expect(table.upstreams[table.owner(Buffer.from(topic))]).toBe(upstream);
  });

  it.each([
    ['#', ['alarms', 'plant', 'main']],
    ['plant/#', ['alarms', 'plant']],
    ['plant/1/alarm/+', ['alarms']],
    ['plant/1/temp', ['plant']],
    ['plant/+/temp', ['plant']],
    ['+/1/alarm/x', ['alarms', 'plant', 'main']],
    ['other/#', ['main']],
    ['$SYS/#', ['sys', 'main']],
    ['$share/g/plant/1/alarm/x', ['alarms']],
    ['$share/g/#', ['alarms', 'plant', 'main']],
  ])('asks for %s at %j', (filter, upstreams) => {
    expect(names(table.reach(filter))).toEqual(upstreams);
  });
});

describe('owners of topics', () => {
  it('are those of the rules for more topics than are remembered, whichever comes again, and for long ones', () => {
    const table = new TopicTable(RULES, 'main');
    const random = new Random(5);
    const expected = (topic: string): string => RULES.find(({ filter }) => matches(filter, topic))?.upstream ?? 'main';
    for (let i = 0; i < 20_000; i++) {
      const tail = random.below(20) === 0 ? 'x'.repeat(255 + random.below(3)) : String(random.below(7000));
      const topic = random.pick([`plant/${tail}/alarm/x`, `plant/${tail}`, `other/${tail}`]);
      const padded = Buffer.from(`##${topic}##`);
      const owner = table.upstreams[table.owner(padded, 2, padded.length - 2)];
      if (owner !== expected(topic)) expect(`${topic}: ${owner}`).toBe(expected(topic));
    }
  });
});

describe('a client of a proxy with topics', () => {
  it('is closed without CONNACK where the server closes in the place of one, and told where none is reached', async () => {
    const { away, dial, at, servers } = await stage({}, { reject: 'connack' });
    const client = await dial({ clientId: 'dev' });
    at('main').connection.destroy();
    await settled();
    expect([client.news(), client.closed]).toEqual([[], true]);
    servers.get('main')?.splice(0);
    await away('main');
    const other = await dial({ clientId: 'dev' });
    expect(other.news()).toEqual(['CONNACK 3']);
  });

  it('has one session until it needs another', async () => {
    const { dial, at, servers } = await stage();
    const client = await dial({ clientId: 'dev' });
    expect(at('main').news()).toEqual(['CONNECT dev']);
    at('main').send(connack());
    await settled();
    expect(client.news()).toEqual(['CONNACK 0']);
    expect([servers.get('alarms')?.length, servers.get('plant')?.length]).toEqual([0, 0]);
  });

  it('publishes to the server of each topic, in the order of each', async () => {
    const { enter, at } = await stage();
    const client = await enter({ clientId: 'dev' });
    client.send(publish('plant/1/temp'), publish('other'), publish('plant/1/alarm/a'), publish('plant/2/temp', 1, 7));
    await settled();
    expect(at('main').news()).toEqual(['PUBLISH other q0 0']);
    expect(at('plant').news()).toEqual(['CONNECT dev-p']);
    at('plant').send(connack());
    at('alarms').send(connack());
    await settled();
    client.send(publish('plant/3/temp'));
    await settled();
    expect(at('plant').news()).toEqual([
      'PUBLISH plant/1/temp q0 0',
      'PUBLISH plant/2/temp q1 7',
      'PUBLISH plant/3/temp q0 0',
    ]);
    expect(at('alarms').news()).toEqual(['CONNECT dev', 'PUBLISH plant/1/alarm/a q0 0']);
    at('plant').send(ack(types.PUBACK, 7));
    await settled();
    expect(client.news()).toEqual(['PUBACK 7 0']);
  });

  it('that leaves at once has what it published delivered first', async () => {
    const { enter, at } = await stage();
    const client = await enter();
    client.send(publish('plant/1/temp'), DISCONNECT);
    client.connection.end();
    await settled();
    at('plant').send(connack());
    await settled();
    expect(at('plant').news()).toEqual(['CONNECT c1-p', 'PUBLISH plant/1/temp q0 0', 'DISCONNECT 0']);
  });

  it('that asks for a filter of several servers gets one answer, with the worst code of each filter', async () => {
    const { enter, at } = await stage();
    const client = await enter();
    client.send(subscribe(5, 'plant/#', 'other', 'plant/1/alarm/x'));
    await settled();
    for (const name of ['alarms', 'plant']) at(name).send(connack());
    await settled();
    expect(at('main').news()).toEqual(['SUBSCRIBE 5 other']);
    expect(at('plant').news()).toEqual(['CONNECT c1-p', 'SUBSCRIBE 5 plant/#']);
    expect(at('alarms').news()).toEqual(['CONNECT c1', 'SUBSCRIBE 5 plant/# plant/1/alarm/x']);
    at('main').send(suback(5, 2));
    at('alarms').send(suback(5, 1, 0x80));
    await settled();
    expect(client.news()).toEqual([]);
    at('plant').send(suback(5, 2));
    await settled();
    expect(client.news()).toEqual(['SUBACK 5 1 2 128']);
    client.send({ type: types.UNSUBSCRIBE, packetId: 6, topicFilters: ['plant/#'], properties: null });
    await settled();
    for (const name of ['alarms', 'plant']) {
      expect(at(name).news()).toEqual(['UNSUBSCRIBE 6 plant/#']);
      at(name).send({ type: types.UNSUBACK, packetId: 6, reasonCodes: [], properties: null });
    }
    await settled();
    expect(client.news()).toEqual(['UNSUBACK 6']);
  });

  it('gets a message once, from the server that its topic belongs to', async () => {
    const { enter, at, value } = await stage();
    const client = await enter({ cleanStart: false });
    at('main').send(publish('plant/1/temp', 1, 9), publish('other', 1, 10));
    at('plant').send(publish('plant/1/temp', 1, 9));
    await settled();
    expect(client.news()).toEqual(['PUBLISH other q1 10', 'PUBLISH plant/1/temp q1 9']);
    expect(at('main').news()).toEqual(['PUBACK 9 0']);
    expect(value('topic_foreign_total')).toBe(1);
  });

  it('gets messages of several servers under identifiers of its own, QoS 2 end to end with each', async () => {
    const { enter, at } = await stage();
    const client = await enter({ cleanStart: false });
    at('main').send(publish('other', 2, 1));
    at('plant').send(publish('plant/1/t', 2, 1));
    at('alarms').send(publish('plant/1/alarm/t', 1, 1));
    await settled();
    expect(client.news()).toEqual([
      'PUBLISH other q2 1',
      'PUBLISH plant/1/t q2 65535',
      'PUBLISH plant/1/alarm/t q1 65534',
    ]);
    client.send(ack(types.PUBACK, 65_534), ack(types.PUBREC, 65_535), ack(types.PUBREC, 1));
    await settled();
    expect(at('alarms').news()).toEqual(['PUBACK 1 0']);
    expect([at('main').news(), at('plant').news()]).toEqual([['PUBREC 1 0'], ['PUBREC 1 0']]);
    at('plant').send(ack(types.PUBREL, 1));
    await settled();
    expect(client.news()).toEqual(['PUBREL 65535 0']);
    client.send(ack(types.PUBCOMP, 65_535));
    await settled();
    expect(at('plant').news()).toEqual(['PUBCOMP 1 0']);
    expect(at('main').news()).toEqual([]);
  });

  it('that comes back finds its QoS 2 messages under the identifiers it knows', async () => {
    const { enter, at } = await stage();
    const client = await enter({ cleanStart: false });
    at('main').send(publish('other', 2, 1));
    at('plant').send(publish('plant/1/t', 2, 1));
    await settled();
    client.connection.destroy();
    await settled();
    const again = await enter({ cleanStart: false }, true);
    at('plant').send(publish('plant/1/t', 2, 1, { dup: true }));
    await settled();
    expect(again.news()).toEqual(['PUBLISH plant/1/t q2 65535 dup']);
  });

  it('completes a QoS 2 message of an earlier connection at the server that has it', async () => {
    const { enter, at } = await stage();
    const client = await enter({ cleanStart: false }, true);
    client.send(ack(types.PUBREL, 3));
    await settled();
    for (const name of Object.keys(PLACES)) {
      expect(at(name).news()).toEqual(['PUBREL 3 0']);
      at(name).send(ack(types.PUBCOMP, 3));
    }
    await settled();
    expect(client.news()).toEqual(['PUBCOMP 3 0']);
  });

  it('completes it only when a server that is away has been asked too', async () => {
    const { dial, at, away, back, advance } = await stage({ lost: 'refuse' });
    await away('plant');
    const client = await dial({ cleanStart: false });
    for (const name of ['main', 'alarms']) at(name).send(connack(true));
    client.send(ack(types.PUBREL, 3));
    await settled();
    for (const name of ['main', 'alarms']) at(name).send(ack(types.PUBCOMP, 3));
    await settled();
    expect(client.news()).toEqual(['CONNACK present 0']);
    await back('plant');
    await advance(1000);
    at('plant').send(connack(true));
    await settled();
    expect(at('plant').news()).toEqual(['CONNECT c1-p resume', 'PUBREL 3 0']);
    at('plant').send(ack(types.PUBCOMP, 3));
    await settled();
    expect(client.news()).toEqual(['PUBCOMP 3 0']);
  });

  it('is closed when it has more under way than the Receive Maximum it was told', async () => {
    const { dial, at } = await stage();
    const client = await dial({ version: 5 });
    at('main').send(connack(false, { receiveMaximum: 2 }));
    await settled();
    client.send(publish('a', 1, 1), publish('plant/b', 2, 2), publish('c', 1, 3));
    await settled();
    expect([client.news(), client.closed]).toEqual([['CONNACK 0', 'DISCONNECT 147'], true]);
  });

  it('has Session Present only when all servers have the session, and the smallest of their limits', async () => {
    const { dial, at } = await stage();
    const client = await dial({
      version: 5,
      cleanStart: false,
      properties: { sessionExpiryInterval: 60, topicAliasMaximum: 4 },
    });
    at('main').send(connack(true, { receiveMaximum: 20, topicAliasMaximum: 3, maximumPacketSize: 5000 }));
    at('alarms').send(connack(true, { receiveMaximum: 10 }));
    await settled();
    expect(client.got).toEqual([]);
    at('plant').send(connack(false, { maximumPacketSize: 900, retainAvailable: false }));
    await settled();
    expect(client.got).toEqual([
      connack(false, { receiveMaximum: 10, topicAliasMaximum: 3, maximumPacketSize: 900, retainAvailable: false }),
    ]);
    const [connect] = at('plant').got;
    expect(connect).toMatchObject({ properties: { sessionExpiryInterval: 60, maximumPacketSize: 1_048_576 } });
    expect(connect).not.toMatchObject({ properties: { topicAliasMaximum: 4 } });
  });

  it('has its topic aliases resolved, and dropped on the way', async () => {
    const { dial, at } = await stage();
    const client = await dial({ version: 5 });
    at('main').send(connack(false, { topicAliasMaximum: 3 }));
    await settled();
    client.send(publish('plant/1/t', 0, 0, { properties: { userProperties: [['a', 'b']], topicAlias: 2 } }));
    client.send(publish('', 0, 0, { properties: { topicAlias: 2 } }));
    await settled();
    at('plant').send(connack());
    await settled();
    expect(at('plant').got.slice(1)).toEqual([
      publish('plant/1/t', 0, 0, { properties: { userProperties: [['a', 'b']] } }),
      publish('plant/1/t'),
    ]);
    client.send(publish('', 0, 0, { properties: { topicAlias: 4 } }));
    await settled();
    expect([client.news().at(-1), client.closed]).toEqual(['DISCONNECT 148', true]);
  });

  it('has its will at the upstream of its topic, and there alone', async () => {
    const { dial, at } = await stage();
    const will = {
      topicName: 'plant/1/gone',
      payload: Buffer.from('w'),
      qos: 1,
      retain: false,
      properties: null,
      delayInterval: 0,
    } as const;
    await dial({ clientId: 'dev', will: { ...will } });
    expect(at('main').news()).toEqual(['CONNECT dev']);
    expect(at('plant').news()).toEqual(['CONNECT dev-p will']);
  });

  it('is never given more at once than its Receive Maximum, whoever sends', async () => {
    const { dial, at } = await stage();
    const client = await dial({ version: 5, cleanStart: false, properties: { receiveMaximum: 2 } });
    for (const name of Object.keys(PLACES)) at(name).send(connack());
    await settled();
    client.got.length = 0;
    at('main').send(publish('a', 1, 1), publish('b', 1, 2), publish('c'));
    at('plant').send(publish('plant/x', 1, 1), publish('plant/y', 0));
    await settled();
    expect(client.news()).toEqual(['PUBLISH a q1 1', 'PUBLISH b q1 2', 'PUBLISH c q0 0']);
    client.send(ack(types.PUBACK, 1));
    await settled();
    expect(client.news()).toEqual(['PUBLISH plant/x q1 1', 'PUBLISH plant/y q0 0']);
  });

  it('keeps to the Receive Maximum of each server', async () => {
    const { dial, at } = await stage();
    const client = await dial({ version: 5 });
    at('main').send(connack());
    client.send(publish('plant/a', 1, 1), publish('plant/b', 1, 2), publish('plant/c'));
    await settled();
    at('plant').send(connack(false, { receiveMaximum: 1 }));
    await settled();
    expect(at('plant').news()).toEqual(['CONNECT c1-p', 'PUBLISH plant/a q1 1']);
    at('plant').send(ack(types.PUBACK, 1));
    await settled();
    expect(at('plant').news()).toEqual(['PUBLISH plant/b q1 2', 'PUBLISH plant/c q0 0']);
  });

  it('keeps all its servers awake, and is closed when it is silent itself', async () => {
    const { enter, at, advance } = await stage();
    const client = await enter({ cleanStart: false, keepAlive: 10 });
    await advance(8000);
    expect(at('plant').news()).toEqual(['PINGREQ']);
    at('plant').send({ type: types.PINGRESP });
    at('main').send({ type: types.PINGRESP });
    at('alarms').send({ type: types.PINGRESP });
    client.send({ type: types.PINGREQ });
    await settled();
    expect(client.news()).toEqual(['PINGRESP']);
    await advance(16_000);
    expect(client.closed).toBe(true);
  });

  it('has its filter before the topics are looked at', async () => {
    const { enter, at } = await stage({}, { filter: { ...OPEN_FILTER, prefix: 'plant/' } });
    const client = await enter();
    client.send(publish('1/alarm/a'));
    await settled();
    at('alarms').send(connack());
    await settled();
    expect(at('alarms').news()).toEqual(['CONNECT c1', 'PUBLISH plant/1/alarm/a q0 0']);
    at('alarms').send(publish('plant/1/alarm/b', 1, 4));
    await settled();
    expect(client.news()).toEqual(['PUBLISH 1/alarm/b q1 4']);
  });

  it('may not have more sessions than the limit', async () => {
    const { dial, at, servers, value } = await stage({ maxSessions: 1 });
    const client = await dial({ version: 5 });
    at('main').send(connack());
    await settled();
    client.send(publish('plant/1', 1, 4), publish('other', 1, 5));
    await settled();
    expect(client.news()).toEqual(['CONNACK 0', 'PUBACK 4 151']);
    expect(at('main').news()).toEqual(['CONNECT c1', 'PUBLISH other q1 5']);
    expect(servers.get('plant')).toEqual([]);
    expect(value('topic_refused_total')).toBe(1);
  });

  it('is closed with a packet that is larger than the limit, before it is held', async () => {
    const { enter } = await stage({ maxPacketBytes: 1000 });
    const client = await enter({ version: 5 });
    client.connection.write(Buffer.from([0x30, 0xff, 0xff, 0x03, 0]), () => {});
    await settled();
    expect([client.news(), client.closed]).toEqual([['DISCONNECT 149'], true]);
  });

  it('ends an earlier connection of the same client once it is let in', async () => {
    const { enter, dial, at } = await stage();
    const first = await enter({ version: 5 });
    await dial({ version: 5 });
    expect(first.closed).toBe(false);
    at('main').send(connack());
    await settled();
    expect([first.news(), first.closed]).toEqual([['DISCONNECT 142'], true]);
  });
});

describe('a client of 3.1', () => {
  it('whose user name is no text is refused: it could not be written again', async () => {
    const { servers, dial } = await stage();
    const bytes = Buffer.from(encodeAny(3, connectPacket({ version: 3, username: 'u~', password: null })));
    bytes[bytes.indexOf('~')] = 0xff;
    const client = await dial({}, bytes);
    expect([client.closed, servers.get('main')]).toEqual([true, []]);
  });
});

describe('a server that is lost', () => {
  it('closes the client by default', async () => {
    const { enter, away } = await stage();
    const client = await enter({ version: 5, cleanStart: false });
    await away('plant');
    expect([client.news(), client.closed]).toEqual([['DISCONNECT 139'], true]);
  });

  it('has its topics refused with lost = refuse, until it is back; the others go on', async () => {
    const { enter, away, back, at, advance, value } = await stage({ lost: 'refuse' });
    const client = await enter({ version: 5 });
    client.send(subscribe(1, 'plant/a'), publish('plant/a', 1, 2), publish('plant/a', 2, 3));
    await settled();
    at('plant').send(connack(), suback(1, 1));
    await settled();
    client.got.length = 0;
    await away('plant');
    client.send(publish('plant/b', 1, 4), subscribe(5, 'plant/c', 'other'), publish('other', 1, 6));
    await settled();
    expect(client.news()).toEqual(['PUBACK 2 128', 'PUBREC 3 128', 'PUBACK 4 128']);
    expect(at('main').news()).toEqual(['SUBSCRIBE 5 other', 'PUBLISH other q1 6']);
    at('main').send(suback(5, 2));
    await settled();
    expect(client.news()).toEqual(['SUBACK 5 128 2']);
    expect(value('topic_sessions_lost_total')).toBe(1);
    await back('plant');
    await advance(1000);
    at('plant').send(connack());
    await settled();
    expect(at('plant').news()).toEqual(['CONNECT c1-p', 'SUBSCRIBE 65535 plant/a']);
    at('plant').send(suback(65_535, 2), publish('plant/a', 0));
    client.send(publish('plant/b', 1, 8));
    await settled();
    expect(client.news()).toEqual(['PUBLISH plant/a q0 0']);
    expect(at('plant').news()).toEqual(['PUBLISH plant/b q1 8']);
  });

  it('closes a client before 5.0 whose message would be refused', async () => {
    const { enter, away, at } = await stage({ lost: 'refuse' });
    const client = await enter();
    client.send(publish('plant/a'));
    await settled();
    at('plant').send(connack());
    await settled();
    await away('plant');
    client.send(publish('plant/a'));
    await settled();
    expect(client.closed).toBe(false);
    client.send(publish('plant/a', 1, 1));
    await settled();
    expect(client.closed).toBe(true);
  });

  it('has its topics wait with lost = wait, and gets what it has not acknowledged again', async () => {
    const { enter, away, back, at, advance } = await stage({ lost: 'wait' });
    const client = await enter({ cleanStart: false });
    client.send(publish('plant/a', 1, 1), publish('plant/a', 2, 2), publish('plant/a', 2, 3));
    await settled();
    at('plant').send(ack(types.PUBREC, 3));
    await settled();
    client.send(ack(types.PUBREL, 3));
    await settled();
    await away('plant');
    client.send(publish('plant/b', 1, 4), publish('other', 1, 5));
    await settled();
    expect(at('main').news()).toEqual(['PUBLISH other q1 5']);
    await back('plant');
    await advance(1000);
    at('plant').send(connack(true));
    await settled();
    expect(at('plant').news()).toEqual([
      'CONNECT c1-p resume',
      'PUBLISH plant/a q1 1 dup',
      'PUBLISH plant/a q2 2 dup',
      'PUBREL 3 0',
      'PUBLISH plant/b q1 4',
    ]);
    expect(client.closed).toBe(false);
  });

  it('closes the client when it comes back without the session that the client relies on', async () => {
    const { enter, away, back, at, advance } = await stage({ lost: 'wait' });
    const client = await enter({ cleanStart: false });
    await away('plant');
    await back('plant');
    await advance(1000);
    expect(client.closed).toBe(false);
    at('plant').send(connack(false));
    await settled();
    expect(client.closed).toBe(true);
  });

  it('that takes a client and drops it, over and over, closes the client', async () => {
    const { enter, at, advance } = await stage({ lost: 'wait' });
    const client = await enter({ cleanStart: false }, true);
    for (let round = 0; round < 3; round++) {
      at('plant').connection.destroy();
      await settled();
      expect(client.closed).toBe(round === 2);
      await advance(2000);
      if (round < 2) at('plant').send(connack(true));
      await settled();
    }
  });

  it('is held against nobody at first: a client is let in, and closed if the server turns out to have no session', async () => {
    const { dial, away, back, at, advance, servers } = await stage({ lost: 'wait' });
    await away('plant');
    const client = await dial({ cleanStart: false });
    for (const name of ['main', 'alarms']) at(name).send(connack(true));
    await settled();
    expect(client.news()).toEqual(['CONNACK present 0']);
    await back('plant');
    await advance(1000);
    at('plant').send(connack(true), publish('plant/kept', 1, 3));
    await settled();
    expect(client.news()).toEqual(['PUBLISH plant/kept q1 3']);
    await away('plant');
    const other = await dial({ clientId: 'c2', cleanStart: false });
    for (const name of ['main', 'alarms']) at(name).send(connack(true));
    await settled();
    await back('plant');
    await advance(10_000);
    for (const one of servers.get('plant')?.slice(-2) ?? []) one.send(connack(false));
    await settled();
    expect(other.closed).toBe(true);
  });

  it('keeps a client out by default, before any server has been sent its CONNECT', async () => {
    const { dial, away, servers } = await stage();
    await away('plant');
    const client = await dial({ cleanStart: false });
    expect([client.news(), client.closed]).toEqual([[], true]);
    expect([servers.get('main'), servers.get('alarms')].map((list) => list?.at(-1)?.news())).toEqual([[], []]);
  });

  it('counts what waited for it when the client leaves', async () => {
    const { enter, away, value } = await stage({ lost: 'wait' });
    const client = await enter({ cleanStart: false });
    await away('plant');
    client.send(publish('plant/a'), publish('plant/b', 1, 1), DISCONNECT);
    await settled();
    expect([client.closed, value('topic_refused_total')]).toEqual([true, 2]);
  });

  it('takes no more of waiting messages than the limit of bytes', async () => {
    const { enter, away, at } = await stage({ lost: 'wait', maxPacketBytes: 300, maxHeldBytes: 300 });
    const client = await enter({ version: 5 });
    client.send(publish('plant/a'));
    await settled();
    at('plant').send(connack());
    await settled();
    await away('plant');
    const payload = Buffer.alloc(200);
    client.send(publish('plant/a', 1, 1, { payload }), publish('plant/a', 1, 2, { payload }));
    await settled();
    expect(client.news()).toEqual(['PUBACK 2 151']);
  });
});
