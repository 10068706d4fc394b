// Plugins of the command, hooks that alter deliveries, and connections over streams of a program: by real clients.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Duplex, duplexPair } from 'node:stream';
import mqtt, { type MqttClient } from 'mqtt';
import { afterEach, describe, expect, test } from 'vitest';
import { isOfFile } from '../../src/gateway/ownerror.ts';
import { createGateway, type EmbeddedGateway, GatewayError, type GatewayHooks } from '../../src/index.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Line = { id: string; fields?: Record<string, unknown> };

async function started(
  conf: string,
  hooks?: GatewayHooks,
  file?: string,
): Promise<{ gateway: EmbeddedGateway; lines: Line[] }> {
  const lines: Line[] = [];
  const source = file === undefined ? { hocon: conf } : { file };
  const gateway = createGateway(source, { hooks, log: (_, id, fields) => lines.push({ id, fields }) });
  await gateway.start();
  cleanups.push(() => gateway.stop(0));
  return { gateway, lines };
}

async function client(gateway: EmbeddedGateway, clientId: string): Promise<MqttClient> {
  const url = `mqtt://${gateway.addresses[0].address}`;
  const made = await mqtt.connectAsync(url, { clientId, protocolVersion: 5, reconnectPeriod: 0 });
  cleanups.push(() => made.end(true));
  return made;
}

/** Payloads that come to a client until one says "end". */
function untilEnd(one: MqttClient): Promise<string[]> {
  const got: string[] = [];
  return new Promise((resolve) => {
    one.on('message', (_, payload) => {
      if (payload.toString() === 'end') resolve(got);
      else got.push(payload.toString());
    });
  });
}

const LISTEN = 'listeners.tcp.bind = "127.0.0.1:0"\n';

describe('a plugin', () => {
  function place(
    files: Readonly<Record<string, string>>,
    plugins: readonly string[],
  ): { folder: string; file: string } {
    const folder = mkdtempSync(path.join(os.homedir(), '.tidegate-plugin-'));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text, { mode: 0o644 });
    const file = path.join(folder, 'gateway.conf');
    writeFileSync(file, `${LISTEN}plugins = ${JSON.stringify(plugins)}\n`);
    return { folder, file };
  }

  const DENY = `export default {
    authorizePublish: (client, { topic }) => topic !== 'no',
    published: () => { throw new Error('oops'); },
  };`;
  const UPPER = `export default ({ log }) => {
    log('hello');
    return { deliver: (message) => ({ payload: Buffer.from(message.payload).toString().toUpperCase() }) };
  };`;

  test('decides and alters, with others; its errors are counted, its time is measured', async () => {
    const { file } = place({ 'deny.mjs': DENY, 'upper.mjs': UPPER }, ['./deny.mjs', 'upper.mjs']);
    const { gateway, lines } = await started('', undefined, file);
    const a = await client(gateway, 'a');
    await a.subscribeAsync('#', { qos: 1 });
    const came = new Promise((resolve) => a.once('message', (topic, payload) => resolve(`${topic} ${payload}`)));
    await expect(a.publishAsync('no', 'x', { qos: 1 })).rejects.toThrow();
    await a.publishAsync('yes', 'quiet', { qos: 1 });
    expect(await came).toBe('yes QUIET');
    expect(lines.filter(({ id }) => id === 'PLUGIN-LOADED')).toHaveLength(2);
    expect(lines.find(({ id }) => id === 'PLUGIN-SAYS')?.fields).toEqual({ plugin: 'upper.mjs', text: 'hello' });
    expect(lines.find(({ id }) => id === 'HOOK-FAILED')?.fields).toMatchObject({ hook: 'published' });
  });

  test('that others can change, or put another one in its place, is not loaded, and nothing starts', async () => {
    const refused = async (prepare: (folder: string) => void, plugin = './p.mjs'): Promise<string> => {
      const { folder, file } = place({ 'p.mjs': 'export default { connected() {} };' }, [plugin]);
      prepare(folder);
      const gateway = createGateway({ file });
      const error: unknown = await gateway.start().then(
        () => gateway.stop(0),
        (reason: unknown) => reason,
      );
      return error instanceof GatewayError ? error.message : 'started';
    };
    expect(await refused(() => {})).toBe('started');
    expect(await refused((folder) => chmodSync(path.join(folder, 'p.mjs'), 0o666))).toContain(
      'can be changed by others',
    );
    expect(await refused((folder) => chmodSync(folder, 0o777))).toContain('can be changed by others');
    expect(await refused(() => {}, './missing.mjs')).toContain('ENOENT');
    const linked = (folder: string): void => {
      mkdirSync(path.join(folder, 'open'));
      writeFileSync(path.join(folder, 'open', 'p.mjs'), 'export default { connected() {} };');
      chmodSync(path.join(folder, 'open'), 0o777);
      symlinkSync(path.join(folder, 'open', 'p.mjs'), path.join(folder, 'link.mjs'));
    };
    expect(await refused(linked, './link.mjs')).toContain('can be changed by others');
    expect(
      await refused((folder) => writeFileSync(path.join(folder, 'p.mjs'), 'export default { typo() {} };')),
    ).toContain('no hook is called "typo"');
    expect(await refused((folder) => writeFileSync(path.join(folder, 'p.mjs'), 'throw new Error("broken")'))).toContain(
      'broken',
    );
  });

  test('of whose file an error is that nothing has caught is known by its stack', () => {
    const error = new Error('x');
    error.stack = `Error: x\n    at f (node:timers:1:1)\n    at Timeout.g (file:///opt/p.mjs:3:9)`;
    expect([isOfFile(error, '/opt/p.mjs'), isOfFile(error, '/opt/other.mjs'), isOfFile('x', '/opt/p.mjs')]).toEqual([
      true,
      false,
      false,
    ]);
    error.stack = `Error: x\n    at g (file:///opt/gateway.js:3:9)\n    at h (file:///opt/p.mjs:3:9)`;
    expect(isOfFile(error, '/opt/p.mjs')).toBe(false);
  });
});

