// QoS 2 from clients of the engine aedes: an identifier is remembered only when its message is where it has to be.
// aedes stores the identifier first and takes the message for known when its publish failed, and answers PUBREL
// whatever its store says; both lose messages when Redis comes back. Wraps the persistence of engine.ts. Sources: 3.1.1
// section 4.3.3, aedes lib/handlers/publish.js and pubrel.js.
import type { AedesClient, AedesPacket, Persistence } from './parts.ts';

/** What the persistences say when they have been asked and there is nothing: any other failure is no answer. */
const NOTHING_STORED = 'no such packet';

function isNothing(error: unknown): boolean {
  return error instanceof Error && error.message === NOTHING_STORED;
}

function keyOf(client: AedesClient, packet: AedesPacket): string {
  return `${packet.messageId} ${client.id}`;
}

export class Incoming {
  /** Messages on their way to where they have to be. */
  private readonly coming = new Map<string, Promise<void>>();
  private readonly remember: Persistence['incomingStorePacket'];
  private readonly refuse: (client: AedesClient) => void;

  /** @param refuse closes a connection that can get no answer */
  constructor(persistence: Persistence, refuse: (client: AedesClient) => void) {
    this.refuse = refuse;
    this.remember = persistence.incomingStorePacket.bind(persistence);
    const get = persistence.incomingGetPacket.bind(persistence);
    const forget = persistence.incomingDelPacket.bind(persistence);
    persistence.incomingGetPacket = (client, packet) => this.find(get, client, packet);
    // The identifier is stored by published(); a client that got no answer to the question before is closed by now.
    persistence.incomingStorePacket = async (client) => {
      if (client.conn.destroyed) throw new Error('the shared broker is away');
    };
    persistence.incomingDelPacket = async (client, packet) => {
      try {
        return await forget(client, packet);
      } catch (error) {
        if (!isNothing(error)) this.refuse(client);
        throw error;
      }
    };
  }

  /**
   * Remembers the identifier of a message when `taken` has resolved. Rejects when either fails: there is no PUBREC
   * then.
   */
  published(client: AedesClient, packet: AedesPacket, taken: Promise<void>): Promise<void> {
    const key = keyOf(client, packet);
    const done = taken.then(async () => {
      await this.remember(client, packet);
    });
    this.coming.set(key, done);
    const over = (): void => {
      if (this.coming.get(key) === done) this.coming.delete(key);
    };
    done.then(over, over);
    return done;
  }

  private async find(
    get: Persistence['incomingGetPacket'],
    client: AedesClient,
    packet: AedesPacket,
  ): Promise<unknown> {
    // The same message again while the first one is on its way: its end is the answer to both.
    const first = this.coming.get(keyOf(client, packet));
    if (first !== undefined && packet.cmd === 'publish') {
      try {
        await first;
        return packet;
      } catch {
        // It was not taken: this one is judged by what is stored.
      }
    }
    try {
      return await get(client, packet);
    } catch (error) {
      if (!isNothing(error)) this.refuse(client);
      throw error;
    }
  }
}
