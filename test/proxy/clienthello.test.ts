// The server name in a TLS client's first message: real ones of Node's own TLS, cut anywhere, damaged anyhow.
import { createServer, type Server, type Socket } from 'node:net';
import { connect } from 'node:tls';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { helloName, MAX_HELLO_BYTES } from '../../src/proxy/clienthello.ts';

let server: Server;
let got: (bytes: Buffer) => void = () => {};

beforeAll(async () => {
  server = createServer((socket: Socket) => socket.on('error', () => {}).once('data', (bytes) => got(bytes)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** What a client sends first. */
async function hello(servername: string | undefined): Promise<Buffer> {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const bytes = new Promise<Buffer>((resolve) => {
    got = resolve;
  });
  const client = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false }).on('error', () => {});
  const first = await bytes;
  client.destroy();
  return first;
}

describe('a ClientHello', () => {
  it('tells the server name, in lower case', async () => {
    expect(helloName(await hello('Broker.Example.org'))).toEqual({ name: 'broker.example.org' });
  });

  it('without a name has none', async () => {
    expect(helloName(await hello(undefined))).toEqual({ name: null });
  });

  it('cut anywhere wants more', async () => {
    const bytes = await hello('a.example');
    for (let cut = 1; cut < bytes.length; cut++) expect(helloName(bytes.subarray(0, cut))).toBe('more');
  });

  it('over several records is read all the same', async () => {
    const bytes = await hello('split.example');
    const body = bytes.subarray(5);
    const record = (part: Buffer): Buffer =>
      Buffer.concat([bytes.subarray(0, 3), Buffer.from([part.length >> 8, part.length & 255]), part]);
    const pieces = [body.subarray(0, 1), body.subarray(1, 50), body.subarray(50)].map(record);
    expect(helloName(Buffer.concat(pieces))).toEqual({ name: 'split.example' });
  });

  it('that announces more than any client sends has no name', () => {
    expect(helloName(Buffer.from('1603010200' + '01ffffff', 'hex'))).toEqual({ name: null });
    expect(helloName(Buffer.concat([Buffer.from('16030140000100', 'hex'), Buffer.alloc(MAX_HELLO_BYTES)]))).toEqual({
      name: null,
    });
  });

  it('damaged anyhow gives a name, none, or asks for more', async () => {
    const bytes = await hello('fuzz.example');
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 8 }), (changes) => {
        const changed = Buffer.from(bytes);
        for (const [at, value] of changes) changed[at] = value;
        const result = helloName(changed);
        expect(result === 'more' || result.name === null || /^[a-z0-9_*.-]+$/.test(result.name)).toBe(true);
      }),
    );
  });
});
