// Abstract Unix socket names, to the byte. The engine pads such a name with NULs to the size of sun_path, and a padded
// name is another name to the kernel: nng and everybody else would not find it. So the socket is made by the C library
// (package koffi, loaded when a name is first used) and its descriptor handed to the engine. Used by unix.ts and
// dial.ts. Source: unix(7).
import type { Socket } from 'node:net';
import { Socket as NetSocket } from 'node:net';
import { constants } from 'node:os';
import { errorText } from '../base/errors.ts';

/** The calls that are needed, and the error of the last one. */
interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array, bytes: number): number;
  listen(fd: number, backlog: number): number;
  connect(fd: number, address: Uint8Array, bytes: number): number;
  close(fd: number): number;
  errno(): number;
}

const AF_UNIX = 1;
/** SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, the same on every Linux but MIPS. */
const STREAM = 1 | 0o4000 | 0o2000000;

async function loadLibc(): Promise<Libc> {
  let koffi: typeof import('koffi').default;
  try {
    koffi = (await import('koffi')).default;
  } catch (error) {
    throw new Error(`abstract names need the optional package koffi: ${errorText(error)}`);
  }
  const libc = koffi.load(null);
  const call = (prototype: string): ((...args: unknown[]) => number) => libc.func(prototype);
  return {
    socket: call('int socket(int domain, int type, int protocol)'),
    bind: call('int bind(int fd, const uint8_t *address, uint32_t bytes)'),
    listen: call('int listen(int fd, int backlog)'),
    connect: call('int connect(int fd, const uint8_t *address, uint32_t bytes)'),
    close: call('int close(int fd)'),
    errno: () => koffi.errno(),
  };
}

/** sockaddr_un with exactly the bytes of the name: family in the byte order of the machine, then NUL and name. */
function addressOf(name: string): Uint8Array {
  const text = Buffer.from(name);
  const address = Buffer.alloc(2 + text.length);
  new Uint16Array(address.buffer, address.byteOffset, 1)[0] = AF_UNIX;
  text.copy(address, 2);
  return address;
}

function failure(libc: Libc, call: string): Error {
  const errno = libc.errno();
  const code = Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`;
  return Object.assign(new Error(`${call} ${code}`), { code });
}

/** A descriptor that listens on `name` (with its leading NUL). Rejects with an error whose `code` is the errno name. */
export async function listenDescriptor(name: string, backlog: number): Promise<number> {
  const libc = await loadLibc();
  const fd = libc.socket(AF_UNIX, STREAM, 0);
  if (fd < 0) throw failure(libc, 'socket');
  const address = addressOf(name);
  if (libc.bind(fd, address, address.length) < 0 || libc.listen(fd, backlog) < 0) {
    const error = failure(libc, 'bind');
    libc.close(fd);
    throw error;
  }
  return fd;
}

/** A socket connected to `name`. Rejects with an error whose `code` is the errno name. */
export async function connectAbstract(name: string): Promise<Socket> {
  const libc = await loadLibc();
  const fd = libc.socket(AF_UNIX, STREAM, 0);
  if (fd < 0) throw failure(libc, 'socket');
  const address = addressOf(name);
  // Connecting on the same machine takes no time: it succeeds, or the listener's queue is full (EAGAIN) and is tried
  // again later.
  if (libc.connect(fd, address, address.length) < 0) {
    const error = failure(libc, 'connect');
    libc.close(fd);
    throw error;
  }
  return new NetSocket({ fd, readable: true, writable: true, allowHalfOpen: true });
}
