// The image: its entry opens the gateway only with a password, its build follows the rules of careful images, and the compose files name
// what exists. `make tryimage` builds and runs it.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const root = path.join(import.meta.dirname, '../..');
const docker = path.join(root, 'etc/docker');
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'image-'));
  writeFileSync(path.join(folder, 'tidegate'), '#!/bin/sh\necho "$@"\nenv | grep ^TIDEGATE | sort\n', { mode: 0o755 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the entry starts: its words, and the variables of ours that it passes on. */
function enter(variables: Readonly<Record<string, string>>, words: readonly string[] = ['start', '-c', 'x.conf']) {
  const env = { PATH: `${folder}:/usr/bin:/bin`, ...variables };
  const result = spawnSync('sh', [path.join(docker, 'entrypoint.sh'), ...words], { encoding: 'utf8', env });
  return { code: result.status, lines: result.stdout.trim().split('\n'), error: result.stderr.trim() };
}

describe('the entry', () => {
  it('opens nothing without TIDEGATE_LISTEN', () => {
    expect(enter({})).toEqual({ code: 0, lines: ['start -c x.conf'], error: '' });
  });

  it.each([
    ['no password', { TIDEGATE_LISTEN: '0.0.0.0' }, 'set TIDEGATE_PASSWORD or TIDEGATE_PASSWORD_FILE'],
    ['an empty password', { TIDEGATE_LISTEN: '::', TIDEGATE_PASSWORD: '' }, 'set TIDEGATE_PASSWORD'],
    ['a secret that is not there', { TIDEGATE_LISTEN: '::', TIDEGATE_PASSWORD_FILE: '/nowhere/x' }, 'is not readable'],
    ['a host name', { TIDEGATE_LISTEN: 'all', TIDEGATE_PASSWORD: 'x' }, 'an IP address expected'],
    [
      'a user that is not a name',
      { TIDEGATE_LISTEN: '::', TIDEGATE_PASSWORD: 'x', TIDEGATE_USERNAME: 'a b' },
      'digits',
    ],
    ['a user that hides a key', { TIDEGATE_LISTEN: '::', TIDEGATE_PASSWORD: 'x', TIDEGATE_USERNAME: 'a__b' }, 'digits'],
  ])('refuses with exit code 78: %s', (_name, variables, error) => {
    const result = enter(variables as unknown as Record<string, string>);
    expect(result).toMatchObject({ code: 78, lines: [''] });
    expect(result.error).toContain(error);
  });

  it.each([
    ['0.0.0.0', '0.0.0.0:1883'],
    ['::', '[::]:1883'],
  ])('%s takes anonymous clients off and gives MQTT and the console one user', (listen, bind) => {
    expect(enter({ TIDEGATE_LISTEN: listen, TIDEGATE_PASSWORD: 'a b$c"' })).toEqual({
      code: 0,
      error: '',
      lines: [
        'start -c x.conf',
        `TIDEGATE_LISTEN=${listen}`,
        'TIDEGATE__auth__allow_anonymous=false',
        'TIDEGATE__auth__password__tidegate=a b$c"',
        `TIDEGATE__http_server__ip_addr=${listen}`,
        'TIDEGATE__http_server__password=a b$c"',
        'TIDEGATE__http_server__username=tidegate',
        `TIDEGATE__listeners__tcp__bind=${bind}`,
      ],
    });
  });

  it('takes the password from a secret, without the line break at its end', () => {
    const file = path.join(folder, 'secret');
    writeFileSync(file, 'from a file\n');
    const { lines } = enter({ TIDEGATE_LISTEN: '0.0.0.0', TIDEGATE_PASSWORD_FILE: file, TIDEGATE_USERNAME: 'ops_1' });
    expect(lines).toContain('TIDEGATE__auth__password__ops_1=from a file');
    expect(lines).toContain('TIDEGATE__http_server__username=ops_1');
  });

  it('runs other commands as they are', () => {
    expect(enter({ TIDEGATE_LISTEN: '0.0.0.0' }, ['nng', 'sub']).lines[0]).toBe('nng sub');
  });
});

describe('the Dockerfile', () => {
  const text = readFileSync(path.join(docker, 'Dockerfile'), 'utf8');
  const instructions = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line !== '');
  const all = (word: string): string[] =>
    instructions.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1).trim());

  it('names its base images with a version, and starts as a numbered user that is not root', () => {
    for (const from of all('FROM')) expect(from).toMatch(/docker\.io\/library\/node:\$\{NODE\}-bookworm-slim/);
    expect(all('ARG')).toContain('NODE=22');
    expect(all('USER')).toEqual(['10001:10001']);
  });

  it('has a health check, a signal to stop and words in the form without a shell', () => {
    expect(all('HEALTHCHECK')[0]).toContain('/readyz');
    expect(all('STOPSIGNAL')).toEqual(['SIGTERM']);
    for (const words of [...all('ENTRYPOINT'), ...all('CMD')]) expect(Array.isArray(JSON.parse(words))).toBe(true);
  });

  it('uses COPY, not ADD, and copies what exists', () => {
    expect(all('ADD')).toEqual([]);
    for (const copy of all('COPY').filter((line) => !line.startsWith('--from'))) {
      const words = copy.split(' ').filter((word) => !word.startsWith('--'));
      for (const source of words.slice(0, -1)) expect(existsSync(path.join(root, source))).toBe(true);
    }
  });

  it('keeps what must not be in an image out of the build', () => {
    const ignored = readFileSync(path.join(root, '.dockerignore'), 'utf8').split('\n');
    expect(ignored).toEqual(expect.arrayContaining(['.git', 'node_modules', 'dist', 'data']));
  });
});

describe('the compose files', () => {
  it.each(['compose.yaml', 'compose.analytics.yaml', 'compose.monitoring.yaml'])(
    '%s names files that exist',
    (name) => {
      const { services } = parse(readFileSync(path.join(docker, name), 'utf8'));
      for (const service of Object.values<{ image?: string; volumes?: string[] }>(services)) {
        if (service.image !== undefined)
          expect(service.image).toMatch(/^(?:tidegate|docker\.io\/[\w/-]+:v?\d+\.\d+\.\d+)$/);
        const files = (service.volumes ?? [])
          .map((volume) => volume.split(':')[0] ?? '')
          .filter((file) => /^\./.test(file));
        for (const file of files) expect(existsSync(path.join(docker, file))).toBe(true);
      }
    },
  );

  it('the gateway is published on loopback, with a secret, on a read-only root without capabilities', () => {
    const { services, secrets } = parse(readFileSync(path.join(docker, 'compose.yaml'), 'utf8'));
    expect(services.tidegate).toMatchObject({ read_only: true, cap_drop: ['ALL'], secrets: Object.keys(secrets) });
    for (const port of services.tidegate.ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    expect(services.tidegate.environment).not.toHaveProperty('TIDEGATE_PASSWORD');
  });
});
