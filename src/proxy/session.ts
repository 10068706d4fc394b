// An open session of a client with a server: the two connections joined, CONNACK looked at, every packet too where
// there is a filter, and the silence measured that ends it. Made by relay.ts when a server has taken the client.
// Sources: MQTT 5.0 sections 3.1.2.10, 3.2.2.3.14, 4.13.
import type { Connection } from '../transport/transport.ts';
import type { Status } from './accesslog.ts';
import { ConnackWatch } from './connack.ts';
import type { Entrance } from './entrance.ts';
import type { Facts } from './facts.ts';
import type { Guard } from './guard.ts';
import type { Out } from './packetstream.ts';
import { Splice, type SpliceEnd } from './splice.ts';
import type { Counts } from './tally.ts';
import type { Passage } from './verdict.ts';

/** What `idle_timeout = auto` adds to one and a half keep alives: the server, who knows better, closes first. */
const IDLE_GRACE_MS = 10_000;
/** One side has ended, the other takes nothing of what is left for it: after this it gets no more. */
const ENDING_MS = 30_000;

const END_REASONS: Readonly<Record<SpliceEnd, string>> = {
  client: 'closed by client',
  server: 'closed by server',
  'client-error': 'client connection lost',
  'server-error': 'server connection lost',
};

/** What goes to a server first: null stands for bytes that nobody has read. */
export interface Load {
  readonly bytes: Buffer | null;
  /** null = the client speaks something else, or nothing is known of it. */
  readonly passage: Passage | null;
}

export interface SessionParts {
  readonly home: Entrance;
  readonly client: Connection;
  readonly server: Connection;
  readonly facts: Facts;
  /** null = by the keep alive. */
  readonly idleTimeoutMs: number | null;
  readonly halfClose: boolean;
  /** The client id that the server got, null when it is the client's own. */
  readonly rewrittenId: string | null;
  /** Makes the filter of this client where it has one. */
  readonly guarding: (toServer: Out, toClient: Out, hold: (on: boolean) => void) => Guard | null;
  /** Called once, when the session ends by itself; both sides are closing then. */
  readonly onOver: (status: Status, reason: string) => void;
}

export class Session implements Counts {
  private readonly parts: SessionParts;
  private readonly splice: Splice;
  /** Milliseconds without a byte that end it; 0 = never. */
  private idleMs: number;
  private seenMark = 0;
  private seenMs: number;

  constructor(parts: SessionParts) {
    const { client, server, halfClose, home, idleTimeoutMs, facts } = parts;
    this.parts = parts;
    this.seenMs = home.parts.clock.mono();
    this.idleMs = idleTimeoutMs ?? idleOf(facts.keepAlive);
    this.splice = new Splice(client, server, halfClose, (end) => parts.onOver(200, END_REASONS[end]));
  }

  get bytesIn(): number {
    return this.splice.bytesIn;
  }

  get bytesOut(): number {
    return this.splice.bytesOut;
  }

  /** Sends what has been read already, then begins to pass bytes on. */
  start({ bytes, passage }: Load): void {
    const { splice } = this;
    const { client, server, home, guarding } = this.parts;
    splice.start();
    const filter = guarding(
      (out) => splice.up.send(out),
      (out) => splice.down.send(out),
      (on) => splice.up.hold(on),
    );
    if (bytes !== null) {
      if (filter === null) splice.up.send(bytes);
      else filter.fromClient(bytes);
    }
    const { buffers } = home.parts.transports;
    if (passage === null) splice.down.read(buffers);
    else this.watchConnack(server, filter);
    if (filter === null) splice.up.read(buffers);
    else client.onData(splice.up.counting((chunk) => filter.fromClient(chunk)));
    splice.up.resume();
  }

  /** Ends it when it has been silent for too long. Called now and then. */
  sweep(nowMs: number): void {
    const { splice } = this;
    // What one side takes moves it on as well as what the other sends.
    const mark = splice.bytesIn + splice.bytesOut - splice.waiting;
    if (mark !== this.seenMark) {
      this.seenMark = mark;
      this.seenMs = nowMs;
      return;
    }
    const silentMs = nowMs - this.seenMs;
    if (splice.ending && silentMs >= ENDING_MS) {
      splice.destroy();
      this.parts.onOver(200, 'the other side takes nothing more');
    } else if (this.idleMs > 0 && silentMs >= this.idleMs) {
      void splice.stop();
      this.parts.onOver(200, 'idle');
    }
  }

  /** Ends both sides after what is under way; onOver is not called. Resolves when both are closed. */
  stop(): Promise<void> {
    return this.splice.stop();
  }

  /** Closes both at once. */
  destroy(): void {
    this.splice.destroy();
  }

  /** The server's first packet is looked at; what is behind it only by a filter. */
  private watchConnack(server: Connection, filter: Guard | null): void {
    const { splice } = this;
    const { facts, home, rewrittenId, idleTimeoutMs } = this.parts;
    if (facts.version === 0) return;
    const watch = new ConnackWatch(facts.version, facts.clientId === '' ? rewrittenId : null);
    const { down } = splice;
    const pass = (bytes: Buffer): void => {
      if (filter === null) down.send(bytes);
      else filter.fromServer(bytes);
    };
    splice.beforeServerEnd = () => {
      const rest = watch.rest();
      if (rest !== null) pass(rest);
    };
    server.onData(
      down.counting((chunk) => {
        const seen = watch.push(chunk);
        if (seen === null) return;
        if (seen.reasonCode !== null) home.connackSeen(seen.reasonCode);
        // [MQTT-3.2.2-21]
        if (seen.serverKeepAlive !== null && idleTimeoutMs === null) this.idleMs = idleOf(seen.serverKeepAlive);
        splice.beforeServerEnd = null;
        if (filter === null) down.read(home.parts.transports.buffers);
        else server.onData(down.counting((next) => filter.fromServer(next)));
        pass(seen.bytes);
      }),
    );
  }
}

/** Seconds to the milliseconds of silence that end a session; without keep alive the kernel's own probes have to do. */
function idleOf(keepAlive: number): number {
  return keepAlive === 0 ? 0 : keepAlive * 1500 + IDLE_GRACE_MS;
}
