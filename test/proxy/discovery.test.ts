// Pools whose servers are found while they run: from the DNS, a file, a web server, Consul. What changes arrives, what fails or is empty
// keeps the servers there are, and what is malformed is not half used.
import { describe, expect, it } from 'vitest';
import { foundServer, MAX_SERVERS, splitAddress } from '../../src/proxy/discovery/found.ts';
import { addressFacts } from '../../src/proxy/facts.ts';
import { Pool } from '../../src/proxy/pool.ts';
import type { DiscoveryOptions, DnsRecord, HttpAnswer } from '../../src/proxy/proxy.ts';
import { discoveryOptions, memoryParts, serverOptions, settled, upstreamOptions } from '../harness/proxyparts.ts';

function make(discover: Partial<DiscoveryOptions>, own: readonly string[] = []) {
  const memory = memoryParts();
  const logged: [string, unknown][] = [];
  const parts = { ...memory.parts, log: (_: string, id: string, fields?: unknown) => logged.push([id, fields]) };
  const servers = own.map((addr) => serverOptions(addr));
  const pool = new Pool(upstreamOptions('u', servers, { discover: discoveryOptions(discover) }), parts as never);
  const servers_ = () => pool.view().servers.map(({ server, weight, backup }) => [server, weight, backup]);
  return { ...memory, pool, addresses: () => servers_().map(([server]) => server), servers: servers_, logged };
}
type Made = ReturnType<typeof make>;

async function pass(made: Made, ms: number): Promise<void> {
  made.clock.advance(ms);
  await settled();
}

function page(document: unknown, headers: Record<string, string> = {}, status = 200): HttpAnswer {
  const body = Buffer.from(typeof document === 'string' ? document : JSON.stringify(document));
  return { status, headers, body };
}

const a = (address: string, ttl = 60): DnsRecord => ({ type: 'A', ttl, address });

/** Each source by itself: how its answer is set, and what the pool is made with. */
const SOURCES = [
  {
    name: 'dns',
    discover: { type: 'dns', name: 'mqtt.example' } as const,
    set: (made: Made, hosts: readonly string[]) =>
      made.records.set(
        'A mqtt.example',
        hosts.map((host) => a(host, 10)),
      ),
    fail: (made: Made) => made.records.clear(),
  },
  {
    name: 'srv',
    discover: { type: 'srv', name: '_mqtt._tcp.example' } as const,
    set: (made: Made, hosts: readonly string[]) =>
      made.records.set(
        'SRV _mqtt._tcp.example',
        hosts.map((target) => ({ type: 'SRV', ttl: 10, priority: 1, weight: 1, port: 1883, target })),
      ),
    fail: (made: Made) => made.records.clear(),
  },
  {
    name: 'file',
    discover: { type: 'file', path: '/servers.json' } as const,
    set: (made: Made, hosts: readonly string[]) => made.files.set('/servers.json', JSON.stringify(hosts)),
    fail: (made: Made) => made.files.delete('/servers.json'),
  },
  {
    name: 'http',
    discover: { type: 'http' } as const,
    set: (made: Made, hosts: readonly string[]) => {
      made.web.answer = async () => page([{ targets: hosts, labels: {} }]);
    },
    fail: (made: Made) => {
      made.web.answer = async () => page('out of order', {}, 500);
    },
  },
  {
    name: 'consul',
    discover: { type: 'consul', name: 'mqtt', url: 'http://127.0.0.1:8500' } as const,
    set: (made: Made, hosts: readonly string[]) => {
      made.web.answer = async () => page(hosts.map((Address) => ({ Service: { Address, Port: 1883 } })));
    },
    fail: (made: Made) => {
      made.web.answer = async () => page('[{', { 'x-consul-index': '4' });
    },
  },
];

