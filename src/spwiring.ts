// Hands the gateway's transports to SP sockets: the one place where sp/ and transport/ meet.
// Called by gateway.ts and cli/nng.ts. Makes nothing by itself: listeners and connections belong to who asked.

import type { Clock } from './base/clock.ts';
import type { Turn } from './base/turn.ts';
import type { BlockPool } from './base/writer.ts';
import { nativeDriver } from './sp/native.ts';
import type { SpDriver } from './sp/sp.ts';
import type { ListenTarget, Transports } from './sp/transports.ts';
import { dial } from './transport/dial.ts';
import { listenMemory, type MemoryNetwork } from './transport/memory.ts';
import { listenTcp } from './transport/tcp.ts';
import type { Listener, ListenerOptions } from './transport/transport.ts';
import { listenUnix } from './transport/unix.ts';

/** @param network where inproc:// names live: one for each gateway */
export function spTransports(network: MemoryNetwork): Transports {
  return {
    listen: (target, options) => listenOn(target, options, network),
    dial: (target, timeoutMs) => dial(target, { timeoutMs, network }),
  };
}

function listenOn(target: ListenTarget, options: ListenerOptions, network: MemoryNetwork): Listener {
  switch (target.kind) {
    case 'tcp':
      return listenTcp({ ...options, host: target.host, port: target.port });
    case 'unix':
      return listenUnix({ ...options, path: target.path, mode: octal(target.mode), group: target.group });
    case 'memory':
      return listenMemory({ ...options, network, name: target.name });
    default:
      throw new Error(`${target.kind} cannot be listened on`);
  }
}

function octal(mode: string | null): number | null {
  return mode === null ? null : Number.parseInt(mode, 8);
}

/** The native driver over the gateway's transports. */
export function gatewaySpDriver(network: MemoryNetwork, clock: Clock, turn: Turn, pool: BlockPool): SpDriver {
  return nativeDriver({ transports: spTransports(network), clock, turn, pool });
}
