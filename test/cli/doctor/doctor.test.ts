// `tidegate doctor`: what each check finds, and its exit code. The system's own programs are stand-ins.
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { doctor } from '../../../src/cli/doctor/doctor.ts';
import type { Finding } from '../../../src/cli/doctor/finding.ts';
import { checkClock, checkLimits, checkMemory, checkService } from '../../../src/cli/doctor/machine.ts';
import { checkCertificates } from '../../../src/cli/doctor/peers.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { Authority, hasOpenssl } from '../../harness/certificates.ts';
import { testGateway } from '../../harness/gateway.ts';
import { fakeIo } from '../../harness/io.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'doctor-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function examine(conf: string, more: { peers?: boolean } = { peers: false }) {
  const file = path.join(folder, 'd.conf');
  writeFileSync(file, conf);
  const io = fakeIo();
  const place = { env: { TIDEGATE_RUN: path.join(folder, 'run') }, cwd: folder };
  const code = await doctor({ config: file, json: true, ...more }, io, place);
  const findings: Finding[] = JSON.parse(io.stdout.text());
  return { code, of: (check: string) => findings.filter((one) => one.check === check) };
}

const config = (conf: string) => loadConfig({ text: { text: conf, dialect: 'hocon' } }).config;
const PLAIN = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { path = "data/x.db" }\n';

describe('tidegate doctor', () => {
  it('finds nothing wrong with a plain configuration and leaves no file behind', async () => {
    const { code, of } = await examine(PLAIN);
    expect(code).toBe(0);
    expect(of('files').map(({ state }) => state)).toEqual(['ok']);
    expect(of('disk').map(({ text }) => text)).toEqual([
      expect.stringContaining('are free'),
      expect.stringContaining('reaches the disk'),
    ]);
    expect(readdirSync(folder)).toEqual(['d.conf']);
  });

  it('names the program that has a port, and fails', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { code, of } = await examine(`listeners.tcp { bind = "127.0.0.1:${port}" }`);
    server.close();
    expect(code).toBe(1);
    expect(of('ports')).toEqual([
      expect.objectContaining({ state: 'fail', text: expect.stringContaining('already in use') }),
    ]);
    expect(of('ports')[0].advice).toContain(`(${process.pid})`);
  });

  it('warns of a password file that every user can read, and fails for one that is not there', async () => {
    const file = path.join(folder, 'pw');
    writeFileSync(file, '');
    chmodSync(file, 0o644);
    const open = await examine(`${PLAIN}auth { password_file = "${file}" }`);
    expect(open.of('files')).toContainEqual(
      expect.objectContaining({ state: 'warn', advice: expect.stringContaining('chmod') }),
    );
    rmSync(file);
    const gone = await examine(`${PLAIN}auth { password_file = "${file}" }`);
    expect(gone.code).toBe(1);
    expect(gone.of('files')).toContainEqual(expect.objectContaining({ state: 'fail' }));
  });

  it('reaches the broker of a bridge, and says why it does not', async () => {
    const remote = await testGateway('listeners.tcp { bind = "127.0.0.1:0" }\nauth { allow_anonymous = false }\n');
    const bridge = (port: number): string =>
      `${PLAIN}bridges.mqtt.b { server = "mqtt-tcp://127.0.0.1:${port}", forwards = [ { local_topic = "a" } ] }`;
    const refused = await examine(bridge(remote.port), { peers: true });
    await remote.stop();
    expect(refused.code).toBe(1);
    expect(refused.of('peers')).toEqual([
      expect.objectContaining({ state: 'fail', text: expect.stringContaining('not authorised: user name') }),
    ]);
    const gone = await examine(bridge(remote.port), { peers: true });
    expect(gone.of('peers')[0].text).toContain('connection refused');
  });
});

describe('the machine', () => {
  it('compares descriptors with the clients that listeners allow', () => {
    const some = config('listeners.tcp { bind = "127.0.0.1:0", max_connections = 5000 }');
    expect(checkLimits(some, 5000)[0].state).toBe('warn');
    expect(checkLimits(some, 6000)[0].state).toBe('ok');
    expect(checkLimits(config('listeners.tcp { bind = "127.0.0.1:0" }'), 1024)[0].state).toBe('warn');
    expect(checkLimits(some, null)[0].state).toBe('skip');
  });

  it('compares the memory budget with the machine and its control group', () => {
    const some = config('mqtt { memory_budget = 512MB, kept_budget = 256MB }');
    expect(checkMemory(some, 4e9, 0)[0].state).toBe('ok');
    expect(checkMemory(some, 4e9, 512e6)[0].state).toBe('warn');
  });

  it('looks at the clock', async () => {
    const now = Date.UTC(2026, 5, 1);
    const states = async (answer: string | null, at = now) => (await checkClock(async () => answer, at))[0].state;
    expect(await states('yes\n')).toBe('ok');
    expect(await states('no\n')).toBe('warn');
    expect(await states(null)).toBe('ok');
    expect(await states('yes\n', 0)).toBe('fail');
  });

  it('looks at the limits of the service', async () => {
    const some = config('listeners.tcp { bind = "127.0.0.1:0", max_connections = 5000 }\nmqtt.memory_budget = 256MB');
    const answer =
      'LoadState=loaded\nActiveState=active\nLimitNOFILE=1024\nMemoryMax=104857600\nTasksMax=8\nUser=tidegate\n';
    const found = await checkService(some, async () => answer);
    expect(found.map(({ state }) => state)).toEqual(['ok', 'warn', 'warn', 'warn']);
    const fine = 'LoadState=loaded\nActiveState=active\nLimitNOFILE=65536\nMemoryMax=infinity\nTasksMax=4915\nUser=\n';
    expect((await checkService(some, async () => fine)).map(({ state }) => state)).toEqual(['ok']);
    expect((await checkService(some, async () => null))[0].state).toBe('skip');
  });
});

describe.skipIf(!hasOpenssl())('certificates', () => {
  it('are warned of before they expire, and fail when they have', () => {
    const authority = new Authority();
    const pair = authority.issue({ name: 'x', alt: ['DNS:gateway.example'] });
    const conf = `listeners.ssl { bind = "127.0.0.1:0", certfile = "${pair.cert}", keyfile = "${pair.key}" }`;
    const loaded = loadConfig({ text: { text: conf, dialect: 'hocon' } });
    const soon = checkCertificates(loaded, folder);
    expect(soon).toEqual([expect.objectContaining({ state: 'warn' })]);
    expect(soon[0].text).toMatch(/listeners\.ssl\.certfile .*gateway\.example, expires in 1 days/);
    const later = Date.now() + 3 * 86_400_000;
    expect(checkCertificates(loaded, folder, later)[0]).toMatchObject({ state: 'fail', text: /expired on/ });
    authority.remove();
    expect(checkCertificates(loaded, folder)[0].state).toBe('fail');
  });
});
