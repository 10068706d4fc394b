// QoS 2 from clients of the engine aedes when its store fails in between: an identifier is remembered only with its message.
import { expect, test } from 'vitest';
import { Incoming } from '../../../src/broker/aedes/incoming.ts';
import type { AedesClient, AedesPacket, Persistence } from '../../../src/broker/aedes/parts.ts';

type Stored = Pick<Persistence, 'incomingStorePacket' | 'incomingGetPacket' | 'incomingDelPacket'>;

/** A store that is there, or away. */
class Place {
  away = false;
  readonly stored = new Set<number>();
  readonly refused: string[] = [];
  readonly persistence: Stored;
  readonly incoming: Incoming;
  readonly client: AedesClient;

  constructor() {
    const reached = <T>(answer: () => T): Promise<T> =>
      this.away ? Promise.reject(new Error('Connection is closed.')) : new Promise((resolve) => resolve(answer()));
    this.persistence = {
      incomingStorePacket: (_client, packet) => reached(() => this.stored.add(packet.messageId ?? 0)),
      incomingGetPacket: (_client, packet) =>
        reached(() => {
          if (!this.stored.has(packet.messageId ?? 0)) throw new Error('no such packet');
          return packet;
        }),
      incomingDelPacket: (_client, packet) => reached(() => this.stored.delete(packet.messageId ?? 0)),
    };
    const conn = { destroyed: false };
    this.client = { id: 'c', conn } as unknown as AedesClient;
    this.incoming = new Incoming(this.persistence as Persistence, ({ id }) => {
      conn.destroyed = true;
      this.refused.push(id);
    });
  }
}

function packet(cmd: 'publish' | 'pubrel', messageId = 1): AedesPacket {
  return { cmd, messageId } as unknown as AedesPacket;
}

test('an identifier is not remembered when its message could not be queued: the message comes again [MQTT-4.3.3-10]', async () => {
  const { incoming, persistence, client, stored } = new Place();
  await persistence.incomingStorePacket(client, packet('publish'));
  await expect(incoming.published(client, packet('publish'), Promise.reject(new Error('away')))).rejects.toThrow();
  expect(stored.size).toBe(0);
  await expect(persistence.incomingGetPacket(client, packet('publish'))).rejects.toThrow('no such packet');
});

test('the same message again waits for the end of the first one, and is known when that was taken', async () => {
  const { incoming, persistence, client, stored } = new Place();
  let take = (): void => {};
  const first = incoming.published(client, packet('publish'), new Promise((resolve) => (take = resolve)));
  const again = persistence.incomingGetPacket(client, packet('publish'));
  take();
  await first;
  expect(await again).toMatchObject({ messageId: 1 });
  expect([...stored]).toEqual([1]);
});

test('a store that gives no answer is none: the client is closed and its message is not taken for a new one', async () => {
  const place = new Place();
  const { persistence, client } = place;
  place.away = true;
  await expect(persistence.incomingGetPacket(client, packet('publish'))).rejects.toThrow();
  expect(place.refused).toEqual(['c']);
  await expect(persistence.incomingStorePacket(client, packet('publish'))).rejects.toThrow();
});

test('PUBREL gets no PUBCOMP while the identifier cannot be forgotten: another message would be taken for it', async () => {
  const place = new Place();
  const { persistence, client, stored } = place;
  stored.add(1);
  place.away = true;
  await expect(persistence.incomingDelPacket(client, packet('pubrel'))).rejects.toThrow();
  expect(place.refused).toEqual(['c']);
});
