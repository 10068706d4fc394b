// The web console in a real browser, before a real gateway: logging in, every page, bridges, clients, messages, look and access.
// Pictures of what was seen are in the folder that harness/browser.ts names.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import mqtt, { type MqttClient } from 'mqtt';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadPages } from '../../src/console/pages.ts';
import { ConsoleStage, VIEWER } from '../console/standins.ts';
import { buildPages, faults, launch, missing, type Opened, open, picture } from '../harness/browser.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { HELLO, RawSp } from '../harness/rawsp.ts';

const CONF = `
listeners.tcp { bind = "127.0.0.1:0" }
http_server { ip_addr = "127.0.0.1", port = 0, username = "admin", password = "right-Pw" }
auth { allow_anonymous = true, password { "carol" : "pw" }, acl { rules = [
  { permit = deny, username = "carol", action = publish, topics = ["secret/#"] } ] } }
bridges.nng.pub.out {
  enable = true, pub_url = "tcp://127.0.0.1:0"
  forwards = [ { local_topic = "sensor/#", remote_topic = "sensors", nng_delimiter = ":" } ]
}
upstreams.pool { servers = [ { addr = "127.0.0.1:9" } ] }
proxy.front { bind = "127.0.0.1:0", default = "pool" }
log { level = info }
`;
const PAGES = [
  ...['Overview', 'Bridges', 'Clients', 'Topics', 'Messages', 'Proxy', 'Security', 'Configuration', 'Log'],
] as const;

let gateway: TestGateway;
let browser: Browser;
let url: string;
let opened: Opened | null = null;
const clients: MqttClient[] = [];

