// A program's hooks in a whole gateway, with real clients: who comes in, what each packet may do, what the program is told.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import { afterEach, describe, expect, it } from 'vitest';
import { createGateway, type EmbeddedGateway, type GatewayHooks } from '../../src/index.ts';

let gateway: EmbeddedGateway | null = null;
let clients: MqttClient[] = [];
let folder: string | null = null;

afterEach(async () => {
  for (const client of clients) client.end(true);
  clients = [];
  await gateway?.stop();
  gateway = null;
  if (folder !== null) rmSync(folder, { recursive: true, force: true });
  folder = null;
});

async function start(hooks: GatewayHooks, more: Record<string, unknown> = {}): Promise<EmbeddedGateway> {
  gateway = createGateway({ tree: { listeners: { tcp: { bind: '127.0.0.1:0' } }, ...more } }, { hooks });
  await gateway.start();
  return gateway;
}

async function client(options: IClientOptions = {}): Promise<MqttClient> {
  const url = `mqtt://${gateway?.addresses[0].address}`;
  const made = await mqtt.connectAsync(url, { reconnectPeriod: 0, protocolVersion: 5, ...options });
  clients.push(made);
  return made;
}

/** The payloads that a program gets on a filter, until `last` has come. */
function until(last: string, topicFilter: string): Promise<string[]> {
  const got: string[] = [];
  return new Promise((resolve) => {
    gateway?.subscribe(
      topicFilter,
      ({ payload }) => {
        got.push(Buffer.from(payload).toString());
        if (got.at(-1) === last) resolve(got);
      },
      { qos: 2 },
    );
  });
}

describe('hooks', () => {
  it('let in and keep out at CONNECT, and say to a client whether it was refused or could not be judged', async () => {
    await start({
      authenticate: async (_, username, password) => {
        if (username === 'broken') throw new Error('the database is down');
        return Buffer.from(password ?? []).toString() === 'secret';
      },
    });
    await client({ username: 'ann', password: 'secret' });
    await expect(client({ username: 'ann', password: 'guess' })).rejects.toMatchObject({ code: 0x87 });
    await expect(client()).rejects.toMatchObject({ code: 0x87 });
    await expect(client({ username: 'broken', protocolVersion: 4 })).rejects.toMatchObject({ code: 3 });
  });

  it.each([
    ['at once', (verdict: boolean) => verdict],
    ['later', async (verdict: boolean) => verdict],
    ['one way and the other', (verdict: boolean) => (verdict ? Promise.resolve(verdict) : verdict)],
  ])('judge every PUBLISH of one topic for itself when they answer %s', async (_, answer) => {
    const asked: string[] = [];
    let count = 0;
    await start({
      authorizePublish: (who, { topic, qos }) => {
        asked.push(`${who.clientId} ${topic} ${qos}`);
        return answer(count++ % 2 === 0);
      },
    });
    for (const qos of [0, 1, 2] as const) {
      const all = until('98', `t/${qos}`);
      const sender = await client({ clientId: `sender${qos}` });
      // At once, so that many are read together; each second one is refused.
      const sent = Array.from({ length: 100 }, (_, i) => sender.publishAsync(`t/${qos}`, String(i), { qos }));
      const codes = await Promise.allSettled(sent);
      expect(await all).toEqual(Array.from({ length: 50 }, (_, i) => String(2 * i)));
      if (qos > 0) expect(codes.filter(({ status }) => status === 'rejected')).toHaveLength(50);
      expect(asked.splice(0)).toEqual(Array.from({ length: 100 }, () => `sender${qos} t/${qos} ${qos}`));
    }
  });

  it('judge each filter of a SUBSCRIBE', async () => {
    await start({ authorizeSubscribe: async (_, { topic }) => topic.startsWith('own/') });
    const reader = await client();
    const grants = await reader.subscribeAsync({ 'own/#': { qos: 1 }, '#': { qos: 1 } }).catch((error) => error);
    expect(grants.packet.granted).toEqual([1, 0x87]);
    await gateway?.publish('other', 'hidden', { qos: 1 });
    const got = new Promise<string>((resolve) => reader.on('message', (topic) => resolve(topic)));
    await gateway?.publish('own/x', 'shown', { qos: 1 });
    expect(await got).toBe('own/x');
  });

  it('judge the will of a client that has gone, also after a restart', async () => {
    folder = mkdtempSync(join(tmpdir(), 'hooks-'));
    const persistence = { enable: true, path: join(folder, 'db') };
    const more = { persistence, auth: { allow_anonymous: false } };
    const judged: string[] = [];
    const authorizePublish = (who: { clientId: string }, { topic }: { topic: string }): boolean => {
      judged.push(`${who.clientId} ${topic}`);
      return topic !== 'will/no';
    };
    const hooks = { authenticate: () => true, authorizePublish };
    await start(hooks, more);
    const properties = { sessionExpiryInterval: 100 };
    for (const [clientId, topic] of [
      ['a', 'will/no'],
      ['b', 'will/yes'],
    ]) {
      const will = { topic, payload: Buffer.from(clientId), qos: 1 as const, retain: true };
      // After a stop the will waits until the client could have come again: one and a half times the keep alive.
      await client({ clientId, username: clientId, clean: false, keepalive: 1, properties, will });
    }
    await gateway?.stop();
    expect(judged).toEqual([]);
    await start(hooks, more);
    expect(await until('b', 'will/#')).toEqual(['b']);
    await expect.poll(() => judged).toContain('a will/no');
  });

  it('are told of what happens, in order', async () => {
    const told: string[] = [];
    await start({
      connected: ({ clientId }) => told.push(`connected ${clientId}`),
      subscribed: ({ clientId, topicFilter }) => told.push(`subscribed ${clientId} ${topicFilter}`),
      unsubscribed: ({ clientId, topicFilter }) => told.push(`unsubscribed ${clientId} ${topicFilter}`),
      disconnected: ({ clientId }) => told.push(`disconnected ${clientId}`),
      published: ({ topic, payload, qos, retain }, { kind, clientId }) =>
        told.push(`published ${topic} ${Buffer.from(payload)} ${qos} ${retain} by ${kind} ${clientId}`),
    });
    const one = await client({ clientId: 'c' });
    await one.subscribeAsync('s/#');
    await one.publishAsync('p', 'x', { qos: 2, retain: true });
    await one.unsubscribeAsync('s/#');
    await one.endAsync();
    await gateway?.publish('q', 'y');
    await expect.poll(() => told).toHaveLength(6);
    expect(told).toEqual([
      'connected c',
      'subscribed c s/#',
      'published p x 2 true by client c',
      'unsubscribed c s/#',
      'disconnected c',
      'published q y 0 false by api embedded',
    ]);
  });

  it('that are told may publish, and stop nothing when they fail', async () => {
    const made = await start({
      connected: async ({ clientId }) => {
        await made.publish(`hello/${clientId}`, 'welcome', { qos: 1, retain: true });
        throw new Error('late');
      },
      published: () => {
        throw new Error('at once');
      },
    });
    const all = until('welcome', 'hello/#');
    const one = await client({ clientId: 'c' });
    expect(await all).toEqual(['welcome']);
    await one.publishAsync('p', 'x', { qos: 1 });
  });

  it('are refused at createGateway when one is misspelt', () => {
    const hooks = { authorisePublish: () => false } as GatewayHooks;
    expect(() => createGateway({ hocon: '' }, { hooks })).toThrow(/authorisePublish/);
  });
});
