// Files of mosquitto.conf run by mosquitto itself and, converted, by the gateway: what clients see is the same, or is said in the report.
// MOVEIN_FILES sets how many random files are compared, MOVEIN_SEED the first one, MOVEIN_REPORT a file for the differences.
import { spawn } from 'node:child_process';
import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { converted } from '../harness/converting.ts';
import { testGateway } from '../harness/gateway.ts';
import { programPath } from '../harness/mosquitto.ts';
import { freePort } from '../harness/port.ts';
import { Random } from '../harness/random.ts';
import { type ProbeTls, probe, verdicts } from './moveinprobe.ts';
import { type MoveinPlaces, randomMosquittoConf } from './moveinrandom.ts';

const FILES = Number(process.env.MOVEIN_FILES ?? 20);
const SEED = Number(process.env.MOVEIN_SEED ?? 1);

/** A line of a password file, as mosquitto_passwd writes it. */
function passwordLine(username: string, password: string): string {
  const salt = randomBytes(12);
  const hash = pbkdf2Sync(password, salt, 101, 64, 'sha512');
  return `${username}:$7$101$${salt.toString('base64')}$${hash.toString('base64')}\n`;
}

const ACLS = {
  acl1: 'topic read a/#\ntopic write b/#\nuser u1\ntopic readwrite #\n',
  acl2: 'topic readwrite a/#\npattern readwrite c/%u\npattern readwrite dev/%c/#\n',
};

/** Where Debian has the plugin. */
const PLUGIN = ['x86_64', 'aarch64', 'arm']
  .map((machine) => `/usr/lib/${machine}-linux-gnu${machine === 'arm' ? 'eabihf' : ''}/mosquitto_dynamic_security.so`)
  .find((file) => existsSync(file));

const HOSTS = ['127.0.0.1', '::1', '127.0.0.2'];

class Peer {
  private readonly child: ReturnType<typeof spawn>;
  private readonly folder: string;

  private constructor(child: ReturnType<typeof spawn>, folder: string) {
    this.child = child;
    this.folder = folder;
  }

  /** Null when mosquitto does not start with it. */
  static async start(text: string): Promise<Peer | null> {
    const folder = mkdtempSync(join(tmpdir(), 'movein-'));
    const conf = join(folder, 'm.conf');
    const user = process.getuid?.() === 0 ? 'user root\n' : '';
    writeFileSync(conf, `${user}${text}`);
    const child = spawn(programPath('mosquitto') ?? 'mosquitto', ['-c', conf], {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: folder,
    });
    const up = await new Promise<boolean>((resolve) => {
      let said = '';
      child.once('exit', () => resolve(false));
      child.stderr?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
        if (/ running/.test(said)) resolve(true);
      });
    });
    if (up) return new Peer(child, folder);
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
    return null;
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await gone;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The ports of a file that speak TLS. */
function tlsPorts(text: string): Set<number> {
  const found = new Set<number>();
  let port = 0;
  for (const line of text.split(/\r?\n/)) {
    const [key, value] = line.trim().split(/ +/);
    if (key === 'listener') port = Number(value);
    if (key === 'certfile') found.add(port);
  }
  return found;
}

