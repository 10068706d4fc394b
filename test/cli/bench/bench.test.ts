// `tidegate bench`: its loads against a broker in the process, its figures against what is known to be true.
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LoadOptions } from '../../../src/cli/bench/load.ts';
import { Latency, Meter } from '../../../src/cli/bench/meter.ts';
import { makePayload, stamp } from '../../../src/cli/bench/payload.ts';
import { LoadRun } from '../../../src/cli/bench/run.ts';
import { runCli } from '../../../src/cli/cli.ts';
import { type TestGateway, testGateway } from '../../harness/gateway.ts';
import { fakeIo } from '../../harness/io.ts';

let broker: TestGateway;
beforeAll(async () => {
  broker = await testGateway();
});
afterAll(() => broker.stop());

function options(over: Partial<LoadOptions> = {}): LoadOptions {
  return {
    broker: { host: '127.0.0.1', port: broker.port },
    version: 4,
    username: null,
    password: null,
    publishers: 1,
    subscribers: 1,
    topics: 1,
    topicPrefix: 'bench/t',
    topicFilter: 'bench/#',
    size: 32,
    qos: 0,
    subscriptionQos: 0,
    durable: false,
    count: 2000,
    seconds: 0,
    warmupSeconds: 0,
    rate: 0,
    window: 500,
    inflight: 50,
    publishTo: null,
    receiveFrom: null,
    pair: false,
    framePrefix: '',
    stallMs: 5000,
    checkAll: true,
    ...over,
  };
}

describe('a load', () => {
  it.each([
    { qos: 0, version: 4 },
    { qos: 1, version: 4 },
    { qos: 2, version: 4 },
    { qos: 0, version: 5 },
    { qos: 1, version: 5 },
    { qos: 2, version: 5 },
    { qos: 1, version: 3 },
  ] as const)('of QoS $qos with version $version arrives whole and in order', async ({ qos, version }) => {
    const result = await new LoadRun(options({ qos, subscriptionQos: qos, version }), null).run();
    expect(result).toMatchObject({ sent: 2000, received: 2000, lost: 0, disorder: 0, gaps: 0, stalled: false });
  });

  it.each([4, 5] as const)('to durable sessions leaves none behind, version %i', async (version) => {
    const result = await new LoadRun(
      options({ qos: 1, subscriptionQos: 1, subscribers: 3, durable: true, version }),
      null,
    ).run();
    expect(result).toMatchObject({ received: 6000, lost: 0 });
    await expect.poll(() => [...broker.gateway.broker.clients()].length).toBe(0);
  });

  it('of many publishers, subscribers and topics is counted for each copy', async () => {
    const result = await new LoadRun(options({ publishers: 7, subscribers: 3, topics: 10, count: 2003 }), null).run();
    expect(result).toMatchObject({ sent: 2003, received: 6009, lost: 0, disorder: 0, gaps: 0 });
  });

  it('whose subscription lowers the QoS is counted', async () => {
    const result = await new LoadRun(options({ qos: 2, subscriptionQos: 0 }), null).run();
    expect(result).toMatchObject({ received: 2000, lost: 0 });
  });

  it('whose publishers lower the QoS is counted', async () => {
    const result = await new LoadRun(options({ qos: 0, subscriptionQos: 1 }), null).run();
    expect(result).toMatchObject({ received: 2000, lost: 0 });
  });

  it('of large messages is counted, sampled as well', async () => {
    const result = await new LoadRun(options({ size: 300_000, count: 20, window: 4, checkAll: false }), null).run();
    expect(result).toMatchObject({ received: 20, lost: 0, disorder: 0 });
  });

  it('without subscribers ends when all is acknowledged', async () => {
    const result = await new LoadRun(options({ subscribers: 0, qos: 1 }), null).run();
    expect(result).toMatchObject({ sent: 2000, received: 0, stalled: false });
  });

  it('at a rate sends what is due', async () => {
    const result = await new LoadRun(options({ rate: 5000, count: 500 }), null).run();
    expect(result).toMatchObject({ sent: 500, received: 500, lost: 0 });
    expect(result.latencyUs.p50).toBeGreaterThan(0);
  });

  it('fails when nobody listens', async () => {
    const run = new LoadRun(options({ broker: { host: '127.0.0.1', port: 1 } }), null).run();
    await expect(run).rejects.toThrow('ECONNREFUSED');
  });

  it('fails with the reason when the broker refuses the client', async () => {
    const closed = await testGateway(
      'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\nauth { allow_anonymous = false, password { "a" : "b" } }\n',
    );
    const run = new LoadRun(options({ broker: { host: '127.0.0.1', port: closed.port } }), null).run();
    await expect(run).rejects.toThrow('refused: code 5');
    await closed.stop();
  });
});

