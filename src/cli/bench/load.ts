// The two sides of a load and the settings they share; the seam between run.ts and the MQTT and SP clients.
// Source: style of the closed loop: a publisher sends whole prebuilt blocks while the run's window has room for them.
import type { Qos, Version } from '../../mqtt/packet.ts';
import type { Address } from './wire.ts';

export interface LoadOptions {
  readonly broker: Address;
  readonly version: Version;
  readonly username: string | null;
  readonly password: string | null;
  readonly publishers: number;
  readonly subscribers: number;
  readonly topics: number;
  /** Topics are this and a number of fixed width. */
  readonly topicPrefix: string;
  readonly topicFilter: string;
  /** Payload bytes. */
  readonly size: number;
  readonly qos: Qos;
  readonly subscriptionQos: Qos;
  /**
   * Subscribers have sessions that outlive their connections: what is sent to them is stored where the broker stores.
   */
  readonly durable: boolean;
  /** Messages in all; 0 = as long as `seconds` says. */
  readonly count: number;
  readonly seconds: number;
  /** Seconds at the start that are not measured. */
  readonly warmupSeconds: number;
  /** Messages a second in all; 0 = as fast as the window allows. */
  readonly rate: number;
  /** Messages sent and not yet received by the slowest subscriber. */
  readonly window: number;
  /** QoS 1 and 2 messages of one publisher that wait for their acknowledgement. */
  readonly inflight: number;
  /** Publish as one SP socket that dials there, instead of MQTT. */
  readonly publishTo: SpTarget | null;
  /** Receive with SP sockets that dial there, instead of MQTT. */
  readonly receiveFrom: SpTarget | null;
  /** SP sockets are pair0 instead of pub0 and sub0. */
  readonly pair: boolean;
  /** What stands before the payload in frames that are published. */
  readonly framePrefix: string;
  /** No message for so long means that those missing will not come. */
  readonly stallMs: number;
  /** Look at every message instead of samples. */
  readonly checkAll: boolean;
}

export interface SpTarget {
  readonly address: Address;
  /** The ipc mapping has one byte more before each frame. */
  readonly ipc: boolean;
}

export interface LoadEvents {
  /** Something was received, acknowledged or written: there may be room for more. */
  progress(): void;
  failed(why: string): void;
}

export interface Publisher {
  /** Resolves when it may send. */
  readonly ready: Promise<void>;
  /** Messages of one block. */
  readonly blockCount: number;
  sent: number;
  /** Acknowledged by the broker; QoS 0 and SP: written. */
  acknowledged: number;
  /** Whether a block is free. */
  free(): boolean;
  /** Sends `count` messages (1 to blockCount), stamped with `timeUs`. */
  send(count: number, timeUs: number): void;
  close(): void;
}

export interface Subscriber {
  readonly ready: Promise<void>;
  readonly meter: { readonly received: number; readonly disorder: number; readonly gaps: number };
  close(): void;
  /** After close(): resolves when the broker has been told to forget the session, or cannot be. */
  forget(): Promise<void>;
}

/** Largest block: what the kernel takes in one write without waiting, on loopback. */
export const BLOCK_BYTES = 65_536;

/** How many messages of `bytes` make one block, so that about four blocks fill `window`. */
export function blockCount(bytes: number, window: number, rate: number): number {
  const share = Math.max(1, Math.floor(window / 4));
  // With a given rate a block leaves about each millisecond, with what is due.
  const due = rate > 0 ? Math.ceil(rate / 500) : share;
  return Math.max(1, Math.min(share, due, Math.floor(BLOCK_BYTES / bytes)));
}
