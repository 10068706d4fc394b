// The small server of `metrics`.
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { nullLog } from '../../src/base/log.ts';
import { Metrics } from '../../src/base/metrics.ts';
import type { MetricsSettings } from '../../src/console/console.ts';
import { MetricsServer } from '../../src/console/metricsserver.ts';
import { ask } from './request.ts';
import { ADMIN, VIEWER } from './standins.ts';

const servers: MetricsServer[] = [];
async function start(more: Partial<MetricsSettings> = {}): Promise<number> {
  const metrics = new Metrics();
  metrics.cell({ name: 'tidegate_x_total', text: 'X.', type: 'counter', unit: 'items' });
  const settings: MetricsSettings = { host: '127.0.0.1', port: 0, auth: 'none', users: [ADMIN, VIEWER], ...more };
  const server = new MetricsServer({ clock: systemClock, log: nullLog, metrics, settings: () => settings });
  servers.push(server);
  await server.start();
  return server.port;
}
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(1000);
});

test('serves /metrics to anybody with auth none', async () => {
  const reply = await ask(await start(), 'GET', '/metrics', { user: null });
  expect([reply.status, reply.headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
  expect(reply.text).toContain('tidegate_x_total 0\n');
});

test('serves nothing else', async () => {
  const port = await start();
  for (const where of ['/api/v4/clients', '/healthz', '/../etc/passwd', '/%zz']) {
    expect((await ask(port, 'GET', where, { user: null })).status).toBe(404);
  }
  expect((await ask(port, 'POST', '/metrics', { user: null, body: '{}' })).status).toBe(405);
});

test('wants credentials with auth basic', async () => {
  const port = await start({ auth: 'basic' });
  expect((await ask(port, 'GET', '/metrics', { user: null })).status).toBe(401);
  expect((await ask(port, 'GET', '/metrics', { user: { ...ADMIN, password: 'no' } })).status).toBe(401);
  expect((await ask(port, 'GET', '/metrics', { user: VIEWER })).status).toBe(200);
});

test('lets nobody in with auth basic and no users', async () => {
  const port = await start({ auth: 'basic', users: [] });
  expect((await ask(port, 'GET', '/metrics', { user: null })).status).toBe(401);
  expect((await ask(port, 'GET', '/metrics')).status).toBe(401);
});

test('a busy port is an error that names the block', async () => {
  const port = await start();
  await expect(start({ port })).rejects.toMatchObject({
    code: 'TRANSPORT-BIND',
    message: expect.stringContaining(`metrics 127.0.0.1:${port}`),
  });
});
