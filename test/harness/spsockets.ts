// SP sockets for tests: a native driver over real transports, and ways to wait for what sockets tell.
import { systemClock } from '../../src/base/clock.ts';
import { Turn } from '../../src/base/turn.ts';
import { BlockPool } from '../../src/base/writer.ts';
import { spTransports } from '../../src/gateway/transports.ts';
import { nativeDriver } from '../../src/sp/native.ts';
import type { SpDriver, SpEvent, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { MemoryNetwork } from '../../src/transport/memory.ts';

export const SP_DEFAULTS: SpOptions = {
  sendBuffer: 4 << 20,
  overflow: 'drop_oldest',
  recvMaxSize: 16 << 20,
  reconnectMaxMs: 200,
  ipcMode: null,
  ipcGroup: null,
  interface: null,
  tlsServer: null,
  tlsClient: null,
};

export function testDriver(network = new MemoryNetwork()): SpDriver {
  const transports = spTransports(network);
  return nativeDriver({ transports, clock: systemClock, turn: new Turn(), pool: new BlockPool() });
}

/** Everything that a socket has told so far, and promises for what it will tell. */
export class Watch {
  readonly events: SpEvent[] = [];
  readonly bodies: string[] = [];
  private waiting: { done: () => boolean; resolve: () => void }[] = [];

  constructor(socket: SpSocket) {
    socket.onEvent((event) => {
      // Views are live objects; what they say now is what counts.
      this.events.push('pipe' in event ? { ...event, pipe: { ...snapshot(event.pipe) } } : event);
      this.look();
    });
    socket.onMessage((bytes, start, end) => {
      this.bodies.push(Buffer.from(bytes.subarray(start, end)).toString('latin1'));
      this.look();
    });
  }

  /** Resolves once `done` holds; looked at after each event and message. */
  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  count(kind: SpEvent['kind']): number {
    return this.events.filter((event) => event.kind === kind).length;
  }

  /** Waits for a state of the endpoint with this URL and returns what is bound. */
  async state(url: string, state: string): Promise<string> {
    const found = (): SpEvent | undefined =>
      this.events.findLast((e) => e.kind === 'endpoint' && e.endpoint.url === url && e.endpoint.state === state);
    await this.until(() => found() !== undefined);
    const event = found();
    return event?.kind === 'endpoint' ? (event.endpoint.bound ?? '') : '';
  }

  refused(): string[] {
    return this.events.flatMap((event) => (event.kind === 'refused' ? [event.reason] : []));
  }

  private look(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const one of waiting) {
      if (one.done()) one.resolve();
      else this.waiting.push(one);
    }
  }
}

function snapshot(pipe: SpEvent & { kind: 'pipe-up' } extends { pipe: infer P } ? P : never): typeof pipe {
  const { id, url, remote, since, queuedBytes, messagesSent, messagesReceived, dropped } = pipe;
  return { id, url, remote, since, queuedBytes, messagesSent, messagesReceived, dropped };
}

const NONE = new Uint8Array(0);

export function sendText(socket: SpSocket, text: string): boolean {
  const body = Buffer.from(text, 'latin1');
  return socket.send(NONE, body, 0, body.length);
}
