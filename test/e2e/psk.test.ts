// TLS by pre-shared keys on the wire: mosquitto's clients at our listener, our bridge at mosquitto, mosquitto's bridge here, and what is refused.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createServer as createTlsServer, type Server } from 'node:tls';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { pskBytes, readPskFile } from '../../src/transport/psk.ts';
import { Authority, hasOpenssl } from '../harness/certificates.ts';
import { dial } from '../harness/dynsec.ts';
import { type TestGateway, testGateway } from '../harness/gateway.ts';
import { Mosquitto, programPath } from '../harness/mosquitto.ts';

const run = promisify(execFile);
const missing = programPath('mosquitto') === null || programPath('mosquitto_pub') === null;
const KEY = '00ffa1b2c3d4e5f60718293a4b5c6d7e';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
});

/** A plain listener first, one with keys behind it. */
async function gatewayWith(ssl = '', more = ''): Promise<{ gateway: TestGateway; port: number; file: string }> {
  const gateway = await testGateway(
    `listeners.tcp { bind = "127.0.0.1:0" }
listeners.ssl { bind = "127.0.0.1:0", psk_file = "psk", psk_hint = "plant", ${ssl} }
persistence { enable = false }
auth { allow_anonymous = true }
${more}
`.replace('"psk"', `"${pskPath()}"`),
  );
  undo.push(() => gateway.stop());
  return { gateway, port: gateway.gateway.bound[1].port, file: pskPath() };
}

let folderOf = '';
function pskPath(): string {
  return path.join(folderOf, 'psk');
}

function keysOf(text: string): void {
  folderOf = mkdtempSync(path.join(tmpdir(), 'psk-'));
  const mine = folderOf;
  undo.push(() => rmSync(mine, { recursive: true, force: true }));
  writeFileSync(pskPath(), text);
}

/** The exit code of mosquitto_pub. */
async function pub(port: number, ...argv: string[]): Promise<number> {
  const words = ['-h', '127.0.0.1', '-p', String(port), '-q', '1', '-t', 'a', '-m', 'b', ...argv];
  return run('mosquitto_pub', words).then(
    () => 0,
    (error: { code?: number }) => error.code ?? -1,
  );
}

describe('a file of keys', () => {
  it('holds identities with colons, comments and keys with leading zeros', async () => {
    keysOf(`# devices\n\ndev:1:${KEY}\r\n b : 0A\n`);
    expect([...readPskFile(pskPath())]).toEqual([
      ['dev:1', Buffer.from(KEY, 'hex')],
      ['b', Buffer.from([10])],
    ]);
  });

  it.each([
    'dev',
    'dev:',
    ':00',
    'dev:0',
    'dev:xy',
    `dev:${KEY}\ndev:${KEY}`,
    `${'x'.repeat(129)}:00`,
    `d:${'00'.repeat(257)}`,
  ])('with %j is refused by its line', async (text) => {
    keysOf(`a:01\n${text}\n`);
    expect(() => readPskFile(pskPath())).toThrow(/psk:[23]: /);
  });

  it('takes keys as bytes', () => {
    expect(pskBytes('00Ff')).toEqual(Buffer.from([0, 255]));
    expect(pskBytes('')).toContain('even number');
  });
});

describe.skipIf(missing)('a listener with keys', () => {
  it('takes mosquitto_pub with the right key, over TLS 1.2 and 1.3, and nobody else', async () => {
    keysOf(`dev:${KEY}\n`);
    const { port } = await gatewayWith();
    expect(await pub(port, '--psk', KEY, '--psk-identity', 'dev')).toBe(0);
    expect(await pub(port, '--psk', KEY, '--psk-identity', 'dev', '--ciphers', 'PSK-AES128-CBC-SHA256')).toBe(0);
    expect(await pub(port, '--psk', `${KEY.slice(0, -1)}0`, '--psk-identity', 'dev')).not.toBe(0);
    expect(await pub(port, '--psk', KEY, '--psk-identity', 'other')).not.toBe(0);
    expect(await pub(port)).not.toBe(0);
  });

  it('makes the identity the user name, and asks for no password', async () => {
    keysOf(`dev:${KEY}\nother:0102\n`);
    const acl = path.join(folderOf, 'acl');
    writeFileSync(acl, 'user dev\ntopic write a\n');
    const { port, gateway } = await gatewayWith('use_identity_as_username = true', `auth { acl_file = "${acl}" }`);
    const watched = new Promise<string | null>((resolve) => {
      gateway.gateway.broker.onEvent((event) => {
        if (event.kind === 'connected') resolve(event.client.username);
      });
    });
    expect(await pub(port, '--psk', KEY, '--psk-identity', 'dev', '-u', 'admin', '-P', 'x', '-V', '5')).toBe(0);
    expect(await watched).toBe('dev');
    expect(gateway.gateway.metrics.value('tidegate_denied_total', { action: 'publish' }) ?? 0).toBe(0);
  });

  it('forgets a key at a reload, and keeps all of them when the file is wrong', async () => {
    keysOf(`dev:${KEY}\nold:0102030405060708\n`);
    const { port, gateway, file } = await gatewayWith();
    expect(await pub(port, '--psk', '0102030405060708', '--psk-identity', 'old')).toBe(0);
    writeFileSync(file, 'dev\n');
    expect(await gateway.gateway.reload()).toMatchObject({
      report: { failed: [expect.stringContaining('certificate')] },
    });
    expect(await pub(port, '--psk', '0102030405060708', '--psk-identity', 'old')).toBe(0);
    writeFileSync(file, `dev:${KEY}\n`);
    expect(await gateway.gateway.reload()).toMatchObject({ report: { failed: [] } });
    expect(await pub(port, '--psk', '0102030405060708', '--psk-identity', 'old')).not.toBe(0);
    expect(await pub(port, '--psk', KEY, '--psk-identity', 'dev')).toBe(0);
  });
});

