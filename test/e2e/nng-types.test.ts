// Bridges of every type in a whole gateway: from a configuration, and changed by a reload.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { HEAD, type Peer, peerOf } from '../harness/nnggateway.ts';
import { sendText } from '../harness/spsockets.ts';

let gateway: TestGateway;
let peers: Peer[] = [];
afterEach(async () => {
  await Promise.all(peers.map(({ socket }) => socket.stop(100)));
  peers = [];
  await gateway.stop();
});

const conf = (workers: string): string => `${HEAD}bridges.nng {
  push.workers { enable = true, push_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "job/#", ${workers}, nng_delimiter = ":" } ] }
  pull.results { enable = true, pull_url = "tcp://127.0.0.1:0", subscription = [ { remote_topic = "result", nng_delimiter = ":", local_topic = "job/done" } ] }
  pair.driver { enable = true, pair_url = "tcp://127.0.0.1:0", protocol = pair1, forwards = [ { local_topic = "set", remote_topic = "set", nng_delimiter = ":" } ],
    subscription = [ { remote_topic = "state", nng_delimiter = ":", local_topic = "set" } ] }
}
`;

test('push, pull and pair work from a configuration, and a reload of rules keeps their peers', async () => {
  gateway = await testGateway(conf('remote_topic = "one"'));
  const worker = await peerOf(gateway, 'push', 'workers', 'pull0');
  const result = await peerOf(gateway, 'pull', 'results', 'push0');
  const driver = await peerOf(gateway, 'pair', 'driver', 'pair1');
  peers = [worker, result, driver];
  sendText(result.socket, 'result:42');
  await worker.watch.until(() => worker.watch.bodies.length === 1);
  expect(worker.watch.bodies).toEqual(['one:42']);
  // What came in through the pair does not go back out through it, whatever its rules say.
  sendText(driver.socket, 'state:on');
  await expect.poll(() => gateway.gateway.bridges.get('pair', 'driver')?.rules[0].dropped).toEqual({ loop: 1 });
  writeFileSync(join(gateway.folder, 'test.conf'), conf('remote_topic = "two"'));
  expect(await gateway.gateway.reload()).toMatchObject({ ok: true });
  sendText(result.socket, 'result:43');
  await worker.watch.until(() => worker.watch.bodies.length === 2);
  expect(worker.watch.bodies[1]).toBe('two:43');
  for (const { watch } of peers) expect(watch.count('pipe-down')).toBe(0);
  expect(gateway.gateway.bridges.list().map(({ type, state }) => `${type} ${state}`)).toEqual([
    'push connected',
    'pair connected',
    'pull connected',
  ]);
});
