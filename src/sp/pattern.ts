// What a Scalability Protocol is to a socket: a row of facts, and a pattern that decides which peers get a message and
// what a received one means. Implemented in protocols/, one file for each protocol; native.ts hosts a pattern, pipe.ts
// is the peer it sees. Sources: the nanomsg RFCs (sp-pubsub, sp-pipeline, sp-pair, sp-reqrep, sp-survey, sp-bus) and
// nng's protocol table.
import type { Clock } from '../base/clock.ts';

/** What a full send queue of a pipe does with a new message. */
export type Overflow = 'drop_oldest' | 'drop_newest' | 'block';

/** One peer as others see it. */
export interface PipeView {
  readonly id: number;
  readonly url: string;
  /** "127.0.0.1:50312", "ipc", "inproc" ... */
  readonly remote: string;
  /** Wall-clock milliseconds. */
  readonly since: number;
  readonly queuedBytes: number;
  readonly messagesSent: number;
  readonly messagesReceived: number;
  readonly dropped: number;
}

/** One peer as a pattern uses it. */
export interface Peer extends PipeView {
  /** Where the last message ends in all that was sent to this peer: what settled() takes. */
  readonly position: number;
  settled(position: number): 'waiting' | 'taken' | 'lost';
  /** Whether a body of `bytes` would leave now. */
  takes(bytes: number): boolean;
  /** Whether a body of `bytes` would be queued or sent rather than dropped. */
  fits(bytes: number): boolean;
  /** Sends head + body[start, end), queues it, or drops by the socket's policy. Copies before it returns. */
  send(head: Uint8Array, body: Uint8Array, start: number, end: number): void;
  /** Sends messages from index `from` on that can leave at once; returns the index of the first that cannot. */
  sendReady(head: Uint8Array, source: Uint8Array, spans: Int32Array, from: number, count: number): number;
  /** Closes the peer for what it sent. */
  refuse(reason: string): void;
}

/**
 * What became of one sent message: 'taken' when the transport of at least one peer has it, 'lost' when every peer it
 * went to is gone.
 */
export interface Receipt {
  state(): 'waiting' | 'taken' | 'lost';
}

/** The other end of a request: gets the reply (of a survey: each response), then how it ended. */
export interface Asking {
  /** bytes[start, end) is valid until it returns. */
  reply(bytes: Uint8Array, start: number, end: number): void;
  /** Once, last. `answered`: a request has its reply. `stopped`: the socket was closed. */
  ended(how: 'answered' | 'timeout' | 'stopped'): void;
}

/** Answers one request; false when its peer is gone or was answered already. Copies before it returns. */
export type Answer = (body: Uint8Array) => boolean;

/** A request that came: bytes[start, end), valid until the handler returns; `answer` may be called later. */
export type OnRequest = (bytes: Uint8Array, start: number, end: number, answer: Answer) => void;

/** What a socket gives its pattern. */
export interface Host {
  /** Peers that have greeted, in the order they came. */
  readonly peers: readonly Peer[];
  readonly stats: { messagesSent: number; bytesSent: number; dropped: number };
  readonly overflow: Overflow;
  /** Bytes that may wait for one peer; also what requests without an answer may hold. */
  readonly sendBuffer: number;
  readonly clock: Clock;
  /** Set by a pattern that has refused a message: the socket calls onRoom once there may be room. */
  waiting: boolean;
  /** Gives a body to the socket's message handler. */
  deliver(bytes: Uint8Array, start: number, end: number, peer: Peer): void;
}

export interface Pattern {
  /** Whether each received body goes to the handler as it is. Read for every message. */
  readonly plain: boolean;
  /** See SpSocket in sp.ts. */
  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean;
  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number;
  ready(bytes: number): boolean;
  receipt(): Receipt;
  /** A message came, where `plain` is false. */
  received(peer: Peer, bytes: Uint8Array, start: number, end: number): void;
  /** A peer is there, or has room again. */
  peerReady?(): void;
  peerGone?(peer: Peer): void;
  subscribe?(prefix: Uint8Array): void;
  unsubscribe?(prefix: Uint8Array): void;
  request?(body: Uint8Array, timeoutMs: number, asking: Asking): (() => void) | null;
  onRequest?(handler: OnRequest): void;
  /** The socket stops: timers end, who waits learns it. */
  stop?(): void;
}

export interface ProtocolRow {
  /** Numbers on the wire: this side's and the one its peers announce. */
  readonly number: number;
  readonly peer: number;
  /** The first part of the WebSocket subprotocol `<word>.sp.nanomsg.org`, of this side and of its peers. */
  readonly word: string;
  readonly peerWord: string;
  readonly sends: boolean;
  readonly receives: boolean;
  /** One peer at a time; others are refused. */
  readonly single: boolean;
  /** Most bytes of the protocol's own header in front of a received body. */
  readonly headerBytes: number;
  /** pair1: four bytes of hop count in front of each body, which the pipe writes and takes off. */
  readonly hops: boolean;
  open(host: Host): Pattern;
}
