// The control socket: the REST API over a Unix socket in a folder that only the gateway's user and root can write, so
// that `tidegate ctl` on this machine needs neither address nor password. Made by http.ts where the command has named a
// folder. Connecting takes write permission on the socket file, which is mode 0600: a process that has it could read
// the configuration with its passwords as well. Source: unix(7), "Pathname socket ownership and permissions".
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, type Stats } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { connect, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { SOCKET_NAME } from '../base/runfolder.ts';
import { systemErrorText } from '../base/systemerror.ts';
import { SERVER_OPTIONS } from './listening.ts';

/** Scripts of one machine, one call at a time each. */
const MAX_CONNECTIONS = 64;

export class ControlSocket {
  readonly path: string;
  private readonly folder: string;
  private readonly locals: WeakSet<Socket>;
  private server: Server | null = null;
  private made: Stats | null = null;

  /** @param locals gets every socket that came in here */
  constructor(folder: string, locals: WeakSet<Socket>) {
    this.folder = folder;
    this.locals = locals;
    this.path = join(folder, `${process.pid}.sock`);
  }

  /** Binds. Throws an Error that says why it cannot be done. */
  async start(listener: RequestListener): Promise<void> {
    const { folder, locals } = this;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const unsafe = unsafeFolder(lstatSync(folder));
    if (unsafe !== null) throw new Error(`${folder} ${unsafe}`);
    await sweep(folder);
    const server = createServer(SERVER_OPTIONS, listener);
    server.maxConnections = MAX_CONNECTIONS;
    server.prependListener('connection', (socket: Socket) => locals.add(socket));
    // Nobody reaches it before it has its mode.
    const hidden = mkdtempSync(join(folder, '.'));
    try {
      await listen(server, join(hidden, 's'));
      this.server = server;
      chmodSync(join(hidden, 's'), 0o600);
      renameSync(join(hidden, 's'), this.path);
      this.made = lstatSync(this.path);
    } finally {
      rmSync(hidden, { recursive: true, force: true });
    }
  }

  async stop(): Promise<void> {
    const { server, made } = this;
    this.server = null;
    if (server === null) return;
    const now = lstatSync(this.path, { throwIfNoEntry: false });
    if (made !== null && now?.ino === made.ino && now.dev === made.dev) rmSync(this.path, { force: true });
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function')
        server.closeAllConnections();
    });
  }
}

/** Why sockets in a folder could be somebody else's; null when they cannot. */
export function unsafeFolder(stats: Stats, uid: number = process.getuid?.() ?? -1): string | null {
  if (!stats.isDirectory()) return 'is not a folder';
  if (stats.uid !== uid && stats.uid !== 0) return 'belongs to another user';
  return (stats.mode & 0o022) === 0 ? null : 'can be changed by other users';
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new Error(`${path}: ${systemErrorText(error)}`)));
    server.listen({ path }, () => {
      server.removeAllListeners('error');
      // Accepting goes on after an error.
      server.on('error', () => {});
      resolve();
    });
  });
}

/** Takes away what gateways that were killed have left. */
async function sweep(folder: string): Promise<void> {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (SOCKET_NAME.test(name) && lstatSync(path, { throwIfNoEntry: false })?.isSocket() && (await isDead(path)))
      rmSync(path, { force: true });
  }
}

/** Whether nobody listens behind a socket file. */
function isDead(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}
