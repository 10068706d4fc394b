// What operators set up in the web console, in a real browser: a bridge over TLS to mosquitto with a private authority,
// tested and added in the form alone; MQTT users, groups and roles; why a client that is away may do something.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import mqtt from 'mqtt';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildPages, faults, launch, missing, type Opened, open, picture } from '../harness/browser.ts';
import { Authority } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';

const why = missing ?? (programPath('mosquitto') === null ? 'mosquitto is not installed' : null);
const BASE = `listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
http_server { port = 0, username = "admin", password = "right-Pw" }
`;
const folder = mkdtempSync(path.join(os.tmpdir(), 'console-operator-'));

let authority: Authority;
let broker: Mosquitto;
let gateway: TestGateway;
/** With users that are managed at run time. */
let guarded: TestGateway;
let browser: Browser;
let opened: Opened | null = null;

async function console(at: TestGateway, title: string): Promise<Page> {
  const http = at.messages.find(({ id }) => id === 'GW-READY')?.fields?.http;
  opened = await open(browser, `http://${String(http)}/`);
  const { page } = opened;
  await page.getByLabel('User').fill('admin');
  await page.getByLabel('Password').fill('right-Pw');
  await page.getByRole('button', { name: 'Log in' }).click();
  await show(page, title);
  return page;
}

