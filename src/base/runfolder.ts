// Where running gateways of this machine have their control sockets. Called by cli/start.ts, which makes one, and
// cli/ctl/local.ts, which looks for them. Names folders only; who may be trusted there is the callers' matter.
// Source: systemd.exec(5) RUNTIME_DIRECTORY, the XDG Base Directory Specification.
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

/** A control socket is named by the number of its process. */
export const SOCKET_NAME = /^([1-9]\d{0,9})\.sock$/;

const SERVICE_FOLDER = '/run/tidegate';
const USERS = '/run/user';

function absolute(path: string | undefined): string | null {
  return path !== undefined && isAbsolute(path) ? path : null;
}

function ofUser(env: Env, uid: number): string {
  const runtime = absolute(env.XDG_RUNTIME_DIR);
  return runtime === null ? join(tmpdir(), `tidegate-${uid}`) : join(runtime, 'tidegate');
}

/** Where a gateway puts its socket: TIDEGATE_RUN, the folder that systemd made, or one of the user. */
export function runFolder(env: Env, uid: number): string {
  const service = env.RUNTIME_DIRECTORY?.split(':')[0];
  return absolute(env.TIDEGATE_RUN) ?? absolute(service) ?? ofUser(env, uid);
}

function names(folder: string, wanted: RegExp): string[] {
  try {
    return readdirSync(folder).filter((name) => wanted.test(name));
  } catch {
    return [];
  }
}

/** Where to look: TIDEGATE_RUN alone, or the folders of the service and of the user; root looks at those of all. */
export function runFolders(env: Env, uid: number): string[] {
  const told = absolute(env.TIDEGATE_RUN);
  if (told !== null) return [told];
  const own = [SERVICE_FOLDER, ofUser(env, uid), join(tmpdir(), `tidegate-${uid}`)];
  if (uid === 0) {
    own.push(...names(USERS, /^\d+$/).map((user) => join(USERS, user, 'tidegate')));
    own.push(...names(tmpdir(), /^tidegate-\d+$/).map((name) => join(tmpdir(), name)));
  }
  return [...new Set(own)];
}
