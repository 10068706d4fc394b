// `tidegate pub` and `tidegate sub` over TLS: trust, names, client certificates.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../../src/cli/cli.ts';
import { Authority, hasOpenssl, type KeyPair } from '../../harness/certificates.ts';
import { type TestGateway, testGateway } from '../../harness/gateway.ts';
import { fakeIo } from '../../harness/io.ts';

async function tide(...argv: string[]) {
  const io = fakeIo();
  const code = await runCli(argv, io);
  return { code, out: io.stdout.text(), err: io.stderr.text() };
}

describe.skipIf(!hasOpenssl())('pub and sub over TLS', () => {
  let ours: Authority;
  let theirs: Authority;
  let client: KeyPair;
  let broker: TestGateway;

  beforeAll(async () => {
    ours = new Authority();
    theirs = new Authority('Other Authority');
    client = ours.issue({ name: 'sensor-1' });
    const server = ours.issue({ name: 'localhost', alt: ['DNS:localhost'] });
    broker = await testGateway(`persistence { enable = false }
auth { allow_anonymous = true }
listeners.ssl {
  bind = "127.0.0.1:0", keyfile = "${server.key}", certfile = "${server.cert}", cacertfile = "${ours.ca}"
  verify_peer = true, fail_if_no_peer_cert = true
}
`);
  });
  afterAll(async () => {
    await broker?.stop();
    ours?.remove();
    theirs?.remove();
  });

  const at = (host: string): string[] => ['-h', host, '-p', String(broker.port), '-t', 'tls/x', '-q', '1'];
  const own = (): string[] => ['--cert', client.cert, '--key', client.key];

  it('work with the authority and a client certificate', async () => {
    const sent = await tide('pub', ...at('localhost'), '--cafile', ours.ca, ...own(), '-m', 'secret', '-r');
    expect(sent).toMatchObject({ code: 0, err: '' });
    const got = await tide('sub', ...at('localhost'), '--cafile', ours.ca, ...own(), '-C', '1');
    expect(got).toMatchObject({ code: 0, out: 'secret\n' });
  });

  it('fail when the certificate has another name, unless --insecure', async () => {
    const { code, err } = await tide('pub', ...at('127.0.0.1'), '--cafile', ours.ca, ...own(), '-m', 'x');
    expect(code).toBe(1);
    expect(err).toMatch(/altnames|does not match/i);
    expect((await tide('pub', ...at('127.0.0.1'), '--cafile', ours.ca, ...own(), '-m', 'x', '--insecure')).code).toBe(
      0,
    );
  });

  it('fail when the certificate is of another authority, with --insecure as well', async () => {
    const { code, err } = await tide(
      'pub',
      ...at('localhost'),
      '--cafile',
      theirs.ca,
      ...own(),
      '-m',
      'x',
      '--insecure',
    );
    expect(code).toBe(1);
    expect(err).toMatch(/certificate/i);
  });

  it('fail when the broker wants a certificate and none is given', async () => {
    expect((await tide('pub', ...at('localhost'), '--cafile', ours.ca, '-m', 'x')).code).toBe(1);
  });

  it('fail when a file cannot be read, and name it', async () => {
    const { code, err } = await tide('pub', ...at('localhost'), '--cafile', '/nonexistent/ca.pem', '-m', 'x');
    expect(code).toBe(1);
    expect(err).toContain('/nonexistent/ca.pem');
  });
});
