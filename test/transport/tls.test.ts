// TLS: what the server shows and asks, every way a handshake fails and the word for it, reload, the client's care.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { dial } from '../../src/transport/dial.ts';
import { listenTls, type TlsListener, type TlsListenerOptions } from '../../src/transport/tls.ts';
import type { Connection, TlsClientOptions, TlsServerOptions } from '../../src/transport/transport.ts';
import { Catch, pattern } from '../contract/transport.ts';
import { Door } from '../harness/carrier.ts';
import { Authority, clientTls, hasOpenssl, type KeyPair, serverTls } from '../harness/certificates.ts';

/** Waits for the end of a socket whose error is of no interest. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

function describeTls(): void {
  const authority = new Authority();
  const stranger = new Authority('Some Other Authority');
  const local: KeyPair = authority.issue({ name: 'localhost', alt: ['DNS:localhost', 'IP:127.0.0.1'] });
  const device = authority.issue({ name: 'device-7', subject: '/C=FR/O=Acme, Inc.' });
  const listeners: TlsListener[] = [];
  const sockets: Socket[] = [];
  const connections: Connection[] = [];

  afterAll(() => {
    authority.remove();
    stranger.remove();
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const connection of connections.splice(0)) connection.destroy();
    for (const listener of listeners.splice(0)) await listener.stop();
  });

  const verify = { cacertfile: authority.ca, verifyPeer: true };
  const must = { ...verify, failIfNoPeerCert: true };

  async function listen(
    door: Door,
    tls: Partial<TlsServerOptions> = {},
    more: Partial<TlsListenerOptions> = {},
  ): Promise<{ port: number; listener: TlsListener }> {
    const listener = listenTls({ ...door.options(), host: '127.0.0.1', port: 0, tls: serverTls(local, tls), ...more });
    listeners.push(listener);
    const [{ port }] = await listener.start();
    return { port, listener };
  }

  async function near(port: number, tls: Partial<TlsClientOptions> = {}, host = '127.0.0.1'): Promise<Connection> {
    const made = await dial({ kind: 'tls', host, port, tls: clientTls(authority.ca, tls) });
    connections.push(made);
    return made;
  }

  async function far(door: Door): Promise<Connection> {
    const made = await door.next();
    connections.push(made);
    return made;
  }

  /** A client of Node itself, for what dial() would never do. */
  function raw(port: number, options: ConnectionOptions = {}): TLSSocket {
    const socket = connect({
      host: '127.0.0.1',
      port,
      ca: readFileSync(authority.ca),
      servername: 'localhost',
      ...options,
    });
    sockets.push(socket);
    socket.on('error', () => {});
    return socket;
  }

  async function plain(port: number): Promise<Socket> {
    const socket = connectTcp({ host: '127.0.0.1', port });
    sockets.push(socket);
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  }

  describe('listenTls', () => {
    it('carries bytes and tells version, cipher and name', async () => {
      const door = new Door();
      const { port } = await listen(door);
      const a = await near(port, { serverName: 'localhost' });
      const b = new Catch(await far(door));
      expect(b.connection.kind).toBe('tls');
      expect(b.connection.tls).toMatchObject({ version: 'TLSv1.3', serverName: 'localhost', peer: null });
      expect(b.connection.tls?.cipher).not.toBe('');
      const out = pattern(400_000);
      a.write(out, () => {});
      await b.when(() => b.bytes === out.length);
      expect(b.all.equals(out)).toBe(true);
    });

    it('speaks TLS 1.2', async () => {
      const door = new Door();
      const { port } = await listen(door);
      raw(port, { maxVersion: 'TLSv1.2' });
      expect((await far(door)).tls?.version).toBe('TLSv1.2');
    });

    it('takes no RSA key exchange and no CBC, unless its ciphers say so', async () => {
      const door = new Door();
      const { port } = await listen(door);
      const outcome = (at: number, ciphers: string): Promise<string> =>
        new Promise((resolve) => {
          const socket = raw(at, { maxVersion: 'TLSv1.2', ciphers });
          socket.once('secureConnect', () => resolve(ciphers));
          socket.once('error', () => resolve('refused'));
        });
      for (const ciphers of ['AES128-GCM-SHA256', 'AES256-SHA', 'ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384'])
        expect([ciphers, await outcome(port, ciphers)]).toEqual([ciphers, 'refused']);
      const modern = 'ECDHE-ECDSA-AES128-GCM-SHA256';
      expect(await outcome(port, modern)).toBe(modern);
      const old = await listen(new Door(), { ciphers: 'ECDHE-ECDSA-AES128-SHA' });
      expect(await outcome(old.port, 'ECDHE-ECDSA-AES128-SHA')).toBe('ECDHE-ECDSA-AES128-SHA');
    });

    it('tells who a verified client is', async () => {
      const door = new Door();
      const { port } = await listen(door, must);
      await near(port, { cert: device.cert, key: device.key });
      const peer = (await far(door)).tls?.peer;
      expect(peer?.commonName).toBe('device-7');
      expect(peer?.subject).toBe('CN=device-7,O=Acme\\, Inc.,C=FR');
      expect(peer?.fingerprint).toMatch(/^[0-9a-f]{64}$/);
      expect(peer?.pem.trim()).toBe(readFileSync(device.cert, 'utf8').trim());
    });

    it.each([
      ['Zoë 9', 'Zoë 9'],
      [null, null],
    ])('reads the common name %j', async (name, expected) => {
      const door = new Door();
      const { port } = await listen(door, must);
      const pair = authority.issue({ name });
      await near(port, { cert: pair.cert, key: pair.key });
      expect((await far(door)).tls?.peer?.commonName).toBe(expected);
    });

    it('lets a client without a certificate in where one is optional', async () => {
      const door = new Door();
      const { port } = await listen(door, verify);
      await near(port);
      expect((await far(door)).tls?.peer).toBeNull();
    });

    it('does not look at certificates where it does not verify', async () => {
      const door = new Door();
      const { port } = await listen(door, { cacertfile: authority.ca });
      await near(port, { cert: device.cert, key: device.key });
      expect((await far(door)).tls?.peer).toBeNull();
    });

    it('takes sessions up again, certificate included', async () => {
      const door = new Door();
      const { port } = await listen(door, must);
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const identity = { cert: readFileSync(device.cert), key: readFileSync(device.key), maxVersion };
        const first = raw(port, identity);
        const [session] = await once(first, 'session');
        await far(door);
        const second = raw(port, { ...identity, session });
        await once(second, 'secureConnect');
        expect(second.isSessionReused()).toBe(true);
        expect((await far(door)).tls?.peer?.commonName).toBe('device-7');
      }
    });

    it('takes its own groups for the key exchange', async () => {
      const { port } = await listen(new Door(), { curves: 'P-384:P-256' });
      const socket = raw(port, { ecdhCurve: 'X25519:P-256:P-384', maxVersion: 'TLSv1.2' });
      await once(socket, 'secureConnect');
      expect(socket.getEphemeralKeyInfo()).toMatchObject({ name: 'secp384r1' });
    });

    /** Whether a session of the first is taken up by the second. */
    async function resumes(first: Partial<TlsServerOptions>, second = first): Promise<boolean[]> {
      const [a, b] = [
        await listen(new Door(), { ...must, ...first }),
        await listen(new Door(), { ...must, ...second }),
      ];
      const reused: boolean[] = [];
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const identity = { cert: readFileSync(device.cert), key: readFileSync(device.key), maxVersion };
        const one = raw(a.port, identity);
        let session: Buffer | undefined;
        one.on('session', (given: Buffer) => {
          session = given;
        });
        await once(one, 'secureConnect');
        one.end();
        await once(one, 'close');
        const two = raw(b.port, { ...identity, session: session ?? one.getSession() });
        await once(two, 'secureConnect');
        reused.push(two.isSessionReused());
      }
      return reused;
    }

    it('takes up the sessions of another with the same ticket keys, while both verify clients alike, else none', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tickets-'));
      const [one, other] = ['one', 'other'].map((name) => join(folder, name));
      for (const file of [one, other]) writeFileSync(file, randomBytes(48));
      const both = join(folder, 'both.pem');
      writeFileSync(both, readFileSync(authority.ca, 'utf8') + readFileSync(stranger.ca, 'utf8'));
      try {
        expect(await resumes({ ticketKeys: one })).toEqual([true, true]);
        expect(await resumes({ ticketKeys: one }, { ticketKeys: other })).toEqual([false, false]);
        expect(await resumes({})).toEqual([false, false]);
        expect(await resumes({ ticketKeys: one }, { ticketKeys: one, cacertfile: both })).toEqual([false, false]);
        writeFileSync(other, randomBytes(47));
        await expect(listen(new Door(), { ticketKeys: other })).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

    it('takes up no session without tickets', async () => {
      const door = new Door();
      const { port } = await listen(door, { sessionTickets: false });
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const first = raw(port, { maxVersion });
        await once(first, 'secureConnect');
        const second = raw(port, { maxVersion, session: first.getSession() });
        await once(second, 'secureConnect');
        expect(second.isSessionReused()).toBe(false);
      }
    });

    it('agrees on an application protocol', async () => {
      const door = new Door();
      const { port } = await listen(door, { alpn: ['mqtt'] });
      const socket = raw(port, { ALPNProtocols: ['x', 'mqtt'] });
      await once(socket, 'secureConnect');
      expect(socket.alpnProtocol).toBe('mqtt');
      raw(port);
      await far(door);
      await far(door);
    });

    it('shows the certificate of the name that is asked for', async () => {
      const door = new Door();
      const one = authority.issue({ name: 'one', alt: ['DNS:one.example'] });
      const wild = authority.issue({ name: 'wild', alt: ['DNS:*.wild.example'] });
      const names = new Map([
        ['One.Example', serverTls(one)],
        ['*.wild.example', serverTls(wild)],
      ]);
      const { port } = await listen(door, {}, { names });
      for (const serverName of ['one.example', 'ONE.example', 'a.wild.example', 'localhost'])
        expect((await near(port, { serverName })).remote).toBe(`127.0.0.1:${port}`);
      await expect(near(port, { serverName: 'a.b.wild.example' })).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    });

    it('asks for certificates also under another name', async () => {
      const door = new Door();
      const one = authority.issue({ name: 'one', alt: ['DNS:one.example'] });
      const { port } = await listen(door, must, { names: new Map([['one.example', serverTls(one)]]) });
      raw(port, { servername: 'one.example' });
      expect(await door.nextReason()).toBe('tls-no-certificate');
      const bad = stranger.issue({ name: 'device-7' });
      raw(port, { servername: 'one.example', cert: readFileSync(bad.cert), key: readFileSync(bad.key) });
      expect(await door.nextReason()).toBe('tls-unknown-ca');
      expect(door.count).toBe(0);
    });

    it('reads a PROXY header before the handshake', async () => {
      const door = new Door();
      const { port } = await listen(door, {}, { proxyProtocol: true });
      const preface = Buffer.from('PROXY TCP4 203.0.113.7 198.51.100.2 51000 1883\r\n');
      const a = await dial({ kind: 'tls', host: '127.0.0.1', port, tls: clientTls(authority.ca) }, { preface });
      connections.push(a);
      const b = new Catch(await far(door));
      expect(b.connection.remote).toBe('203.0.113.7:51000');
      a.write(Buffer.from('hi'), () => {});
      await b.when(() => b.bytes === 2);
    });

    it('reads a header that comes in one piece with the client hello', async () => {
      const door = new Door();
      const { port } = await listen(door, {}, { proxyProtocol: true });
      const socket = await plain(port);
      socket.cork();
      socket.write('PROXY TCP4 203.0.113.7 198.51.100.2 51000 1883\r\n');
      raw(port, { socket });
      socket.uncork();
      expect((await far(door)).remoteAddress).toBe('203.0.113.7');
    });

    it('stops accepting, lets connections go on and ends handshakes under way', async () => {
      const door = new Door();
      const { port, listener } = await listen(door);
      const a = new Catch(await near(port));
      const b = await far(door);
      const half = await plain(port);
      half.resume();
      await new Promise((next) => setImmediate(next));
      await listener.stop();
      await closed(half);
      b.write(Buffer.from('on'), () => {});
      await a.when(() => a.bytes === 2);
      expect(door.rejected).toEqual([]);
    });
  });

  describe('listenTls refuses', () => {
    const identity = (pair: KeyPair): ConnectionOptions => ({
      cert: readFileSync(pair.cert),
      key: readFileSync(pair.key),
    });
    const weak = { ciphers: 'ALL:@SECLEVEL=0' };

    it.each<[string, Partial<TlsServerOptions>, () => ConnectionOptions, string]>([
      ['TLS 1.1', {}, () => ({ ...weak, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' }), 'tls-old-version'],
      ['TLS 1.0', {}, () => ({ ...weak, minVersion: 'TLSv1', maxVersion: 'TLSv1' }), 'tls-old-version'],
      [
        'a client without a cipher in common',
        {},
        () => ({ maxVersion: 'TLSv1.2', ciphers: 'AES256-SHA' }),
        'tls-no-shared-cipher',
      ],
      ['a client without a certificate', must, () => ({}), 'tls-no-certificate'],
      ['another application protocol', { alpn: ['mqtt'] }, () => ({ ALPNProtocols: ['x'] }), 'tls-alpn'],
    ])('%s', async (_, tls, options, reason) => {
      const door = new Door();
      const { port } = await listen(door, tls);
      const socket = raw(port, options());
      await closed(socket);
      expect(await door.nextReason()).toBe(reason);
      expect(door.count).toBe(0);
    });

    it.each<[string, () => KeyPair, string]>([
      ['another authority', () => stranger.issue({ name: 'device-7' }), 'tls-unknown-ca'],
      ['an expired certificate', () => authority.issue({ name: 'device-7', expired: true }), 'tls-expired'],
      ['a self-signed certificate', () => stranger.alone('device-7'), 'tls-unknown-ca'],
      [
        'a certificate made for servers',
        () => authority.issue({ name: 'device-7', usage: 'serverAuth' }),
        'tls-purpose',
      ],
    ])('%s, required or optional', async (_, pair, reason) => {
      const shown = identity(pair());
      for (const tls of [must, verify])
        for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
          const door = new Door();
          const { port } = await listen(door, tls);
          const socket = raw(port, { ...shown, maxVersion });
          socket.resume();
          await closed(socket);
          expect(await door.nextReason()).toBe(reason);
          expect(door.count).toBe(0);
        }
    });

    it('a revoked certificate, and takes others by the same list', async () => {
      const lost = authority.issue({ name: 'lost' });
      const door = new Door();
      const { port } = await listen(door, { ...must, crlfile: authority.revoke(lost) });
      raw(port, identity(lost));
      expect(await door.nextReason()).toBe('tls-revoked');
      raw(port, identity(device));
      expect((await far(door)).tls?.peer?.commonName).toBe('device-7');
    });

    it.each<[string, Buffer]>([
      ['MQTT', Buffer.from('100c00044d5154540402003c0000', 'hex')],
      ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
      ['zeros', Buffer.alloc(300)],
      ['text', Buffer.from('hello, is this the gateway?\r\n'.repeat(20))],
      ['SP', Buffer.from('0053500000200000', 'hex')],
    ])('%s in clear text', async (_, bytes) => {
      const door = new Door();
      const { port } = await listen(door);
      const socket = await plain(port);
      socket.resume();
      socket.write(bytes);
      await closed(socket);
      expect(await door.nextReason()).toBe('plain-on-tls');
    });

    it('a client that does not trust it, by the alert that the client sends', async () => {
      const door = new Door();
      const { port } = await listen(door);
      const args = ['s_client', '-connect', `127.0.0.1:${port}`, '-CAfile', stranger.ca, '-verify_return_error'];
      const child = spawn('openssl', args, { stdio: 'ignore' });
      await once(child, 'exit');
      expect(await door.nextReason()).toBe('tls-alert-unknown-ca');
    });

    it('a peer that goes away within the handshake', async () => {
      const door = new Door();
      const { port } = await listen(door);
      const hello = Buffer.from('16030100c8010000c40303', 'hex');
      (await plain(port)).end(hello);
      expect(await door.nextReason()).toBe('tls-truncated');
      (await plain(port)).end();
      expect(await door.nextReason()).toBe('silent');
      const socket = await plain(port);
      socket.write(hello, () => socket.resetAndDestroy());
      expect(await door.nextReason()).toMatch(/^(reset|tls-truncated)$/);
    });

    it('a peer that takes too long', async () => {
      const door = new Door();
      const { port } = await listen(door, {}, { handshakeTimeoutMs: 30 });
      const socket = await plain(port);
      socket.resume();
      socket.write(Buffer.from('1603', 'hex'));
      await closed(socket);
      expect(await door.nextReason()).toBe('handshake-timeout');
    });

    it('peers above its limit', async () => {
      const door = new Door();
      const { port } = await listen(door, {}, { maxConnections: 1 });
      await near(port);
      await far(door);
      await expect(near(port)).rejects.toMatchObject({ name: 'GatewayError' });
      expect(await door.nextReason()).toBe('full');
    });

    it('whoever comes without a PROXY header where one has to be', async () => {
      const door = new Door();
      const { port } = await listen(door, {}, { proxyProtocol: true });
      await closed(raw(port));
      expect(await door.nextReason()).toBe('proxy-header');
    });
  });

  describe('listenTls reload', () => {
    it('shows the new certificate to new clients and keeps the connections there are', async () => {
      const door = new Door();
      const { port, listener } = await listen(door);
      const a = new Catch(await near(port));
      const b = await far(door);
      const renewed = stranger.issue({ name: 'localhost', alt: ['IP:127.0.0.1'] });
      listener.reload(serverTls(renewed));
      await expect(near(port)).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
      await near(port, { ca: stranger.ca });
      b.write(Buffer.from('on'), () => {});
      await a.when(() => a.bytes === 2);
    });

    it('changes nothing when the new files cannot be used', async () => {
      const door = new Door();
      const { port, listener } = await listen(door);
      const missing = { cert: join(authority.folder, 'missing.pem'), key: local.key };
      expect(() => listener.reload(serverTls(missing))).toThrow('missing.pem');
      expect(() => listener.reload(serverTls({ cert: local.cert, key: device.key }))).toThrow('TLS failure');
      await near(port);
      await far(door);
    });

    it('reads the same files again when nothing is given', async () => {
      const door = new Door();
      const files = { cert: join(authority.folder, 'live.pem'), key: join(authority.folder, 'live.key') };
      const put = (pair: KeyPair): void => {
        copyFileSync(pair.cert, files.cert);
        copyFileSync(pair.key, files.key);
      };
      put(local);
      const { port, listener } = await listen(door, { certfile: files.cert, keyfile: files.key });
      await near(port);
      put(stranger.issue({ name: 'localhost', alt: ['IP:127.0.0.1'] }));
      await near(port);
      listener.reload();
      await near(port, { ca: stranger.ca });
      await expect(near(port)).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    });

    it('begins to ask for certificates, also of clients with a session', async () => {
      const door = new Door();
      const { port, listener } = await listen(door);
      const first = raw(port);
      const [session] = await once(first, 'session');
      await far(door);
      listener.reload(serverTls(local, must));
      raw(port, { session });
      expect(await door.nextReason()).toBe('tls-no-certificate');
    });

    it('refuses a revoked client that has a session from before', async () => {
      const lost = authority.issue({ name: 'lost-later' });
      const shown = { cert: readFileSync(lost.cert), key: readFileSync(lost.key) };
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const door = new Door();
        const { port, listener } = await listen(door, must);
        const first = raw(port, { ...shown, maxVersion });
        const [session] = await once(first, 'session');
        await far(door);
        const crlfile = maxVersion === 'TLSv1.2' ? authority.revoke(lost) : authority.revoke();
        listener.reload(serverTls(local, { ...must, crlfile }));
        raw(port, { ...shown, maxVersion, session });
        expect(await door.nextReason()).toBe('tls-revoked');
        expect(door.count).toBe(0);
      }
    });
  });

  describe('listenTls start', () => {
    const empty = join(authority.folder, 'empty.pem');
    writeFileSync(empty, '');
    const garbage = join(authority.folder, 'garbage.pem');
    writeFileSync(garbage, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    const cut = join(authority.folder, 'cut.pem');
    writeFileSync(cut, `${readFileSync(authority.ca, 'utf8')}\n-----BEGIN CERTIFICATE-----\nMIIB`);
    const folder = join(authority.folder, 'folder.pem');
    mkdirSync(folder);
    const locked = authority.issue({ name: 'locked', passphrase: 'open sesame' });

    it.each<[string, Partial<TlsServerOptions>]>([
      ['a certificate that is missing', { certfile: join(authority.folder, 'nothing') }],
      ['an empty certificate file', { certfile: empty }],
      ['a certificate that cannot be read', { certfile: garbage }],
      ['a folder for a certificate', { certfile: folder }],
      ['a key for a certificate', { certfile: local.key }],
      ['an empty key file', { keyfile: empty }],
      ['the key of another certificate', { keyfile: device.key }],
      ['an empty CA file', { ...must, cacertfile: empty }],
      ['a CA file that is cut off', { ...must, cacertfile: cut }],
      ['verification without a CA file', { verifyPeer: true }],
      ['a required certificate without a CA file', { failIfNoPeerCert: true }],
      ['an empty revocation list', { ...must, crlfile: empty }],
      ['a locked key without its password', { certfile: locked.cert, keyfile: locked.key }],
      ['a locked key with a wrong password', { certfile: locked.cert, keyfile: locked.key, keyPassword: 'x' }],
    ])('fails with TRANSPORT-TLS for %s', async (_, tls) => {
      await expect(listen(new Door(), tls)).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    });

    it('takes a locked key with its password', async () => {
      const door = new Door();
      const { port } = await listen(door, { certfile: locked.cert, keyfile: locked.key, keyPassword: 'open sesame' });
      await near(port, { verify: false });
    });

    it('takes a CA file with several authorities', async () => {
      const door = new Door();
      const { port } = await listen(door, { ...must, cacertfile: authority.together(stranger) });
      for (const pair of [device, stranger.issue({ name: 'other' })]) {
        await near(port, { cert: pair.cert, key: pair.key });
        expect((await far(door)).tls?.peer).not.toBeNull();
      }
    });
  });

  describe('dial over TLS', () => {
    it('refuses a server of an authority that it does not know', async () => {
      const { port } = await listen(new Door());
      for (const ca of [stranger.ca, null])
        await expect(near(port, { ca })).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    });

    it('refuses a certificate for another name, also another address', async () => {
      const other = authority.issue({ name: 'other', alt: ['DNS:other.example', 'IP:192.0.2.1'] });
      const { port } = await listen(new Door(), { certfile: other.cert, keyfile: other.key });
      await expect(near(port)).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
      await expect(near(port, { serverName: 'localhost' })).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
      await near(port, { serverName: 'other.example' });
      await near(port, { serverName: '192.0.2.1' });
    });

    it('refuses an expired server', async () => {
      const old = authority.issue({ name: 'localhost', alt: ['IP:127.0.0.1'], expired: true });
      const { port } = await listen(new Door(), { certfile: old.cert, keyfile: old.key });
      await expect(near(port)).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    });

    it('never takes an empty or missing CA file for "no CA file"', async () => {
      const { port } = await listen(new Door());
      const empty = join(authority.folder, 'empty-client.pem');
      writeFileSync(empty, '\n');
      for (const ca of [empty, join(authority.folder, 'missing')])
        for (const check of [true, false])
          await expect(near(port, { ca, verify: check })).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    });

    it('fails for a client certificate without its key', async () => {
      const { port } = await listen(new Door());
      await expect(near(port, { cert: device.cert })).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    });

    it('takes any server only where verification is switched off', async () => {
      const door = new Door();
      const { port } = await listen(door);
      const a = await near(port, { ca: null, verify: false });
      expect(a.tls?.peer).toBeNull();
      await far(door);
    });

    it('tells whom it has verified', async () => {
      const { port } = await listen(new Door());
      expect((await near(port)).tls?.peer?.commonName).toBe('localhost');
    });
  });
}

if (hasOpenssl()) describeTls();
else describe.skip('TLS (needs the openssl program)', () => {});
