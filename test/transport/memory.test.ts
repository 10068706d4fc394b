// What memory connections have beyond the contract: names, pieces, limits.
import { describe, expect, it } from 'vitest';
import { dial } from '../../src/transport/dial.ts';
import { listenMemory, MemoryNetwork, memoryPair } from '../../src/transport/memory.ts';
import { Catch, pattern, turns } from '../contract/transport.ts';
import { Door } from '../harness/carrier.ts';

describe('memoryPair', () => {
  it('delivers in pieces of the size that is asked for', async () => {
    const [near, far] = memoryPair({ chunkBytes: 1 });
    const got = new Catch(far);
    near.write(Buffer.from('abc'), () => {});
    near.write(Buffer.from('de'), () => {});
    await got.when(() => got.bytes === 5);
    expect(got.chunks.map(String)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('counts what is not read yet and calls done when it is', async () => {
    const [near, far] = memoryPair();
    let done = false;
    near.write(pattern(10), () => {
      done = true;
    });
    expect(near.queuedBytes).toBe(10);
    const got = new Catch(far);
    await got.when(() => got.bytes === 10);
    await turns(() => done);
    expect(near.queuedBytes).toBe(0);
  });

  it('names both ends', () => {
    const [near, far] = memoryPair({ names: ['a', 'b'] });
    expect([near.local, near.remote, far.local, far.remote]).toEqual(['a', 'b', 'b', 'a']);
  });
});

describe('MemoryNetwork', () => {
  it('connects by name, each network for itself', async () => {
    const [network, other] = [new MemoryNetwork(), new MemoryNetwork()];
    const door = new Door();
    await listenMemory({ ...door.options(), network, name: 'x' }).start();
    const near = await dial({ kind: 'memory', name: 'x' }, { network });
    expect((await door.next()).remote).toBe(near.local);
    await expect(dial({ kind: 'memory', name: 'x' }, { network: other })).rejects.toMatchObject({
      code: 'TRANSPORT-DIAL',
    });
    await expect(dial({ kind: 'memory', name: 'x' })).rejects.toMatchObject({ code: 'TRANSPORT-DIAL' });
  });

  it('gives a name to one listener at a time', async () => {
    const network = new MemoryNetwork();
    const first = listenMemory({ ...new Door().options(), network, name: 'x' });
    const second = listenMemory({ ...new Door().options(), network, name: 'x' });
    await first.start();
    await expect(second.start()).rejects.toMatchObject({ code: 'TRANSPORT-BIND' });
    await second.stop();
    expect(() => network.dial('x')).not.toThrow();
    await first.stop();
    await second.start();
  });

  it('closes connections above the limit and takes new ones when there is room again', async () => {
    const network = new MemoryNetwork();
    const door = new Door();
    await listenMemory({ ...door.options({ maxConnections: 1 }), network, name: 'x' }).start();
    const first = new Catch(network.dial('x'));
    const second = new Catch(network.dial('x'));
    expect((await second.closed()).by).toBe('error');
    expect(await door.nextReason()).toBe('full');
    const far = new Catch(await door.next());
    first.connection.destroy();
    await far.closed();
    new Catch(network.dial('x'));
    await door.next();
  });
});