async function logIn(page: Page, password = 'right-Pw'): Promise<void> {
  await page.getByLabel('User').fill('admin');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** A page where admin is logged in; complaints from before that (the question who is logged in) are forgotten. */
async function console(more: Parameters<typeof open>[2] = {}): Promise<Page> {
  opened = await open(browser, url, more);
  await logIn(opened.page);
  await opened.page.getByRole('navigation', { name: 'Pages', exact: true }).waitFor();
  opened.complaints.length = 0;
  return opened.page;
}

async function show(page: Page, title: string): Promise<void> {
  await page
    .getByRole('navigation', { name: 'Pages', exact: true })
    .getByRole('link', { name: title, exact: true })
    .click();
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
}

async function device(clientId: string): Promise<MqttClient> {
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${gateway.port}`, { clientId, reconnectPeriod: 0 });
  clients.push(client);
  return client;
}

describe.skipIf(missing !== null)(`the console${missing === null ? '' : `: ${missing}`}`, () => {
  beforeAll(async () => {
    await buildPages();
    gateway = await testGateway(CONF);
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
  });

  test('a wrong password is told on the login page, the right one opens the overview', async () => {
    opened = await open(browser, url);
    const { page } = opened;
    await logIn(page, 'wrong');
    await page.getByText('Wrong user name or password.').waitFor();
    expect(await faults(page)).toEqual([]);
    await picture(page, 'login-failed');
    await logIn(page);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
  });

  test.each(['light', 'dark'] as const)(
    'every page shows itself in %s without a complaint and without a serious fault',
    async (colorScheme) => {
      const client = await device('lamp-1');
      await client.subscribeAsync('cmd/#');
      await client.publishAsync('state/lamp-1', '{"on":true}', { retain: true });
      const page = await console({ colorScheme });
      for (const title of PAGES) {
        await show(page, title);
        await page.waitForLoadState('load');
        if (title === 'Overview') await page.getByText('Messages in', { exact: true }).waitFor();
        if (title === 'Clients') await page.getByRole('button', { name: 'lamp-1', exact: true }).waitFor();
        if (title === 'Topics') {
          await page.getByRole('button', { name: 'lamp-1' }).click();
          await page.getByText('"on": true').waitFor();
        }
        if (title === 'Proxy') await page.getByRole('button', { name: 'Drain' }).waitFor();
        if (title === 'Log') await page.getByText('GW-READY').waitFor();
        expect(await faults(page), title).toEqual([]);
        await picture(page, `${title.toLowerCase()}-${colorScheme}`);
      }
      expect(opened?.complaints).toEqual([]);
    },
    120_000,
  );

  test('pages fit a telephone without scrolling sideways', async () => {
    const page = await console({ viewport: { width: 390, height: 844 } });
    for (const title of PAGES) {
      await show(page, title);
      const [wide, shown] = await page.evaluate<[number, number]>(
        '[document.documentElement.scrollWidth, document.querySelector("main").scrollWidth]',
      );
      expect([title, wide, shown]).toEqual([title, 390, 390]);
      await picture(page, `${title.toLowerCase()}-phone`);
    }
  }, 60_000);

  test('dark and light are switched by hand and kept', async () => {
    const page = await console({ colorScheme: 'light' });
    const background = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await background();
    await page.getByRole('button', { name: 'Theme: system' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
    expect(await background()).toBe(dark);
  });

  test('the language is switched and kept', async () => {
    const page = await console();
    await page.getByRole('button', { name: '中文' }).click();
    await page.getByRole('heading', { level: 1, name: '概览' }).waitFor();
    expect(await page.evaluate('document.documentElement.lang')).toBe('zh');
    await page.reload();
    await page.getByRole('link', { name: '桥接', exact: true }).first().waitFor();
    await picture(page, 'overview-chinese');
  });

  test('a bridge is added by hand and a frame from a peer arrives as a message', async () => {
    const page = await console();
    await show(page, 'Bridges');
    await page.getByRole('button', { name: 'Add a bridge' }).click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Direction').selectOption('sub');
    await form.getByLabel('Name').fill('probe');
    await form.getByLabel('Addresses, one per line').fill('tcp://127.0.0.1:0');
    await form.getByLabel('NNG prefix').fill('can');
    await form.getByRole('button', { name: 'Test this rule' }).click();
    await form.getByLabel('Frame from NNG').fill('can/1:hello');
    await form.getByText('and published as').waitFor();
    expect(await faults(page)).toEqual([]);
    await picture(page, 'bridge-form');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Bridge probe added.').waitFor();
    const kept = (): string => readFileSync(path.join(gateway.folder, 'tidegate.d/50-console.conf'), 'utf8');
    expect(kept()).toContain('probe {');
    const end = await page
      .getByText(/^tcp:\/\/127\.0\.0\.1:[1-9]\d*$/)
      .last()
      .textContent();
    const bound = gateway.gateway.bridges.get('sub', 'probe')?.endpoints[0]?.bound ?? end ?? '';

    await show(page, 'Messages');
    await page.getByLabel('Topic filter').fill('can/#');
    await page.getByRole('button', { name: 'Subscribe' }).click();
    await page.locator('.tools .badge', { hasText: 'Live' }).waitFor();
    const peer = new RawSp(Number(new URL(bound.replace('tcp:', 'http:')).port));
    peer.write(HELLO.pub);
    await peer.take(8);
    const body = Buffer.from('can/1:hello');
    const head = Buffer.alloc(8);
    head.writeBigUInt64BE(BigInt(body.length));
    peer.write(Buffer.concat([head, body]).toString('hex'));
    await page.getByRole('button', { name: 'can/1' }).click();
    await page.getByText('nng:probe').waitFor();
    await picture(page, 'message-crossed');
    peer.destroy();

    await show(page, 'Bridges');
    await page.getByRole('button', { name: 'Remove bridge probe' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Remove bridge probe' }).waitFor({ state: 'detached' });
    expect(kept()).not.toContain('probe');
    expect(opened?.complaints).toEqual([]);
  }, 60_000);

  test('a wrong rule is told at its field and changes nothing', async () => {
    const page = await console();
    await show(page, 'Bridges');
    await page.getByRole('button', { name: 'Change bridge out' }).click();
    const filter = page.getByRole('dialog').getByLabel('MQTT topic filter');
    await filter.fill('sensor/#/wrong');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('[aria-invalid=true]').waitFor();
    expect(await filter.getAttribute('aria-invalid')).toBe('true');
    const note = await filter.getAttribute('aria-describedby');
    expect(await page.locator(`[id="${note}"]`).textContent()).toContain('local_topic');
    await picture(page, 'bridge-wrong');
    const bridge = gateway.gateway.bridges.get('pub', 'out');
    expect(bridge?.options).toMatchObject({ forwards: [{ localTopic: 'sensor/#' }] });
  });

  test('a bridge is switched off and on', async () => {
    const page = await console();
    await show(page, 'Bridges');
    const state = (): string | undefined => gateway.gateway.bridges.get('pub', 'out')?.state;
    await page.getByRole('checkbox', { name: 'Keep changes after a restart' }).uncheck();
    await page.getByRole('switch', { name: 'Bridge out on' }).click();
    await page.getByText('Bridge out is off.').waitFor();
    expect(state()).toBe('disabled');
    await page.getByRole('switch', { name: 'Bridge out on' }).click();
    await page.getByText('Bridge out is on.').waitFor();
    expect(readFileSync(path.join(gateway.folder, 'tidegate.d/50-console.conf'), 'utf8')).not.toContain('out');
    expect(state()).not.toBe('disabled');
  });

  test('a client is looked at and disconnected', async () => {
    const client = await device('to-kick');
    await client.subscribeAsync('deep/+/topic', { qos: 1 });
    const gone = new Promise((resolve) => client.once('close', () => resolve(true)));
    const page = await console();
    await show(page, 'Clients');
    await page.getByRole('searchbox').fill('to-ki');
    await page.getByRole('button', { name: 'to-kick', exact: true }).click();
    await page.getByRole('dialog').getByText('deep/+/topic').waitFor();
    expect(await faults(page)).toEqual([]);
    await picture(page, 'client');
    await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
    await page.getByRole('dialog', { name: 'Disconnect to-kick?' }).getByRole('button', { name: 'Disconnect' }).click();
    expect(await gone).toBe(true);
    await page.getByText('to-kick is disconnected.').waitFor();
    await page.getByText('No matching clients.').waitFor();
  });

  test('a message published by hand reaches a subscriber', async () => {
    const client = await device('listener');
    await client.subscribeAsync('hand/#');
    const arrived = new Promise<string>((resolve) => {
      client.once('message', (topic, payload) => resolve(`${topic} ${payload.toString('hex')}`));
    });
    const page = await console();
    await show(page, 'Messages');
    await page.getByLabel('Topic', { exact: true }).fill('hand/made');
    await page.getByLabel('Payload', { exact: true }).fill('00 ff');
    await page.getByLabel('Payload format').selectOption('hex');
    await page.getByRole('button', { name: 'Publish' }).click();
    expect(await arrived).toBe('hand/made 00ff');
  });

  test('topics have the rates of what is published on them, branches those of all below', async () => {
    const client = await device('meter');
    await client.subscribeAsync('rates/+/temp');
    const sent = Array.from({ length: 300 }, (_, n) =>
      client.publishAsync(`rates/${n % 3 === 0 ? 'one' : 'two'}/temp`, '21.5', { qos: 1 }),
    );
    await Promise.all(sent);
    const page = await console();
    await show(page, 'Topics');
    await page.getByRole('searchbox').fill('rates/');
    const branch = page.locator('.branch', { hasText: 'rates' }).locator('.branch-rates');
    const two = page.getByRole('button', { name: /^two/ });
    await branch.filter({ hasText: /^[1-9].*\/s.*[1-9].* B\/s$/ }).waitFor();
    const all = Number.parseFloat((await branch.textContent()) ?? '');
    const part = Number.parseFloat((await two.locator('.branch-rates').textContent()) ?? '');
    expect([all > 0, part > 0, part < all]).toEqual([true, true, true]);
    await page.getByRole('button', { name: 'temp' }).last().click();
    await page.getByText('Messages in total').waitFor();
    await page.locator('.facts div', { hasText: 'Messages in total' }).getByText('200', { exact: true }).waitFor();
    await page.getByRole('row', { name: 'meter rates/+/temp 0' }).waitFor();
    await page.getByRole('img', { name: /^Messages per second/ }).waitFor();
    expect(await faults(page)).toEqual([]);
    await picture(page, 'topic-rates');
    await two.click();
    await page.getByText('Topics in this branch').waitFor();
    expect(opened?.complaints).toEqual([]);
  });

  test('the overview shows how latencies are spread', async () => {
    const client = await device('sender');
    for (let n = 0; n < 200; n++) await client.publishAsync('spread', 'x', { qos: 1 });
    const page = await console();
    await page.locator('.bars li').first().waitFor();
    expect(await page.locator('.bars li').first().textContent()).toMatch(/(up to|over) \d/);
    expect(await faults(page)).toEqual([]);
  });

  test('a filter that is none is told at its field, one with a comma is one filter', async () => {
    const topics = ['with', 'with,comma/x', 'plain'];
    const client = await device('comma');
    for (const topic of topics) await client.publishAsync(topic, 'x', { qos: 1, retain: true });
    const page = await console();
    await show(page, 'Messages');
    const filter = page.getByLabel('Topic filter');
    const subscribe = page.getByRole('button', { name: 'Subscribe', exact: true });
    await page.getByLabel('with retained messages').check();
    await filter.fill('a/#/b');
    await subscribe.click();
    await page.getByText('Not a valid topic filter.').waitFor();
    await filter.fill('with,comma/#');
    await subscribe.click();
    await page.getByRole('button', { name: 'with,comma/x' }).waitFor();
    await filter.fill('plain');
    await subscribe.click();
    await page.locator('.message-topic', { hasText: 'plain' }).waitFor();
    expect(await page.locator('.message-topic', { hasText: /^with$/ }).count()).toBe(0);
    expect(opened?.complaints).toEqual([]);
    for (const topic of topics) await client.publishAsync(topic, '', { qos: 1, retain: true });
  });

  test('a decision is explained with the rule that made it', async () => {
    const page = await console();
    await show(page, 'Security');
    await page.getByLabel('Client id').fill('x');
    await page.getByLabel('User', { exact: true }).fill('carol');
    await page.getByLabel('Topic', { exact: true }).fill('secret/1');
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.locator('.verdict .badge', { hasText: 'denied' }).waitFor();
  });

  test('a setting is checked, refused, corrected and applied', async () => {
    const page = await console();
    await show(page, 'Configuration');
    await page.getByLabel('Only changed from default').click();
    await page.getByRole('searchbox').fill('max_mqueue_len');
    await page.getByRole('button', { name: 'Change mqtt.max_mqueue_len' }).click();
    const field = page.getByRole('textbox', { name: 'mqtt.max_mqueue_len' });
    await field.fill('many');
    await page.getByRole('button', { name: 'Validate' }).click();
    await page.getByRole('alert').getByText('mqtt.max_mqueue_len').waitFor();
    await field.fill('77');
    await page.getByRole('button', { name: 'Validate' }).click();
    await page.getByText('These values are valid.').waitFor();
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Applied and saved.').waitFor();
    await page.locator('.setting-value', { hasText: '77' }).waitFor();
  });

  test('everything is reached by keyboard, the page after the menu', async () => {
    const page = await console();
    await page.keyboard.press('Tab');
    await page.getByRole('button', { name: 'Skip to the page' }).press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
  });

  test('a viewer sees neither buttons of changes nor pages of admins', async () => {
    const stage = await new ConsoleStage({ pages: await loadPages() }).start();
    try {
      stage.bridges.put({ kind: 'nng', direction: 'pub', name: 'out' }, { forwards: [] });
      opened = await open(browser, `http://127.0.0.1:${stage.server.port}/`);
      const { page } = opened;
      await page.getByLabel('User').fill(VIEWER.username);
      await page.getByLabel('Password').fill(VIEWER.password);
      await page.getByRole('button', { name: 'Log in' }).click();
      await show(page, 'Bridges');
      await page.getByRole('heading', { name: /^out/ }).waitFor();
      expect(await page.getByRole('button', { name: 'Add a bridge' }).count()).toBe(0);
      expect(await page.getByRole('switch').count()).toBe(0);
      expect(await page.getByRole('link', { name: /Log|Security/ }).count()).toBe(0);
      await show(page, 'Messages');
      await page.getByText('requires the role operator').waitFor();
    } finally {
      await opened?.page.context().close();
      opened = null;
      await stage.stop();
    }
  });

  test('all that a browser loads is small, packed and from the gateway', async () => {
    opened = await open(browser, 'about:blank');
    const { page } = opened;
    let packed = 0;
    const hosts = new Set<string>();
    page.on('response', async (response) => {
      hosts.add(new URL(response.url()).origin);
      packed += Number(response.headers()['content-length'] ?? 0);
    });
    const answer = await page.goto(url, { waitUntil: 'networkidle' });
    expect(answer?.headers()['content-encoding']).toBe('gzip');
    expect([...hosts]).toEqual([new URL(url).origin]);
    expect(packed).toBeGreaterThan(10_000);
    expect(packed).toBeLessThan(150_000);
  });
});
