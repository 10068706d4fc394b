// Two connections joined: order, ends, half close and bounds, on connections without sockets.
import { describe, expect, it } from 'vitest';
import { Splice, type SpliceEnd } from '../../src/proxy/splice.ts';
import { memoryPair } from '../../src/transport/memory.ts';
import { Catch, pattern } from '../contract/transport.ts';
import { settled } from '../harness/proxyparts.ts';

function joined(halfClose = false) {
  const [user, client] = memoryPair();
  const [server, backend] = memoryPair();
  const ends: SpliceEnd[] = [];
  const splice = new Splice(client, server, halfClose, (end) => ends.push(end));
  splice.start();
  client.onData(splice.up.onChunk);
  server.onData(splice.down.onChunk);
  return { user, backend, splice, ends, atBackend: new Catch(backend, true), atUser: new Catch(user, true) };
}

const done = (): void => {};

describe('a splice', () => {
  it('passes bytes both ways, in order, and counts them', async () => {
    const { user, backend, splice, atBackend, atUser } = joined();
    const data = pattern(300_000);
    for (let at = 0; at < data.length; at += 7001) user.write(data.subarray(at, at + 7001), done);
    backend.write(Buffer.from('answer'), done);
    await atBackend.when(() => atBackend.bytes === data.length);
    await atUser.when(() => atUser.bytes === 6);
    expect(atBackend.all.equals(data)).toBe(true);
    expect([splice.up.bytes, splice.down.bytes]).toEqual([300_000, 6]);
  });

  it('hands on what was sent before an end, then ends both sides', async () => {
    const { user, atBackend, atUser, ends } = joined();
    const data = pattern(200_000);
    user.write(data, done);
    user.shutdown();
    await atBackend.when(() => atBackend.ended);
    expect(atBackend.all.equals(data)).toBe(true);
    await atUser.when(() => atUser.ended);
    expect(ends).toEqual(['client']);
  });

  it('with half close goes on in the other direction', async () => {
    const { user, backend, atBackend, atUser, ends } = joined(true);
    user.shutdown();
    await atBackend.when(() => atBackend.ended);
    backend.write(Buffer.from('late'), done);
    await atUser.when(() => atUser.bytes === 4);
    expect(ends).toEqual([]);
    backend.shutdown();
    await atUser.when(() => atUser.ended);
    await settled();
    expect(ends).toEqual(['client']);
  });

  it('names the side that was lost', async () => {
    const { backend, atUser, ends } = joined();
    backend.destroy(true);
    await atUser.when(() => atUser.ended);
    expect(ends).toEqual(['server-error']);
  });

  it('stops the sender of a side that does not read, and loses nothing', async () => {
    const { user, backend, splice, atBackend } = joined();
    backend.pause();
    const data = pattern(4 * 1024 * 1024);
    for (let at = 0; at < data.length; at += 65_536) user.write(data.subarray(at, at + 65_536), done);
    await settled(20);
    expect(splice.up.bytes).toBeLessThan(400_000);
    backend.resume();
    await atBackend.when(() => atBackend.bytes === data.length);
    expect(atBackend.all.equals(data)).toBe(true);
  });

  it('bounds small chunks by their number', async () => {
    const { user, backend, splice } = joined();
    backend.pause();
    for (let i = 0; i < 5000; i++) user.write(Buffer.from([0xc0, 0]), done);
    await settled(20);
    expect(splice.up.waiting).toBeLessThan(600);
  });

  it('does not read while it is held', async () => {
    const { user, splice, atBackend } = joined();
    splice.up.hold(true);
    user.write(Buffer.from('x'), done);
    await settled();
    expect(atBackend.bytes).toBe(0);
    splice.up.hold(false);
    await atBackend.when(() => atBackend.bytes === 1);
  });
});