function bridgeTo(port: number, key = KEY): string {
  return `bridges.mqtt.far { server = "tls+mqtt-tcp://127.0.0.1:${port}", proto_ver = 4, clientid = gate
  ssl { psk = "${key}", psk_identity = gate }
  forwards = [{ local_topic = "out/#", remote_topic = "", qos = 1 }] }
listeners.tcp { bind = "127.0.0.1:0" }
persistence { enable = false }
auth { allow_anonymous = true }
`;
}

describe.skipIf(missing)('a bridge with a key', () => {
  it('sends to a mosquitto that has it, and to none that does not', async () => {
    const far = await Mosquitto.start(['allow_anonymous true', `psk_hint h`, 'psk_file {dir}/psk'], {
      psk: `gate:${KEY}\n`,
    });
    undo.push(() => far.stop());
    const gateway = await testGateway(bridgeTo(far.port));
    undo.push(() => gateway.stop());
    await expect.poll(() => gateway.gateway.bridges.list()[0].state, { timeout: 10_000 }).toBe('connected');
    expect(far.log).not.toContain('rror');
    const wrong = await testGateway(bridgeTo(far.port, 'ffff'));
    undo.push(() => wrong.stop());
    await expect.poll(() => wrong.gateway.bridges.list()[0].lastError ?? '', { timeout: 10_000 }).not.toBe('');
    expect(wrong.gateway.bridges.list()[0].state).not.toBe('connected');
  });

  it.skipIf(!hasOpenssl())('is not taken in by a server that shows a certificate instead', async () => {
    const authority = new Authority();
    undo.push(() => authority.remove());
    const pair = authority.issue({ name: '127.0.0.1' });
    let secured = 0;
    const impostor: Server = createTlsServer(
      { cert: readFileSync(pair.cert), key: readFileSync(pair.key) },
      () => secured++,
    );
    impostor.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
    undo.push(() => impostor.close());
    const address = impostor.address();
    const gateway = await testGateway(bridgeTo(typeof address === 'object' ? (address?.port ?? 0) : 0));
    undo.push(() => gateway.stop());
    await expect.poll(() => gateway.gateway.bridges.list()[0].lastError ?? '', { timeout: 10_000 }).not.toBe('');
    expect(gateway.gateway.bridges.list()[0].state).not.toBe('connected');
  });

  it('of mosquitto reaches a listener here', async () => {
    keysOf(`far:${KEY}\n`);
    const { port, gateway } = await gatewayWith();
    const reader = await dial(gateway.gateway.bound[0].port, { clientId: 'reader' });
    undo.push(() => reader.endAsync(true));
    await reader.subscribeAsync('out/#');
    const came = new Promise<string>((resolve) => reader.once('message', (topic) => resolve(topic)));
    const far = await Mosquitto.start([
      'allow_anonymous true',
      'connection up',
      `address 127.0.0.1:${port}`,
      `bridge_psk ${KEY}`,
      'bridge_identity far',
      'topic out/# out 1',
    ]);
    undo.push(() => far.stop());
    const writer = await dial(far.port, { clientId: 'writer', protocolVersion: 4 });
    undo.push(() => writer.endAsync(true));
    await writer.publishAsync('out/1', 'x', { qos: 1 });
    expect(await came).toBe('out/1');
  });
});
