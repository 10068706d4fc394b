// What a running gateway says of itself from the start: the line GW-READY, series that are 0, levels of losses and recoveries.
import { afterEach, expect, test, vi } from 'vitest';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const TCP = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';
const running: TestGateway[] = [];
afterEach(async () => {
  for (const gateway of running.splice(0).reverse()) await gateway.stop();
});
async function started(conf: string): Promise<TestGateway> {
  const made = await testGateway(conf);
  running.push(made);
  return made;
}

test('GW-READY names the bridges that are on by type', async () => {
  const nng = `bridges.nng {
  pub.a { enable = true, pub_url = "inproc://a", forwards = [ { local_topic = "a" } ] }
  pub.b { enable = true, pub_url = "inproc://b", forwards = [ { local_topic = "b" } ] }
  pub.off { enable = false, pub_url = "inproc://c", forwards = [ { local_topic = "c" } ] }
  sub.d { enable = true, sub_url = "inproc://d", subscription = [ { remote_topic = "d", local_topic = "d" } ] }
}`;
  const ready = (gateway: TestGateway) => gateway.messages.find(({ id }) => id === 'GW-READY');
  const line = ready(await started(TCP + nng));
  expect(line?.level).toBe('info');
  expect(line?.fields?.bridges).toEqual({ pub: ['a', 'b'], sub: ['d'] });
  expect(ready(await started(TCP))?.fields?.bridges).toBeUndefined();
});

test('counters by reason are 0 before anything is counted', async () => {
  const { gateway } = await started(`${TCP}rules.r { from = "r", to = "s" }
upstreams.u { servers = [ { addr = "127.0.0.1:1" } ] }
proxy.p { bind = "127.0.0.1:0", default = u }`);
  const [listener] = [...gateway.metrics.all()]
    .filter(({ spec }) => spec.name === 'tidegate_listener_rejected_total')
    .flatMap(({ series }) => [...series.values()].map(({ labels }) => labels.listener));
  for (const [name, labels] of [
    ['tidegate_auth_refused_total', { why: 'bad-password' }],
    ['tidegate_auth_refused_total', { why: 'locked' }],
    ['tidegate_listener_rejected_total', { listener, reason: 'full' }],
    ['tidegate_config_reloads_total', { outcome: 'refused' }],
    ['tidegate_rule_dropped_total', { rule: 'r', reason: 'error' }],
    ['tidegate_proxy_refused_total', { proxy: 'p', status: '503' }],
  ] as const)
    expect([name, labels, gateway.metrics.value(name, labels)]).toEqual([name, labels, 0]);
});

test('the recovery of a bridge is a warning like its loss, a first connection is none', async () => {
  const remote = await testGateway(TCP);
  const { port } = remote;
  const bridge = `bridges.mqtt.c { server = "mqtt-tcp://127.0.0.1:${port}", enable = true, backoff_max = 100ms, forwards = [ { local_topic = "c" } ] }`;
  const here = await started(`${TCP}${bridge}`);
  const states = () =>
    here.messages.filter(({ id }) => id === 'MQB-STATE').map(({ level, fields }) => [level, fields?.state]);
  await vi.waitFor(() => expect(states()).toEqual([['info', 'connected']]), 5000);
  await remote.stop();
  await vi.waitFor(() => expect(states().at(-1)).toEqual(['warn', 'retrying']), 5000);
  await started(TCP.replace(':0"', `:${port}"`));
  await vi.waitFor(() => expect(states().at(-1)).toEqual(['warn', 'connected']), 5000);
});
