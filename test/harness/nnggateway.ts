// What tests of NNG bridges in a whole gateway need again and again: where a bridge listens, and SP peers that are up.
import { expect } from 'vitest';
import type { Protocol, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import type { TestGateway } from './gateway.ts';
import { SP_DEFAULTS, testDriver, Watch } from './spsockets.ts';

export const HEAD = 'listeners.tcp { bind = "127.0.0.1:0" }\npersistence { enable = false }\n';

export interface Peer {
  readonly socket: SpSocket;
  readonly watch: Watch;
}

/** The address a bridge has bound, with its real port. */
export function boundOf(gateway: TestGateway, type: 'pub' | 'sub' | 'push' | 'pull' | 'pair', name: string): string {
  const bound = gateway.gateway.bridges.get(type, name)?.endpoints[0]?.bound;
  if (typeof bound !== 'string') throw new Error(`${type} ${name} is not bound`);
  return bound;
}

/** A socket that dials, and whose peer has it: `type` and `name` are those of the bridge. */
export async function peerOf(
  gateway: TestGateway,
  type: 'pub' | 'sub' | 'push' | 'pull' | 'pair',
  name: string,
  protocol: Protocol,
  options: Partial<SpOptions> = {},
): Promise<Peer> {
  const status = () => gateway.gateway.bridges.get(type, name)?.peers.length ?? 0;
  const before = status();
  const socket = testDriver().open(protocol, { ...SP_DEFAULTS, ...options });
  const watch = new Watch(socket);
  if (protocol === 'sub0') socket.subscribe(new Uint8Array(0));
  const url = boundOf(gateway, type, name);
  socket.dial(url);
  await watch.state(url, 'connected');
  await expect.poll(status, { interval: 2 }).toBeGreaterThan(before);
  return { socket, watch };
}

/** Sends all of them, waiting for room where the socket blocks. */
export async function sendAll(socket: SpSocket, count: number, body: (i: number) => Buffer): Promise<void> {
  const none = new Uint8Array(0);
  for (let i = 0; i < count; i++) {
    const bytes = body(i);
    while (!socket.send(none, bytes, 0, bytes.length)) await new Promise<void>((resolve) => socket.onRoom(resolve));
    // A burst that never lets the loop run would only fill memory.
    if (i % 1000 === 999) await new Promise((resolve) => setImmediate(resolve));
  }
}
