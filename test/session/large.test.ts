// Large packets over sockets: they are read to where they are put together and sent from there. Memory is used again
// and again here, so every message is compared whole, at receivers that read at once, slowly, later, or in another
// form.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dialSocket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { CONNACK, type Qos, type Version } from '../../src/mqtt/packet.ts';
import { peerOf, StreamConnection } from '../../src/transport/stream.ts';
import { openRoom, type Room, RoomClient } from '../broker/room.ts';
import { pattern } from '../contract/transport.ts';

let room: Room;
const undo: (() => void)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0)) one();
  await room.stop();
});

/** Over TCP: connections inside the process have no place to read to. */
async function tcpClients(): Promise<(id: string, version: Version, expiry?: number) => Promise<RoomClient>> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    room.accept(new StreamConnection('tcp', socket, peerOf(socket))),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  undo.push(() => server.close());
  return async (id, version, expiry) => {
    const socket = dialSocket({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    undo.push(() => socket.destroy());
    const client = new RoomClient(new StreamConnection('tcp', socket, peerOf(socket)), version);
    client.connect(id, expiry === undefined ? {} : { expiry });
    expect(await client.packet(CONNACK)).toMatchObject({ reasonCode: 0 });
    return client;
  };
}

const SIZES = [
  262_144, 10, 70_000, 16_384, 500_000, 300_000, 1000, 65_536, 16_000, 262_144, 131_072, 900_000, 0, 20_000,
];

it.each([
  [4, 0],
  [4, 1],
  [5, 0],
  [5, 1],
] as const)(
  'messages of a %s client at QoS %i reach all kinds of receivers byte by byte',
  async (version, qos: Qos) => {
    room = await openRoom({ limits: { outbox: { writeBuffer: 64 << 20, queueLength: 10_000 } } });
    const client = await tcpClients();
    const readers = [
      await client('four', 4),
      await client('five', 5),
      await client('kept', 5, 600),
      await client('slow', 4),
    ];
    for (const reader of readers) await reader.subscribe('t/#', qos);
    readers[3].connection.pause();
    // Comes back for what was kept for it.
    const away = await client('away', 4, 600);
    await away.subscribe('t/#', qos);
    if (qos > 0) await away.drop();
    const publishers = [await client('p1', version), await client('p2', version)];
    const rounds = 2;
    const expected = new Map<string, Buffer[]>(publishers.map((_, n) => [`t/${n}`, []]));
    for (let round = 0; round < rounds; round++)
      for (const [i, size] of SIZES.entries())
        for (const [n, publisher] of publishers.entries()) {
          const payload = pattern(size, 1 + round * 100 + i * 2 + n);
          expected.get(`t/${n}`)?.push(payload);
          publisher.publish(`t/${n}`, payload, qos);
        }
    const check = async (reader: RoomClient): Promise<void> => {
      const next = new Map<string, number>();
      for (let n = 0; n < rounds * SIZES.length * publishers.length; n++) {
        const { topic } = await reader.message();
        const { lastPayload: raw } = reader;
        const at = next.get(topic) ?? 0;
        next.set(topic, at + 1);
        if (!raw.equals(expected.get(topic)?.[at] ?? Buffer.alloc(1)))
          throw new Error(`${topic} ${at} differs: ${raw.length} bytes`);
      }
    };
    await Promise.all(readers.slice(0, 3).map(check));
    readers[3].connection.resume();
    await check(readers[3]);
    await check(qos > 0 ? await client('away', 4, 600) : away);
  },
  30_000,
);
