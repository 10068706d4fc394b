// A proxy before real brokers with as many clients as the machine allows, and with more clients than there are file descriptors for.
// Where the limit of open files is low the crowd is smaller; the name of the test says how large it is. Skipped without mosquitto.
import { execFileSync } from 'node:child_process';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Crowd } from '../harness/crowd.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';
import { freePort } from '../harness/port.ts';
import { ProxyProcess } from '../harness/proxyprocess.ts';

const able = programPath('mosquitto') !== null && process.platform === 'linux';
const LIMIT = able ? Number(execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' })) || 65_536 : 0;
/** 60 of 100 clients take two descriptors of the gateway, the others are led to the built-in broker and take one. */
const CROWD = Math.min(10_400, Math.floor((LIMIT - 400) / 1.62));
const MB = 1024 * 1024;

const undo: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

async function place(
  descriptors: number,
  brokers: number,
  rules: string,
): Promise<{ gateway: ProxyProcess; crowd: Crowd }> {
  const servers: string[] = [];
  for (let i = 0; i < brokers; i++) {
    const broker = await Mosquitto.start(['allow_anonymous true']);
    undo.push(() => broker.stop());
    servers.push(`{ addr = "127.0.0.1:${broker.port}" }`);
  }
  const port = await freePort();
  const conf = `listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
auth.allow_anonymous = true
log { level = warn, to = [console], format = json }
upstreams.pool { servers = [ ${servers.join(', ')} ] }
proxy.p { bind = "127.0.0.1:${port}", default = pool, ${rules} }`;
  const gateway = await ProxyProcess.start(conf, descriptors);
  undo.push(() => gateway.stop());
  const crowd = new Crowd(port);
  undo.push(() => crowd.leave());
  return { gateway, crowd };
}

describe.skipIf(!able)('a crowd', () => {
  it(`of ${CROWD} clients exchanges messages through one proxy, and a second one needs no more memory and leaves nothing`, async () => {
    const rules = 'split = [ { percent = 60, upstream = pool }, { percent = "*", upstream = local } ]';
    const { gateway, crowd } = await place(LIMIT, 3, rules);
    const idle = gateway.descriptorCount;
    const peaks: number[] = [];
    for (let cycle = 0; cycle < 3; cycle++) {
      expect(await crowd.come(CROWD)).toBe(0);
      expect(gateway.descriptorCount - idle).toBeGreaterThan(CROWD * 1.55);
      expect(await crowd.round()).toBe(CROWD);
      peaks.push(gateway.residentBytes);
      crowd.leave();
      await vi.waitFor(() => expect(gateway.descriptorCount).toBeLessThanOrEqual(idle + 2), { timeout: 20_000 });
    }
    if (process.env.CROWD_FIGURES !== undefined)
      process.stderr.write(
        `resident MB with ${CROWD} clients, cycle by cycle: ${peaks.map((p) => Math.round(p / MB)).join(', ')}; ${Math.round(gateway.residentBytes / MB)} after\n`,
      );
    // Measured over eight cycles it swings by a fifth from the second on: garbage is collected when it has grown to what is in use.
    expect(peaks[2]).toBeLessThan(peaks[1] * 1.3 + 8 * MB);
  }, 120_000);

  it('larger than the descriptors is refused and counted beyond them; servers are not blamed, and all is well again when some leave', async () => {
    const { gateway, crowd } = await place(300, 1, 'reject = connack');
    const refused = await crowd.come(400);
    expect(refused).toBeGreaterThan(400 - 150);
    expect(gateway.running).toBe(true);
    expect(await crowd.round()).toBe(400 - refused);
    await gateway.says(/PXY-DESCRIPTORS/);
    crowd.leave();
    await vi.waitFor(() => expect(gateway.descriptorCount).toBeLessThan(100), { timeout: 10_000 });
    expect(await crowd.come(80)).toBe(0);
    expect(await crowd.round()).toBe(80);
    expect(gateway.text.match(/PXY-DESCRIPTORS/g)).toHaveLength(1);
    expect(gateway.text).not.toContain('PXY-RESTS');
  }, 60_000);
});
