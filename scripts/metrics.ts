// docs/metrics.md: every metric with its type, unit, labels and meaning. Called by docs.ts.
// A gateway with all features is started on loopback ports; what its registry holds is the page. Series that only come
// with traffic or an engine that is loaded on demand are added from their tables.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import type { MetricSpec } from '../src/base/metrics.ts';
import { BRIDGE_METRICS } from '../src/bridge/counters.ts';
import { REDIS_METRICS } from '../src/broker/aedes/metrics.ts';
import { loadConfig } from '../src/config/load.ts';
import { CERTIFICATE_METRICS } from '../src/gateway/certificates.ts';
import { createGateway } from '../src/gateway/gateway.ts';
import { PROXY_METRICS, UPSTREAM_METRICS } from '../src/proxy/metrics.ts';
import { RULE_METRICS } from '../src/rules/metrics.ts';
import { TRACING_METRICS } from '../src/tracing/metrics.ts';
import { WEBHOOK_METRICS } from '../src/webhook/webhook.ts';

/** Labels of series that the gateway below has not made. */
const LABELS: Readonly<Record<string, readonly string[]>> = {
  [BRIDGE_METRICS.dropped.name]: ['bridge', 'type', 'rule', 'reason'],
  [BRIDGE_METRICS.refused.name]: ['bridge', 'type', 'reason'],
  [PROXY_METRICS.closed.name]: ['proxy', 'reason'],
  [PROXY_METRICS.connack.name]: ['proxy', 'code'],
  [CERTIFICATE_METRICS.expires.name]: ['key'],
};

const CONF = `listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = true, path = "{dir}/store.db" }
auth { allow_anonymous = true }
http_server { ip_addr = "127.0.0.1", port = 0, username = admin, password = secret }
webhook { enable = true, url = "http://127.0.0.1:1/" }
tracing { url = "http://127.0.0.1:1", metrics_interval = 0 }
bridges.nng {
  pub.a { enable = true, pub_url = "inproc://a", forwards = [ { local_topic = "a/#" } ] }
  sub.b { enable = true, sub_url = "inproc://b", subscription = [ { remote_topic = "b", local_topic = "b" } ] }
}
bridges.mqtt.c { server = "mqtt-tcp://127.0.0.1:1", enable = true, forwards = [ { local_topic = "c/#" } ] }
rules.r { from = "r/#", to = "s" }
upstreams.u { servers = [ { addr = "127.0.0.1:1" } ], health { type = tcp } }
proxy.p { bind = "127.0.0.1:0", default = u }
`;

interface Row {
  readonly spec: MetricSpec;
  readonly labels: readonly string[];
}

async function collect(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'metrics-'));
  const file = join(folder, 'all.conf');
  writeFileSync(file, CONF.replaceAll('{dir}', folder));
  const load = (): ReturnType<typeof loadConfig> => loadConfig({ file, env: {}, cwd: folder });
  const gateway = createGateway(load(), { log: () => {}, clock: systemClock, load, relog: () => {} });
  try {
    await gateway.start();
    const rows = new Map<string, Row>();
    for (const { spec, series, histograms } of gateway.metrics.all()) {
      const labels = [...series.values(), ...histograms.values()].flatMap((one) => Object.keys(one.labels));
      rows.set(spec.name, { spec, labels: [...new Set(labels)] });
    }
    const tables = [
      CERTIFICATE_METRICS,
      BRIDGE_METRICS,
      RULE_METRICS,
      WEBHOOK_METRICS,
      TRACING_METRICS,
      PROXY_METRICS,
      UPSTREAM_METRICS,
      REDIS_METRICS,
    ];
    for (const spec of tables.flatMap((table): MetricSpec[] => Object.values(table)))
      if (!rows.has(spec.name)) rows.set(spec.name, { spec, labels: LABELS[spec.name] ?? [] });
    return [...rows.values()].sort((a, b) => (a.spec.name < b.spec.name ? -1 : 1));
  } finally {
    await gateway.stop(2000);
    rmSync(folder, { recursive: true, force: true });
  }
}

function line({ spec, labels }: Row): string {
  const names = labels.map((label) => `\`${label}\``).join(', ');
  return `| \`${spec.name}\` | ${spec.type} | ${spec.unit} | ${names} | ${spec.text.replace(/\.$/, '')} |`;
}

export async function metricsMarkdown(): Promise<string> {
  const rows = await collect();
  return `# Metrics

Made from the registry in the code by \`make docs\`. \`/metrics\` of \`http_server\` and of \`metrics\` serves them for Prometheus; REST and
the console show the same figures. Metrics of parts that are not configured (bridges, rules, proxies, webhook, store, Redis) are absent.

| name | type | unit | labels | |
|---|---|---|---|---|
${rows.map(line).join('\n')}
`;
}
