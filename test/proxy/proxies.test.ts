// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Clients through a proxy, from their first byte to their line in the metrics, on connections without sockets and with a clock of our own.
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayError } from '../../src/base/errors.ts';
import { encodeConnack } from '../../src/codec/connect.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { CONNACK } from '../../src/mqtt/packet.ts';
import { Proxies } from '../../src/proxy/proxies.ts';
import type { ProxyOptions, UpstreamOptions } from '../../src/proxy/proxy.ts';
import type { Connection } from '../../src/transport/transport.ts';
import { Catch } from '../contract/transport.ts';
import {
  connectBytes,
  memoryParts,
  memoryServer,
  OPEN_FILTER,
  proxyOptions,
  serverOptions,
  settled,
  upstreamOptions,
} from '../harness/proxyparts.ts';

const A = serverOptions('10.0.0.1:1');
const B = serverOptions('10.0.0.2:1');
let running: Proxies | null = null;
afterEach(async () => {
  await running?.stop(0);
  running = null;
});

async function proxy(fields: Partial<ProxyOptions> = {}, pools: UpstreamOptions[] = [upstreamOptions('pool', [A, B])]) {
  const memory = memoryParts({ PW: 's3' });
  const options = { proxies: [proxyOptions(fields)], upstreams: pools };
  const proxies = new Proxies(memory.parts, options);
  running = proxies;
  await proxies.start();
  const dial = async (): Promise<Catch> => new Catch(await memory.network.dial('proxy:1'), true);
  const send = async (bytes: Buffer): Promise<Catch> => {
    const client = await dial();
    client.connection.write(bytes, () => {});
    await settled();
    return client;
  };
  const value = (name: string, labels: Record<string, string> = {}): number | undefined =>
    memory.metrics.value(`tidegate_proxy_${name}`, { proxy: 'p', ...labels });
  return { ...memory, proxies, options, dial, send, value };
}

const read = (connections: Connection[], at = 0): Catch => new Catch(connections[at], true);
const connack = (reasonCode: number, serverKeepAlive?: number): Buffer =>
  encodeConnack(5, {
    type: CONNACK,
    sessionPresent: false,
    reasonCode,
    properties: serverKeepAlive ? { serverKeepAlive } : null,
  });