/** A broker that answers CONNECT and SUBSCRIBE and passes on what `change` leaves of each chunk. */
async function passer(change: (chunk: Buffer) => Buffer): Promise<{ port: number; close: () => void }> {
  let subscriber: net.Socket | null = null;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      if (chunk[0] === 0x10) socket.write(Buffer.from([0x20, 2, 0, 0]));
      else if (chunk[0] === 0x82) {
        subscriber = socket;
        socket.write(Buffer.from([0x90, 3, 0, 1, 0]));
      } else subscriber?.write(change(chunk));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port: (server.address() as net.AddressInfo).port, close };
}

describe('a load over a broker that fails', () => {
  it('counts what is lost and ends', async () => {
    let dropped = false;
    const bad = await passer((chunk) => {
      if (dropped) return chunk;
      dropped = true;
      // The first whole packet of 2 + 2 + 8 + 32 bytes.
      return chunk.subarray(44);
    });
    const result = await new LoadRun(
      options({ broker: { host: '127.0.0.1', port: bad.port }, count: 100, stallMs: 300 }),
      null,
    ).run();
    expect(result).toMatchObject({ sent: 100, received: 99, lost: 1, stalled: true });
    bad.close();
  });

  it('fails when bytes come that are no message of this load', async () => {
    const bad = await passer((chunk) => Buffer.alloc(chunk.length, 0x30));
    const run = new LoadRun(
      options({ broker: { host: '127.0.0.1', port: bad.port }, count: 100, stallMs: 300 }),
      null,
    ).run();
    await expect(run).rejects.toThrow(/not ours|unexpected|packet/);
    bad.close();
  });
});

describe('the bridges of a gateway under load', () => {
  it('pass everything from MQTT to NNG and from NNG to MQTT', async () => {
    const sockets = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
    const bridge = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
bridges.nng {
  pub.out { enable = true, pub_url = "ipc://${sockets}/out.ipc", forwards = [ { local_topic = "out/#", remote_topic = "r", nng_delimiter = ":" } ] }
  sub.in { enable = true, sub_url = "ipc://${sockets}/in.ipc", subscription = [ { remote_topic = "in", nng_delimiter = ":", local_topic = "from/x" } ] }
}
`);
    const at = (name: string) => ({ address: { path: path.join(sockets, `${name}.ipc`) }, ipc: true });
    const address = { host: '127.0.0.1', port: bridge.port };
    const out = await new LoadRun(
      options({ broker: address, topicPrefix: 'out/t', receiveFrom: at('out') }),
      null,
    ).run();
    expect(out).toMatchObject({ sent: 2000, received: 2000, lost: 0, disorder: 0, gaps: 0 });
    const into = options({ broker: address, publishTo: at('in'), framePrefix: 'in:', topicFilter: 'from/#' });
    expect(await new LoadRun(into, null).run()).toMatchObject({
      sent: 2000,
      received: 2000,
      lost: 0,
      disorder: 0,
      gaps: 0,
    });
    await bridge.stop();
    rmSync(sockets, { recursive: true });
  });
});

describe('pair0 bridges of payloads under load', () => {
  it('pass everything both ways', async () => {
    const sockets = mkdtempSync(path.join(os.tmpdir(), 'bench-'));
    const bridge = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
bridges.nng.pair {
  out { enable = true, pair_url = "ipc://${sockets}/out.ipc", mode = listen, spool = 1MB
        forwards = [ { local_topic = "out/#", frame = payload } ] }
  in { enable = true, pair_url = "ipc://${sockets}/in.ipc", mode = listen
       subscription = [ { local_topic = "from/x", frame = payload } ] }
}
`);
    const at = (name: string) => ({ address: { path: path.join(sockets, `${name}.ipc`) }, ipc: true });
    const broker = { host: '127.0.0.1', port: bridge.port };
    const all = { sent: 2000, received: 2000, lost: 0, disorder: 0, gaps: 0 };
    const out = options({ broker, pair: true, topicPrefix: 'out/t', receiveFrom: at('out') });
    expect(await new LoadRun(out, null).run()).toMatchObject(all);
    const into = options({ broker, pair: true, publishTo: at('in'), topicFilter: 'from/#' });
    expect(await new LoadRun(into, null).run()).toMatchObject(all);
    await bridge.stop();
    rmSync(sockets, { recursive: true });
  });
});

