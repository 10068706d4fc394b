// Revocation lists over chains: who is refused, who is not locked out, lists that cannot be used. With OpenSSL's authorities and lists.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { listenTls, type TlsListener } from '../../src/transport/tls.ts';
import { Door } from '../harness/carrier.ts';
import { Authority, hasOpenssl, type KeyPair, serverTls } from '../harness/certificates.ts';

describe.skipIf(!hasOpenssl())('revocation lists over a chain (needs openssl)', () => {
  const root = new Authority('Root');
  const plant = new Authority('Plant', root);
  const other = new Authority('Other Plant', root);
  const local = root.issue({ name: 'localhost', alt: ['IP:127.0.0.1'] });
  const device = plant.issue({ name: 'device' });
  const lost = plant.issue({ name: 'lost' });
  const plantList = plant.revoke(lost);
  const rootList = root.revoke();
  // The certificate of the other plant, revoked by the root.
  const otherList = other.revoke();
  const rootRevokes = root.revoke({ key: '', cert: other.ca });
  const both = root.together(plant);
  const listeners: TlsListener[] = [];
  const sockets: TLSSocket[] = [];

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const listener of listeners.splice(0)) await listener.stop();
  });
  afterAll(() => {
    for (const authority of [root, plant, other]) authority.remove();
  });

  async function listen(cacertfile: string, crlfile: string): Promise<{ door: Door; port: number }> {
    const door = new Door();
    const tls = serverTls(local, { cacertfile, crlfile, verifyPeer: true, failIfNoPeerCert: true });
    const listener = listenTls({ ...door.options(), host: '127.0.0.1', port: 0, tls });
    listeners.push(listener);
    const [{ port }] = await listener.start();
    return { door, port };
  }

  function show(port: number, pair: KeyPair, more: { session?: Buffer; maxVersion?: 'TLSv1.2' } = {}): TLSSocket {
    const files = { cert: readFileSync(pair.cert), key: readFileSync(pair.key), ca: readFileSync(root.ca) };
    const socket = connect({ host: '127.0.0.1', port, ...files, ...more });
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  }

  /** 'in', or why not. */
  async function verdict(cacertfile: string, crlfile: string, pair: KeyPair): Promise<string> {
    const { door, port } = await listen(cacertfile, crlfile);
    show(port, pair);
    return Promise.race([door.next().then(() => 'in'), door.nextReason()]);
  }

  it('of the issuing authority alone refuses whom it lists and lets the others in', async () => {
    expect(await verdict(both, plantList, device)).toBe('in');
    expect(await verdict(both, plantList, lost)).toBe('tls-revoked');
  });

  it('holds where the client brings the authority along', async () => {
    expect(await verdict(root.ca, plantList, plant.chain(device))).toBe('in');
    expect(await verdict(root.ca, plantList, plant.chain(lost))).toBe('tls-revoked');
  });

  it('of all authorities refuses what any of them lists', async () => {
    expect(await verdict(both, plant.lists(plantList, rootList), device)).toBe('in');
    expect(await verdict(both, plant.lists(rootList, plantList), lost)).toBe('tls-revoked');
  });

  it('of the root refuses everybody behind an authority that it lists, known or brought along', async () => {
    const lists = root.lists(otherList, rootRevokes);
    const stray = other.issue({ name: 'stray' });
    expect(await verdict(root.together(other), lists, stray)).toBe('tls-revoked');
    expect(await verdict(root.ca, lists, other.chain(stray))).toBe('tls-revoked');
    expect(await verdict(both, root.lists(plantList, rootRevokes), device)).toBe('in');
  });

  it('is needed of the issuer of a client: without one nobody can tell', async () => {
    expect(await verdict(both, rootList, device)).toBe('tls-crl');
    expect(await verdict(both, otherList, device)).toBe('tls-crl');
  });

  it('does not count when another key has signed it', async () => {
    const namesake = new Authority('Plant');
    expect(await verdict(both, namesake.revoke(), device)).toBe('tls-crl');
    namesake.remove();
  });

  it('does not count when it is past its time', async () => {
    const list = join(plant.folder, 'short.crl');
    const times = ['-crl_lastupdate', '20200101000000Z', '-crl_nextupdate', '20200102000000Z'];
    const args = ['ca', '-config', join(plant.folder, 'ca.cnf'), '-gencrl', ...times, '-out', list];
    execFileSync('openssl', args, { stdio: 'pipe' });
    expect(await verdict(both, list, device)).toBe('tls-crl');
  });

  it.each(['rsa', 'rsa-pss', 'ed25519'])('is read with a signature of %s', async (kind) => {
    const one = new Authority(`By ${kind}`, null, kind);
    const [good, bad] = [one.issue({ name: 'good' }), one.issue({ name: 'bad' })];
    const list = one.revoke(bad);
    expect(await verdict(one.ca, list, good)).toBe('in');
    expect(await verdict(one.ca, list, bad)).toBe('tls-revoked');
    one.remove();
  });

  it('lets a session be resumed by a client that had brought its authority along', async () => {
    const { door, port } = await listen(root.ca, plantList);
    const first = show(port, plant.chain(device), { maxVersion: 'TLSv1.2' });
    const session = await new Promise<Buffer>((resolve) => first.once('session', resolve));
    await door.next();
    const again = show(port, plant.chain(device), { maxVersion: 'TLSv1.2', session });
    await door.next();
    expect(again.isSessionReused()).toBe(true);
  });

  it('that is cut off, or no list, stops the start', async () => {
    const text = readFileSync(plantList, 'utf8');
    const body = Buffer.from(text.replaceAll(/-----.*-----|\s/g, ''), 'base64');
    const file = join(plant.folder, 'broken.crl');
    const pem = (der: Buffer): string =>
      `-----BEGIN X509 CRL-----\n${der.toString('base64')}\n-----END X509 CRL-----\n`;
    for (let length = 0; length < body.length; length += 7) {
      writeFileSync(file, pem(body.subarray(0, length)));
      await expect(listen(both, file)).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    }
    for (const broken of [text.slice(0, -30), text + text.slice(0, 60)]) {
      writeFileSync(file, broken);
      await expect(listen(both, file)).rejects.toMatchObject({ code: 'TRANSPORT-TLS' });
    }
  });
});
