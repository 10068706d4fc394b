// The built command with everything that is loaded on demand at once: each kind of listener, TLS, console and metrics over HTTPS, webhook,
// rules, validation by JSON Schema, quotas, store, recording, NNG over each transport, a bridge to a broker over TLS, a proxy.
// What a bundle has lost shows here. Skipped when nothing has been built (`make test` builds first).
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import mqtt from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { freePort } from '../harness/port.ts';

const MAIN = path.join(import.meta.dirname, '../../dist/main.js');
const runs = existsSync(MAIN) && hasOpenssl();

let folder: string;
let authority: Authority;
let child: ChildProcess;
let text = '';
let ports: Record<string, number>;
const hooked: string[] = [];
const hook = http.createServer((request, response) => {
  request.setEncoding('utf8').on('data', (chunk: string) => hooked.push(chunk));
  request.on('end', () => response.end());
});

function configuration(): string {
  const { ca } = authority;
  const { key, cert } = authority.issue({ name: 'localhost', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
  const tls = `keyfile = "${key}", certfile = "${cert}"`;
  const at = (name: string): string => `127.0.0.1:${ports[name]}`;
  return `
listeners.tcp { bind = "${at('tcp')}" }
listeners.ssl { bind = "${at('ssl')}", ${tls} }
listeners.ws { bind = "${at('ws')}" }
listeners.wss { bind = "${at('wss')}", ${tls} }
listeners.unix.local { path = "${folder}/m.sock" }
persistence { path = "${folder}/data/t.db" }
record { topics = ["rec/#"] }
auth { allow_anonymous = true }
http_server { ip_addr = "127.0.0.1", port = ${ports.http}, username = "admin", password = "right-Pw", tls { ${tls} } }
metrics { bind = "${at('metrics')}", auth = none }
webhook { enable = true, url = "http://${at('hook')}/", events = [ { event = on_message_publish, topic = "hook/#" } ] }
rules.double { from = "rule/in", set { "v" = "payload.v * 2" }, to = "rule/out" }
validation.json { topics = ["schema/#"], content = json, schema = "{\\"type\\":\\"object\\"}" }
quotas.each { per = client, publishes = 100000 }
topics { delayed { enable = true } }
bridges.nng {
  pub.a { enable = true, pub_url = "tcp://${at('nng')}", mode = listen, forwards = [ { local_topic = "nng/#" } ] }
  pub.b { enable = true, pub_url = "ipc://${folder}/n.ipc", mode = listen, forwards = [ { local_topic = "nng/#" } ] }
  pub.c { enable = true, pub_url = "ws://${at('nngws')}/x", mode = listen, forwards = [ { local_topic = "nng/#" } ] }
  pub.d { enable = true, pub_url = "tls+tcp://${at('nngtls')}", mode = listen, tls { ${tls} }, forwards = [ { local_topic = "nng/#" } ] }
}
bridges.mqtt {
  tls { server = "mqtts://localhost:${ports.ssl}", ssl { cacertfile = "${ca}" }, forwards = [ { local_topic = "far/#", remote_topic = "back/tls/#" } ] }
}
proxy.front { enable = true, bind = "${at('proxy')}", default = "here" }
upstreams.here { servers = [ { addr = "${at('tcp')}" } ] }
`;
}

describe.skipIf(!runs)('the built command with everything at once', () => {
  beforeAll(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'everything-'));
    authority = new Authority();
    const names = ['tcp', 'ssl', 'ws', 'wss', 'http', 'metrics', 'hook', 'nng', 'nngws', 'nngtls', 'proxy'];
    ports = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await freePort()] as const)));
    hook.listen(ports.hook, '127.0.0.1');
    const file = path.join(folder, 'all.conf');
    writeFileSync(file, configuration());
    child = spawn(process.execPath, [MAIN, 'start', '-c', file], { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder });
    const ready = new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr])
        stream?.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
          if (text.includes('GW-READY')) resolve();
        });
      child.once('close', () => reject(new Error(`ended: ${text}`)));
    });
    await ready;
  }, 60_000);

  afterAll(async () => {
    if (child !== undefined && child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    hook.close();
    authority?.remove();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  it('carries a message from each kind of listener, and through the proxy', async () => {
    const ca = readFileSync(authority.ca);
    const places: [string, string][] = [
      ['tcp', `mqtt://127.0.0.1:${ports.tcp}`],
      ['ssl', `mqtts://localhost:${ports.ssl}`],
      ['ws', `ws://127.0.0.1:${ports.ws}/mqtt`],
      ['wss', `wss://localhost:${ports.wss}/mqtt`],
      ['proxy', `mqtt://127.0.0.1:${ports.proxy}`],
    ];
    for (const [name, url] of places) {
      const client = await mqtt.connectAsync(url, { ca, reconnectPeriod: 0, protocolVersion: 5 });
      await client.subscribeAsync(`kind/${name}`, { qos: 1 });
      const came = once(client as unknown as NodeJS.EventEmitter, 'message');
      await client.publishAsync(`kind/${name}`, name, { qos: 1 });
      const [topic, payload] = (await came) as [string, Buffer];
      expect(`${topic} ${payload}`).toBe(`kind/${name} ${name}`);
      await client.endAsync();
    }
  }, 60_000);

  it('runs rules, checks payloads, calls the webhook, records, and reaches a broker over TLS', async () => {
    const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${ports.tcp}`, { reconnectPeriod: 0, protocolVersion: 5 });
    const seen = new Map<string, string>();
    client.on('message', (topic, payload) => seen.set(topic, payload.toString()));
    await client.subscribeAsync(['rule/out', 'back/#', 'schema/#'], { qos: 1 });
    await client.publishAsync('rule/in', '{"v":21}', { qos: 1 });
    await expect.poll(() => seen.get('rule/out')).toBe('{"v":42}');
    await client.publishAsync('hook/1', 'called', { qos: 1 });
    await expect.poll(() => hooked.join('')).toContain('called');
    await expect(client.publishAsync('schema/1', '[]', { qos: 1 })).rejects.toThrow();
    await expect
      .poll(async () => {
        await client.publishAsync('far/1', 'there', { qos: 1 });
        return seen.get('back/tls/far/1') ?? seen.get('back/tls/1');
      })
      .toBe('there');
    await client.publishAsync('rec/1', 'kept', { qos: 1 });
    await expect.poll(() => api('recording/messages?topic=rec/1')).toContain('"kept"');
    await client.endAsync();
  }, 60_000);

  it('serves console and metrics, with all NNG bridges listening and no error in the log', async () => {
    expect(JSON.parse(await api('nng/bridges')).data.map(({ state }: { state: string }) => state)).toEqual(
      Array.from({ length: 4 }, () => 'listening'),
    );
    const metrics = await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text();
    expect(metrics).toContain('tidegate_recorded_messages_total');
    expect(text.split('\n').filter((line) => /"level":"(?:error|fatal)"|is not a function/.test(line))).toEqual([]);
  }, 60_000);
});

/** A GET below /api/v4 as admin. */
function api(at: string): Promise<string> {
  const authorization = `Basic ${Buffer.from('admin:right-Pw').toString('base64')}`;
  const options = { ca: readFileSync(authority.ca), headers: { authorization }, agent: false } as const;
  return new Promise((resolve, reject) => {
    https
      .get(`https://localhost:${ports.http}/api/v4/${at}`, options, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('end', () => resolve(body));
      })
      .on('error', reject);
  });
}
