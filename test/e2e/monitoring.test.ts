// The Grafana dashboard and the alert rules of etc/: they name only metrics that a gateway has, and promtool takes them.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { connectAsync } from 'mqtt';
import { afterAll, expect, test } from 'vitest';
import { renderMetrics } from '../../src/console/metrics.ts';
import { CERTIFICATE_METRICS } from '../../src/gateway/certificates.ts';
import { testGateway } from '../harness/gateway.ts';

const etc = path.join(import.meta.dirname, '../../etc');
const rules = path.join(etc, 'prometheus/tidegate.rules.yml');
const promtool = spawnSync('promtool', ['--version']).status === 0;

const folder = mkdtempSync(path.join(os.tmpdir(), 'monitoring-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONF = `
listeners.tcp { bind = "127.0.0.1:0" }
http_server { ip_addr = "127.0.0.1", port = 0 }
persistence { path = "${path.join(folder, 'store')}" }
bridges.nng.pub.out { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "a/#" } ] }
bridges.nng.sub.in { enable = true, sub_url = "tcp://127.0.0.1:0", subscription = [ { remote_topic = "a" } ] }
bridges.mqtt.cloud { server = "mqtt-tcp://127.0.0.1:1", forwards = [ { local_topic = "b/#" } ] }
record { topics = ["a/#"] }
webhook { url = "http://127.0.0.1:1/", events = [ { event = on_client_connack } ] }
upstreams.pool { servers = [ { addr = "127.0.0.1:1" } ], health { type = tcp } }
proxy.front { bind = "127.0.0.1:0", default = "pool" }
`;

/** Names of metrics in expressions; what only Prometheus itself makes is left out. */
function namesIn(text: string): Set<string> {
  return new Set(text.match(/\b(?:tidegate|process|nodejs)_[a-z0-9_]+/g) ?? []);
}

function panelExpressions(): string[] {
  const dashboard = JSON.parse(readFileSync(path.join(etc, 'grafana/tidegate.json'), 'utf8'));
  return dashboard.panels.flatMap((panel: { targets?: { expr: string }[] }) =>
    (panel.targets ?? []).map(({ expr }) => expr),
  );
}

test('dashboard and rules name metrics that the gateway has', async () => {
  const gateway = await testGateway(CONF);
  // Drops of a bridge are counted by reason from the first one on; the first health check of a server is soon.
  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.port}`);
  await client.publishAsync('a/1', 'nobody is there', { qos: 1 });
  await client.endAsync();
  const names = (): Set<string> => namesIn(renderMetrics(gateway.gateway.metrics));
  await expect.poll(() => [...names()]).toContain('tidegate_proxy_upstream_checks_total');
  // Only there where the configuration names a certificate; test/gateway/certificates.test.ts has it.
  const known = names().add(CERTIFICATE_METRICS.expires.name);
  await gateway.stop();
  const expressions = panelExpressions();
  expect(expressions.length).toBeGreaterThan(50);
  const alerts = [...readFileSync(rules, 'utf8').matchAll(/expr: (.*)/g)].map(([, expr]) => expr);
  expect(alerts.length).toBeGreaterThan(15);
  const used = namesIn([...expressions, ...alerts].join('\n'));
  expect([...used].filter((name) => !known.has(name))).toEqual([]);
});

test('panels of the dashboard have ids of their own and do not lie on each other', () => {
  const { panels } = JSON.parse(readFileSync(path.join(etc, 'grafana/tidegate.json'), 'utf8'));
  const places = new Set<string>();
  for (const { gridPos } of panels as { gridPos: { x: number; y: number; w: number; h: number } }[]) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(places.has(`${x},${y}`)).toBe(false);
        places.add(`${x},${y}`);
      }
    }
  }
  expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length);
});

test.skipIf(!promtool)('promtool (Debian package prometheus) takes rules and configuration', () => {
  expect(execFileSync('promtool', ['check', 'rules', rules], { encoding: 'utf8' })).toContain('SUCCESS');
  const config = path.join(etc, 'prometheus/prometheus.yml');
  expect(execFileSync('promtool', ['check', 'config', config], { encoding: 'utf8' })).toContain('SUCCESS');
});

test.skipIf(!promtool)('promtool reads the expressions of the dashboard', () => {
  const rules = panelExpressions().map((expr, i) => ({
    record: `panel:${i}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$(?:job|instance)/g, '.*'),
  }));
  const file = path.join(folder, 'dashboard.yml');
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
  expect(execFileSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })).toContain(`${rules.length} rules`);
});
