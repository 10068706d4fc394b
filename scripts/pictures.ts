// `make pictures`: the pictures of docs/console.md, one for each page of the console, as WebP in docs/console/. A
// gateway with bridges, clients and traffic is started on loopback ports and looked at with Chromium. Not part of
// `make docs`: pictures differ from run to run.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import mqtt, { type MqttClient } from 'mqtt';
import { chromium, type Page } from 'playwright-core';
import { systemClock } from '../src/base/clock.ts';
import { loadConfig } from '../src/config/load.ts';
import { createGateway } from '../src/gateway/gateway.ts';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const FOLDER = path.join(ROOT, 'docs/console');
const WIDE = { width: 1440, height: 900 };
const NARROW = { width: 390, height: 844 };
/** Seconds of traffic before the first picture, so that charts show something. */
const WARM_S = Number(process.env.PICTURES_WARM ?? 40);
const QUALITY = 0.8;

const CONF = `listeners.tcp { bind = "127.0.0.1:0" }
persistence { path = "{dir}/store.db" }
record { topics = ["plant/#"] }
http_server { ip_addr = "127.0.0.1", port = 0, username = "admin", password = "right-Pw" }
auth { allow_anonymous = true, dynamic_security { enable = true, file = "{dir}/users.json" } }
bridges.nng.pub.analytics {
  enable = true, pub_url = "tcp://127.0.0.1:0"
  forwards = [ { local_topic = "plant/+/temperature", remote_topic = "celsius", nng_delimiter = ":", qos = 1 } ]
}
bridges.nng.sub.results {
  enable = true, sub_url = "tcp://127.0.0.1:0"
  subscription = [ { remote_topic = "result", nng_delimiter = ":" } ]
}
bridges.mqtt.central {
  server = "mqtt-tcp://127.0.0.1:{far}", proto_ver = 5, clientid = "edge-1", clean_start = false
  forwards = [ { local_topic = "plant/#", remote_topic = "plants/edge-1/#", qos = 1 } ]
  subscription = [ { remote_topic = "plants/edge-1/set/#", local_topic = "set/#", qos = 1 } ]
}
rules.hot {
  from = "plant/+/temperature", where = "payload.celsius > 25"
  set { line = "topic", celsius = "payload.celsius" }, to = "alarm/{1}"
}
upstreams.servers { servers = [ { addr = "127.0.0.1:{far}" }, { addr = "127.0.0.1:9" } ] }
proxy.front { bind = "127.0.0.1:0", default = "servers" }
`;

type Gateway = ReturnType<typeof createGateway>;

async function start(folder: string, name: string, conf: string): Promise<{ gateway: Gateway; http: string }> {
  const file = path.join(folder, name);
  writeFileSync(file, conf.replaceAll('{dir}', folder));
  const load = (set?: readonly string[], kept?: string): ReturnType<typeof loadConfig> =>
    loadConfig({ file, set, env: {}, cwd: folder, kept });
  let http = '';
  const log = (_level: string, id: string, fields?: Readonly<Record<string, unknown>>): void => {
    if (id === 'GW-READY') http = String(fields?.http ?? '');
  };
  const gateway = createGateway(load(), { log, clock: systemClock, load, relog: () => {} });
  await gateway.start();
  return { gateway, http };
}

/** Devices that publish until they are ended. */
async function devices(port: number): Promise<{ clients: MqttClient[]; timer: NodeJS.Timeout }> {
  const clients: MqttClient[] = [];
  for (const clientId of ['pump-1', 'pump-2', 'oven-7', 'd3c5a8f0-52a7-4f6e-9b0b-6f2f5b1f3a11']) {
    clients.push(await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { clientId, protocolVersion: 5 }));
  }
  const [watcher] = clients;
  await watcher.subscribeAsync(['alarm/#', 'set/#'], { qos: 1 });
  let n = 0;
  const timer = setInterval(() => {
    n++;
    const celsius = 21 + 5 * Math.sin(n / 40);
    const body = JSON.stringify({ celsius: Number(celsius.toFixed(1)), at: n });
    clients[n % 4].publish(`plant/line${(n % 3) + 1}/temperature`, body, { qos: 1, retain: n % 20 === 0 });
    if (n % 4 === 0) clients[1].publish('plant/line1/pressure', (4 + Math.random() / 5).toFixed(2));
  }, 20);
  return { clients, timer };
}

