// "Test connection": each way in which a bridge does not reach its other side is told with the key it hangs on, and a
// test changes nothing over there.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMqttBridge, readNng } from '../../src/config/documents.ts';
import type { ProbeStep } from '../../src/console/console.ts';
import { probeNngBridge } from '../../src/gateway/nngprobe.ts';
import { mqttBridgeOptions } from '../../src/gateway/options.ts';
import { probeMqttBridge } from '../../src/gateway/probe.ts';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';

type Document = Parameters<typeof readMqttBridge>[1];

function options(document: Document) {
  const read = readMqttBridge('b', document, null);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return mqttBridgeOptions(read.value);
}

const probe = (document: Document, publishTo: string | null = null) => probeMqttBridge(options(document), publishTo);
const short = (steps: readonly ProbeStep[]): string[] => steps.map(({ step, outcome }) => `${step} ${outcome}`);
const failed = (steps: readonly ProbeStep[]) => steps.find(({ outcome }) => outcome === 'failed');

const RULES = `auth {
  allow_anonymous = false
  password { gateway = "right" }
  acl { rules = [
    { permit = allow, action = pubsub, topics = ["up/#", "down/#"] }
    { permit = deny }
  ] }
}
`;

describe('a bridge to a remote broker', () => {
  let remote: TestGateway;
  beforeAll(async () => {
    remote = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }\n${RULES}`);
  });
  afterAll(() => remote.stop());

  const document = (more: Document = {}): Document => ({
    server: `mqtt-tcp://127.0.0.1:${remote.port}`,
    proto_ver: 5,
    clientid: 'edge',
    username: 'gateway',
    password: 'right',
    forwards: [{ local_topic: 'up/#' }],
    subscription: [
      { remote_topic: 'down/#', qos: 1 },
      { remote_topic: 'secret/#' },
      { remote_topic: '$share/g/down/#' },
    ],
    ...more,
  });

  it('is told what is granted and what is not, filter by filter', async () => {
    const steps = await probe(document());
    expect(short(steps)).toEqual([
      'connect ok',
      'mqtt ok',
      'subscribe ok',
      'subscribe failed',
      'subscribe skipped',
      'publish skipped',
    ]);
    expect(steps[2]).toMatchObject({ about: 'down/#', text: 'granted with QoS 1' });
    expect(failed(steps)).toMatchObject({ text: 'not authorised', pointer: '/subscription/1/remote_topic' });
  });

  it('publishes only where it is asked to, and is told whether it may', async () => {
    expect((await probe(document(), 'up/test')).at(-1)).toMatchObject({ step: 'publish', outcome: 'ok' });
    expect((await probe(document(), 'other')).at(-1)).toMatchObject({ outcome: 'failed', text: 'not authorised' });
    const older = await probe(document({ proto_ver: 4, subscription: [] }), 'up/test');
    expect(older.at(-1)).toMatchObject({ step: 'publish', outcome: 'warning' });
  });

  it.each([
    [{ password: 'wrong' }, 5, '/username', 'not authorised: user name, password or a missing right'],
    [{ password: 'wrong' }, 4, '/username', 'not authorised: user name, password or a missing right'],
    [{ username: 'nobody' }, 5, '/username', 'not authorised: user name, password or a missing right'],
  ])('with %j in version %i fails at %s', async (more, proto_ver, pointer, text) => {
    const steps = await probe(document({ ...more, proto_ver }));
    expect(short(steps)).toEqual(['connect ok', 'mqtt failed']);
    expect(failed(steps)).toMatchObject({ pointer, text });
  });

  it('leaves a client of the same id connected', async () => {
    const socket = connect(remote.port, '127.0.0.1');
    const text = (value: string): Buffer => Buffer.concat([Buffer.of(0, value.length), Buffer.from(value)]);
    const body = [text('MQTT'), Buffer.of(4, 0xc2, 0, 60), text('edge'), text('gateway'), text('right')];
    const packet = Buffer.concat(body);
    let closed = false;
    socket.on('close', () => {
      closed = true;
    });
    socket.write(Buffer.concat([Buffer.of(0x10, packet.length), packet]));
    await new Promise((resolve) => socket.once('data', resolve));
    await probe(document());
    expect(closed).toBe(false);
    socket.destroy();
  });

  it('fails at the server where nobody answers, and where the name is unknown', async () => {
    const nobody = await probe(document({ server: 'mqtt-tcp://127.0.0.1:1' }));
    expect(failed(nobody)).toMatchObject({
      step: 'connect',
      pointer: '/server',
      text: 'connection refused (ECONNREFUSED)',
    });
    const unknown = await probe(document({ server: 'mqtt-tcp://no-such-host.invalid:1883' }));
    expect(failed(unknown)).toMatchObject({ step: 'resolve', pointer: '/server' });
  });
});