describe.skipIf(programPath('mosquitto') === null || !hasOpenssl())(
  'mosquitto.conf against mosquitto (needs mosquitto, openssl)',
  () => {
    let authority: Authority;
    let folder: string;
    let files: { readonly ca: string; readonly cert: string; readonly key: string };
    let tls: ProbeTls;

    beforeAll(() => {
      authority = new Authority();
      const server = authority.issue({ name: 'localhost', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
      const client = authority.issue({ name: 'u1' });
      files = { ca: authority.ca, cert: server.cert, key: server.key };
      tls = {
        ca: readFileSync(authority.ca, 'utf8'),
        cert: readFileSync(client.cert, 'utf8'),
        key: readFileSync(client.key, 'utf8'),
      };
      folder = mkdtempSync(join(tmpdir(), 'movein-files-'));
      chmodSync(folder, 0o755);
      for (const [name, text] of Object.entries({
        ...ACLS,
        passwd: passwordLine('u1', 'p1') + passwordLine('u2', 'p2'),
      }))
        writeFileSync(join(folder, name), text);
    });
    afterAll(() => {
      authority?.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    /** What a broker shows at every address and port. */
    async function seen(text: string, ports: readonly number[]): Promise<string[]> {
      const secure = tlsPorts(text);
      const lines: string[] = [];
      // One after the other: client ids are the same ones, and every message counts.
      for (const port of ports)
        for (const host of HOSTS) lines.push(...(await probe({ host, port, tls: secure.has(port) ? tls : null })));
      return lines;
    }

    async function compare(text: string, ports: readonly number[]): Promise<string[]> {
      const peer = await Peer.start(text);
      if (peer === null) return ['mosquitto does not start'];
      const theirs = await seen(text, ports).finally(() => peer.stop());
      const { code, out, err } = converted(text, 'm.conf');
      if (code !== 0) return [`convert: ${code}: ${err}`];
      const gateway = await testGateway(out);
      const ours = await seen(text, ports).finally(() => gateway.stop());
      const known = new Set(theirs);
      const mine = new Set(ours);
      return [
        ...theirs.filter((line) => !mine.has(line)).map((line) => `mosquitto: ${line}`),
        ...ours.filter((line) => !known.has(line)).map((line) => `gateway:   ${line}`),
      ];
    }

    test(`${FILES} random files mean the same`, { timeout: 60_000 + FILES * 6000 }, async () => {
      const differences: string[] = [];
      let compared = 0;
      for (let i = 0; i < FILES; i++) {
        const random = new Random(SEED + i);
        const ports = [await freePort(), await freePort(), await freePort()];
        const places: MoveinPlaces = { ports, folder, tls: files };
        const text = randomMosquittoConf(random, places);
        const found = await compare(text, ports);
        compared++;
        if (found.length > 0) differences.push(`seed ${SEED + i}:`, text, ...found.slice(0, 12));
      }
      if (process.env.MOVEIN_REPORT !== undefined) writeFileSync(process.env.MOVEIN_REPORT, differences.join('\n'));
      expect(differences).toEqual([]);
      expect(compared).toBe(FILES);
    });

    test.skipIf(PLUGIN === undefined)(
      'users and rights of dynamic security are the same (needs its plugin)',
      { timeout: 30_000 },
      async () => {
        const port = await freePort();
        const json = join(folder, 'dynsec.json');
        writeFileSync(json, JSON.stringify(DYNSEC));
        chmodSync(json, 0o666);
        const text = `plugin ${PLUGIN}\nplugin_opt_config_file ${json}\nallow_anonymous true\nlistener ${port} 127.0.0.1\n`;
        const users = [
          ...['a', 'b', 'c', 'off'].map((username) => ({ username, password: 'p1' })),
          { username: 'a', password: 'wrong' },
          {},
        ];
        const filters = ['#', 'a/#', 'a/+', 'a/secret', 'b/1', 'lit/#', 'lit/x', 'c/u', 'open/x'];
        const topics = ['a/1', 'a/secret', 'b/1', 'c/u', 'own/dev-b', 'own/dev-a', 'open/x'];
        const ask = async (): Promise<string[]> => {
          const lines: string[] = [];
          for (const user of users) lines.push(...(await verdicts(port, user, filters, topics)));
          return lines;
        };
        const peer = await Peer.start(text);
        expect(peer).not.toBeNull();
        const theirs = await ask().finally(() => peer?.stop());
        expect(converted(text, 'm.conf').code).toBe(3);
        const { code, cwd } = converted(text, 'm.conf', {}, { output: 'x.conf' });
        expect(code).toBe(0);
        const gateway = await testGateway(readFileSync(join(cwd, 'x.conf'), 'utf8'));
        const ours = await ask().finally(() => gateway.stop());
        expect(ours).toEqual(theirs);
        expect(theirs.length).toBeGreaterThan(60);
      },
    );
  },
);

const P1 = passwordLine('x', 'p1').trim().split('$');
const user = (username: string, more: object) => ({
  username,
  password: P1[4],
  salt: P1[3],
  iterations: 101,
  ...more,
});
const acl = (acltype: string, topic: string, allow: boolean, priority = 0) => ({ acltype, topic, allow, priority });
const DYNSEC = {
  defaultACLAccess: { publishClientSend: false, publishClientReceive: true, subscribe: false, unsubscribe: true },
  clients: [
    user('a', {
      roles: [
        { rolename: 'reader', priority: 5 },
        { rolename: 'guard', priority: 9 },
      ],
    }),
    user('b', { roles: [{ rolename: 'writer' }] }),
    user('c', {}),
    user('off', { disabled: true, roles: [{ rolename: 'writer' }] }),
  ],
  groups: [
    {
      groupname: 'many',
      roles: [{ rolename: 'writer' }],
      clients: [{ username: 'a' }, { username: 'c', priority: 3 }],
    },
    { groupname: 'anybody', roles: [{ rolename: 'open' }], clients: [] },
  ],
  roles: [
    {
      rolename: 'reader',
      acls: [
        acl('subscribePattern', 'a/#', true),
        acl('subscribeLiteral', 'lit/#', true),
        acl('publishClientReceive', '#', true),
      ],
    },
    {
      rolename: 'guard',
      acls: [acl('subscribePattern', 'a/secret', false, 3), acl('publishClientSend', 'a/secret', false)],
    },
    { rolename: 'writer', acls: [acl('publishClientSend', 'b/#', true), acl('publishClientSend', 'a/#', true, 1)] },
    { rolename: 'open', acls: [acl('publishClientSend', 'open/#', true), acl('subscribePattern', 'open/#', true)] },
  ],
  anonymousGroup: 'anybody',
};
