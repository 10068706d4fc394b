// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Tenants behind `inspect` before a real mosquitto: one tries everything to read what is another's or to write there.
// Skipped without mosquitto.
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, it } from 'vitest';
import { testGateway } from '../harness/gateway.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';
import { freePort } from '../harness/port.ts';

const undo: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

/** What may be tried to get out of "tenant/ann/". */
const FILTERS = [
  '#',
  '+/#',
  '+/+/+',
  '/#',
  '//#',
  'tenant/#',
  'tenant/bob/#',
  '../bob/#',
  '$SYS/#',
  '$share/g/#',
  '$share/g/tenant/bob/#',
  '$share/../#',
  '$queue/#',
  '$exclusive/tenant/bob/x',
  '$tenant/#',
];

async function open(port: number, options: IClientOptions): Promise<MqttClient> {
  const client = await connectAsync(`mqtt://127.0.0.1:${port}`, {
    reconnectPeriod: 0,
    connectTimeout: 5000,
    ...options,
  });
  client.on('error', () => {});
  undo.push(() => client.endAsync(true));
  return client;
}

function heard(client: MqttClient): string[] {
  const got: string[] = [];
  client.on('message', (topic, payload) => got.push(`${topic} ${payload.toString()}`));
  return got;
}

describe.skipIf(programPath('mosquitto') === null)('a tenant', () => {
  it.each([4, 5] as const)(
    'reads nothing of another, whatever it subscribes, and writes nothing there, version %i',
    async (protocolVersion) => {
      const broker = await Mosquitto.start(['allow_anonymous true', 'sys_interval 1']);
      undo.push(() => broker.stop());
      const port = await freePort();
      const gateway = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
upstreams.a { servers = [ { addr = "127.0.0.1:${broker.port}" } ] }
proxy.p { bind = "127.0.0.1:${port}", default = a, inspect = true, filter { prefix = "tenant/\${username}/" } }`);
      undo.push(() => gateway.stop());
      const will = { topic: 'x/will', payload: Buffer.from('bob has gone'), qos: 1, retain: true } as const;
      const bob = await open(port, { username: 'bob', protocolVersion, will });
      await bob.publishAsync('x/kept', 'secret', { qos: 1, retain: true });
      const ann = await open(port, { username: 'ann', protocolVersion });
      const atAnn = heard(ann);
      // One by one: a broker may end the session for one of them, the others are to be tried all the same.
      for (const filter of FILTERS) await ann.subscribeAsync(filter, { qos: 1 }).catch(() => {});
      expect(ann.connected).toBe(true);
      const atBob = heard(bob);
      await bob.subscribeAsync('#', { qos: 1 });
      for (const topic of ['tenant/bob/x', '../bob/x', '/tenant/bob/x', '$share/g/tenant/bob/x', '$SYS/x'])
        await ann.publishAsync(topic, 'from ann', { qos: 1 });
      await bob.publishAsync('x/live', 'secret', { qos: 2 });
      bob.stream.destroy();
      // Its will is published by then, kept: whoever asks afterwards comes after everything that ann could have got.
      const again = await open(port, { username: 'bob', protocolVersion });
      const wills = heard(again);
      const told = new Promise<void>((resolve) => again.on('message', (topic) => topic === 'x/will' && resolve()));
      await again.subscribeAsync('x/will', { qos: 1 });
      await told;
      await ann.publishAsync('mine', 'last', { qos: 1 });
      await ann.publishAsync('mine', 'really last', { qos: 1 });
      expect(wills).toEqual(['x/will bob has gone']);
      expect(atAnn.filter((line) => /secret|bob has gone/.test(line))).toEqual([]);
      expect(atAnn.filter((line) => !/ (from ann|last|really last)$/.test(line))).toEqual([]);
      expect(atAnn.some((line) => line === 'mine last')).toBe(true);
      expect(atBob.filter((line) => line.endsWith('from ann'))).toEqual([]);
      // UNSUBSCRIBE finds the filter where SUBSCRIBE has put it.
      for (const filter of FILTERS) await ann.unsubscribeAsync(filter).catch(() => {});
      const before = atAnn.length;
      await ann.publishAsync('mine', 'unheard', { qos: 1 });
      await ann.publishAsync('mine', 'unheard', { qos: 1 });
      expect(atAnn.slice(before)).toEqual([]);
    },
  );

  it('that uses a topic alias is kept to its prefix', async () => {
    const broker = await Mosquitto.start(['allow_anonymous true']);
    undo.push(() => broker.stop());
    const port = await freePort();
    const gateway = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
upstreams.a { servers = [ { addr = "127.0.0.1:${broker.port}" } ] }
proxy.p { bind = "127.0.0.1:${port}", default = a, inspect = true
  filter { prefix = "tenant/\${username}/", publish { deny = [ "no/#" ] } } }`);
    undo.push(() => gateway.stop());
    const all = await open(broker.port, {});
    const outside = heard(all);
    await all.subscribeAsync('#', { qos: 1 });
    const ann = await open(port, { username: 'ann', protocolVersion: 5 });
    const alias = { properties: { topicAlias: 1 }, qos: 1 } as const;
    await ann.publishAsync('ok', 'a', alias);
    await ann.publishAsync('', 'b', alias);
    await ann.publishAsync('no/t', 'denied', alias).catch(() => {});
    await ann.publishAsync('', 'denied too', alias).catch(() => {});
    await ann.publishAsync('ok', 'c', alias);
    await all.publishAsync('done', 'x', { qos: 1 });
    await all.publishAsync('done', 'x', { qos: 1 });
    expect(outside.filter((line) => !line.startsWith('done'))).toEqual([
      'tenant/ann/ok a',
      'tenant/ann/ok b',
      'tenant/ann/ok c',
    ]);
  });
});