async function call(http: string, method: string, target: string, body: unknown): Promise<void> {
  const authorization = `Basic ${Buffer.from('admin:right-Pw').toString('base64')}`;
  const headers = { authorization, 'content-type': 'application/json' };
  const answer = await fetch(`http://${http}/api/v4${target}`, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${target}: ${await answer.text()}`);
}

async function accounts(http: string): Promise<void> {
  await call(http, 'PUT', '/mqtt/default_access', { publishClientSend: true, subscribe: true });
  const acls = [{ acltype: 'publishClientSend', topic: 'plant/%u/#', allow: true }];
  await call(http, 'PUT', '/mqtt/roles/publisher', { acls });
  await call(http, 'PUT', '/mqtt/groups/pumps', { roles: ['publisher'] });
  await call(http, 'PUT', '/mqtt/users/pump-1', { password: 'water', groups: ['pumps'] });
  await call(http, 'PUT', '/mqtt/users/pump-2', { password: 'water', groups: ['pumps'], disabled: true });
}

/** Runs in the page: base64 of a PNG becomes a data URL of WebP. */
const PACK = `async (data, quality) => {
  const image = new Image();
  image.src = 'data:image/png;base64,' + data;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext('2d').drawImage(image, 0, 0);
  return canvas.toDataURL('image/webp', quality);
}`;

/** What the page shows, as WebP: Chromium itself packs it. */
async function picture(page: Page, name: string): Promise<void> {
  const png = (await page.screenshot()).toString('base64');
  const webp = String(await page.evaluate(`(${PACK})(${JSON.stringify(png)}, ${QUALITY})`));
  writeFileSync(path.join(FOLDER, `${name}.webp`), Buffer.from(webp.slice(webp.indexOf(',') + 1), 'base64'));
}

async function pages(http: string, shot: (page: Page, name: string) => Promise<void>, viewport = WIDE): Promise<void> {
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport, locale: 'en-US', colorScheme: 'light' });
  await page.goto(`http://${http}/`);
  await page.getByLabel('User').fill('admin');
  await page.getByLabel('Password').fill('right-Pw');
  await page.getByRole('button', { name: 'Log in' }).click();
  // The documents open in a window of their own.
  const links = page.getByRole('navigation', { name: 'Pages', exact: true }).locator('a:not([target])');
  await links.first().waitFor();
  // The overview comes last: by then its charts have something to show.
  const [overview, ...others] = await links.all();
  for (const link of [...others, overview]) {
    const title = ((await link.textContent()) ?? '').trim();
    await link.click();
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
    await page.waitForTimeout(4500);
    await shot(page, title.toLowerCase().replaceAll(' ', '-'));
    if (title === 'Bridges') await bridgeForm(page, shot);
  }
  await browser.close();
}

/** The form of a bridge with a test of its connection. */
async function bridgeForm(page: Page, shot: (page: Page, name: string) => Promise<void>): Promise<void> {
  await page.getByRole('button', { name: 'Change bridge central' }).click();
  const form = page.getByRole('dialog');
  await form.getByRole('button', { name: 'Test connection' }).click();
  const result = form.getByRole('list', { name: 'Result of the test' });
  await result.getByRole('listitem').first().waitFor();
  await result.scrollIntoViewIfNeeded();
  await shot(page, 'bridge-form');
  await form.getByRole('button', { name: 'Cancel' }).click();
}

const folder = mkdtempSync(path.join(tmpdir(), 'pictures-'));
execFileSync(path.join(ROOT, 'node_modules/.bin/tsx'), ['scripts/web.ts'], { cwd: ROOT });
mkdirSync(FOLDER, { recursive: true });
const far = await start(folder, 'far.conf', 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n');
const near = await start(folder, 'edge.conf', CONF.replaceAll('{far}', String(far.gateway.bound[0].port)));
await accounts(near.http);
const { clients, timer } = await devices(near.gateway.bound[0].port);
await new Promise((resolve) => setTimeout(resolve, WARM_S * 1000));
await pages(near.http, picture);
// Phones are looked at, not kept.
const phones = process.env.PICTURES_PHONE;
if (phones !== undefined) {
  mkdirSync(phones, { recursive: true });
  await pages(
    near.http,
    async (page, name) => void (await page.screenshot({ path: path.join(phones, `${name}.png`) })),
    NARROW,
  );
}
clearInterval(timer);
for (const client of clients) await client.endAsync(true);
await near.gateway.stop(2000);
await far.gateway.stop(2000);
rmSync(folder, { recursive: true, force: true });
process.exit(0);