describe('a client', () => {
  it('reaches a server with its CONNECT and all that came with it', async () => {
    const { send, network } = await proxy();
    const a = await memoryServer(network, A.addr);
    const bytes = Buffer.concat([connectBytes(), Buffer.from('c000', 'hex')]);
    await send(bytes);
    const server = read(a);
    await settled();
    expect(server.all.equals(bytes)).toBe(true);
  });

  it('is rewritten, again for each server that is tried', async () => {
    const set = { clientId: 'ng-${clientid}', username: 'gw', password: '${env.PW}' };
    const { send, network, dialled } = await proxy({ set });
    const b = await memoryServer(network, B.addr);
    await send(connectBytes({ clientId: 'dev' }));
    const server = read(b);
    await settled();
    expect(dialled).toEqual([A.addr, B.addr]);
    expect(server.all.equals(connectBytes({ clientId: 'ng-dev', username: 'gw', password: Buffer.from('s3') }))).toBe(
      true,
    );
  });

  it('is not tried again once a server has taken it', async () => {
    const { send, network, dialled } = await proxy();
    const a = await memoryServer(network, A.addr);
    await memoryServer(network, B.addr);
    const client = await send(connectBytes());
    a[0].end();
    await client.when(() => client.ended);
    expect(dialled).toEqual([A.addr]);
  });

  it('costs no server anything while its CONNECT is not complete', async () => {
    const { send, dialled, clock, value } = await proxy();
    const client = await send(connectBytes().subarray(0, 10));
    await clock.advanceAsync(10_000);
    await client.closed();
    expect(dialled).toEqual([]);
    expect(value('refused_total', { status: '400' })).toBe(1);
    expect(value('active')).toBe(0);
  });

  it('is told why it is refused, in its version, with reject = connack', async () => {
    const { send } = await proxy({ reject: 'connack' });
    expect((await send(connectBytes())).all.toString('hex')).toBe('20020003');
    expect((await send(connectBytes({ version: 5 }))).all.toString('hex')).toBe('2003008800');
  });

  it('gives its place back exactly once, however it ends', async () => {
    const limitConn = { perIp: 0, perClientId: 1, perUsername: 1 };
    const { send, network, proxies } = await proxy({ limitConn, reject: 'connack' });
    const a = await memoryServer(network, A.addr);
    const first = await send(connectBytes({ clientId: 'x', username: 'u' }));
    read(a);
    expect((await send(connectBytes({ clientId: 'x' }))).all.toString('hex')).toBe('20020003');
    expect((await send(connectBytes({ clientId: 'y', username: 'u' }))).all.toString('hex')).toBe('20020003');
    first.connection.destroy(true);
    await settled();
    await send(connectBytes({ clientId: 'x', username: 'u' }));
    expect(proxies.upstreams()[0].servers.map((s) => s.connections)).toEqual([1, 0]);
    expect(a).toHaveLength(2);
  });

  it('that comes too often is refused by its address and by its id, for as long as the ban lasts', async () => {
    const rate = { connectsPerSecond: 0, perIpPerSecond: 0, perClientIdPerSecond: 0, burst: 2, banMs: 60_000 };
    const often = 'too many connects of this address';
    const byAddress = await proxy({ limitRate: { ...rate, perIpPerSecond: 1 } });
    await memoryServer(byAddress.network, A.addr);
    await memoryServer(byAddress.network, B.addr);
    const came = async (): Promise<boolean> => {
      const before = byAddress.dialled.length;
      await byAddress.send(connectBytes());
      return byAddress.dialled.length > before;
    };
    expect([await came(), await came(), await came()]).toEqual([true, true, false]);
    byAddress.clock.advance(59_999);
    expect(await came()).toBe(false);
    byAddress.clock.advance(1);
    expect(await came()).toBe(true);
    expect(byAddress.logged.filter(({ fields }) => fields?.reason === often)).toHaveLength(2);
    await byAddress.proxies.stop(0);
    const byId = await proxy({ limitRate: { ...rate, perClientIdPerSecond: 1 }, reject: 'connack' });
    await memoryServer(byId.network, A.addr);
    await memoryServer(byId.network, B.addr);
    const answer = async (clientId: string): Promise<string> =>
      (await byId.send(connectBytes({ clientId, version: 5 }))).all.toString('hex');
    expect([await answer('x'), await answer('x'), await answer('x'), await answer('y')]).toEqual([
      '',
      '',
      '2003009f00',
      '',
    ]);
  });

  it('that is not allowed is refused before a server is asked', async () => {
    const deny = [[{ field: 'clientid', op: '==', value: 'bad', pattern: null }]] as const;
    const { send, dialled, value } = await proxy({ deny, reject: 'connack' });
    expect((await send(connectBytes({ clientId: 'bad', version: 5 }))).all.toString('hex')).toBe('2003008700');
    expect(dialled).toEqual([]);
    expect(value('refused_total', { status: '403' })).toBe(1);
  });

  it('waits connect_timeout for a server, then asks the next one', async () => {
    const memory = memoryParts();
    const b = await memoryServer(memory.network, B.addr);
    const waits: number[] = [];
    const dial: typeof memory.parts.transports.dial = (target, options) => {
      waits.push(options.timeoutMs);
      if (waits.length > 1) return memory.parts.transports.dial(target, options);
      return new Promise((_, reject) => memory.clock.after(options.timeoutMs, () => reject(new Error('no answer'))));
    };
    const parts = { ...memory.parts, transports: { ...memory.parts.transports, dial } };
    const pools = [upstreamOptions('pool', [A, B])];
    running = new Proxies(parts, { proxies: [proxyOptions({ connectTimeoutMs: 700 })], upstreams: pools });
    await running.start();
    const client = new Catch(await memory.network.dial('proxy:1'), true);
    client.connection.write(connectBytes(), () => {});
    await settled();
    expect(b).toHaveLength(0);
    await memory.clock.advanceAsync(700);
    await settled();
    expect([waits, b.length]).toEqual([[700, 700], 1]);
  });

  it('is refused while file descriptors are short, without blaming the server or asking the next one', async () => {
    const memory = memoryParts();
    const a = await memoryServer(memory.network, A.addr);
    let short = true;
    let dials = 0;
    const dial: typeof memory.parts.transports.dial = (target, options) => {
      dials++;
      if (!short) return memory.parts.transports.dial(target, options);
      return Promise.reject(new GatewayError('TRANSPORT-DIAL', 'no more', { code: 'EMFILE' }));
    };
    const parts = { ...memory.parts, transports: { ...memory.parts.transports, dial } };
    const options = { proxies: [proxyOptions({ reject: 'connack' })], upstreams: [upstreamOptions('pool', [A, B])] };
    running = new Proxies(parts, options);
    await running.start();
    const send = async (): Promise<Catch> => {
      const client = new Catch(await memory.network.dial('proxy:1'), true);
      client.connection.write(connectBytes(), () => {});
      await settled();
      return client;
    };
    expect([(await send()).all.toString('hex'), dials]).toEqual(['20020003', 1]);
    expect(memory.metrics.value('tidegate_proxy_refused_total', { proxy: 'p', status: '503' })).toBe(1);
    expect(running.upstreams()[0].servers.map(({ state, fails, connections }) => [state, fails, connections])).toEqual([
      ['up', 0, 0],
      ['up', 0, 0],
    ]);
    short = false;
    await memoryServer(memory.network, B.addr);
    await send();
    await send();
    expect(a).toHaveLength(1);
  });

  it('is one of a thousand at once, each routed by its id, and none leaves anything behind', async () => {
    const lab = upstreamOptions('lab', [B]);
    const routes = [
      {
        match: [{ field: 'clientid', op: '==', value: 'dev-7', pattern: null }],
        upstream: 'lab',
        split: [],
      },
    ] as const;
    const { send, network, proxies, value } = await proxy({ routes }, [upstreamOptions('pool', [A]), lab]);
    const [a, b] = [await memoryServer(network, A.addr), await memoryServer(network, B.addr)];
    const clients = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => send(connectBytes({ clientId: `dev-${i}` }))),
    );
    expect([a.length, b.length, value('active')]).toEqual([999, 1, 1000]);
    for (const server of [...a, ...b]) new Catch(server, true);
    for (const client of clients) client.connection.destroy(true);
    await settled();
    expect(value('active')).toBe(0);
    expect(proxies.upstreams().map(({ servers }) => servers[0].connections)).toEqual([0, 0]);
  });

  it('tries no more servers than next_upstream allows', async () => {
    const { send, dialled } = await proxy({ nextUpstream: { tries: 1, timeoutMs: 0 } });
    await send(connectBytes());
    expect(dialled).toEqual([A.addr]);
  });

  it('goes to the built-in broker with its CONNECT in front', async () => {
    const { send, local, value } = await proxy({
      default: 'local',
      set: { clientId: 'n-${clientid}', username: undefined, password: undefined },
    });
    const client = await send(Buffer.concat([connectBytes({ clientId: 'a' }), Buffer.from('c000', 'hex')]));
    const broker = new Catch(local[0]);
    await settled();
    expect(broker.all.toString('hex')).toBe(`${connectBytes({ clientId: 'n-a' }).toString('hex')}c000`);
    local[0].write(Buffer.from('20020000', 'hex'), () => {});
    await client.when(() => client.bytes === 4);
    client.connection.destroy();
    await settled();
    expect(value('active')).toBe(0);
  });
});