describe.each(SOURCES)('servers from $name', ({ discover, set, fail }) => {
  it('are added, removed and kept when the source is empty, broken or gone, with one warning', async () => {
    const made = make(discover);
    set(made, ['10.0.0.1', '10.0.0.2']);
    await made.pool.start();
    expect(made.addresses()).toEqual(['10.0.0.1:1883', '10.0.0.2:1883']);
    set(made, ['10.0.0.2', '10.0.0.3']);
    await pass(made, 10_000);
    expect(made.addresses()).toEqual(['10.0.0.2:1883', '10.0.0.3:1883']);
    expect(made.pool.view().discovery).toMatchObject({ type: discover.type, servers: 2, error: null });

    set(made, []);
    await pass(made, 10_000);
    expect(made.addresses()).toEqual(['10.0.0.2:1883', '10.0.0.3:1883']);
    expect(made.pool.view().discovery?.error).toEqual(expect.any(String));
    fail(made);
    await pass(made, 60_000);
    await pass(made, 60_000);
    expect(made.addresses()).toEqual(['10.0.0.2:1883', '10.0.0.3:1883']);
    expect(made.logged.filter(([id]) => id === 'PXY-DISCOVERY').length).toBeLessThanOrEqual(2);

    set(made, ['10.0.0.4']);
    await pass(made, 60_000);
    expect(made.addresses()).toEqual(['10.0.0.4:1883']);
    expect(made.pool.view().discovery?.error).toBeNull();
    expect(made.logged.map(([id]) => id)).toContain('PXY-DISCOVERY-BACK');
    made.pool.stop();
  });

  it('may be a thousand; one that goes takes no new clients, and its connections are not cut', async () => {
    const made = make(discover);
    const hosts = Array.from({ length: 1000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
    set(made, hosts);
    await made.pool.start();
    expect(made.addresses()).toHaveLength(1000);
    const client = addressFacts('p', '127.0.0.1', 1);
    const peer = made.pool.select(client).next(made.clock.mono());
    expect(peer?.conns).toBe(1);
    set(
      made,
      hosts.filter((host) => host !== peer?.host),
    );
    await pass(made, 10_000);
    expect(made.addresses()).toHaveLength(999);
    expect(peer).toMatchObject({ removed: true, conns: 1 });
    made.pool.stop();
  });

  it('that do not come in time do not hold up the start', async () => {
    const made = make(discover);
    const never = new Promise<never>(() => {});
    Object.assign(made.parts.transports, { query: () => never, get: () => never });
    Object.assign(made.parts.transports.files, { stamp: () => never });
    const started = made.pool.start();
    made.clock.advance(2000);
    await started;
    expect(made.addresses()).toEqual([]);
    made.pool.stop();
  });
});

it('configured servers stay beside found ones, and one that is both is there once', async () => {
  const made = make({ type: 'file', path: '/f.json' }, ['10.0.0.1:1883']);
  made.files.set('/f.json', '["10.0.0.1:1883", "10.0.0.2:1883"]');
  await made.pool.start();
  expect(made.pool.view().servers.map(({ server, from }) => [server, from])).toEqual([
    ['10.0.0.1:1883', 'config'],
    ['10.0.0.2:1883', 'file'],
  ]);
  made.pool.stop();
});

it('a server whose weight or metadata changes keeps its connections', async () => {
  const made = make({ type: 'file', path: '/f.json' });
  made.files.set('/f.json', '{"servers": [{"addr": "10.0.0.1:1", "weight": 2, "metadata": {"zone": "a"}}]}');
  await made.pool.start();
  const peer = made.pool.select(addressFacts('p', '127.0.0.1', 1)).next(made.clock.mono());
  made.files.set(
    '/f.json',
    '{"servers": [{"addr": "10.0.0.1:1", "weight": 5, "backup": true, "metadata": {"zone": "b"}}]}',
  );
  await pass(made, 10_000);
  expect(made.pool.view().servers).toMatchObject([
    { weight: 5, backup: true, connections: 1, metadata: { zone: 'b' } },
  ]);
  expect(peer?.removed).toBe(false);
  made.pool.stop();
});

describe('SRV records', () => {
  it('give port and weight; higher priorities are backups, a target that is a name is looked up', async () => {
    const made = make({ type: 'srv', name: 's' });
    const srv = (priority: number, weight: number, target: string): DnsRecord => ({
      type: 'SRV',
      ttl: 60,
      priority,
      weight,
      port: 8883,
      target,
    });
    made.records.set('SRV s', [srv(10, 0, '10.0.0.1'), srv(10, 60, 'b.example.'), srv(20, 5, '10.0.0.3')]);
    made.names.set('b.example', ['10.0.0.2']);
    await made.pool.start();
    await settled();
    expect(made.servers()).toEqual([
      ['10.0.0.1:8883', 1, false],
      ['b.example:8883', 60, false],
      ['10.0.0.3:8883', 5, true],
    ]);
    expect(made.pool.view().servers[1].address).toBe('10.0.0.2:8883');
    made.pool.stop();
  });

  it('whose only target is "." say that there is no service', async () => {
    const made = make({ type: 'srv', name: 's' });
    made.records.set('SRV s', [{ type: 'SRV', ttl: 60, priority: 0, weight: 0, port: 0, target: '.' }]);
    await made.pool.start();
    expect(made.addresses()).toEqual([]);
    expect(made.pool.view().discovery?.error).toContain('no servers');
    made.pool.stop();
  });
});

it('addresses are asked for again when the shortest Time To Live is over, at least a second later', async () => {
  const made = make({ type: 'dns', name: 'n' });
  made.records.set('A n', [a('10.0.0.1', 0)]);
  made.records.set('AAAA n', [{ type: 'AAAA', ttl: 300, address: '2001:db8::1' }]);
  await made.pool.start();
  expect(made.addresses()).toEqual(['10.0.0.1:1883', '[2001:db8::1]:1883']);
  made.records.set('A n', [a('10.0.0.2', 5)]);
  await pass(made, 999);
  expect(made.addresses()[0]).toBe('10.0.0.1:1883');
  await pass(made, 1);
  expect(made.addresses()[0]).toBe('10.0.0.2:1883');
  made.pool.stop();
});

it('http_sd labels give weight and backup, a token goes with the request, an unchanged document is not read again', async () => {
  const made = make({ type: 'http', token: 'secret', weightLabel: '__meta_weight' });
  const seen: Record<string, string>[] = [];
  made.web.answer = async (_, { headers }) => {
    seen.push({ ...headers });
    if (headers['if-none-match'] === '"1"') return page('', {}, 304);
    return page([{ targets: ['h1:1', 'h2:2'], labels: { __meta_weight: '7', backup: 'true', zone: 'z' } }], {
      etag: '"1"',
    });
  };
  await made.pool.start();
  await pass(made, 10_000);
  expect(made.logged[0][1]).toMatchObject({ added: ['h1:1', 'h2:2'], source: 'http://sd.example/targets' });
  expect(seen).toMatchObject([{ authorization: 'Bearer secret' }, { 'if-none-match': '"1"' }]);
  expect(made.pool.view().discovery).toMatchObject({ servers: 2, error: null, ageMs: 0 });
  made.pool.stop();
});

describe('Consul', () => {
  const service = (address: string, extra: object = {}) => ({
    Node: { Address: '10.9.9.9' },
    Service: { Address: address, Port: 1883, Weights: { Passing: 3, Warning: 1 }, Meta: { zone: 'a' }, ...extra },
  });

  it('is followed with blocking queries; without an address of its own a service is at its node', async () => {
    const made = make({
      type: 'consul',
      name: 'mq tt',
      url: 'http://127.0.0.1:8500',
      tag: 'edge',
      datacenter: 'dc1',
      token: 't',
    });
    const urls: URL[] = [];
    let answer = page([service('10.0.0.1'), service('')], { 'x-consul-index': '7' });
    let release: (() => void) | null = null;
    made.web.answer = async (url, { headers }) => {
      urls.push(new URL(url));
      expect(headers['x-consul-token']).toBe('t');
      if (urls.length > 1) await new Promise<void>((resolve) => (release = resolve));
      return answer;
    };
    await made.pool.start();
    expect(made.servers()).toEqual([
      ['10.0.0.1:1883', 3, false],
      ['10.9.9.9:1883', 3, false],
    ]);
    await pass(made, 500);
    answer = page([service('10.0.0.2')], { 'x-consul-index': '8' });
    (release as (() => void) | null)?.();
    await settled();
    expect(made.addresses()).toEqual(['10.0.0.2:1883']);
    expect(urls.map((url) => url.pathname)).toEqual(['/v1/health/service/mq%20tt', '/v1/health/service/mq%20tt']);
    expect(urls.map((url) => url.searchParams.get('index'))).toEqual([null, '7']);
    expect(urls[1].searchParams.get('wait')).toBe('60s');
    expect([urls[0].searchParams.get('dc'), urls[0].searchParams.get('tag')]).toEqual(['dc1', 'edge']);
    made.pool.stop();
  });

  it('whose index goes backwards is asked from the beginning', async () => {
    const made = make({ type: 'consul', name: 'm', url: 'http://127.0.0.1:8500' });
    const asked: (string | null)[] = [];
    const indexes = ['7', '3', '9'];
    made.web.answer = async (url) => {
      asked.push(new URL(url).searchParams.get('index'));
      return page([service('10.0.0.1')], { 'x-consul-index': indexes[asked.length - 1] ?? '9' });
    };
    await made.pool.start();
    await pass(made, 500);
    await pass(made, 10_000);
    expect(asked.slice(0, 3)).toEqual([null, '7', null]);
    made.pool.stop();
  });
});

it.each([
  ['no list', { servers: 'x' }],
  ['an address without a port', ['h']],
  ['a port that is none', ['h:70000']],
  ['a weight that is none', [{ addr: 'h:1', weight: 0 }]],
  ['a host with a blank', ['a b:1']],
  ['a number for an address', [7]],
  ['too many', Array.from({ length: MAX_SERVERS + 1 }, (_, i) => `h${i}:1`)],
])('a document with %s is refused as a whole', async (_, document) => {
  const made = make({ type: 'file', path: '/f', port: 0 });
  made.files.set('/f', JSON.stringify(['10.0.0.1:1']));
  await made.pool.start();
  made.files.set('/f', JSON.stringify(document));
  await pass(made, 10_000);
  expect(made.addresses()).toEqual(['10.0.0.1:1']);
  expect(made.pool.view().discovery?.error).toEqual(expect.any(String));
  made.pool.stop();
});

it('metadata with names of every object, or too much of it, reaches nothing', async () => {
  const made = make({ type: 'file', path: '/f' });
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, 'v'.repeat(5000)]));
  made.files.set(
    '/f',
    `[{"addr":"h1:1","metadata":{"__proto__":"x","constructor":"y","zone":"z"}},
    {"addr":"h2:1","metadata":${JSON.stringify(many)}}]`,
  );
  made.names.set('h1', ['10.0.0.1']).set('h2', ['10.0.0.2']);
  await made.pool.start();
  await settled();
  const [first, second] = made.pool.view().servers.map((server) => server.metadata);
  expect(Object.entries(first)).toEqual([['zone', 'z']]);
  expect(Object.keys(second)).toHaveLength(32);
  expect(second.k0).toHaveLength(1024);
  made.pool.stop();
});

it('addresses are split at the port, with brackets around those with colons', () => {
  expect(splitAddress('[2001:db8::1]:8883', null)).toEqual({ host: '2001:db8::1', port: 8883 });
  expect(splitAddress('h', 1883)).toEqual({ host: 'h', port: 1883 });
  for (const text of ['2001:db8::1', 'h:', ':1', 'h:1:2', '']) expect(() => splitAddress(text, null)).toThrow();
  for (const host of ['-x', 'a/b', 'a\nb', '', 'x'.repeat(300)]) expect(() => foundServer(host, 1)).toThrow();
});
