// The filter of one client at work: takes what both sides send, keeps the order around CONNACK, slows the client down
// to its rate. Made by relay.ts where `inspect` is on, between client and server or between client and the built-in
// broker. Nothing of a client but its CONNECT is looked at before the server has answered: an answer of ours would come
// before CONNACK. Source: MQTT 5.0 sections 3.1.4 and 3.2 (nothing before CONNACK), 4.13 (errors).
import type { Clock, Timer } from '../base/clock.ts';
import { ProtocolError } from '../base/errors.ts';
import type { Version } from '../mqtt/packet.ts';
import type { ClientFilter } from './filter.ts';
import { type InspectCells, Inspector } from './inspect.ts';
import { Rate } from './limits.ts';
import type { Out } from './packetstream.ts';

export interface GuardParts {
  readonly filter: ClientFilter;
  readonly version: Version;
  /** Bytes of the CONNECT as the server gets it: the first that fromClient() takes. */
  readonly connectBytes: number;
  readonly cells: InspectCells;
  readonly clock: Clock;
  readonly toServer: Out;
  readonly toClient: Out;
  /** Stops reading from the client, or goes on. */
  readonly hold: (on: boolean) => void;
  /** The session has to end; nothing is passed on any more. */
  readonly onBroken: (error: ProtocolError) => void;
}

export class Guard {
  private readonly parts: GuardParts;
  private readonly inspector: Inspector;
  private readonly rate = new Rate();
  private timer: Timer | null = null;
  private state: 'new' | 'connecting' | 'open' | 'over' = 'new';
  /**
   * What came behind CONNECT before the server had answered: one chunk, and what was read before the client could be
   * stopped.
   */
  private waiting: Buffer[] = [];

  constructor(parts: GuardParts) {
    this.parts = parts;
    const { filter, version, cells, toServer, toClient } = parts;
    this.inspector = new Inspector(filter, version, cells, toServer, toClient);
  }

  /** Takes bytes of the client, which must not change afterwards; the first ones hold the whole CONNECT. */
  fromClient(bytes: Buffer): void {
    switch (this.state) {
      case 'new': {
        const { connectBytes } = this.parts;
        this.state = 'connecting';
        this.guarded(() => this.inspector.fromClient.push(bytes.subarray(0, connectBytes)));
        if (bytes.length > connectBytes) this.keep(bytes.subarray(connectBytes));
        return;
      }
      case 'connecting':
        this.keep(bytes);
        return;
      case 'open':
        this.take(bytes);
    }
  }

  fromServer(bytes: Buffer): void {
    if (this.state === 'over') return;
    this.guarded(() => this.inspector.fromServer.push(bytes));
    if (this.state !== 'connecting') return;
    this.state = 'open';
    const { waiting } = this;
    this.waiting = [];
    if (waiting.length === 0) return;
    this.parts.hold(false);
    for (const chunk of waiting) this.take(chunk);
  }

  /** The session is over. */
  stop(): void {
    this.state = 'over';
    this.timer?.cancel();
    this.waiting = [];
  }

  private keep(bytes: Buffer): void {
    this.waiting.push(bytes);
    this.parts.hold(true);
  }

  private take(bytes: Buffer): void {
    if (this.state === 'over') return;
    const { filter, clock, hold } = this.parts;
    const { fromClient } = this.inspector;
    const before = fromClient.messages;
    this.guarded(() => fromClient.push(bytes));
    const waitMs = this.rate.owe(fromClient.messages - before, filter.options.messagesPerSecond, clock.mono());
    if (waitMs === 0) return;
    hold(true);
    this.timer?.cancel();
    this.timer = clock.after(waitMs, () => hold(false));
  }

  private guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.stop();
      this.parts.onBroken(error);
    }
  }
}