async function show(page: Page, title: string): Promise<void> {
  const pages = page.getByRole('navigation', { name: 'Pages', exact: true });
  await pages.getByRole('link', { name: title, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
}

describe.skipIf(why !== null)(`what operators set up${why === null ? '' : `: ${why}`}`, () => {
  beforeAll(async () => {
    await buildPages();
    authority = new Authority('Plant Authority');
    const pair = authority.issue({ name: 'broker', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
    const users = path.join(folder, 'users');
    writeFileSync(users, 'gw:secret\n');
    const { execFileSync } = await import('node:child_process');
    execFileSync(programPath('mosquitto_passwd') ?? 'mosquitto_passwd', ['-U', users]);
    broker = await Mosquitto.start([
      `certfile ${pair.cert}`,
      `keyfile ${pair.key}`,
      'allow_anonymous false',
      `password_file ${users}`,
    ]);
    gateway =
      await testGateway(`${BASE}bridges.nng.pub.quiet { enable = false, pub_url = "tcp://127.0.0.1:9955", forwards = [ { local_topic = "a" } ] }
`);
    const file = path.join(folder, 'dynsec.json');
    guarded = await testGateway(`${BASE}auth.dynamic_security { enable = true, file = "${file}" }\n`);
    browser = await launch();
  }, 60_000);

  afterEach(async () => {
    await opened?.page.context().close();
    opened = null;
  });

  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
    await guarded?.stop();
    await broker?.stop();
    authority?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a bridge over TLS to a broker with a private authority is tested and added in the form alone', async () => {
    const page = await console(gateway, 'Bridges');
    // One that is off shows where it would listen.
    await page.getByText('tcp://127.0.0.1:9955').waitFor();
    await page.getByRole('button', { name: 'Add a bridge' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Direction').selectOption('mqtt');
    await form.getByLabel('Name', { exact: true }).fill('central');
    await form.getByLabel('Server', { exact: true }).fill(`tls+mqtt-tcp://127.0.0.1:${broker.port}`);
    expect(await form.getByLabel('MQTT version').inputValue()).toBe('5');
    expect(await form.getByLabel('Durable session').isChecked()).toBe(true);
    await form.getByLabel('Local MQTT topic filter').fill('up/#');
    const test = form.getByRole('button', { name: 'Test connection' });
    const result = form.getByRole('list', { name: 'Result of the test' });

    await test.click();
    await result.getByText(/authority that is not trusted/).waitFor();
    const field = form.getByRole('textbox', { name: 'Certificate authority' });
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    await picture(page, 'bridge-untrusted');

    await form.getByLabel('Read a file: Certificate authority').setInputFiles(authority.ca);
    await expect.poll(() => field.inputValue()).toContain('BEGIN CERTIFICATE');
    await test.click();
    await result.getByText(/not authorised: user name/).waitFor();
    expect(await form.getByLabel('User').getAttribute('aria-invalid')).toBe('true');

    await form.getByLabel('User').fill('gw');
    await form.getByLabel('Password', { exact: true }).fill('secret');
    await test.click();
    await result.getByText('accepted').waitFor();
    await result.getByText(/localhost, 127\.0\.0\.1 · issued by CN=Plant Authority/).waitFor();
    expect(await faults(page)).toEqual([]);
    await picture(page, 'bridge-tested');

    await form.getByRole('button', { name: 'Save', exact: true }).click();
    await form.waitFor({ state: 'detached' });
    const card = page.locator('section.panel', { hasText: 'central' });
    await card.getByText('connected').first().waitFor();

    // It carries a message, and the session at the broker is durable under a name of its own.
    const watcher = await mqtt.connectAsync(`mqtts://127.0.0.1:${broker.port}`, {
      ca: readFileSync(authority.ca),
      ...{ username: 'gw', password: 'secret' },
    });
    await watcher.subscribeAsync('up/#', { qos: 1 });
    const arrived = new Promise((resolve) => watcher.once('message', (topic) => resolve(topic)));
    const device = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { reconnectPeriod: 0 });
    await device.publishAsync('up/1', 'x', { qos: 1 });
    expect(await arrived).toBe('up/1');
    await device.endAsync();
    await watcher.endAsync();
    const status = gateway.gateway.bridges.list().find(({ name }) => name === 'central');
    expect(status?.clientId).toBe('tidegate-central');
    expect(status?.options).toMatchObject({
      cleanStart: false,
      connProperties: { sessionExpiryIntervalSeconds: 86_400 },
    });
    const kept = path.join(gateway.folder, 'tidegate.d', '50-console.conf');
    await expect.poll(() => existsSync(kept)).toBe(true);
    expect(statSync(kept).mode & 0o777).toBe(0o600);
    expect(readFileSync(kept, 'utf8')).toContain('BEGIN CERTIFICATE');

    // Tested again as it runs, from its card; the bridge keeps its connection.
    await card.getByRole('button', { name: 'Test connection' }).click();
    await card.getByRole('list', { name: 'Result of the test' }).getByText('accepted').waitFor();
    expect(gateway.gateway.bridges.list().find(({ name }) => name === 'central')?.remote?.connects).toBe(1);

    // Changed without touching its secrets.
    await page.getByRole('button', { name: 'Change bridge central' }).click();
    expect(
      await page.getByRole('dialog').getByRole('textbox', { name: 'Certificate authority' }).inputValue(),
    ).toContain('CERTIFICATE');
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await card.getByText('connected').first().waitFor();
    await show(page, 'Overview');
    await page.getByText('central').first().waitFor();
  }, 60_000);

  test('a role, a group and a user are added, used, disabled and removed', async () => {
    const page = await console(guarded, 'MQTT users');
    await page.getByRole('button', { name: 'Roles', exact: true }).click();
    await page.getByRole('button', { name: 'Add a role' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('sender');
    await dialog.getByLabel('Topic filter').fill('plant/#');
    await picture(page, 'mqtt-role');
    expect(await faults(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('cell', { name: 'sender', exact: true }).waitFor();

    await page.getByRole('button', { name: 'Groups', exact: true }).click();
    await page.getByRole('button', { name: 'Add a group' }).click();
    await dialog.getByLabel('Name', { exact: true }).fill('pumps');
    await dialog.getByLabel('Roles').fill('no-such-role');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByLabel('Roles').fill('sender');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('cell', { name: 'pumps', exact: true }).waitFor();

    await page.getByRole('button', { name: 'Users', exact: true }).click();
    await page.getByRole('button', { name: 'Add an MQTT user' }).click();
    await dialog.getByLabel('Name', { exact: true }).fill('pump-7');
    await dialog.getByLabel('Password').fill('water');
    await dialog.getByLabel('Groups').fill('pumps');
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    await page
      .getByRole('row', { name: /pump-7/ })
      .getByText('pumps')
      .waitFor();
    await picture(page, 'mqtt-users');

    const login = { username: 'pump-7', password: 'water', reconnectPeriod: 0, protocolVersion: 5 as const };
    const device = await mqtt.connectAsync(`mqtt://127.0.0.1:${guarded.port}`, login);
    await device.publishAsync('plant/1', 'x', { qos: 1 });
    await expect(device.publishAsync('other', 'x', { qos: 1 })).rejects.toThrow();
    const gone = new Promise((resolve) => device.once('close', () => resolve(null)));
    await page.getByRole('switch', { name: 'pump-7 may log in' }).click();
    await gone;

    // Why: also for a client that is not connected, and as whom.
    await show(page, 'Security');
    const explain = page.locator('section.panel', { hasText: 'Check a permission' });
    await explain.getByLabel('Client id').fill('somebody');
    await explain.getByLabel('Topic').fill('plant/1');
    await explain.getByLabel('User').fill('pump-7');
    await explain.getByRole('button', { name: 'Explain' }).click();
    await explain
      .getByText('This client is not connected. Judged as: user pump-7, any listener, any address.')
      .waitFor();

    await show(page, 'MQTT users');
    await page.getByRole('button', { name: 'Remove pump-7' }).click();
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByRole('row', { name: /pump-7/ }).waitFor({ state: 'detached' });
    expect(await faults(page)).toEqual([]);
  }, 60_000);
});

/** Texts of the page, and those that are read out, without what is code or comes from outside. */
const TEXTS = `(() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    if (node.parentElement.closest('code, pre, script, style, .payload-box, .log-fields, .setting-key, noscript, main [lang=en], button[lang]') === null)
      found.push(node.data);
  }
  for (const element of document.querySelectorAll('[aria-label], [title], [placeholder]'))
    for (const name of ['aria-label', 'title', 'placeholder']) found.push(element.getAttribute(name) ?? '');
  return found.map((text) => text.trim()).filter((text) => text !== '');
})()`;
/** Two English words in a row; names of products, protocols and values of the configuration are none. */
const ENGLISH = /\b[a-z]{3,} [a-z]{2,}\b/i;
/** As MQTT writes the names of its properties. */
const PROPERTIES = /(?:[A-Z][a-z]+ ){1,3}[A-Z][a-z]+/g;
const NAMES =
  /Tidegate \d|Node\.js|User Property|MQTT|NNG|JSON|PEM|CEL|QoS|WebSocket|\bCN=|tidegate passwd|Basic Auth/g;

describe.skipIf(why !== null)('the pages in Chinese', () => {
  test('hold no English sentence, in dialogs and refusals neither', async () => {
    const browserHere = await launch();
    const dynsec = path.join(mkdtempSync(path.join(os.tmpdir(), 'zh-')), 'ds.json');
    const at = await testGateway(`${BASE}auth.dynamic_security { enable = true, file = "${dynsec}" }
bridges.nng.pub.out { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "a" } ] }
bridges.mqtt.far { server = "mqtts://127.0.0.1:1", forwards = [ { local_topic = "a" } ] }
rules.r { from = "a/#", to = "b" }
upstreams.pool { servers = [ { addr = "127.0.0.1:9" } ] }
proxy.front { bind = "127.0.0.1:0", default = "pool" }
`);
    const http = at.messages.find(({ id }) => id === 'GW-READY')?.fields?.http;
    const { page } = await open(browserHere, `http://${String(http)}/`, { locale: 'zh-CN' });
    const wrong: string[] = [];
    const look = async (where: string): Promise<void> => {
      const texts = (await page.evaluate(TEXTS)) as string[];
      for (const text of texts)
        if (ENGLISH.test(text.replace(PROPERTIES, ' ').replace(NAMES, ' '))) wrong.push(`${where}: ${text}`);
    };
    await look('login');
    await page.getByLabel('用户').fill('admin');
    await page.getByLabel('密码').fill('wrong');
    await page.getByRole('button', { name: '登录' }).click();
    await page.getByRole('alert').waitFor();
    await look('refused');
    await page.getByLabel('密码').fill('right-Pw');
    await page.getByRole('button', { name: '登录' }).click();
    // The documents open in a window of their own.
    const links = page.getByRole('navigation', { name: '页面', exact: true }).locator('a:not([target])');
    await links.first().waitFor();
    for (const link of await links.all()) {
      const title = ((await link.textContent()) ?? '').trim();
      await link.click();
      await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
      // What the page loads is there, or says that there is nothing.
      await page.locator('main .panel, main .empty, main table, main form').first().waitFor();
      if (title === '配置')
        await page.getByRole('checkbox', { name: '仅显示已修改的项' }).or(page.getByRole('checkbox')).first().uncheck();
      await look(title);
      expect(await faults(page)).toEqual([]);
    }
    // The form of a bridge, a refusal at its field, and the steps of a test.
    await links.filter({ hasText: '桥接' }).first().click();
    await page.getByRole('button', { name: '修改桥接 far' }).click();
    const form = page.getByRole('dialog');
    await form.getByRole('button', { name: '测试连接' }).click();
    await form.getByText('连接被拒绝').first().waitFor();
    await form.getByLabel('保活时间').fill('soon');
    await form.getByRole('button', { name: '保存' }).click();
    await form.locator('.note.problem').first().waitFor();
    await look('form');
    await at.stop();
    await browserHere.close();
    expect(wrong).toEqual([]);
  }, 90_000);
});
