// SP transports of a program that embeds the gateway: program://name in an NNG bridge is carried by streams that the
// program makes. Used by transports.ts. Bytes of a stream are framed as over TCP, so both ends may be anything that
// carries bytes in order.
import type { Duplex } from 'node:stream';
import { GatewayError } from '../base/errors.ts';
import { DuplexConnection } from '../transport/duplex.ts';
import type { Bound, Connection, Listener, ListenerOptions } from '../transport/transport.ts';

export interface ProgramTransport {
  /** A stream to the other side, asked for again whenever the last one has ended. Absent: bridges cannot dial it. */
  dial?(): Duplex | PromiseLike<Duplex>;
  /**
   * Begins to take peers, each by one call of `accept`, and gives what ends it. Absent: bridges cannot listen on it.
   * @param accept `remote` is how the peer is shown
   */
  listen?(accept: (stream: Duplex, remote?: string) => void): (() => void) | PromiseLike<() => void>;
}

/** By the name behind program://. */
export type ProgramTransports = Readonly<Record<string, ProgramTransport>>;

function transportOf(transports: ProgramTransports, name: string, call: 'dial' | 'listen'): ProgramTransport {
  const found = Object.hasOwn(transports, name) ? transports[name] : undefined;
  if (found === undefined)
    throw new GatewayError('TRANSPORT-BIND', `program://${name}: the program has given no transport of this name`);
  if (typeof found[call] !== 'function')
    throw new GatewayError('TRANSPORT-BIND', `program://${name}: the transport has no ${call}()`);
  return found;
}

/** Rejects with what the program throws, or after `timeoutMs`. */
export async function dialProgram(transports: ProgramTransports, name: string, timeoutMs: number): Promise<Connection> {
  const asked = Promise.resolve(transportOf(transports, name, 'dial').dial?.());
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`program://${name}: no stream in ${timeoutMs} ms`)), timeoutMs);
  });
  // A stream that comes too late is of no use to anybody.
  asked.then((stream) => late.catch(() => stream?.destroy())).catch(() => {});
  try {
    const stream = await Promise.race([asked, late]);
    if (stream === undefined) throw new Error(`program://${name}: dial() gave no stream`);
    return new DuplexConnection(stream, `program://${name}`, '');
  } finally {
    clearTimeout(timer);
  }
}

export class ProgramListener implements Listener {
  private readonly transports: ProgramTransports;
  private readonly name: string;
  private readonly options: ListenerOptions;
  private end: (() => void) | null = null;
  private count = 0;

  constructor(transports: ProgramTransports, name: string, options: ListenerOptions) {
    this.transports = transports;
    this.name = name;
    this.options = options;
  }

  async start(): Promise<Bound[]> {
    const transport = transportOf(this.transports, this.name, 'listen');
    const end = await transport.listen?.((stream, remote) => this.taken(stream, remote));
    this.end = typeof end === 'function' ? end : null;
    return [];
  }

  async stop(): Promise<void> {
    this.end?.();
    this.end = null;
  }

  private taken(stream: Duplex, remote = `program://${this.name}`): void {
    const { accept, reject, maxConnections } = this.options;
    if (maxConnections > 0 && this.count >= maxConnections) {
      reject('full', remote);
      stream.destroy();
      return;
    }
    this.count++;
    stream.once('close', () => this.count--);
    accept(new DuplexConnection(stream, remote, ''));
  }
}