describe('max_connections', () => {
  it.each([
    [40, []],
    [60, [{ wanted: 120, limit: 100 }]],
  ])('of %i with 100 descriptors is warned of when it cannot be reached', async (maxConnections, warnings) => {
    const memory = memoryParts();
    const told: unknown[] = [];
    const parts: typeof memory.parts = {
      ...memory.parts,
      log: (_level, id, fields) => id === 'PXY-LIMIT' && told.push(fields),
      transports: { ...memory.parts.transports, descriptorLimit: 100 },
    };
    const pools = [upstreamOptions('pool', [A])];
    running = new Proxies(parts, { proxies: [proxyOptions({ maxConnections })], upstreams: pools });
    await running.start();
    expect(told).toEqual(warnings);
  });
});

describe('a session', () => {
  it('ends after one and a half keep alives and 10 s of silence', async () => {
    const { send, network, clock } = await proxy();
    const a = await memoryServer(network, A.addr);
    const client = await send(connectBytes({ keepAlive: 10 }));
    read(a);
    await clock.advanceAsync(20_000);
    client.connection.write(Buffer.from('c000', 'hex'), () => {});
    await settled();
    await clock.advanceAsync(20_000);
    expect(client.ended).toBe(false);
    await clock.advanceAsync(6000);
    await client.when(() => client.ended);
  });

  it('heeds the Server Keep Alive, and ends never without keep alive [MQTT-3.2.2-21]', async () => {
    const { send, network, clock } = await proxy();
    const a = await memoryServer(network, A.addr);
    const b = await memoryServer(network, B.addr);
    const told = await send(connectBytes({ version: 5, keepAlive: 1000 }));
    const silent = await send(connectBytes({ keepAlive: 0 }));
    a[0].write(connack(0, 2), () => {});
    read(b);
    await settled();
    await clock.advanceAsync(14_000);
    await told.when(() => told.ended);
    await clock.advanceAsync(10_000_000);
    expect(silent.ended).toBe(false);
  });

  it('gives the client the id that was made for it [MQTT-3.2.2.3.7]', async () => {
    const { send, network, value } = await proxy({
      set: { clientId: 'edge', username: undefined, password: undefined },
    });
    const a = await memoryServer(network, A.addr);
    const client = await send(connectBytes({ version: 5, clientId: '' }));
    a[0].write(connack(0), () => {});
    await client.when(() => client.bytes > 0);
    expect(client.all.toString('hex')).toBe(`200a000007120004${Buffer.from('edge').toString('hex')}`);
    expect(value('connack_total', { code: '0' })).toBe(1);
  });

  it('that ended on one side does not wait for ever for the other to take the rest', async () => {
    const { send, network, clock, value } = await proxy();
    const a = await memoryServer(network, A.addr);
    const client = await send(connectBytes({ keepAlive: 0 }));
    client.connection.destroy(true);
    await settled();
    expect(value('active')).toBe(1);
    await clock.advanceAsync(31_000);
    expect([value('active'), a.length]).toEqual([0, 1]);
  });

  it('stays with its server and rules over a reload', async () => {
    const { send, network, proxies, options } = await proxy();
    const a = await memoryServer(network, A.addr);
    const c = await memoryServer(network, '10.0.0.3:1');
    const client = await send(connectBytes({ clientId: 'old' }));
    const old = read(a);
    await proxies.apply({ ...options, upstreams: [upstreamOptions('pool', [serverOptions('10.0.0.3:1')])] });
    client.connection.write(Buffer.from('c000', 'hex'), () => {});
    await settled();
    expect(old.all.subarray(-2).toString('hex')).toBe('c000');
    await send(connectBytes({ clientId: 'new' }));
    expect([a.length, c.length]).toEqual([1, 1]);
  });

  it('stays connected over a reload that removes its proxy, until it leaves; nobody else is taken', async () => {
    const { send, dial, network, proxies, options, value } = await proxy();
    const a = await memoryServer(network, A.addr);
    const client = await send(connectBytes({ clientId: 'old' }));
    const server = read(a);
    await proxies.apply({ proxies: [], upstreams: options.upstreams });
    client.connection.write(Buffer.from('c000', 'hex'), () => {});
    a[0].write(connack(0), () => {});
    await client.when(() => client.bytes > 0);
    await server.when(() => server.all.subarray(-2).toString('hex') === 'c000');
    expect(client.ended).toBe(false);
    await expect(dial()).rejects.toThrow();
    expect(value('active')).toBe(1);
    client.connection.destroy();
    await server.when(() => server.ended);
    await settled();
    expect(value('active')).toBeUndefined();
  });

  it('of a proxy that was removed ends when everything stops', async () => {
    const { send, network, proxies, options } = await proxy();
    await memoryServer(network, A.addr);
    const client = await send(connectBytes());
    await proxies.apply({ proxies: [], upstreams: options.upstreams });
    running = null;
    await proxies.stop(1000);
    await client.when(() => client.ended);
  });

  it('ends when the proxy stops', async () => {
    const { send, network, proxies } = await proxy();
    const a = await memoryServer(network, A.addr);
    const client = await send(connectBytes());
    const server = read(a);
    running = null;
    await proxies.stop(1000);
    await client.when(() => client.ended);
    await server.when(() => server.ended);
  });
});

