// A release is the same bytes, whatever folder, umask, time zone, language and number of processors it is built with.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = path.join(import.meta.dirname, '../..');
const wanted = process.env.CI !== undefined;
const hasDpkg = spawnSync('dpkg-deb', ['--version']).status === 0;
const reason = wanted
  ? hasDpkg
    ? ''
    : ' (no dpkg-deb on this machine)'
  : ' (takes a minute: CI=1, or `make reproduce`)';

describe.skipIf(reason !== '')(`a release${reason}`, () => {
  it('built twice is the same bytes', () => {
    const env = { ...process.env, ARCHS: 'all' };
    const { stdout, status } = spawnSync('scripts/reproduce.sh', {
      cwd: ROOT,
      env,
      encoding: 'utf8',
      timeout: 570_000,
    });
    expect({ status, differs: stdout.match(/^DIFFERS .*$/gm) }).toEqual({ status: 0, differs: null });
    const same = [...stdout.matchAll(/^same +(.*)$/gm)].map(([, name]) => name.replace(/\d+\.\d+\.\d+/, '*'));
    expect(same).toEqual(['SHA256SUMS', 'tidegate-*.tgz', 'tidegate-slim_*_all.deb', 'tidegate.cdx.json']);
  }, 600_000);
});