describe('the meter', () => {
  const show = (meter: Meter, sequence: number, timeUs = 0): boolean => {
    const payload = makePayload(12, 0);
    stamp(payload, 0, timeUs, sequence);
    return meter.look(payload, 0, 1000);
  };

  it('tells gaps from disorder', () => {
    const meter = new Meter(1, new Latency(), true);
    for (const sequence of [0, 1, 4, 3, 4, 5]) show(meter, sequence);
    expect(meter.gaps).toBe(2);
    expect(meter.disorder).toBe(2);
  });

  it('takes samples without calling the rest gaps', () => {
    const meter = new Meter(1, new Latency(), false);
    for (const sequence of [0, 99, 100, 250]) show(meter, sequence);
    expect(meter.gaps + meter.disorder).toBe(0);
  });

  it('refuses bytes that are not ours', () => {
    expect(new Meter(1, new Latency(), false).look(Buffer.alloc(12), 0, 0)).toBe(false);
  });

  it('measures across the wrap of the clock', () => {
    const latency = new Latency();
    const payload = makePayload(12, 0);
    stamp(payload, 0, 0xffffffff, 0);
    new Meter(1, latency, true).look(payload, 0, 9);
    expect(latency.maxUs).toBe(10);
  });

  it('gives quantiles within the width of a bucket', () => {
    const latency = new Latency();
    for (let us = 1; us <= 1000; us++) latency.observe(us);
    expect([latency.quantileUs(0.5), latency.quantileUs(0.99), latency.quantileUs(1)]).toEqual([500, 990, 1000]);
    latency.observe(20_000_000);
    expect(latency.quantileUs(1)).toBeLessThanOrEqual(20_000_000);
    expect(latency.maxUs).toBe(20_000_000);
  });
});

describe('tidegate bench', () => {
  async function run(...argv: string[]) {
    const io = fakeIo();
    const code = await runCli(['bench', '-p', String(broker.port), ...argv], io);
    return { code, out: io.stdout.text(), err: io.stderr.text() };
  }

  it('prints a table', async () => {
    const { code, out } = await run('-n', '500', '-q', '1');
    expect(code).toBe(0);
    expect(out).toMatch(/sent .*msg\/s/);
    expect(out).toContain('500 sent, 500 received, 0 lost, 0 out of order');
  });

  it('prints JSON', async () => {
    const { out } = await run('-n', '500', '--json');
    expect(JSON.parse(out)).toMatchObject({ sent: 500, received: 500, lost: 0 });
  });

  it('ends after the time given', async () => {
    const { code, out } = await run('-d', '0.2', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out).received).toBeGreaterThan(0);
  });

  it.each([
    [['-q', '3']],
    [['--size', '1']],
    [['-p', '0']],
    [['--subs', '0']],
    [['--pub-url', 'nope://x']],
    [['--pair']],
    [['--pair', '--sub-url', 'tcp://127.0.0.1:1', '--subs', '2']],
    [['-r', '-1']],
  ])('%j is wrong usage', async (argv) => {
    expect((await run(...argv)).code).toBe(64);
  });
});
