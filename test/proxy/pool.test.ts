// A pool over time: failures and rests, names and their addresses, health checks, slow start, draining, reloads.
import { describe, expect, it } from 'vitest';
import { addressFacts } from '../../src/proxy/facts.ts';
import { Pool } from '../../src/proxy/pool.ts';
import type { UpstreamOptions } from '../../src/proxy/proxy.ts';
import type { Connection } from '../../src/transport/transport.ts';
import { Catch } from '../contract/transport.ts';
import { memoryParts, memoryServer, serverOptions, settled, upstreamOptions } from '../harness/proxyparts.ts';

const A = serverOptions('10.0.0.1:1');
const B = serverOptions('10.0.0.2:1');
const client = addressFacts('p', '127.0.0.1', 1);

function make(options: UpstreamOptions) {
  const memory = memoryParts();
  const pool = new Pool(options, memory.parts);
  const states = () => Object.fromEntries(pool.view().servers.map((s) => [s.address, s.state]));
  return { ...memory, pool, states };
}
type Made = ReturnType<typeof make>;

/** What one client gets: the server's address, or null. */
function choose({ pool, clock }: Made): string | null {
  const peer = pool.select(client).next(clock.mono());
  if (peer === null) return null;
  pool.release(peer);
  return peer.address;
}

function fail({ pool, clock }: Made): string {
  const peer = pool.select(client).next(clock.mono());
  if (peer === null) throw new Error('nobody there');
  pool.failed(peer, new Error('refused'));
  return peer.address;
}

describe('failures', () => {
  it('put a server to rest until fail_timeout is over; a success then counts again', () => {
    const made = make(upstreamOptions('u', [A, B]));
    expect(fail(made)).toBe('10.0.0.1:1');
    expect(made.states()).toEqual({ '10.0.0.1:1': 'resting', '10.0.0.2:1': 'up' });
    expect([choose(made), choose(made)]).toEqual(['10.0.0.2:1', '10.0.0.2:1']);
    made.clock.advance(10_001);
    const seen = [choose(made), choose(made), choose(made)];
    expect(seen).toContain('10.0.0.1:1');
  });

  it('of all servers leave nobody until one may be tried again', () => {
    const made = make(upstreamOptions('u', [A, B]));
    fail(made);
    fail(made);
    expect(choose(made)).toBeNull();
    made.clock.advance(10_001);
    expect(choose(made)).not.toBeNull();
  });

  it('of the only server do not count', () => {
    const made = make(upstreamOptions('u', [A]));
    fail(made);
    expect(choose(made)).toBe('10.0.0.1:1');
  });

  it('are forgotten after a success', () => {
    const made = make(upstreamOptions('u', [serverOptions('10.0.0.1:1', { maxFails: 2 }), B]));
    fail(made);
    made.clock.advance(10_001);
    const selection = made.pool.select(client);
    for (const peer of [selection.next(made.clock.mono()), selection.next(made.clock.mono())])
      if (peer !== null) made.pool.connected(peer);
    expect(made.pool.view().servers.map((s) => s.fails)).toEqual([0, 0]);
  });
});

