// The unit of the packages: systemd reads it without complaint, its score does not get worse, and what it takes away is not
// needed: every system call of a gateway at work is one that the filter lets through.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import mqtt from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');
const unit = readFileSync(path.join(ROOT, 'etc/systemd/tidegate.service'), 'utf8');
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
const hasStrace = existsSync('/usr/bin/strace');
/** Of 10; lower is better. */
const MOST_EXPOSURE = 2;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'unit-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The calls of a set of systemd, the sets within it included. */
function callsOf(set: string): string[] {
  const lines = execFileSync('systemd-analyze', ['syscall-filter', set], { encoding: 'utf8' }).split('\n').slice(1);
  const names = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  return names.flatMap((name) => (name.startsWith('@') ? callsOf(name) : [name]));
}

describe.skipIf(!hasSystemd)(`the unit${hasSystemd ? '' : ' (no systemd-analyze on this machine)'}`, () => {
  it('is understood, and its score stays', () => {
    const file = path.join(folder, 'tidegate.service');
    writeFileSync(
      file,
      unit.replace('ExecStart=tidegate', 'ExecStart=/bin/true').replace('ExecReload=kill', 'ExecReload=/bin/kill'),
    );
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
    expect({ status, about: stderr.match(/^.*tidegate\.service.*$/gm) }).toEqual({ status: 0, about: null });
    const words = ['security', '--offline=true', '--no-pager', file];
    const { stdout } = spawnSync('systemd-analyze', words, { encoding: 'utf8' });
    const score = Number(/exposure level for tidegate\.service: ([\d.]+)/.exec(stdout)?.[1]);
    expect(score).toBeGreaterThan(0);
    expect(score).toBeLessThanOrEqual(MOST_EXPOSURE);
  });
});

const canTrace = hasSystemd && hasStrace && spawnSync('strace', ['-f', '-o', '/dev/null', 'true']).status === 0;
describe.skipIf(!canTrace)(`the filter of system calls${canTrace ? '' : ' (needs strace and systemd-analyze)'}`, () => {
  it('lets through what a gateway with store, console, TLS and bridges does', async () => {
    const allowed = new Set(/^SystemCallFilter=(.*)$/m.exec(unit)?.[1].split(' ').flatMap(callsOf));
    const words = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
    ];
    execFileSync('openssl', [...words, '-keyout', 'key.pem', '-out', 'cert.pem'], { cwd: folder, stdio: 'ignore' });
    const conf = `listeners.tcp.bind = "127.0.0.1:0"
listeners.ssl { bind = "127.0.0.1:0", keyfile = "key.pem", certfile = "cert.pem" }
persistence.path = "a.db"
http_server { ip_addr = "127.0.0.1", port = 0 }
log { level = info, format = json, to = [console, file], dir = "." }
bridges.nng.pub.out { enable = true, pub_url = "ipc://${folder}/out.ipc", ipc_mode = "0660", spool = 1MB
  forwards = [ { local_topic = "a/#", remote_topic = "a", nng_delimiter = ":", qos = 1 } ] }
`;
    writeFileSync(path.join(folder, 'a.conf'), conf);
    const calls = path.join(folder, 'calls');
    const command = [
      '-f',
      '-qq',
      '-o',
      calls,
      process.execPath,
      path.join(ROOT, 'dist/main.js'),
      'start',
      '-c',
      'a.conf',
    ];
    const child = spawn('strace', command, {
      cwd: folder,
      env: { ...process.env, XDG_RUNTIME_DIR: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    let text = '';
    const ready = await new Promise<{ mqtt: string[]; http: string; pid: number }>((resolve, reject) => {
      void ended.then(() => reject(new Error(`it ended: ${text}`)));
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk;
        const line = /^.*"GW-READY".*\n/m.exec(text);
        if (line !== null) resolve(JSON.parse(line[0]));
      });
    });
    for (const address of ready.mqtt) {
      const url = address.replace(/^tcp/, 'mqtt').replace(/^(?:ssl|tls)/, 'mqtts');
      const client = await mqtt.connectAsync(url, { rejectUnauthorized: false, clientId: 'c', clean: false });
      await client.subscribeAsync('a/#', { qos: 1 });
      await client.publishAsync('a/b', 'x', { qos: 1, retain: true });
      await client.endAsync();
    }
    expect((await fetch(`http://${ready.http}/api/v4/clients`)).status).toBe(200);
    process.kill(ready.pid, 'SIGTERM');
    await ended;
    const used = new Set([...readFileSync(calls, 'utf8').matchAll(/^\d+ +(\w+)\(/gm)].map(([, name]) => name));
    expect(used.size).toBeGreaterThan(30);
    expect([...used].filter((name) => !allowed.has(name))).toEqual([]);
  }, 60_000);
});
