// Which server is next: the sequences and hash places of NGINX 1.22, and what failures, weights and limits do to them.
import { describe, expect, it } from 'vitest';
import { type Balanced, makeGroup, Selection } from '../../src/proxy/balance.ts';
import { Peer } from '../../src/proxy/peer.ts';
import type { ServerOptions, UpstreamOptions } from '../../src/proxy/proxy.ts';
import { buildRing } from '../../src/proxy/ring.ts';
import { serverOptions } from '../harness/proxyparts.ts';

type Row = readonly [addr: string, fields?: Partial<ServerOptions>];

function pool(
  balance: UpstreamOptions['balance'],
  rows: readonly Row[],
  slowStartMs = 0,
): { of: Balanced; peers: Peer[] } {
  const servers = rows.map(([addr, fields]) => serverOptions(addr, fields));
  const peers = servers.map((server) => new Peer(server, server.host));
  const backups = peers.filter((peer) => peer.server.backup);
  const primary = makeGroup(peers.filter((peer) => !peer.server.backup));
  return {
    peers,
    of: {
      balance,
      slowStartMs,
      primary,
      backup: backups.length === 0 ? null : makeGroup(backups),
      single: primary.peers.length === 1 && backups.length === 0,
      ring: balance === 'consistent_hash' ? buildRing(servers.filter((server) => !server.backup)) : null,
    },
  };
}

/** The hosts chosen by `count` clients after each other; `hold` keeps their connections. */
function sequence(of: Balanced, count: number, hold: boolean, key = ''): string {
  let out = '';
  for (let i = 0; i < count; i++) {
    const peer = new Selection(of, key).next(0);
    if (peer === null) return `${out}-`;
    out += peer.host;
    if (!hold) peer.conns--;
  }
  return out;
}

describe('round robin', () => {
  it('is smooth: 5, 1, 1 gives a a b a c a a', () => {
    const { of } = pool('round_robin', [['a:1', { weight: 5 }], ['b:1'], ['c:1']]);
    expect(sequence(of, 14, false)).toBe('aabacaaaabacaa');
  });

  it('takes turns among equals', () => {
    expect(sequence(pool('round_robin', [['a:1'], ['b:1'], ['c:1']]).of, 7, false)).toBe('abcabca');
  });

  it('passes over servers that are down or full, and gives nothing when all are', () => {
    expect(sequence(pool('round_robin', [['a:1'], ['b:1', { down: true }], ['c:1']]).of, 4, false)).toBe('acac');
    expect(
      sequence(
        pool('round_robin', [
          ['a:1', { maxConns: 1 }],
          ['b:1', { maxConns: 2 }],
        ]).of,
        4,
        true,
      ),
    ).toBe('abb-');
  });

  it('tries every server once for one client, then the backups', () => {
    const { of } = pool('round_robin', [['a:1'], ['b:1'], ['z:1', { backup: true }]]);
    const selection = new Selection(of, '');
    expect([selection.next(0), selection.next(0), selection.next(0), selection.next(0)].map((p) => p?.host)).toEqual([
      'a',
      'b',
      'z',
      undefined,
    ]);
  });

  it('leaves a server alone while it rests, the only one never', () => {
    const { of, peers } = pool('round_robin', [['a:1'], ['b:1']]);
    peers[0].fails = 1;
    peers[0].checkedMs = 0;
    expect(new Selection(of, '').next(10_000)?.host).toBe('b');
    expect(new Selection(of, '').next(10_001)?.host).toBe('a');
    const lone = pool('round_robin', [['a:1']]);
    lone.peers[0].fails = 9;
    lone.peers[0].checkedMs = 0;
    expect(new Selection(lone.of, '').next(1)?.host).toBe('a');
  });

  it('gives a server in slow start a growing share', () => {
    const { of, peers } = pool(
      'round_robin',
      [
        ['a:1', { weight: 10 }],
        ['b:1', { weight: 10 }],
      ],
      1000,
    );
    peers[0].slowSinceMs = 0;
    const share = (atMs: number): number => {
      let a = 0;
      for (let i = 0; i < 100; i++) if (new Selection(of, '').next(atMs)?.host === 'a') a++;
      return a;
    };
    expect(share(100)).toBeLessThan(15);
    expect(share(500)).toBeGreaterThan(25);
    expect(share(1000)).toBe(50);
  });
});

describe('least_conn', () => {
  it('takes the fewest connections for the weight, equals in turn: A B A B A A for 2, 1', () => {
    expect(sequence(pool('least_conn', [['A:1', { weight: 2 }], ['B:1']]).of, 6, true)).toBe('ABABAA');
  });
});

