// One connection as the rest of session/ sees it: what its phases (admission.ts, served.ts) and its session ask of it.
// client.ts is the one implementation. Types only.
import type { Writer } from '../base/writer.ts';
import type { ListenerContext } from '../broker/broker.ts';
import type { Hold } from '../mqtt/message.ts';
import type { Connection } from '../transport/transport.ts';
import type { Opened } from './opening.ts';

export interface Peer {
  readonly connection: Connection;
  readonly listener: ListenerContext;
  readonly writer: Writer;
  /** CONNACK has been written, and the connection is there. */
  isOpen(): boolean;
  /** The connection has ended. */
  isClosed(): boolean;
  send(packet: Buffer): void;
  /** Handles nothing more until `promise` has settled, then calls `then`. */
  suspend<T>(promise: Promise<T>, then: (value: T) => void): void;
  /** Closes with a 5.0 DISCONNECT (older versions: just closes). The will is sent unless `withWill` is false. */
  disconnect(reasonCode: number, why: string, withWill?: boolean): void;
  /** Another connection has come with the same client id [MQTT-3.1.4-3]. `continued`: it goes on with the session. */
  takeOver(continued: boolean): void;
}

/** A connection whose client is on its way in. */
export interface Arriving extends Peer {
  /** Writes the CONNACK and serves the client from here on. */
  opened(opened: Opened, connack: Buffer): void;
  /** Closes a connection that is not let in: nothing of it has any effect. */
  turnedAway(): void;
}

/** A connection whose client is in. */
export interface ServedPeer extends Peer {
  /** The client has sent DISCONNECT: the connection closes when `until`, if there is one, is done. */
  leaves(reasonCode: number, withWill: boolean, until: Hold | null): void;
}
