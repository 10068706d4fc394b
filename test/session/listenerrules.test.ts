// What a listener asks of its clients beyond what holds for all, and two limits on all: through a whole gateway, over TCP.
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestGateway, testGateway } from '../harness/gateway.ts';

const CONF = `
listeners.tcp {
  plain { bind = "127.0.0.1:0" }
  strict { bind = "127.0.0.1:0", max_qos = 1, allow_empty_clientid = false }
  named { bind = "127.0.0.1:0", use_username_as_clientid = true, auto_clientid_prefix = "gw-" }
}
auth.allow_anonymous = true
mqtt { max_payload_size = 10B, clientid_prefix = "" }
`;

const field = (text: string): Buffer => Buffer.concat([Buffer.from([0, text.length]), Buffer.from(text)]);
const packet = (first: number, ...parts: readonly Buffer[]): Buffer => {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([first, body.length]), body]);
};

/** A 5.0 CONNECT. */
function hello(clientId: string, username: string | null = null): Buffer {
  const flags = username === null ? 2 : 0x82;
  const name = username === null ? Buffer.alloc(0) : field(username);
  return packet(0x10, field('MQTT'), Buffer.from([5, flags, 0, 60, 0]), field(clientId), name);
}

/** Everything the server says to these packets and a PINGREQ, until it answers that or closes. */
function talk(port: number, packets: readonly Buffer[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let said = Buffer.alloc(0);
    const socket = connect({ host: '127.0.0.1', port }, () =>
      socket.write(Buffer.concat([...packets, Buffer.from([0xc0, 0])])),
    );
    socket.on('error', reject).on('close', () => resolve(said));
    socket.on('data', (chunk: Buffer) => {
      said = Buffer.concat([said, chunk]);
      if (said.subarray(-2).equals(Buffer.from([0xd0, 0]))) socket.end();
    });
  });
}

describe('rules of a listener', () => {
  let gateway: TestGateway;
  let ports: number[];
  beforeAll(async () => {
    gateway = await testGateway(CONF);
    ports = gateway.gateway.bound.map((bound) => bound.port);
  });
  afterAll(() => gateway.stop());
  const publish = (qos: number, size: number): Buffer =>
    packet(
      0x30 | (qos << 1),
      field('t'),
      ...(qos > 0 ? [Buffer.from([0, 1])] : []),
      Buffer.from([0]),
      Buffer.alloc(size),
    );
  const subscribe = packet(0x82, Buffer.from([0, 1, 0]), field('s'), Buffer.from([2]));

  test('max_qos is told, holds for publishes and lowers subscriptions, on its listener only', async () => {
    const [plain, strict] = ports;
    expect((await talk(strict, [hello('a')])).includes(Buffer.from([0x24, 1]))).toBe(true);
    expect((await talk(strict, [hello('a'), subscribe])).includes(Buffer.from([0x90, 4, 0, 1, 0, 1]))).toBe(true);
    expect((await talk(strict, [hello('a'), publish(2, 1)])).includes(Buffer.from([0x9b]))).toBe(true);
    expect((await talk(plain, [hello('a'), subscribe])).includes(Buffer.from([0x90, 4, 0, 1, 0, 2]))).toBe(true);
  });

  test('allow_empty_clientid = false refuses a client without one', async () => {
    const [plain, strict] = ports;
    expect((await talk(strict, [hello('')]))[3]).toBe(0x85);
    expect((await talk(plain, [hello('')]))[3]).toBe(0);
  });

  test('use_username_as_clientid gives the client its username, and lets nobody in without one', async () => {
    const named = ports[2];
    expect((await talk(named, [hello('asked')]))[3]).toBe(0x87);
    const open = connect({ host: '127.0.0.1', port: named }, () => open.write(hello('asked', 'joe')));
    await new Promise((resolve) => open.once('data', resolve));
    expect(gateway.messages.filter((m) => m.id === 'CLI-CONNECT').at(-1)?.fields).toMatchObject({ clientId: 'joe' });
    open.destroy();
  });

  test('a payload above max_payload_size is acknowledged with 0x83 and has no effect, at QoS 0 without a word', async () => {
    const [plain] = ports;
    const all = packet(0x82, Buffer.from([0, 1, 0]), field('t'), Buffer.from([0]));
    const said = await talk(plain, [
      hello('a'),
      all,
      publish(0, 11),
      publish(1, 11),
      publish(0, 10),
      publish(0, 10),
      publish(0, 11),
    ]);
    expect(said.includes(Buffer.from([0, 1, 0x83]))).toBe(true);
    const came = said.toString('latin1').split('0\x0e\0\x01t\0').length - 1;
    expect(came).toBe(2);
    expect(said.includes(Buffer.from([0x30, 15]))).toBe(false);
  });
});

test('clientid_prefix refuses what begins with something else', async () => {
  const gateway = await testGateway('listeners.tcp.bind = "127.0.0.1:0"\nmqtt.clientid_prefix = "dev-"');
  expect((await talk(gateway.port, [hello('dev-1')]))[3]).toBe(0);
  expect((await talk(gateway.port, [hello('other')]))[3]).toBe(0x87);
  await gateway.stop();
});
