// The certificates of a configuration: which keys count, what is logged and counted, what follows from a reload.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fields, Level } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { loadConfig } from '../../src/config/load.ts';
import { CERTIFICATE_METRICS, CertificateWatch, certificatesOf } from '../../src/gateway/certificates.ts';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { FakeClock } from '../harness/clock.ts';

const DAY_MS = 86_400_000;

describe.skipIf(!hasOpenssl())('certificates of a configuration', () => {
  let authority: Authority;
  let good: { cert: string; key: string };
  beforeAll(() => {
    authority = new Authority();
    good = authority.issue({ name: 'gateway', alt: ['DNS:gateway.example'] });
  });
  afterAll(() => authority.remove());

  const tree = (conf: string) => loadConfig({ text: { text: conf, dialect: 'hocon' } }).tree;
  const ssl = (more = '') =>
    `listeners.ssl { bind = "127.0.0.1:0", certfile = "${good.cert}", keyfile = "${good.key}"${more} }\n`;

  it('are found under every key, pasted texts too, but not where a block is off', () => {
    const bridge = (enable: boolean, ca: string): string =>
      `bridges.mqtt.b${enable} { enable = ${enable}, server = "mqtts://b", ssl { cacertfile = ${JSON.stringify(ca)} } }\n`;
    const text = readFileSync(authority.ca, 'utf8');
    const found = certificatesOf(tree(`${ssl()}${bridge(true, text)}${bridge(false, authority.ca)}`), '/', Date.now());
    expect(found.map(({ key, own, file }) => [key, own, file])).toEqual([
      ['listeners.ssl.certfile', true, good.cert],
      ['bridges.mqtt.btrue.ssl.cacertfile', false, ''],
    ]);
    expect(found[0]).toMatchObject({ names: ['gateway.example'], issuer: 'CN=Test Authority' });
  });

  it('that cannot be read say why', () => {
    const [found] = certificatesOf(tree(ssl().replace(good.cert, '/none.pem')), '/', Date.now());
    expect(found).toMatchObject({ key: 'listeners.ssl.certfile', error: expect.stringContaining('no such file') });
  });

  it('are logged once a day while they end within 30 days, and have a metric until a reload takes them away', () => {
    const clock = new FakeClock(Date.now());
    const metrics = new Metrics();
    const lines: { level: Level; id: string; fields?: Fields }[] = [];
    let now = tree(ssl());
    const watch = new CertificateWatch({
      clock,
      metrics,
      log: (level, id, fields) => lines.push({ level, id, fields }),
      tree: () => now,
      cwd: '/',
    });
    watch.start();
    watch.look();
    expect(lines).toEqual([
      { level: 'warn', id: 'TLS-EXPIRES', fields: expect.objectContaining({ key: 'listeners.ssl.certfile', days: 1 }) },
    ]);
    const { name } = CERTIFICATE_METRICS.expires;
    const key = 'listeners.ssl.certfile';
    const value = metrics
      .all()
      .find(({ spec }) => spec.name === name)
      ?.series.values()
      .next().value;
    expect(value?.labels).toEqual({ key });
    expect(Math.abs(Number(value?.read()) * 1000 - (Date.now() + 2 * DAY_MS))).toBeLessThan(DAY_MS);
    clock.advance(3 * DAY_MS);
    expect(lines.at(-1)?.level).toBe('error');
    now = tree('');
    watch.look();
    watch.stop();
    expect(metrics.all().find(({ spec }) => spec.name === name)?.series.size).toBe(0);
  });
});
