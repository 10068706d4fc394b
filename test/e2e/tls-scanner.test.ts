// A thousand peers that scan a TLS listener with everything but a good handshake: each is counted by its reason, nothing grows, and the
// next good client is served.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { nullLog } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config/load.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { Authority, hasOpenssl } from '../harness/certificates.ts';

const CONNECT = Buffer.from('100d00044d51545404020000000161', 'hex');
const SSL3_HELLO = Buffer.from(
  `160300003d0100003903000${'1'.repeat(64)}00001200040005000a0100`.padEnd(132, '0'),
  'hex',
);

/** One peer: connects, does its thing, and is done when its socket is closed. */
async function peer(port: number, act: (socket: Socket) => void): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  socket.resume();
  await once(socket, 'connect');
  act(socket);
  if (!socket.destroyed) await once(socket, 'close');
}

function fails(port: number, options: ConnectionOptions): Promise<void> {
  return new Promise((resolve) => {
    const socket = tlsConnect({ host: '127.0.0.1', port, ...options });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.on('secureConnect', () => socket.end());
  });
}

describe.skipIf(!hasOpenssl())('TLS listener under a scanner (needs openssl)', () => {
  it('counts a thousand bad handshakes by reason, keeps nothing of them and serves the next client', async () => {
    const authority = new Authority('scanned');
    const server = authority.issue({ name: 'localhost', alt: ['DNS:localhost'] });
    const stranger = new Authority('stranger');
    const tree = {
      listeners: {
        ssl: {
          bind: '127.0.0.1:0',
          keyfile: server.key,
          certfile: server.cert,
          cacertfile: authority.ca,
          verify_peer: true,
          fail_if_no_peer_cert: false,
          connect_timeout: '1s',
          allow_anonymous: true,
        },
      },
    };
    const text = { text: JSON.stringify(tree), dialect: 'hocon' } as const;
    const load = () => loadConfig({ text });
    const gateway = new Gateway(load(), { log: nullLog, clock: systemClock, load, relog: () => {} });
    await gateway.start();
    try {
      const port = gateway.bound[0].port;
      const kinds: ((p: number) => Promise<void>)[] = [
        (p) => peer(p, (s) => s.end(CONNECT)),
        (p) => peer(p, (s) => s.end(SSL3_HELLO.subarray(0, 30))),
        (p) => peer(p, (s) => s.end(SSL3_HELLO)),
        (p) => peer(p, (s) => s.write(SSL3_HELLO.subarray(0, 3), () => s.resetAndDestroy())),
        (p) => fails(p, { ca: readFileSync(stranger.ca) }),
        (p) => fails(p, { rejectUnauthorized: false, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }),
      ];
      const handles = (): number => process.getActiveResourcesInfo().length;
      const before = handles();
      for (let i = 0; i < 1000; i += 50) {
        await Promise.all(Array.from({ length: 50 }, (_, k) => kinds[(i + k) % kinds.length](port)));
      }
      const rejected = (): Map<string, number> => {
        const family = gateway.metrics.all().find((f) => f.spec.name === 'tidegate_listener_rejected_total');
        return new Map([...(family?.series.values() ?? [])].map((s) => [s.labels.reason, s.read()]));
      };
      await expect
        .poll(() => [...rejected().values()].reduce((a, b) => a + b, 0), { timeout: 10_000 })
        .toBeGreaterThan(900);
      // A peer that resets before its first whole byte record may never be seen at all; every other kind has its own word.
      const words = [...rejected().keys()];
      expect(words).toContain('plain-on-tls');
      expect(words.some((word) => word.startsWith('tls-'))).toBe(true);
      await expect.poll(handles, { timeout: 10_000 }).toBeLessThanOrEqual(before + 5);
      const good = tlsConnect({ host: '127.0.0.1', port, ca: readFileSync(authority.ca), servername: 'localhost' });
      await once(good, 'secureConnect');
      good.write(CONNECT);
      const [answer] = (await once(good, 'data')) as [Buffer];
      expect(answer.toString('hex')).toBe('20020000');
      good.destroy();
    } finally {
      await gateway.stop(1000);
      authority.remove();
      stranger.remove();
    }
  }, 60_000);
});
