// SP transports of a program that embeds the gateway: frames over its streams in both directions, and what is missing is said.
import net from 'node:net';
import { Duplex } from 'node:stream';
import { afterEach, expect, test } from 'vitest';
import { createGateway, type EmbeddedGateway } from '../../src/index.ts';

const gateways: EmbeddedGateway[] = [];
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.stop();
});

/** Two streams, each reading what the other is given. */
function pair(): [Duplex, Duplex] {
  const made: Duplex[] = [];
  const side = (other: number): Duplex =>
    new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        made[other].push(Buffer.from(chunk));
        done();
      },
      final(done) {
        made[other].push(null);
        done();
      },
    });
  made.push(side(1), side(0));
  return [made[0], made[1]];
}

function started(hocon: string, transports: Parameters<typeof createGateway>[1]): Promise<EmbeddedGateway> {
  const gateway = createGateway({ hocon: `listeners.tcp.bind = "127.0.0.1:0"\n${hocon}` }, transports);
  gateways.push(gateway);
  return gateway.start().then(() => gateway);
}

test('a bridge that listens and one that dials meet over streams of the program', async () => {
  let offer: ((stream: Duplex) => void) | null = null;
  let ended = 0;
  const transports = {
    line: {
      listen(accept: (stream: Duplex) => void) {
        offer = accept;
        return () => {
          ended++;
        };
      },
      dial(): Duplex {
        const [mine, theirs] = pair();
        offer?.(theirs);
        return mine;
      },
    },
  };
  const far = await started(
    'bridges.nng.pub.out { enable = true, pub_url = "program://line", mode = listen, forwards = [ { local_topic = "up/#" } ] }',
    { transports },
  );
  const near = await started(
    'bridges.nng.sub.in { enable = true, sub_url = "program://line", mode = dial, subscription = [ { remote_topic = "", local_topic = "got", frame = payload } ] }',
    { transports },
  );
  await expect.poll(() => near.bridges()[0].state).toBe('connected');
  const got = new Promise<string>((resolve) => {
    near.subscribe('got', ({ payload }) => resolve(Buffer.from(payload).toString()));
  });
  await expect.poll(() => far.bridges()[0].peers.length).toBe(1);
  await far.publish('up/1', 'hello');
  expect(await got).toContain('hello');
  await far.stop();
  gateways.splice(gateways.indexOf(far), 1);
  expect(ended).toBe(1);
});

test('a stream that ends is asked for again', async () => {
  const streams: net.Socket[] = [];
  const server = net.createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as net.AddressInfo;
  const dial = (): Duplex => {
    const socket = net.connect(port, '127.0.0.1');
    streams.push(socket);
    return socket;
  };
  await started(
    'bridges.nng.sub.in { enable = true, sub_url = "program://line", mode = dial, subscription = [ { local_topic = "got" } ] }',
    {
      transports: { line: { dial } },
    },
  );
  await expect.poll(() => streams.length).toBeGreaterThan(2);
  server.close();
});

test('a transport that is not there, or not for this role, is the error of the bridge', async () => {
  const gateway = await started(
    `bridges.nng.pub.out { enable = true, pub_url = "program://none", mode = listen, forwards = [ { local_topic = "a" } ] }
     bridges.nng.sub.in { enable = true, sub_url = "program://half", mode = dial, subscription = [ { local_topic = "b" } ] }`,
    { transports: { half: {} } },
  );
  await expect
    .poll(() =>
      gateway
        .bridges()
        .map(({ lastError }) => lastError ?? '')
        .join('; '),
    )
    .toMatch(/no transport of this name/);
  await expect
    .poll(() =>
      gateway
        .bridges()
        .map(({ lastError }) => lastError ?? '')
        .join('; '),
    )
    .toMatch(/has no dial/);
});