describe.skipIf(!hasOpenssl() || programPath('mosquitto') === null)('over TLS to mosquitto', () => {
  let authority: Authority;
  let broker: Mosquitto;
  let expired: Mosquitto;
  beforeAll(async () => {
    authority = new Authority();
    const start = (pair: { cert: string; key: string }) =>
      Mosquitto.start([`certfile ${pair.cert}`, `keyfile ${pair.key}`, 'allow_anonymous true']);
    broker = await start(authority.issue({ name: 'broker', alt: ['DNS:localhost', 'IP:127.0.0.1'] }));
    expired = await start(authority.issue({ name: 'old', alt: ['IP:127.0.0.1'], expired: true }));
  });
  afterAll(async () => {
    await broker.stop();
    await expired.stop();
    authority.remove();
  });

  const document = (more: Document = {}, port = broker.port): Document => ({
    server: `tls+mqtt-tcp://127.0.0.1:${port}`,
    proto_ver: 5,
    subscription: [{ remote_topic: 'down/#' }],
    ...more,
  });

  it('names the certificate and goes on where its authority is given, as a file or as text', async () => {
    for (const cacertfile of [authority.ca, readFileSync(authority.ca, 'utf8')]) {
      const steps = await probe(document({ ssl: { cacertfile } }));
      expect(short(steps)).toEqual(['connect ok', 'tls ok', 'mqtt ok', 'subscribe ok']);
      expect(steps[1].certificate).toMatchObject({ names: ['localhost', '127.0.0.1'], issuer: 'CN=Test Authority' });
    }
  });

  it('fails at the authority, the name or the dates of the certificate', async () => {
    const unknown = await probe(document());
    expect(failed(unknown)).toMatchObject({ step: 'tls', pointer: '/ssl/cacertfile' });
    expect(failed(unknown)?.text).toContain('not trusted');
    const named = await probe(document({ ssl: { cacertfile: authority.ca, servername: 'other.example' } }));
    expect(failed(named)).toMatchObject({
      pointer: '/ssl/servername',
      text: 'the certificate is not for other.example',
    });
    const old = await probe(document({ ssl: { cacertfile: authority.ca } }, expired.port));
    expect(failed(old)?.text).toMatch(/^the certificate expired on 2020-01-0/);
    const off = await probe(document({ ssl: { verify_peer: false } }));
    expect(short(off)).toEqual(['connect ok', 'tls warning', 'mqtt ok', 'subscribe ok']);
  });

  it('never shows a pasted key in what fails', async () => {
    const key = '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n';
    const steps = await probe(document({ ssl: { cacertfile: authority.ca, certfile: authority.ca, keyfile: key } }));
    expect(failed(steps)).toBeDefined();
    expect(JSON.stringify(steps)).not.toContain('c2VjcmV0');
    const read = readMqttBridge('b', document({ ssl: { keyfile: key } }), null);
    expect(read.ok && JSON.stringify(read.masked)).toContain('"keyfile":"***"');
  });

  it('keeps a pasted key that reads "***"', () => {
    const key = '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n';
    const first = readMqttBridge('b', document({ ssl: { keyfile: key } }), null);
    const again = readMqttBridge('b', document({ ssl: { keyfile: '***' } }), first.ok ? first.tree : null);
    expect(again.ok && again.value.tls?.key).toBe(key);
  });
});

describe('an NNG bridge', () => {
  let peer: TestGateway;
  let url: string;
  beforeAll(async () => {
    peer = await testGateway(`listeners.tcp { bind = "127.0.0.1:0" }
bridges.nng.pub.out { enable = true, pub_url = "tcp://127.0.0.1:0", forwards = [ { local_topic = "a/#" } ] }
`);
    url = peer.gateway.bridges.list()[0].endpoints[0].bound ?? '';
  });
  afterAll(() => peer.stop());

  async function probeNng(type: 'sub' | 'pub' | 'pull', document: Document) {
    const read = readNng(type, 'n', { enable: true, ...document }, 'documented', null);
    if (!read.ok) throw new Error(JSON.stringify(read.problems));
    return probeNngBridge(read.value, null);
  }

  it('is told that its peer fits, and the peer does not notice', async () => {
    const steps = await probeNng('sub', { sub_url: url, mode: 'dial', subscription: [{ remote_topic: 'a' }] });
    expect(short(steps)).toEqual(['connect ok', 'sp ok']);
    expect(steps[1].about).toBe('pub0');
    expect(peer.gateway.bridges.list()[0].peers).toEqual([]);
  });

  it('is told of a peer of another protocol, of one that is no SP peer, and of an address that is taken', async () => {
    const wrong = await probeNng('pull', { pull_url: url, mode: 'dial', subscription: [{ remote_topic: 'a' }] });
    expect(failed(wrong)).toMatchObject({ text: 'a peer for pull0 has to be push0', pointer: '/pull_url' });
    const taken = await probeNng('pub', { pub_url: url, forwards: [{ local_topic: 'a' }] });
    expect(failed(taken)?.text).toContain('already in use');
    const free = await probeNng('pub', { pub_url: 'tcp://127.0.0.1:0', forwards: [{ local_topic: 'a' }] });
    expect(short(free)).toEqual(['listen ok']);
  });
});
