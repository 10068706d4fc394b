// What admins change in the web console, in a real browser: a bridge to a remote broker added, seen to carry a message, changed and
// removed; users of the console added and removed. Pictures are in the folder that harness/browser.ts names.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import mqtt, { type MqttClient } from 'mqtt';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildPages, faults, launch, missing, type Opened, open, picture } from '../harness/browser.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const BASE = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';

let gateway: TestGateway;
let remote: TestGateway;
let browser: Browser;
let url: string;
let opened: Opened | null = null;
const clients: MqttClient[] = [];
const folder = mkdtempSync(path.join(os.tmpdir(), 'console-admin-'));

async function logIn(page: Page, user: string, password: string): Promise<void> {
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** A page where admin is logged in. */
async function console(title: string): Promise<Page> {
  opened = await open(browser, url);
  const { page } = opened;
  await logIn(page, 'admin', 'right-Pw');
  const pages = page.getByRole('navigation', { name: 'Pages', exact: true });
  await pages.getByRole('link', { name: title, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
  opened.complaints.length = 0;
  return page;
}

async function device(where: TestGateway): Promise<MqttClient> {
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${where.port}`, { reconnectPeriod: 0 });
  clients.push(client);
  return client;
}

/** Topic and payload of the next message. */
function received(from: MqttClient): Promise<string> {
  return new Promise((resolve) => from.once('message', (topic, payload) => resolve(`${topic} ${payload}`)));
}

describe.skipIf(missing !== null)(`changes in the console${missing === null ? '' : `: ${missing}`}`, () => {
  beforeAll(async () => {
    await buildPages();
    remote = await testGateway(`${BASE}auth { allow_anonymous = true, password { gw = "Bridge-Secret-1" } }`);
    gateway = await testGateway(`${BASE}http_server { port = 0, username = "admin", password = "right-Pw" }`);
    url = `http://${String(gateway.messages.find(({ id }) => id === 'GW-READY')?.fields?.http)}/`;
    browser = await launch();
  }, 60_000);

  afterEach(async () => {
    await opened?.page.context().close();
    opened = null;
    for (const client of clients.splice(0)) await client.endAsync(true);
  });

  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
    await remote?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a bridge to a broker is added, refused at its field, corrected, seen carrying, changed and removed', async () => {
    const page = await console('Bridges');
    await page.getByRole('button', { name: 'Add a bridge' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Direction').selectOption('mqtt');
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('SELECT');
    await form.getByLabel('Name').fill('cloud');
    await form.getByLabel('Server').fill('http://127.0.0.1');
    await form.getByLabel('User').fill('gw');
    await form.getByLabel('Password').fill('Bridge-Secret-1');
    await form.getByLabel('Local MQTT topic filter').fill('up/#');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.locator('[aria-invalid=true]').waitFor();
    expect(await form.getByLabel('Server').getAttribute('aria-invalid')).toBe('true');
    expect(await faults(page)).toEqual([]);
    await picture(page, 'remote-bridge-wrong');
    opened?.complaints.splice(0);
    await form.getByLabel('Server').fill(`mqtt-tcp://127.0.0.1:${remote.port}`);
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Bridge cloud added.').waitFor();
    await page.locator('.badge', { hasText: 'connected' }).waitFor();
    const far = await device(remote);
    await far.subscribeAsync(['up/#', 'down/#']);
    const first = received(far);
    await (await device(gateway)).publishAsync('up/1', 'hello', { qos: 1 });
    expect(await first).toBe('up/1 hello');
    await page.getByText('1 in total').waitFor();
    await picture(page, 'remote-bridge');

    await page.getByRole('button', { name: 'Change bridge cloud' }).click();
    expect(await form.getByLabel('Password').inputValue()).toBe('');
    await form.getByRole('button', { name: 'Add a rule remote → local' }).click();
    await form.getByLabel('Remote MQTT topic filter').fill('down/#');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Bridge cloud changed.').waitFor();
    const near = await device(gateway);
    await near.subscribeAsync('down/#');
    await expect.poll(() => gateway.gateway.bridges.get('mqtt', 'cloud')?.state).toBe('connected');
    const second = received(near);
    await far.publishAsync('down/1', 'back', { qos: 1 });
    expect(await second).toBe('down/1 back');

    await page.getByRole('button', { name: 'Remove bridge cloud' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Remove bridge cloud' }).waitFor({ state: 'detached' });
    expect(gateway.gateway.bridges.get('mqtt', 'cloud')).toBeUndefined();
    expect(opened?.complaints).toEqual([]);
  }, 60_000);

  test('a user is added, logs in with his role, and is let in no more when removed', async () => {
    const page = await console('Security');
    await page.getByRole('button', { name: 'Add a user' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Name').fill('eve');
    await form.getByLabel('Role').selectOption('operator');
    await form.getByLabel('Password').fill('short');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.locator('[aria-invalid=true]').waitFor();
    expect(await faults(page)).toEqual([]);
    opened?.complaints.splice(0);
    await form.getByLabel('Password').fill('pw-of-eve');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('User eve added.').waitFor();
    await page.getByRole('button', { name: 'Change user eve' }).waitFor();
    expect(await faults(page)).toEqual([]);
    await picture(page, 'console-users');

    const other = await open(browser, url);
    await logIn(other.page, 'eve', 'pw-of-eve');
    await other.page.getByText('operator', { exact: true }).waitFor();
    expect(await other.page.getByRole('link', { name: 'Security' }).count()).toBe(0);

    await page.getByRole('button', { name: 'Remove user eve' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Remove user eve' }).waitFor({ state: 'detached' });
    await other.page.reload();
    await other.page.getByRole('button', { name: 'Log in' }).waitFor();
    await other.page.context().close();
    expect(opened?.complaints).toEqual([]);
  }, 60_000);

  test('a rule is added, refused at its field, tried on a sample, seen counting, switched off and removed', async () => {
    const page = await console('Rules');
    await page.getByText('No rules yet.').waitFor();
    await page.getByRole('button', { name: 'Add a rule' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Name').fill('hot');
    await form.getByLabel('From: topic filters').fill('sensor/+/data');
    await form.getByLabel('Where (CEL)').fill('payload.temp >');
    await form.getByLabel('To: topic', { exact: true }).fill('alarm/{1}');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.locator('[aria-invalid=true]').waitFor();
    expect(await form.getByLabel('Where (CEL)').getAttribute('aria-invalid')).toBe('true');
    await picture(page, 'rule-refused');
    await form.getByLabel('Where (CEL)').fill('payload.temp > 20');
    expect(await form.locator('[aria-invalid=true]').count()).toBe(0);
    await form.getByRole('button', { name: 'Add a key' }).click();
    await form.getByRole('textbox', { name: 'Key 1' }).fill('t');
    await form.getByLabel('Expression 1').fill('payload.temp');
    await form.getByRole('button', { name: 'Test this rule' }).click();
    await form.getByLabel('Topic of the message').fill('sensor/k1/data');
    await form.getByLabel('Payload', { exact: true }).fill('{"temp":21.5}');
    await form.getByText('{"t":21.5}').waitFor();
    await form.getByText('alarm/k1').waitFor();
    await picture(page, 'rule-form');
    expect(await faults(page)).toEqual([]);
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Rule hot added.').waitFor();

    const client = await device(gateway);
    const got = received(client);
    await client.subscribeAsync('alarm/#');
    await client.publishAsync('sensor/k1/data', '{"temp":30}', { qos: 1 });
    await client.publishAsync('sensor/k1/data', '{"temp":3}', { qos: 1 });
    expect(await got).toBe('alarm/k1 {"t":30}');
    await page.getByText('2 received').waitFor();
    await page.getByText('1 filtered').waitFor();
    await picture(page, 'rules');
    await page.setViewportSize({ width: 390, height: 844 });
    await picture(page, 'rules-phone');
    expect(await faults(page)).toEqual([]);

    await page.getByLabel('Rule hot on').click();
    await page.getByText('Rule hot is off.').waitFor();
    await page.getByRole('button', { name: 'Remove rule hot' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('No rules yet.').waitFor();
  });

  test('a bridge of requests and one with a preset are added, and show their settings when changed', async () => {
    const page = await console('Bridges');
    await page.getByRole('button', { name: 'Add a bridge' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Direction').selectOption('req');
    await form.getByLabel('Name').fill('ask');
    await form.getByLabel('Topic filter of requests').fill('ask/#');
    await picture(page, 'bridge-req');
    expect(await faults(page)).toEqual([]);
    await form.getByLabel('Addresses, one per line').fill(`ipc://${folder}/ask.ipc`);
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'Add a bridge' }).click();
    await form.getByLabel('Direction').selectOption('pair');
    await form.getByLabel('Name').fill('rules-engine');
    await form.getByLabel('Preset').selectOption('ekuiper');
    await picture(page, 'bridge-preset');
    expect(await faults(page)).toEqual([]);
    await form.getByLabel('Addresses, one per line').fill(`ipc://${folder}/e.ipc`);
    await form.getByLabel('MQTT topic filter').fill('sensor/#');
    await form.getByLabel('MQTT topic', { exact: true }).fill('ekuiper/result');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(gateway.gateway.bridges.get('req', 'ask')).toMatchObject({ state: 'listening' });
    expect(gateway.gateway.bridges.get('pair', 'rules-engine')).toMatchObject({ state: 'listening' });
    await page.getByRole('button', { name: 'Change bridge rules-engine' }).click();
    expect(await form.getByLabel('Preset').inputValue()).toBe('ekuiper');
  });
});