describe('inspection', () => {
  const filter = { ...OPEN_FILTER, prefix: '${username}/', publish: { allow: [], deny: ['no/#'] } };
  const publish = (topic: string, qos: 0 | 1 = 0): Buffer =>
    encodePublish(5, {
      topic,
      payload: Buffer.from('x'),
      qos,
      retain: false,
      dup: false,
      packetId: qos === 0 ? 0 : 3,
      properties: null,
    });

  it.each(['pool', 'local'])('holds on the way to %s, for what came with CONNECT too', async (target) => {
    const { send, network, local } = await proxy({ filter, default: target });
    const a = await memoryServer(network, A.addr);
    const connect = connectBytes({ version: 5, username: 'ann' });
    const client = await send(Buffer.concat([connect, publish('t'), publish('no/t', 1)]));
    const server = target === 'local' ? new Catch(local[0]) : read(a);
    await settled();
    expect(server.all.toString('hex')).toBe(connect.toString('hex'));
    server.connection.write(Buffer.concat([connack(0), publish('ann/t'), publish('bob/t')]), () => {});
    await settled();
    expect(server.all.subarray(connect.length).toString('hex')).toBe(publish('ann/t').toString('hex'));
    expect(client.all.toString('hex')).toBe(`2003000000${publish('t').toString('hex')}4003000387`);
  });

  it('moves the will, and refuses one that is not allowed', async () => {
    const { send, network } = await proxy({ filter, reject: 'connack' });
    const a = await memoryServer(network, A.addr);
    const will = {
      topicName: 'w',
      payload: Buffer.from('bye'),
      qos: 1,
      retain: false,
      properties: null,
      delayInterval: 0,
    } as const;
    await send(connectBytes({ version: 5, username: 'ann', will }));
    const server = read(a);
    await settled();
    expect(
      server.all.equals(connectBytes({ version: 5, username: 'ann', will: { ...will, topicName: 'ann/w' } })),
    ).toBe(true);
    const refused = await send(connectBytes({ version: 5, username: 'ann', will: { ...will, topicName: 'no/w' } }));
    expect(refused.all.toString('hex')).toBe('2003008700');
  });

  it('refuses a client whose prefix would not be its own', async () => {
    const { send, dialled } = await proxy({ filter, reject: 'connack' });
    for (const username of [null, '', 'a/b', '#'])
      expect((await send(connectBytes({ version: 5, username }))).all.toString('hex')).toBe('2003008700');
    expect(dialled).toEqual([]);
  });

  it('ends a session that breaks the protocol, and tells why', async () => {
    const { send, network } = await proxy({ filter });
    const a = await memoryServer(network, A.addr);
    const client = await send(connectBytes({ version: 5, username: 'ann' }));
    read(a).connection.write(connack(0), () => {});
    await settled();
    client.connection.write(connectBytes({ version: 5 }), () => {});
    await client.when(() => client.ended);
    expect(client.all.toString('hex')).toBe('2003000000e00182');
  });

  it('slows a client down to its rate, and loses nothing', async () => {
    const { send, network, clock } = await proxy({ filter: { ...OPEN_FILTER, messagesPerSecond: 10 } });
    const a = await memoryServer(network, A.addr);
    const client = await send(connectBytes({ version: 5 }));
    const server = read(a);
    server.connection.write(connack(0), () => {});
    await settled();
    const size = publish('t').length;
    const start = connectBytes({ version: 5 }).length;
    for (let i = 0; i < 4; i++) {
      client.connection.write(Buffer.concat(Array(10).fill(publish('t'))), () => {});
      await settled();
    }
    const arrived = (): number => (server.bytes - start) / size;
    expect(arrived()).toBeLessThanOrEqual(20);
    await clock.advanceAsync(1000);
    await settled();
    const later = arrived();
    expect(later).toBeLessThanOrEqual(30);
    await clock.advanceAsync(10_000);
    await settled();
    expect(arrived()).toBe(40);
  });
});

describe('bytes that are no MQTT', () => {
  it.each([
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n'), 'this looks like HTTP on an MQTT port'],
    ['TLS', Buffer.from('1603010101', 'hex'), 'this looks like TLS on a plain port'],
  ])('are refused at once, with a hint in the log: %s', async (_name, bytes, hint) => {
    const { send, dialled, logged } = await proxy();
    await (await send(bytes)).closed();
    expect(dialled).toEqual([]);
    expect(logged.filter(({ id }) => id === 'CON-NOT-MQTT')).toMatchObject([{ level: 'warn', fields: { hint } }]);
  });

  it('are passed on with non_mqtt = pass, by the lists and routes that need no CONNECT', async () => {
    const { send, network } = await proxy({ nonMqtt: 'pass' });
    const a = await memoryServer(network, A.addr);
    await send(Buffer.from('GET / HTTP/1.1\r\n'));
    const server = read(a);
    await settled();
    expect(server.all.toString()).toBe('GET / HTTP/1.1\r\n');
  });
});