describe('the hook deliver', () => {
  test('drops, replaces and leaves alone, for each client by itself, at each QoS and from the retained store', async () => {
    const { gateway, lines } = await started(LISTEN, {
      deliver: ({ topic, payload }, { clientId }) => {
        if (clientId !== 'seen') return true;
        if (topic === 'end') return true;
        if (topic === 'secret') return false;
        if (topic === 'late') return Promise.resolve(true) as never;
        if (topic === 'wrong') return { properties: { typo: 1 } } as never;
        return { payload: `<${Buffer.from(payload).toString()}>`, properties: { contentType: 'text' } };
      },
    });
    await gateway.publish('kept', 'k', { qos: 1, retain: true });
    const [seen, other] = [await client(gateway, 'seen'), await client(gateway, 'other')];
    const [a, b] = [untilEnd(seen), untilEnd(other)];
    for (const one of [seen, other]) await one.subscribeAsync('#', { qos: 2 });
    for (const qos of [0, 1, 2] as const)
      for (const topic of ['secret', 'wrong', 'late', 'open']) await gateway.publish(topic, `${topic}${qos}`, { qos });
    await gateway.publish('end', 'end', { qos: 2 });
    expect(await a).toEqual(['<k>', '<open0>', '<open1>', '<open2>']);
    expect(await b).toHaveLength(13);
    expect(lines.filter(({ id }) => id === 'HOOK-FAILED').length).toBeGreaterThan(0);
  });
});

describe('a program', () => {
  test('serves clients on streams of its own, by the rules of a listener', async () => {
    const conf = `${LISTEN}auth.allow_anonymous = true\nlisteners.tcp.second { bind = "127.0.0.1:0", mount_point = "m/" }`;
    let left = (): void => {};
    const gone = new Promise<void>((resolve) => (left = resolve));
    const { gateway } = await started(conf, { disconnected: () => left() });
    const [near, far] = duplexPair();
    gateway.accept(far, { listener: 'tcp.second', remoteAddress: '10.1.2.3' });
    const over = new mqtt.MqttClient(() => near as never, {
      clientId: 'tunnel',
      protocolVersion: 5,
      reconnectPeriod: 0,
    });
    cleanups.push(() => over.end(true));
    await new Promise((resolve) => over.once('connect', resolve));
    const came = new Promise((resolve) => gateway.subscribe('#', ({ topic }) => resolve(topic), { retained: false }));
    await over.publishAsync('t', Buffer.alloc(300_000), { qos: 1 });
    expect(await came).toBe('m/t');
    expect([...gateway.clients()]).toMatchObject([{ clientId: 'tunnel', remote: '10.1.2.3', listener: 'tcp.second' }]);
    expect(() => gateway.accept(new Duplex(), { remoteAddress: 'x' })).toThrow('not an IP address');
    over.end();
    await gone;
  });

  test('delays the acknowledgement of a publisher by a promise, and refuses by a rejection', async () => {
    const { gateway, lines } = await started(LISTEN);
    let go = (): void => {};
    const working = new Promise<void>((resolve) => (go = resolve));
    const begun = new Promise<void>((begin) => {
      gateway.subscribe('work', async () => {
        begin();
        await working;
      });
      gateway.subscribe('bad', async () => Promise.reject(new Error('full')));
      gateway.subscribe('throws', () => {
        throw new Error('now');
      });
    });
    const a = await client(gateway, 'a');
    let done = false;
    const sent = a.publishAsync('work', 'x', { qos: 1 }).then(() => (done = true));
    await begun;
    expect(done).toBe(false);
    go();
    await sent;
    await expect(a.publishAsync('bad', 'x', { qos: 1 })).rejects.toThrow();
    await expect(a.publishAsync('throws', 'x', { qos: 1 })).rejects.toThrow();
    await a.publishAsync('throws', 'x', { qos: 0 });
    await a.publishAsync('fine', 'x', { qos: 1 });
    expect(lines.filter(({ id }) => id === 'HOOK-FAILED')).toHaveLength(3);
  });
});
