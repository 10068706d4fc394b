// Finds the gateway that runs on this machine by its control socket, for `tidegate ctl` without an address. Called by
// client.ts and `tidegate doctor`. A socket counts only where nobody else could have put it: its folder and itself
// belong to root or to one user, and others cannot write there.
import { lstatSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { runFolders, SOCKET_NAME } from '../../base/runfolder.ts';

export interface LocalGateway {
  readonly pid: number;
  readonly path: string;
  /** Whether this user may connect. */
  readonly open: boolean;
}

type Env = Readonly<Record<string, string | undefined>>;

const PROBE_MS = 2000;

/** Gateways that answer, in the order of their process numbers. */
export async function localGateways(env: Env, uid: number = process.getuid?.() ?? -1): Promise<LocalGateway[]> {
  const found: LocalGateway[] = [];
  for (const folder of runFolders(env, uid)) {
    for (const name of trustedNames(folder, uid)) {
      const path = join(folder, name);
      const outcome = await probe(path);
      if (outcome !== 'gone') found.push({ pid: Number(SOCKET_NAME.exec(name)?.[1]), path, open: outcome === 'open' });
    }
  }
  return found.sort((a, b) => a.pid - b.pid);
}

function trustedNames(folder: string, uid: number): string[] {
  try {
    const stats = lstatSync(folder);
    // The folder of the service belongs to the service's user, and only root can make it.
    const trusted = stats.uid === uid || stats.uid === 0 || uid === 0 || folder.startsWith('/run/');
    if (!stats.isDirectory() || !trusted || (stats.mode & 0o022) !== 0) return [];
    return readdirSync(folder).filter((name) => {
      if (!SOCKET_NAME.test(name)) return false;
      const socket = lstatSync(join(folder, name), { throwIfNoEntry: false });
      return socket?.isSocket() === true && socket.uid === stats.uid;
    });
  } catch {
    return [];
  }
}

function probe(path: string): Promise<'open' | 'forbidden' | 'gone'> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const finish = (outcome: 'open' | 'forbidden' | 'gone'): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => finish('gone'), PROBE_MS);
    socket.once('connect', () => finish('open'));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => finish(code === 'EACCES' ? 'forbidden' : 'gone'));
  });
}
