// `tidegate doctor`, files: folders that are written, how fast the disk of the store is, files that are read and who
// else may read them. Called by doctor.ts. Writes one small file beside the store and takes it away again.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { systemErrorText } from '../../base/systemerror.ts';
import type { Config } from '../../config/config.ts';
import { type Finding, Findings, sizeWords } from './finding.ts';

/** Writes of the speed test, and the time they may take. */
const WRITES = 30;
const WRITE_BYTES = 4096;
const SPEED_MS = 3000;
/** From here on publishers of QoS 1 feel each commit. */
const SLOW_MS = 25;
/** f_type of statfs(2): tmpfs, ramfs. */
const IN_MEMORY = new Set([0x01021994, 0x858458f6]);

/** The nearest folder that exists. */
function existing(folder: string): string {
  let at = folder;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function may(path: string, mode: number): string | null {
  try {
    accessSync(path, mode);
    return null;
  } catch (error) {
    return systemErrorText(error);
  }
}

export function checkFiles(config: Config, cwd: string): Finding[] {
  const found = new Findings('files');
  const { persistence, log } = config;
  const writable = (key: string, folder: string): void => {
    const place = existing(folder);
    const error = may(place, constants.W_OK | constants.X_OK);
    if (error === null) found.ok(`${key}: ${folder} can be written`);
    else found.fail(`${key}: ${place}: ${error}`, 'give the user of the gateway the folder: chown, or another path');
  };
  if (persistence.enable) writable('persistence.path', resolve(cwd, dirname(persistence.path)));
  if (log.to.includes('file')) writable('log.dir', resolve(cwd, log.dir));
  for (const { key, path, secret } of readFiles(config)) {
    const file = resolve(cwd, path);
    const error = may(file, constants.R_OK);
    if (error !== null) found.fail(`${key}: ${file}: ${error}`, 'correct the path, or let the gateway read the file');
    else if (secret && (statSync(file).mode & 0o007) !== 0)
      found.warn(`${key}: ${file} can be read by every user of this machine`, `chmod o= ${file}`);
    else found.ok(`${key}: ${file} can be read`);
  }
  return found.list;
}

interface ReadFile {
  readonly key: string;
  readonly path: string;
  /** Others have no business in it. */
  readonly secret: boolean;
}

function readFiles({ listeners, auth, httpServer }: Config): ReadFile[] {
  const files: ReadFile[] = [];
  const add = (key: string, path: string | null | undefined, secret: boolean): void => {
    if (path !== null && path !== undefined && path !== '') files.push({ key, path, secret });
  };
  add('auth.password_file', auth.passwordFile, true);
  add('auth.acl_file', auth.aclFile, false);
  add('auth.scram_file', auth.scramFile, true);
  for (const { name, tls, passwordFile, aclFile } of listeners) {
    const key = `listeners.${name}`;
    if (passwordFile !== auth.passwordFile) add(`${key}.password_file`, passwordFile, true);
    if (aclFile !== auth.aclFile) add(`${key}.acl_file`, aclFile, false);
    add(`${key}.keyfile`, tls?.keyfile, true);
  }
  add('http_server.tls.keyfile', httpServer?.tls?.keyfile, true);
  return files;
}

export function checkDisk({ persistence }: Config, cwd: string): Finding[] {
  const found = new Findings('disk');
  if (!persistence.enable) {
    found.warn('persistence is off: nothing survives a restart', 'set persistence.path, unless that is meant');
    return found.list;
  }
  const folder = existing(resolve(cwd, dirname(persistence.path)));
  const { bavail, bsize, type } = statfsSync(folder);
  const free = bavail * bsize;
  if (IN_MEMORY.has(type))
    found.warn(`${folder} is in memory: the store does not survive a power cut`, 'set persistence.path to a disk');
  const limit = persistence.maxSize;
  if (free < 64 * 1024 * 1024) found.fail(`${sizeWords(free)} are free at ${folder}`, 'make room, or use another disk');
  else if (limit > free)
    found.warn(
      `${sizeWords(free)} are free at ${folder}, persistence.max_size is ${sizeWords(limit)}`,
      'lower persistence.max_size, so that the disk stays usable for others when the store is full',
    );
  else found.ok(`${sizeWords(free)} are free at ${folder}`);
  speed(folder, persistence.sync, found);
  return found.list;
}

function speed(folder: string, sync: string, found: Findings): void {
  const file = join(folder, `.tidegate-doctor-${process.pid}`);
  try {
    const times = timeWrites(file);
    const median = times[Math.floor(times.length / 2)];
    const worst = times[times.length - 1];
    const spread = `median of ${times.length}, at most ${worst.toFixed(1)} ms`;
    const text = `a write reaches the disk in ${median.toFixed(1)} ms (${spread})`;
    if (median < SLOW_MS || sync !== 'ack') found.ok(text);
    else {
      const advice =
        'each QoS 1 acknowledgement waits for it: a faster disk, or persistence.sync = interval, ' +
        'which may lose the last interval in a power cut';
      found.warn(text, advice);
    }
  } catch (error) {
    found.fail(`${folder}: ${systemErrorText(error)}`, 'the store cannot be written there');
  } finally {
    rmSync(file, { force: true });
  }
}

/** Milliseconds of each write, ascending. */
function timeWrites(file: string): number[] {
  const bytes = Buffer.alloc(WRITE_BYTES, 0x5a);
  const fd = openSync(file, 'wx', 0o600);
  const times: number[] = [];
  try {
    const endMs = performance.now() + SPEED_MS;
    for (let i = 0; i < WRITES && (i === 0 || performance.now() < endMs); i++) {
      const startedMs = performance.now();
      writeSync(fd, bytes);
      fdatasyncSync(fd);
      times.push(performance.now() - startedMs);
    }
  } finally {
    closeSync(fd);
  }
  return times.sort((a, b) => a - b);
}
