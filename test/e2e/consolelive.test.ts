// The console where it matters most: names that are long, and a gateway that stops answering while somebody looks.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import mqtt, { type MqttClient } from 'mqtt';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildPages, launch, missing, type Opened, open, picture } from '../harness/browser.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const UUID = '3f2504e0-4f89-11d3-9a0c-0305e82c3301';
const OTHER = '3f2504e0-4f89-11d3-9a0c-0305e82c3302';

/** A road to the gateway that can be closed for a while: bytes wait, connections stay open. */
class Road {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private closed = false;

  constructor(port: number) {
    this.server = createServer((near) => {
      const far = connect(port, '127.0.0.1');
      for (const socket of [near, far]) {
        this.sockets.add(socket);
        socket.on('error', () => {}).on('close', () => this.sockets.delete(socket));
        if (this.closed) socket.pause();
      }
      near.on('data', (bytes) => far.write(bytes)).on('close', () => far.destroy());
      far.on('data', (bytes) => near.write(bytes)).on('close', () => near.destroy());
    });
  }

  async start(): Promise<number> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  hold(on: boolean): void {
    this.closed = on;
    for (const socket of this.sockets)
      if (on) socket.pause();
      else socket.resume();
  }

  stop(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }
}

describe.skipIf(missing !== null)(`the console in a browser (${missing ?? 'there is one'})`, () => {
  let gateway: TestGateway;
  let browser: Browser;
  let road: Road;
  let url: string;
  let opened: Opened | null = null;
  const clients: MqttClient[] = [];

  beforeAll(async () => {
    await buildPages();
    gateway = await testGateway(
      'listeners.tcp.bind = "127.0.0.1:0"\nhttp_server { ip_addr = "127.0.0.1", port = 0 }\n',
    );
    const http = String(gateway.messages.find(({ id }) => id === 'GW-READY')?.fields?.http);
    road = new Road(Number(new URL(`http://${http}/`).port));
    url = `http://127.0.0.1:${await road.start()}`;
    browser = await launch();
    const [{ address }] = gateway.gateway.bound;
    for (const clientId of [UUID, OTHER, 'short'])
      clients.push(await mqtt.connectAsync(`mqtt://${address}`, { clientId, reconnectPeriod: 0 }));
  }, 120_000);
  afterEach(async () => {
    road.hold(false);
    await opened?.page.context().close();
    opened = null;
  });
  afterAll(async () => {
    for (const client of clients) await client.endAsync(true);
    await browser?.close();
    road?.stop();
    await gateway?.stop();
  });

  async function show(title: string, more: Parameters<typeof open>[2] = {}): Promise<Page> {
    opened = await open(browser, url, more);
    const { page } = opened;
    await page
      .getByRole('navigation', { name: 'Pages', exact: true })
      .getByRole('link', { name: title, exact: true })
      .click();
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor();
    return page;
  }

  test.each([
    [390, 844],
    [1440, 900],
  ])(
    'ids that differ in their last letter only can be told apart at %i px, and their clients disconnected',
    async (width, height) => {
      const page = await show('Clients', { viewport: { width, height } });
      const name = page.locator(`.identifier[title="${UUID}"]`);
      await name.waitFor();
      const tail = name.locator('.tail');
      expect(await tail.textContent()).toBe(UUID.slice(-8));
      const head = await name.locator('.head').boundingBox();
      expect(head?.width).toBeGreaterThan(25);
      const button = page.getByRole('button', { name: `Disconnect ${UUID}` });
      const box = await button.boundingBox();
      expect(box).not.toBeNull();
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
      await picture(page, `clients-uuid-${width}`);
      await name.click();
      await page.getByRole('dialog').getByText(UUID).first().waitFor();
    },
  );

  test('a gateway that stops answering turns the page grey within five seconds; it comes back by itself', async () => {
    const page = await show('Overview');
    await page.getByRole('status').filter({ hasText: 'Live' }).first().waitFor();
    // Counters have come once.
    await page.getByText('3 sessions').waitFor();
    road.hold(true);
    const begin = Date.now();
    await page.locator('.shell.stale').waitFor({ timeout: 8000 });
    expect(Date.now() - begin).toBeLessThan(6000);
    await page.getByRole('alert').filter({ hasText: 'does not answer' }).waitFor();
    await picture(page, 'stale');
    const moving = await page.evaluate('document.getAnimations().filter((one) => one.playState === "running").length');
    expect(moving).toBe(0);
    road.hold(false);
    await page.locator('.shell.stale').waitFor({ state: 'detached', timeout: 15_000 });
  });
});
