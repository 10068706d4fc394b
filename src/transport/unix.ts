// Unix socket listeners: files and, on Linux, abstract names. Built by gateway/transports.ts for MQTT and SP (ipc,
// abstract). A socket file is made in a private folder, gets its mode and group there and only then its name, so nobody
// connects earlier. A live socket of somebody else and a file that is no socket are never touched. Source: unix(7),
// nng_ipc(7).
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  unlinkSync,
} from 'node:fs';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { Acceptor, bindError } from './acceptor.ts';
import { errorName, type Peer, StreamConnection } from './stream.ts';
import type { Bound, Listener, ListenerOptions } from './transport.ts';

export interface UnixListenerOptions extends ListenerOptions {
  /**
   * A path, or an abstract name with a leading NUL. The `proxyProtocol` of a Unix socket is read like that of any
   * other.
   */
  readonly path: string;
  /** Permission bits such as 0o660; null leaves them to the umask. Not for abstract names. */
  readonly mode: number | null;
  /** A group's name in /etc/group or its number; null leaves it. Not for abstract names. */
  readonly group: string | null;
  readonly backlog?: number;
}

/** sun_path has 108 bytes, one for the closing NUL. */
const LONGEST_PATH = 107;
/** The private folder's name: a dot and the six characters that mkdtemp adds; then "/s". */
const PRIVATE_BYTES = 9;
/** The kernel cuts it to net.core.somaxconn. */
const BACKLOG = 1024;
/** How long a socket file may take to show that somebody listens behind it. */
const PROBE_MS = 2000;

class UnixListener implements Listener {
  private readonly options: UnixListenerOptions;
  private readonly acceptor: Acceptor;
  private count = 0;
  /** The file as it was made here: stop() removes that and no other. */
  private made: Stats | null = null;

  constructor(options: UnixListenerOptions) {
    this.options = options;
    this.acceptor = new Acceptor({
      ...options,
      nameOf: () => this.nextName(),
      onSocket: (socket, peer) => this.options.accept(new StreamConnection('unix', socket, peer)),
    });
  }

  async start(): Promise<Bound[]> {
    const { path } = this.options;
    const address = printablePath(path);
    try {
      if (path.startsWith('\0')) await this.bindAbstract(path);
      else await this.bindFile(path);
    } catch (error) {
      await this.acceptor.close();
      throw bindError(address, error);
    }
    return [{ kind: 'unix', address, port: 0 }];
  }

  async stop(): Promise<void> {
    const made = this.made;
    this.made = null;
    // The name goes first: whoever dials from now on finds nothing instead of a socket that does not answer.
    if (made !== null && sameFile(made, lstatOrNull(this.options.path))) unlinkSync(this.options.path);
    await this.acceptor.close();
  }

  private nextName(): Peer {
    const local = printablePath(this.options.path);
    return { remote: `unix:${++this.count}`, remoteAddress: '', local };
  }

  private async bindAbstract(path: string): Promise<void> {
    if (process.platform !== 'linux') throw new Error('abstract names exist on Linux only');
    if (Buffer.byteLength(path) > LONGEST_PATH + 1) throw new Error('the name is longer than the system allows');
    const { listenDescriptor } = await import('./abstract.ts');
    await this.acceptor.bind({ fd: await listenDescriptor(path, this.options.backlog ?? BACKLOG) });
  }

  private async bindFile(path: string): Promise<void> {
    const folder = dirname(path);
    const short = Buffer.byteLength(folder) + 1 + Math.max(PRIVATE_BYTES, Buffer.byteLength(basename(path)));
    if (short > LONGEST_PATH) throw new Error('the path is longer than the system allows');
    const gid = this.options.group === null ? null : groupId(this.options.group);
    const stale = await staleSocket(path);
    const hidden = mkdtempSync(`${folder}/.`);
    try {
      const made = join(hidden, 's');
      await this.acceptor.bind({ path: made });
      if (gid !== null) chownSync(made, -1, gid);
      const { mode } = this.options;
      if (mode !== null) chmodSync(made, mode);
      if (stale !== null) takeAway(path, stale, hidden);
      giveName(made, path);
      this.made = lstatSync(path);
    } finally {
      rmSync(hidden, { recursive: true, force: true });
    }
  }
}

/** A listener on a Unix socket. */
export function listenUnix(options: UnixListenerOptions): Listener {
  return new UnixListener(options);
}

/** A socket path for people: abstract names with "@" for the NUL, as ss(8) shows them. */
export function printablePath(path: string): string {
  return path.startsWith('\0') ? `@${path.slice(1)}` : path;
}

function lstatOrNull(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

function sameFile(a: Stats, b: Stats | null): boolean {
  return b !== null && a.ino === b.ino && a.dev === b.dev && a.isSocket() && b.isSocket();
}

/** The dead socket file at `path`, null when there is nothing. Throws for what may not be replaced. */
async function staleSocket(path: string): Promise<Stats | null> {
  const found = lstatOrNull(path);
  if (found === null) return null;
  if (!found.isSocket()) throw new GatewayError('TRANSPORT-BIND', `${path}: exists and is no socket`);
  const outcome = await probe(path);
  if (outcome === 'ECONNREFUSED') return found;
  if (outcome === 'ENOENT') return null;
  throw new GatewayError('TRANSPORT-BIND', `${path}: address already in use (EADDRINUSE), ${outcome}`);
}

/**
 * What connecting to a socket file gives: "answers" or an errno name. Only ECONNREFUSED says that its owner is gone.
 */
function probe(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const finish = (outcome: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => finish('no answer'), PROBE_MS);
    socket.once('connect', () => finish('answers'));
    socket.on('error', (error) => finish(errorName(error)));
  });
}

/** Moves the dead socket out of the way; when another process has put its own there meanwhile, that one goes back. */
function takeAway(path: string, stale: Stats, hidden: string): void {
  const aside = join(hidden, randomBytes(4).toString('hex'));
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (sameFile(stale, lstatOrNull(aside))) return;
  giveName(aside, path);
  throw new GatewayError('TRANSPORT-BIND', `${path}: address already in use (EADDRINUSE)`);
}

/** Gives a socket its public name, never over something that exists. */
function giveName(made: string, path: string): void {
  try {
    linkSync(made, path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EEXIST') throw new GatewayError('TRANSPORT-BIND', `${path}: address already in use (EADDRINUSE)`);
    // A file system without hard links: the check and the rename are two steps there.
    if (lstatOrNull(path) !== null) throw error;
    renameSync(made, path);
    return;
  }
  unlinkSync(made);
}

const DIGITS = /^[0-9]{1,10}$/;

function groupId(group: string): number {
  if (DIGITS.test(group)) return Number(group);
  for (const line of readFileSync('/etc/group', 'utf8').split('\n')) {
    const [name, , id] = line.split(':');
    if (name === group && id !== undefined && DIGITS.test(id)) return Number(id);
  }
  throw new Error(`no group "${group}" in /etc/group`);
}
