// Runs the transport contract over every carrier there is.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { listenMemory, MemoryNetwork, memoryPair } from '../../src/transport/memory.ts';
import { listenTcp } from '../../src/transport/tcp.ts';
import { listenTls } from '../../src/transport/tls.ts';
import { listenUnix } from '../../src/transport/unix.ts';
import { listenWs } from '../../src/transport/ws.ts';
import { describeTransport } from '../contract/transport.ts';
import { carrierOf } from '../harness/carrier.ts';
import { Authority, clientTls, hasOpenssl, serverTls } from '../harness/certificates.ts';

const folder = mkdtempSync(join(tmpdir(), 'tidegate-'));
const authority = hasOpenssl() ? new Authority() : null;
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  authority?.remove();
});

describeTransport(
  'tcp',
  { kind: 'tcp', halfClose: true, reset: true },
  carrierOf(
    (options) => listenTcp({ ...options, host: '127.0.0.1', port: 0 }),
    ({ port }) => ({ kind: 'tcp', host: '127.0.0.1', port }),
  ),
);

const path = join(folder, 'x.sock');
describeTransport(
  'unix',
  { kind: 'unix', halfClose: true, reset: false },
  carrierOf(
    (options) => listenUnix({ ...options, path, mode: 0o600, group: null }),
    () => ({ kind: 'unix', path }),
  ),
);

const abstractName = `\0tidegate-test-${process.pid}`;
describeTransport(
  'abstract unix',
  { kind: 'unix', halfClose: true, reset: false },
  carrierOf(
    (options) => listenUnix({ ...options, path: abstractName, mode: null, group: null }),
    () => ({ kind: 'unix', path: abstractName }),
  ),
);

const network = new MemoryNetwork();
describeTransport(
  'memory',
  { kind: 'memory', halfClose: true, reset: true },
  carrierOf(
    (options) => listenMemory({ ...options, network, name: 'x' }),
    () => ({ kind: 'memory', name: 'x' }),
    { network },
  ),
);

describeTransport(
  'memory pair in pieces',
  { kind: 'memory', halfClose: true, reset: true },
  {
    start: async () => {},
    connect: async () => {
      const [near, far] = memoryPair({ chunkBytes: 4096 });
      return { near, far };
    },
    stop: async () => {},
  },
);

const PLACE = { host: '127.0.0.1', port: 0 };
describeTransport(
  'ws',
  { kind: 'ws', halfClose: false, reset: true },
  carrierOf(
    (options) => listenWs({ ...options, ...PLACE, path: '/mqtt', subprotocols: ['mqtt'], maxMessageBytes: 0 }),
    ({ address }) => ({ kind: 'ws', url: `ws://${address}`, subprotocol: 'mqtt' }),
  ),
);

if (authority === null) describe.skip('tls connection (needs the openssl program)', () => {});
else {
  const pair = authority.issue({ name: 'localhost', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
  describeTransport(
    'tls',
    { kind: 'tls', halfClose: true, reset: true },
    carrierOf(
      (options) => listenTls({ ...options, host: '127.0.0.1', port: 0, tls: serverTls(pair) }),
      ({ port }) => ({ kind: 'tls', host: '127.0.0.1', port, tls: clientTls(authority.ca) }),
    ),
  );
  describeTransport(
    'wss',
    { kind: 'wss', halfClose: false, reset: true },
    carrierOf(
      (options) =>
        listenWs({
          ...options,
          ...PLACE,
          path: '/mqtt',
          subprotocols: ['mqtt'],
          maxMessageBytes: 0,
          tls: serverTls(pair),
        }),
      ({ address }) => ({ kind: 'wss', url: `wss://${address}`, subprotocol: 'mqtt', tls: clientTls(authority.ca) }),
    ),
  );
}
