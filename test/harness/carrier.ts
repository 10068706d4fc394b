// Carriers for the transport contract: a listener and a dialler of one kind, pairs in the order they were accepted.
// Used by test/transport/*.test.ts and by whoever needs real connected pairs.

import type { DialOptions } from '../../src/transport/dial.ts';
import { dial } from '../../src/transport/dial.ts';
import type { Bound, Connection, DialTarget, Listener, ListenerOptions } from '../../src/transport/transport.ts';
import type { Carrier } from '../contract/transport.ts';

/** Connections in the order they come, and those that were turned away. */
export class Door {
  readonly rejected: { reason: string; remote: string }[] = [];
  private readonly here: Connection[] = [];
  private readonly waiting: ((connection: Connection) => void)[] = [];
  private readonly rejectWaiting: (() => void)[] = [];

  /** Listener options that lead here, without limits unless given. */
  options(more: Partial<ListenerOptions> = {}): ListenerOptions {
    return {
      accept: (connection) => this.accept(connection),
      reject: (reason, remote) => this.reject(reason, remote),
      maxConnections: 0,
      handshakeTimeoutMs: 10_000,
      proxyProtocol: false,
      ...more,
    };
  }

  get count(): number {
    return this.here.length;
  }

  next(): Promise<Connection> {
    const connection = this.here.shift();
    if (connection !== undefined) return Promise.resolve(connection);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** The reason of the next refusal that was not asked for before. */
  async nextReason(): Promise<string> {
    while (this.rejected.length === 0) await new Promise<void>((resolve) => this.rejectWaiting.push(resolve));
    return this.rejected.shift()?.reason ?? '';
  }

  private accept(connection: Connection): void {
    const waiter = this.waiting.shift();
    if (waiter !== undefined) waiter(connection);
    else this.here.push(connection);
  }

  private reject(reason: string, remote: string): void {
    this.rejected.push({ reason, remote });
    for (const waiter of this.rejectWaiting.splice(0)) waiter();
  }
}

/** A carrier made of a listener and a way to say where it is. */
export function carrierOf(
  listen: (options: ListenerOptions) => Listener,
  target: (bound: Bound) => DialTarget,
  dialOptions: DialOptions = {},
): Carrier {
  const door = new Door();
  const listener = listen(door.options());
  let bound: Bound | undefined;
  return {
    async start() {
      [bound] = await listener.start();
    },
    async connect() {
      if (bound === undefined) throw new Error('not started');
      const near = await dial(target(bound), dialOptions);
      return { near, far: await door.next() };
    },
    stop: () => listener.stop(),
  };
}
