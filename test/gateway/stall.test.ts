// A gateway whose loop stands still for longer than the keep alive of its clients, as after SIGSTOP or a suspended machine.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { encodeConnect } from '../../src/codec/connect.ts';
import { CONNECT } from '../../src/mqtt/packet.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const PINGREQ = Buffer.from([0xc0, 0]);
const PINGRESP = Buffer.from([0xd0, 0]);
/** 1.5 times the keep alive of one second. */
const STALL_MS = 3500;

let gateway: TestGateway | null = null;
afterEach(async () => {
  await gateway?.stop();
  gateway = null;
});

function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function client(port: number, clientId: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  const answered = once(socket, 'data');
  socket.write(
    encodeConnect({
      type: CONNECT,
      version: 4,
      bridge: false,
      clientId,
      cleanStart: true,
      keepAlive: 1,
      username: null,
      password: null,
      will: null,
      properties: null,
    }),
  );
  await answered;
  return socket;
}

test.each(['native', 'aedes'])(
  'engine %s: nobody is taken for silent whose bytes wait or who could not be heard, and the silent go one interval later [MQTT-3.1.2-22]',
  async (engine) => {
    gateway = await testGateway(`
      listeners.tcp { bind = "127.0.0.1:0" }
      broker.engine = ${engine}
    `);
    const pinging = await client(gateway.port, 'pinging');
    const silent = await client(gateway.port, 'silent');
    const answered = once(pinging, 'data');
    pinging.write(PINGREQ);
    let gone = false;
    const goes = once(silent, 'close').then(() => {
      gone = true;
    });
    silent.resume();
    await new Promise((resolve) => setImmediate(resolve));
    stall(STALL_MS);
    expect((await answered)[0]).toEqual(PINGRESP);
    const aliveAgain = once(pinging, 'data');
    pinging.write(PINGREQ);
    expect((await aliveAgain)[0]).toEqual(PINGRESP);
    expect(gone).toBe(false);
    await goes;
    pinging.destroy();
  },
);
