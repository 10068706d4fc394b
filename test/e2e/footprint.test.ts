// What a start of the built command loads: few files of its own, and of Node.js no more than what is configured. Figures of time
// and memory are measured by `make bench`; here it is what they depend on.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const MAIN = path.join(import.meta.dirname, '../../dist/main.js');
const LEAN = 'listeners.tcp.bind = "127.0.0.1:0"\npersistence.enable = false\nlog { level = info, format = json }\n';
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'footprint-'));
  // At the end of the process it says which modules of Node.js have been loaded.
  writeFileSync(
    path.join(folder, 'look.cjs'),
    "process.once('exit', () => require('node:fs').writeFileSync(process.env.LOADED, process.moduleLoadList.join('\\n')));",
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a gateway, does something with it, stops it, and gives the modules it has loaded. */
async function loaded(
  conf: string,
  use: (ready: { http?: string }) => Promise<void> = async () => {},
): Promise<string> {
  const file = path.join(folder, 'a.conf');
  const list = path.join(folder, 'loaded');
  writeFileSync(file, conf);
  const words = ['-r', path.join(folder, 'look.cjs'), MAIN, 'start', '-c', file];
  const child = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...process.env, LOADED: list, XDG_RUNTIME_DIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  let text = '';
  const ready = new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
      const line = /^.*"GW-READY".*\n/m.exec(text);
      if (line !== null) resolve(line[0]);
    });
    void ended.then(() => reject(new Error(`it ended: ${text}`)));
  });
  await use(JSON.parse(await ready));
  child.kill('SIGTERM');
  await ended;
  return readFileSync(list, 'utf8');
}

it('a start without TLS and HTTP loads neither, and nothing of fetch', async () => {
  const modules = await loaded(LEAN);
  expect(modules).toMatch(/^NativeModule net$/m);
  expect(modules).not.toMatch(/^NativeModule (?:tls|http|https|http2|internal\/deps\/undici\/undici)$/m);
});

it('a console loads its router with the first request', async () => {
  const conf = `${LEAN}http_server { ip_addr = "127.0.0.1", port = 0 }\n`;
  const fetchLoaded = /^NativeModule internal\/deps\/undici\/undici$/m;
  expect(await loaded(conf)).not.toMatch(fetchLoaded);
  const statuses: (number | undefined)[] = [];
  const modules = await loaded(conf, async ({ http: address }) => {
    for (const target of ['/readyz', '/api/v4/brokers']) {
      const [response] = await once(http.get(`http://${address}${target}`), 'response');
      response.resume();
      statuses.push(response.statusCode);
    }
  });
  expect(statuses).toEqual([200, 200]);
  expect(modules).toMatch(fetchLoaded);
});

it('what every start needs is in few files', () => {
  const files = new Set<string>();
  const follow = (name: string): void => {
    if (files.has(name)) return;
    files.add(name);
    const text = readFileSync(path.join(path.dirname(MAIN), name), 'utf8');
    for (const [, next] of text.matchAll(/(?:from|import)"\.\/([\w-]+\.js)"/g)) follow(next);
  };
  follow('run.js');
  expect(files.size).toBeGreaterThan(2);
  expect(files.size).toBeLessThan(16);
});
