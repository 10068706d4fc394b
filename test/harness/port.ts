// Ports for programs that cannot be asked for port 0 and tell what they got. They come from below the range from which the system takes ports of its
// own choice (32768 on Linux): a port found free there is not given to somebody else's connection before the program has it.
import { createServer } from 'node:net';

const FIRST = 10_240;
const END = 32_768;
/** Test files run in several processes: each begins somewhere else and goes on from there. */
let next = FIRST + Math.floor(Math.random() * (END - FIRST));

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().on('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** A port of 127.0.0.1 that nobody listens on, never the same twice in one process. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 1000; tries++) {
    const port = next;
    next = next + 1 === END ? FIRST : next + 1;
    if (await isFree(port)) return port;
  }
  throw new Error('no free port');
}
