// What the console shows of the past, in a real browser: charts over longer ranges with their values under the pointer, events, recorded
// messages as a list and a chart, published again. Pictures are in the folder that harness/browser.ts names.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import mqtt, { type MqttClient } from 'mqtt';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildPages, faults, launch, missing, type Opened, open, picture } from '../harness/browser.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { freePort } from '../harness/port.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'console-past-'));
const CONF = `listeners.tcp { bind = "127.0.0.1:0" }
persistence { path = "${folder}/data/t.db" }
record { topics = ["plant/#"] }
http_server { port = 0 }
`;

let gateway: TestGateway;
let browser: Browser;
let client: MqttClient;
let opened: Opened | null = null;

async function start(): Promise<void> {
  gateway = await testGateway(CONF);
  client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { reconnectPeriod: 0 });
}

async function console(title: string, more: Parameters<typeof open>[2] = {}): Promise<Page> {
  const http = String(gateway.messages.find(({ id }) => id === 'GW-READY')?.fields?.http);
  opened = await open(browser, `http://${http}/`, more);
  const { page } = opened;
  const pages = page.getByRole('navigation', { name: 'Pages', exact: true });
  await pages.getByRole('link', { name: title, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
  return page;
}

describe.skipIf(missing !== null)(`the past in the console${missing === null ? '' : `: ${missing}`}`, () => {
  beforeAll(async () => {
    await buildPages();
    await start();
    for (let i = 0; i < 30; i++)
      await client.publishAsync(`plant/${i % 2}`, JSON.stringify({ temperature: 20 + i }), { qos: 1 });
    await client.endAsync();
    // A restart: what is shown from here on has been kept.
    await gateway.stop();
    await start();
    browser = await launch();
  }, 60_000);

  afterEach(async () => {
    expect(opened?.complaints).toEqual([]);
    await opened?.page.context().close();
    opened = null;
  });

  afterAll(async () => {
    await client?.endAsync(true);
    await browser?.close();
    await gateway?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('charts of an hour have what was before the restart, and show time and values under the pointer', async () => {
    const page = await console('Overview');
    await page.getByRole('group', { name: 'Range of the charts' }).getByRole('button', { name: '1h' }).click();
    const chart = page.getByRole('img', { name: /^Connections/ });
    await chart.locator('canvas').waitFor();
    const figure = page.locator('figure.chart', { has: chart });
    await expect.poll(() => figure.getByText('0', { exact: true }).count()).toBeGreaterThan(0);
    await chart.hover();
    await figure.locator('.chart-time').waitFor();
    expect(await figure.locator('.chart-time').textContent()).toMatch(/\d\d:\d\d:\d\d/);
    expect(await faults(page)).toEqual([]);
    await picture(page, 'overview-hour');
  }, 60_000);

  test('events from before the restart are there, by kind and text', async () => {
    const page = await console('Events');
    await expect.poll(() => page.locator('.log-line', { hasText: 'ready' }).count()).toBe(2);
    // Nobody logs in here; an alarm may come from a busy machine.
    await page.getByLabel('Kind').selectOption('login');
    await page.getByText('No events in this time.').waitFor();
    await page.getByLabel('Kind').selectOption('gateway');
    await page.getByLabel('Text or field').fill('stops');
    await expect.poll(() => page.locator('.log-line').count()).toBe(1);
    expect(await faults(page)).toEqual([]);
    await picture(page, 'events');
  }, 60_000);

  test('recorded messages are listed, drawn, and published again', async () => {
    const page = await console('Recording');
    await page.getByLabel('Topic filter').fill('plant/1');
    await expect.poll(() => page.locator('.recorded > li').count()).toBe(15);
    await page.locator('.recorded > li').first().getByRole('button').click();
    await page.locator('.recorded-one').getByText('"temperature": 49').waitFor();
    await page.getByLabel('Field of the JSON').fill('temperature');
    await page.getByRole('button', { name: 'Draw' }).click();
    await page.getByRole('img', { name: /^temperature\. plant\/1: \d+/ }).waitFor();
    await client.subscribeAsync('again/#', { qos: 1 });
    const came: string[] = [];
    client.on('message', (topic, payload) => came.push(`${topic} ${payload}`));
    await page.getByLabel('Prefix of the topics').fill('again/');
    await page.getByLabel('Speed').selectOption('0');
    await page.getByRole('button', { name: 'Publish again' }).click();
    await page.getByText('15 published').waitFor();
    await expect.poll(() => came.length).toBe(15);
    expect(came[0]).toBe('again/plant/1 {"temperature":21}');
    expect(await faults(page)).toEqual([]);
    await picture(page, 'recording');
  }, 60_000);

  test('a recorded topic shows its history: messages and a number of them over time, below its values', async () => {
    const page = await console('Topics');
    await client.publishAsync('plant/9', JSON.stringify({ site: { t: 7 }, name: 'a' }), { qos: 1, retain: true });
    await page.getByRole('searchbox').fill('plant/9');
    await page.getByRole('button', { name: /^9 / }).click();
    await expect
      .poll(async () => {
        const url = new URL('/api/v4/recording/messages?topic=plant/9', page.url());
        return ((await (await page.request.get(url.href)).json()) as { data: unknown[] }).data.length;
      })
      .toBe(1);
    // The history is asked for when a topic is chosen.
    await page.getByRole('searchbox').fill('plant');
    // The branch below again/ stands before it.
    await page
      .getByRole('button', { name: /^plant/ })
      .last()
      .click();
    await page.getByRole('button', { name: /^9 / }).click();
    const history = page.getByRole('region', { name: 'Recorded messages' });
    await expect.poll(() => history.locator('.recorded > li').count()).toBe(1);
    await history.getByRole('img', { name: /^site\.t\. plant\/9: 7/ }).waitFor();
    await history.locator('.recorded > li').getByRole('button').click();
    await history.locator('.recorded-one').getByText('"t": 7').waitFor();
    const order = await page.locator('h3').allTextContents();
    expect(order.indexOf('Retained message')).toBeLessThan(order.indexOf('Recorded messages'));
    expect(await faults(page)).toEqual([]);
  }, 60_000);

  test('a topic shows its last message, which value has changed, and a number over time', async () => {
    const page = await console('Topics');
    const publish = (t: number): Promise<unknown> =>
      client.publishAsync('hall/1', JSON.stringify({ t, name: 'north' }), { qos: 1, retain: true });
    await publish(20);
    await page.getByRole('searchbox').fill('hall/1');
    await page.getByRole('button', { name: /^1 / }).click();
    const values = page.getByRole('region', { name: 'Values' });
    await values.getByText('20', { exact: true }).waitFor();
    await publish(21);
    await values.locator('tr.changed', { hasText: '21' }).waitFor();
    expect(await values.locator('tr.changed').count()).toBe(1);
    await page.getByRole('img', { name: /^t\. value: 21/ }).waitFor();
    await page.getByRole('group', { name: 'Show payload as' }).first().getByRole('button', { name: 'CBOR' }).click();
    await page.getByText('Not valid CBOR.').waitFor();
    expect(await faults(page)).toEqual([]);
    await picture(page, 'topic-value');
  }, 60_000);

  test('a message is published with all properties from a template that the browser keeps', async () => {
    const page = await console('Messages');
    await page.getByLabel('Topic', { exact: true }).fill('tpl/1');
    await page.getByLabel('Payload', { exact: true }).fill('hello');
    await page.getByText('Properties', { exact: true }).click();
    await page.getByLabel('User properties').fill('unit: C');
    await page.getByLabel('Expires after (seconds)').fill('60');
    await page.getByText('Templates', { exact: true }).click();
    await page.getByLabel('Save as').fill('greeting');
    await page.getByRole('button', { name: 'Save template' }).click();
    await page.reload();
    await page.getByText('Templates', { exact: true }).click();
    await page.getByLabel('Template', { exact: true }).selectOption('greeting');
    const five = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, {
      reconnectPeriod: 0,
      protocolVersion: 5,
    });
    await five.subscribeAsync('tpl/1');
    const came = new Promise<{ payload: string; user: unknown; expiry: unknown }>((resolve) =>
      five.once('message', (_topic, payload, packet) =>
        resolve({
          payload: payload.toString(),
          user: { ...packet.properties?.userProperties },
          expiry: packet.properties?.messageExpiryInterval,
        }),
      ),
    );
    await page.getByRole('button', { name: 'Publish', exact: true }).click();
    expect(await came).toEqual({ payload: 'hello', user: { unit: 'C' }, expiry: 60 });
    await five.endAsync(true);
  }, 60_000);

  test('the pages fit a phone', async () => {
    const page = await console('Recording', { viewport: { width: 390, height: 844 } }).catch(() => null);
    if (page === null) throw new Error('the page was not reached');
    await page.locator('.recorded > li').first().waitFor();
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    expect(overflow).toBeLessThanOrEqual(0);
    await picture(page, 'recording-phone');
  }, 60_000);
});

describe.skipIf(missing !== null)(`logins over a restart${missing === null ? '' : `: ${missing}`}`, () => {
  const place = mkdtempSync(path.join(os.tmpdir(), 'console-logins-'));
  const conf = (port: number, password: string): string => `listeners.tcp { bind = "127.0.0.1:0" }
persistence { path = "${place}/data/t.db" }
http_server { port = ${port}, username = "admin", password = "${password}" }
`;
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  async function logIn(page: Page, password: string): Promise<void> {
    await page.getByLabel('User').fill('admin');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
  }

  test('a restart leaves people logged in; a new password ends it, and what was being typed survives the login', async () => {
    const port = await freePort();
    const chromium = await launch();
    let running = await testGateway(conf(port, 'first-Pw'));
    try {
      const { page } = await open(chromium, `http://127.0.0.1:${port}/`);
      await logIn(page, 'first-Pw');
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
      await running.stop();
      running = await testGateway(conf(port, 'first-Pw'));
      await page.reload();
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
      const pages = page.getByRole('navigation', { name: 'Pages', exact: true });
      await pages.getByRole('link', { name: 'Bridges', exact: true }).click();
      await page.getByRole('button', { name: 'Add a bridge' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('half-typed');
      await running.stop();
      running = await testGateway(conf(port, 'second-Pw'));
      await page.getByText('The session has ended. Log in to go on.').waitFor({ timeout: 30_000 });
      await picture(page, 'login-again');
      expect(await page.getByLabel('Name').isVisible()).toBe(false);
      await logIn(page, 'second-Pw');
      const name = page.getByRole('dialog').getByLabel('Name');
      await name.waitFor();
      expect(await name.inputValue()).toBe('half-typed');
    } finally {
      await chromium.close();
      await running.stop();
    }
  }, 90_000);
});