const VECTORS: readonly [string, number, number][] = [
  ['device-1', 2, 1],
  ['device-2', 1, 1],
  ['sensor-42', 2, 1],
  ['home-7', 0, 0],
  ['10.0.0.1', 1, 2],
  ['', 0, 0],
];
const SERVERS: readonly Row[] = [['127.0.0.1:27211', { weight: 2 }], ['127.0.0.1:27212'], ['127.0.0.1:27213']];
const NAMES: readonly Row[] = [['mqtt1:1883'], ['mqtt2:1883'], ['mqtt3:1883']];

describe('hash', () => {
  it.each(VECTORS)('%j goes where NGINX sends it', (key, plain, ketama) => {
    const chosen = (balance: 'hash' | 'consistent_hash'): number => {
      const { of, peers } = pool(balance, SERVERS);
      return peers.indexOf(new Selection(of, key).next(0) as Peer);
    };
    expect([chosen('hash'), chosen('consistent_hash')]).toEqual([plain, ketama]);
  });

  it.each([
    ['device-1', 0, 0],
    ['device-2', 0, 0],
    ['sensor-42', 2, 2],
    ['home-7', 0, 1],
    ['x', 1, 1],
  ])('%j goes where NGINX sends it among names', (key, plain, ketama) => {
    const { of, peers } = pool('hash', NAMES);
    const ring = pool('consistent_hash', NAMES);
    expect(peers.indexOf(new Selection(of, key).next(0) as Peer)).toBe(plain);
    expect(ring.peers.indexOf(new Selection(ring.of, key).next(0) as Peer)).toBe(ketama);
  });

  it('reaches every server that is left when the first choices fail', () => {
    for (const balance of ['hash', 'consistent_hash', 'random'] as const) {
      const { of } = pool(balance, SERVERS);
      const selection = new Selection(of, 'device-1');
      const hosts = new Set([selection.next(0), selection.next(0), selection.next(0)].map((p) => p?.server.port));
      expect(hosts).toEqual(new Set([27211, 27212, 27213]));
      expect(selection.next(0)).toBeNull();
    }
  });

  it('moves only the keys of a server that is gone, with consistent hashing', () => {
    const before = pool('consistent_hash', NAMES);
    const after = pool('consistent_hash', NAMES);
    after.peers[1].healthy = false;
    for (let i = 0; i < 200; i++) {
      const was = before.peers.indexOf(new Selection(before.of, `id-${i}`).next(0) as Peer);
      const is = after.peers.indexOf(new Selection(after.of, `id-${i}`).next(0) as Peer);
      if (was !== 1) expect(is).toBe(was);
      else expect(is).not.toBe(1);
    }
  });

  it('goes to the backups when no server is left', () => {
    const { of, peers } = pool('consistent_hash', [...NAMES, ['z:1', { backup: true }]]);
    for (const peer of peers.slice(0, 3)) peer.healthy = false;
    expect(new Selection(of, 'device-1').next(0)?.host).toBe('z');
  });
});

describe('random', () => {
  it.each([2, 3])('gives each of %i servers its weight in connections that do not stay', (count) => {
    const { of } = pool('random', [['a:1', { weight: 5 }], ['b:1', { weight: 2 }], ['c:1']].slice(0, count) as never);
    const chosen = new Map<string, number>();
    // Every pair of draws once: no chance in the test.
    const steps = 8 * 7 * 5;
    for (let i = 0; i < steps; i++) {
      for (let k = 0; k < steps; k += 5) {
        const draws = [(i + 0.5) / steps, (k + 0.5) / steps];
        let at = 0;
        const peer = new Selection(of, '', () => draws[at++ % 2]).next(0);
        if (peer === null) throw new Error('nobody');
        chosen.set(peer.host, (chosen.get(peer.host) ?? 0) + 1);
        peer.conns--;
      }
    }
    const ratio = (chosen.get('a') ?? 0) / (chosen.get('b') ?? 0);
    expect(ratio).toBeGreaterThan(2);
    expect(ratio).toBeLessThan(3);
  });

  it('takes the less busy one of two', () => {
    const { of, peers } = pool('random', [['a:1'], ['b:1']]);
    peers[0].conns = 5;
    let at = 0;
    const random = (): number => [0.1, 0.9, 0.9, 0.1][at++ % 4];
    expect(new Selection(of, '', random).next(0)?.host).toBe('b');
    expect(new Selection(of, '', random).next(0)?.host).toBe('b');
  });
});

describe('the ring', () => {
  it('has 160 points for a unit of weight, each once and in order', () => {
    const { hashes } = buildRing([serverOptions('a:1', { weight: 3 }), serverOptions('b:1')]);
    expect(hashes.length).toBeGreaterThan(630);
    expect(hashes.every((hash, i) => i === 0 || hash > hashes[i - 1])).toBe(true);
  });
});
