// A room whose broker is the engine aedes, alone or sharing a Redis. Used by tests of that engine and by the contract of engines.
import { AedesBroker } from '../../../src/broker/aedes/engine.ts';
import type { NativeBroker } from '../../../src/broker/native/engine.ts';
import { Room, type RoomOptions } from '../room.ts';

export async function openAedesRoom(options: RoomOptions = {}, redis: string | null = null): Promise<Room> {
  // The room asks nothing of its broker that is not in the seam.
  const engine: RoomOptions['engine'] = (parts) => new AedesBroker({ ...parts, redis }) as unknown as NativeBroker;
  const room = new Room({ ...options, engine });
  await room.broker.start();
  return room;
}
