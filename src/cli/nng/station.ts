// A station: one SP socket with its endpoints as a command line sees it. Peers are there or not, something changes,
// time runs out. Used by nng.ts only. Opens the native driver over the gateway's own transports; needs no configuration
// and no broker.
import { systemClock } from '../../base/clock.ts';
import { errorText } from '../../base/errors.ts';
import { Turn } from '../../base/turn.ts';
import { BlockPool } from '../../base/writer.ts';
import { spTransports } from '../../gateway/transports.ts';
import { nativeDriver } from '../../sp/native.ts';
import type { SpOptions, SpSocket } from '../../sp/sp.ts';
import { MemoryNetwork } from '../../transport/memory.ts';
import type { Io } from '../cli.ts';
import { usage } from '../usage.ts';
import type { NngCommon } from './options.ts';

/** What leaves while the command ends. */
const STOP_MS = 2000;
const SEND_BUFFER = 64 << 20;
const RECV_MAX_SIZE = 256 << 20;
const RECONNECT_MAX_MS = 1000;
/** Lines about failures, until there is a peer. */
const MOST_TOLD = 20;

/** Why a peer was closed, in words (sp.ts has the reasons). */
const REFUSALS: ReadonlyMap<string, string> = new Map([
  ['wrong-protocol', 'the peer is an SP socket of a kind that does not go with this one'],
  ['bad-greeting', 'the peer does not speak SP'],
  ['greeting-timeout', 'the peer has sent no SP greeting'],
  ['too-large', 'the peer has sent a message that is too large'],
  ['bad-frame', 'the peer has sent what is no SP frame'],
]);

/** A socket with its endpoints, told apart from a script's point of view: peers there or not. */
export class Station {
  readonly socket: SpSocket;
  peers = 0;
  private changed: (() => void)[] = [];
  private readonly io: Io;
  /** Failures that have been told since there was a peer. */
  private readonly told = new Set<string>();

  constructor(options: NngCommon, io: Io) {
    this.io = io;
    const transports = spTransports(new MemoryNetwork());
    const driver = nativeDriver({ transports, clock: systemClock, turn: new Turn(), pool: new BlockPool() });
    this.socket = driver.open(options.protocol, spOptions(options));
    this.socket.onRoom(() => this.wake());
    this.socket.onEvent((event) => {
      if (event.kind === 'pipe-up') {
        this.peers++;
        this.told.clear();
      }
      if (event.kind === 'pipe-down') this.peers--;
      if (event.kind === 'refused') this.note(`${event.remote}: ${REFUSALS.get(event.reason) ?? event.reason}`);
      if (event.kind === 'endpoint') this.noteEndpoint(event.endpoint.lastError);
      this.wake();
    });
  }

  open(options: NngCommon): void {
    try {
      for (const url of options.listen) this.socket.listen(url);
      for (const url of options.dial) this.socket.dial(url);
    } catch (error) {
      throw usage(errorText(error));
    }
  }

  /** The next time something happens. */
  change(): Promise<void> {
    return new Promise((resolve) => this.changed.push(resolve));
  }

  wake(): void {
    const changed = this.changed;
    this.changed = [];
    for (const resolve of changed) resolve();
  }

  /** A peer that was refused has been told by its own event. */
  private noteEndpoint(error: string | null): void {
    if (error !== null && !REFUSALS.has(error)) this.note(error);
  }

  /** One line on standard error, not again for every try. */
  private note(text: string): void {
    if (this.told.has(text) || this.told.size >= MOST_TOLD) return;
    this.told.add(text);
    this.io.stderr.write(`tidegate: ${text}\n`);
  }
}

function spOptions(options: NngCommon): SpOptions {
  return {
    sendBuffer: SEND_BUFFER,
    overflow: 'block',
    recvMaxSize: RECV_MAX_SIZE,
    reconnectMaxMs: RECONNECT_MAX_MS,
    ipcMode: null,
    ipcGroup: null,
    interface: null,
    tlsServer: options.tlsServer,
    tlsClient: options.tlsClient,
  };
}

/** Runs `work` with a deadline; timers of the gateway do not hold a process, so this one does. Gives the exit code. */
export async function within(
  options: NngCommon,
  io: Io,
  station: Station,
  work: (over: () => boolean) => Promise<void>,
): Promise<number> {
  const endMs = options.timeoutMs > 0 ? systemClock.mono() + options.timeoutMs : Number.POSITIVE_INFINITY;
  const over = (): boolean => systemClock.mono() >= endMs;
  const ticks = setInterval(() => {
    if (over()) station.wake();
  }, 100);
  try {
    station.open(options);
    await work(over);
    await station.socket.stop(STOP_MS);
  } finally {
    clearInterval(ticks);
  }
  if (!over()) return 0;
  io.stderr.write('tidegate: timed out\n');
  return 1;
}
