// The system's clock when the loop is late: what waits to be read comes first. And what tells that the loop was away.
import { createConnection, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { Absence, systemClock } from '../../src/base/clock.ts';

/** Stands still, loop and all. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test.each(['after', 'every'] as const)(
  'a timer of %s() that a stall made late runs behind what came meanwhile',
  async (kind) => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const accepted = new Promise<import('node:net').Socket>((resolve) => server.once('connection', resolve));
    const peer = createConnection(port, '127.0.0.1');
    const socket = await accepted;
    const order: string[] = [];
    socket.on('data', () => order.push('data'));
    const timed = new Promise<void>((resolve) => {
      const timer = systemClock[kind](20, () => {
        order.push('timer');
        timer.cancel();
        resolve();
      });
    });
    // One turn, so that the socket is being read when the loop stands still.
    await new Promise((resolve) => setImmediate(resolve));
    peer.write('x');
    stall(300);
    await timed;
    expect(order).toEqual(['data', 'timer']);
    peer.destroy();
    socket.destroy();
    server.close();
  },
);

test('a late timer that is cancelled by what came meanwhile does not run', async () => {
  let ran = false;
  const timer = systemClock.after(10, () => {
    ran = true;
  });
  // Comes due in the same turn, behind it.
  const cancelled = new Promise<void>((resolve) => {
    setTimeout(() => {
      timer.cancel();
      resolve();
    }, 15);
  });
  stall(200);
  await cancelled;
  await new Promise((resolve) => setImmediate(resolve));
  expect(ran).toBe(false);
});

test('an absence is a period of more than twice its length', () => {
  const absence = new Absence(1000, 0);
  expect([1000, 2900, 4000, 9000, 10_000].map((nowMs) => absence.over(nowMs))).toEqual([
    false,
    false,
    false,
    true,
    false,
  ]);
});