describe('a sticky pool', () => {
  const C = serverOptions('10.0.0.3:1');
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the proxy
  const sticky = { key: '${clientid}', expireMs: 60_000, size: 3 };
  const options = upstreamOptions('u', [A, B, C], { sticky });
  const visit = (made: Made, clientId: string): { at: string; leave: () => void } => {
    const facts = { ...client, clientId };
    const peer = made.pool.select(facts).next(made.clock.mono());
    if (peer === null) throw new Error('nobody there');
    made.pool.connected(peer);
    return { at: peer.address, leave: made.pool.join(peer, facts) };
  };
  const pass = (made: Made, clientId: string): string => {
    const { at, leave } = visit(made, clientId);
    leave();
    return at;
  };

  it('leads a client to its server again until it has been away for expire, counted from its last connection', () => {
    const made = make(options);
    expect([pass(made, 'a'), pass(made, 'b'), pass(made, 'a')]).toEqual(['10.0.0.1:1', '10.0.0.2:1', '10.0.0.1:1']);
    const first = visit(made, 'a');
    made.clock.advance(100_000);
    expect(pass(made, 'a')).toBe('10.0.0.1:1');
    first.leave();
    made.clock.advance(59_999);
    expect(pass(made, 'a')).toBe('10.0.0.1:1');
    made.clock.advance(60_000);
    expect(pass(made, 'a')).toBe('10.0.0.3:1');
    expect(made.pool.view().servers.map(({ connections }) => connections)).toEqual([0, 0, 0]);
  });

  it('leads it elsewhere while its server cannot be used, and there from then on', () => {
    const made = make(options);
    expect(pass(made, 'a')).toBe('10.0.0.1:1');
    made.pool.drain('10.0.0.1:1', true);
    const other = pass(made, 'a');
    expect(other).not.toBe('10.0.0.1:1');
    made.pool.drain('10.0.0.1:1', false);
    expect([pass(made, 'a'), pass(made, 'a')]).toEqual([other, other]);
  });

  it('forgets the key that was used longest ago beyond its size, and remembers none for a client without a key', () => {
    const made = make(options);
    for (const id of ['a', 'b', 'c', 'a', 'd', '', '']) pass(made, id);
    expect(made.metrics.value('tidegate_proxy_upstream_sticky', { upstream: 'u' })).toBe(3);
    const again = ['a', 'c', 'd'].map((id) => pass(made, id));
    expect(['a', 'c', 'd'].map((id) => pass(made, id))).toEqual(again);
    expect(made.metrics.value('tidegate_proxy_upstream_sticky', { upstream: 'u' })).toBe(3);
  });

  it('keeps its table over a reload, with new bounds', async () => {
    const made = make(options);
    expect([pass(made, 'a'), pass(made, 'b')]).toEqual(['10.0.0.1:1', '10.0.0.2:1']);
    await made.pool.update(upstreamOptions('u', [A, B, C], { sticky: { ...sticky, expireMs: 1000 } }));
    expect([pass(made, 'b'), pass(made, 'a')]).toEqual(['10.0.0.2:1', '10.0.0.1:1']);
    made.clock.advance(1000);
    expect(pass(made, 'a')).not.toBe('10.0.0.1:1');
  });
});

describe('names', () => {
  it('stand for all their addresses, and for others after dns_refresh', async () => {
    const made = make(upstreamOptions('u', [serverOptions('broker:1883')]));
    made.names.set('broker', ['10.1.0.1', '10.1.0.2']);
    expect(choose(made)).toBeNull();
    await made.pool.start();
    expect([choose(made), choose(made)]).toEqual(['10.1.0.1:1883', '10.1.0.2:1883']);
    made.names.set('broker', ['10.1.0.2', '10.1.0.3']);
    await made.clock.advanceAsync(30_000);
    expect(Object.keys(made.states())).toEqual(['10.1.0.2:1883', '10.1.0.3:1883']);
    made.pool.stop();
  });

  it('keep their addresses while they cannot be resolved', async () => {
    const made = make(upstreamOptions('u', [serverOptions('broker:1883')]));
    made.names.set('broker', ['10.1.0.1']);
    await made.pool.start();
    made.names.delete('broker');
    await made.clock.advanceAsync(120_000);
    expect(choose(made)).toBe('10.1.0.1:1883');
    made.pool.stop();
  });

  it('that nobody knew at the start are asked for again', async () => {
    const made = make(upstreamOptions('u', [serverOptions('broker:1883')], { dnsRefreshMs: 0 }));
    await made.pool.start();
    expect(choose(made)).toBeNull();
    made.names.set('broker', ['10.1.0.1']);
    await made.clock.advanceAsync(5000);
    expect(choose(made)).toBe('10.1.0.1:1883');
    made.pool.stop();
  });
});

const HEALTH = {
  type: 'tcp',
  intervalMs: 1000,
  timeoutMs: 500,
  fails: 2,
  passes: 2,
  anyConnack: false,
  username: null,
  password: null,
} as const;

describe('health checks', () => {
  it('take a server out after fails in a row and back after passes', async () => {
    const made = make(upstreamOptions('u', [A, B], { health: HEALTH }));
    await memoryServer(made.network, B.addr);
    await made.pool.start();
    await made.clock.advanceAsync(0);
    await settled();
    expect(made.states()).toEqual({ [A.addr]: 'up', [B.addr]: 'up' });
    await made.clock.advanceAsync(1100);
    await settled();
    expect(made.states()).toEqual({ [A.addr]: 'unhealthy', [B.addr]: 'up' });
    expect([choose(made), choose(made)]).toEqual([B.addr, B.addr]);
    await memoryServer(made.network, A.addr);
    for (let i = 0; i < 3; i++) {
      await made.clock.advanceAsync(1100);
      await settled();
    }
    expect(made.states()).toEqual({ [A.addr]: 'up', [B.addr]: 'up' });
    made.pool.stop();
  });

  /** Answers each connection's first bytes with these. */
  async function answering(made: Made, addr: string, answer: string): Promise<Connection[]> {
    const accepted = await memoryServer(made.network, addr);
    const push = accepted.push.bind(accepted);
    accepted.push = (connection) => {
      connection.onData((chunk) => {
        if (chunk[0] >> 4 === 1) connection.write(Buffer.from(answer, 'hex'), () => {});
      });
      return push(connection);
    };
    return accepted;
  }

  it.each([
    ['20020000', false, 'up'],
    ['20020003', false, 'unhealthy'],
    ['20020005', true, 'up'],
    ['3003000161', false, 'unhealthy'],
    ['2003000000', false, 'unhealthy'],
  ])('of type mqtt read the answer %s (any_connack %s): %s', async (answer, anyConnack, state) => {
    const health = { ...HEALTH, type: 'mqtt', fails: 1, anyConnack } as const;
    const made = make(upstreamOptions('u', [A], { health }));
    await answering(made, A.addr, answer);
    await made.pool.start();
    await made.clock.advanceAsync(0);
    await settled(20);
    expect(made.states()).toEqual({ [A.addr]: state });
    made.pool.stop();
  });

  it('of type mqtt end with silence, and each peer is asked under an id of its own', async () => {
    const health = { ...HEALTH, type: 'mqtt', fails: 1 } as const;
    const made = make(upstreamOptions('u', [A, B], { health }));
    const servers = [await memoryServer(made.network, A.addr), await memoryServer(made.network, B.addr)];
    await made.pool.start();
    await made.clock.advanceAsync(0);
    await settled();
    const probes = servers.map(([connection]) => new Catch(connection));
    await settled();
    const ids = probes.map((probe) => probe.all.subarray(14).toString());
    expect(ids.every((id) => /^[0-9a-zA-Z]{1,23}$/.test(id))).toBe(true);
    expect(ids[0]).not.toBe(ids[1]);
    await made.clock.advanceAsync(600);
    await settled();
    expect(made.states()).toEqual({ [A.addr]: 'unhealthy', [B.addr]: 'unhealthy' });
    made.pool.stop();
  });
});

describe('an operator', () => {
  it('drains a server and brings it back', () => {
    const made = make(upstreamOptions('u', [A, B]));
    expect(made.pool.drain(A.addr, true)).toBe(true);
    expect(made.states()[A.addr]).toBe('draining');
    expect([choose(made), choose(made)]).toEqual([B.addr, B.addr]);
    made.pool.drain(A.addr, false);
    expect(new Set([choose(made), choose(made)])).toEqual(new Set([A.addr, B.addr]));
    expect(made.pool.drain('nobody:1', true)).toBe(false);
  });

  it('changes servers; those that stay keep what is known of them', async () => {
    const made = make(upstreamOptions('u', [A, B]));
    const peer = made.pool.select(client).next(0);
    fail(made);
    await made.pool.update(upstreamOptions('u', [serverOptions(A.addr, { weight: 3 }), serverOptions('10.0.0.3:1')]));
    const [first, third] = made.pool.view().servers;
    expect(first).toMatchObject({ address: A.addr, weight: 3, connections: 1 });
    expect(third).toMatchObject({ address: '10.0.0.3:1', connections: 0 });
    if (peer !== null) made.pool.release(peer);
    expect(made.pool.view().servers[0].connections).toBe(0);
  });
});
