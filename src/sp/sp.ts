// SEAM of sp/: Scalability Protocols sockets (names are nng's: socket, pipe, dialer, listener). Used by bridge/, cli/
// and the library API. Protocols: the table protocol.ts, one file each in protocols/, their contract in pattern.ts.
// Drivers: native.ts (our own) and nanomsg.ts (the C library, loaded on demand). Both pass test/contract/sp.ts. Wire
// (sp-tcp-mapping, sp-ipc-mapping): greeting 00 53 50 00 <protocol u16> 00 00, then frames u64 length + body; ipc puts
// 01 before each.
//
// Map (made by `make docs`):
//   countingsink.ts          The transport of a pipe as its writer sees it
//   endpoint.ts              Listeners and dialers of a native socket
//   framequeue.ts            Messages that wait for one slow pipe, as wire frames in blocks: first in, first out
//   frames.ts                Many frames of one head for one pipe, written into its output block in a row
//   libnanomsg.ts            What is used of libnanomsg, the C library, and how it is loaded
//   messagewriter.ts         The way out of a pipe whose transport keeps messages whole (WebSocket): no frame header
//   nanomsg.ts               The SP driver `nanomsg`: the C library through the npm package of that name
//   native.ts                The native SP driver: sockets in TypeScript over the gateway's own transports
//   pattern.ts               What a Scalability Protocol is to a socket
//   pipe.ts                  One peer of a native socket: greeting, frames in
//   pipeowner.ts             What stands between a pipe and its socket
//   prefixes.ts              The prefixes a sub0 socket has asked for: which bodies its owner wants to see
//   protocol.ts              The table of Scalability Protocols: each name and its file
//   transports.ts            What SP sockets need of the transports: somebody else makes them
//   url.ts                   SP URLs: which transport, where, and what is wrong with one that cannot work
//   protocols/answers.ts     The answering side of requests and surveys
//   protocols/backtrace.ts   The header of requests and surveys: the way back as 32-bit words, big-endian
//   protocols/bus.ts         bus0: each message goes to every peer, and what peers send comes in
//   protocols/fanout.ts      A copy for every peer: how pub0, bus0 and surveys send
//   protocols/pair.ts        pair0 and pair1: two sockets, both ways
//   protocols/pub.ts         pub0: a copy of each message for every subscriber
//   protocols/pull.ts        pull0: what pushers send, from whichever has something
//   protocols/push.ts        push0: each message for one of the pullers, in turn
//   protocols/rep.ts         rep0: answers requests
//   protocols/req.ts         req0: asks one of its peers and gets one answer
//   protocols/respondent.ts  respondent0: answers surveys, each once and as long as the surveyor waits
//   protocols/rotation.ts    One peer for each message, in turn: how push0 and pair send
//   protocols/silent.ts      A socket that only receives: what it is asked to send goes nowhere
//   protocols/sub.ts         sub0: what publishers send, as far as it begins with a subscribed prefix
//   protocols/surveyor.ts    surveyor0: asks all its peers; what they answer comes in until the time is over
import type { TlsClientOptions, TlsServerOptions } from '../transport/transport.ts';
import type { Asking, OnRequest, Overflow, PipeView, Receipt } from './pattern.ts';
import type { PROTOCOLS } from './protocol.ts';

export type { Answer, Asking, OnRequest, Overflow, PipeView, Receipt } from './pattern.ts';
/** Names of the table of protocols. */
export type Protocol = keyof typeof PROTOCOLS;

export interface SpOptions {
  /** Bytes that may wait for one pipe; an empty queue takes one frame of any size. */
  readonly sendBuffer: number;
  readonly overflow: Overflow;
  /** Bytes of the largest body taken; 0 = no limit. */
  readonly recvMaxSize: number;
  readonly reconnectMaxMs: number;
  /** Octal text such as "0660", or null. */
  readonly ipcMode: string | null;
  /** Group name or number, or null. */
  readonly ipcGroup: string | null;
  readonly interface: string | null;
  readonly tlsServer: TlsServerOptions | null;
  readonly tlsClient: TlsClientOptions | null;
}

export type EndpointState = 'starting' | 'listening' | 'connected' | 'retrying' | 'stopped';
export interface EndpointView {
  readonly url: string;
  readonly mode: 'listen' | 'dial';
  readonly state: EndpointState;
  /** The URL with the real port once bound. */
  readonly bound: string | null;
  readonly lastError: string | null;
}

/** What happens on a socket, for state, log and metrics. Never per message. */
export type SpEvent =
  | { readonly kind: 'endpoint'; readonly endpoint: EndpointView }
  | { readonly kind: 'pipe-up' | 'pipe-down'; readonly pipe: PipeView; readonly reason?: string }
  /**
   * A peer was closed for what it sent: bad-greeting, wrong-protocol, greeting-timeout, too-large (size, limit),
   * bad-frame.
   */
  | {
      readonly kind: 'refused';
      readonly url: string;
      readonly remote: string;
      readonly reason: string;
      readonly size?: number;
      readonly limit?: number;
    };

/** Counters of one socket, changed in place. */
export interface SpStats {
  messagesSent: number;
  bytesSent: number;
  messagesReceived: number;
  bytesReceived: number;
  dropped: number;
  refused: number;
}

/** What a new socket has counted. */
export function noStats(): SpStats {
  return { messagesSent: 0, bytesSent: 0, messagesReceived: 0, bytesReceived: 0, dropped: 0, refused: 0 };
}

/**
 * A received message: bytes[start, end), valid until the handler returns. A chunk's messages come within one turn.
 */
export type OnMessage = (bytes: Uint8Array, start: number, end: number, pipe: PipeView) => void;

/**
 * `count` received messages of `length` bytes each, the first at bytes[start], every other `stride` bytes behind the
 * one before. Valid until the handler returns.
 */
export type OnRun = (
  bytes: Uint8Array,
  start: number,
  length: number,
  stride: number,
  count: number,
  pipe: PipeView,
) => void;

export interface SpSocket {
  readonly protocol: Protocol;
  readonly stats: SpStats;
  /** False where the driver cannot tell who is connected: pipes() is empty then, and there are no pipe events. */
  readonly knowsPeers: boolean;
  onMessage(handler: OnMessage): void;
  /** Where a driver can: messages that came in a row go to this handler instead, those of one length together. */
  onRun?(handler: OnRun): void;
  onEvent(handler: (event: SpEvent) => void): void;
  /** sub0 only: prefixes that are let through; none = nothing, "" = everything. */
  subscribe(prefix: Uint8Array): void;
  unsubscribe(prefix: Uint8Array): void;
  /**
   * Never throws for a busy or absent address: the endpoint shows it and retries (a bind at most reconnectMax apart).
   */
  listen(url: string): void;
  dial(url: string): void;
  /** Ends one endpoint and its pipes. */
  close(url: string): Promise<void>;
  /**
   * Sends head + body[start, end) as one message, to every pipe (pub0, bus0), to the next that is ready (push0) or to
   * the one peer (pair). req0 and surveyor0: a request in place of the one before, its replies go to onMessage. rep0
   * and respondent0: answers the last one. Copies what it needs before it returns. Returns false when it did not fit
   * somewhere and `overflow` is block: nothing was queued anywhere then, and onRoom is called once there is room again.
   */
  send(head: Uint8Array, body: Uint8Array, start: number, end: number): boolean;
  /**
   * As send() for each of `count` messages head + source[spans[2i], spans[2i+1]), in order. Returns how many were taken
   * before the first that send() would have returned false for.
   */
  sendMany(head: Uint8Array, source: Uint8Array, spans: Int32Array, count: number): number;
  /**
   * Whether a message of `bytes` would leave for at least one peer now, without waiting in a queue and without anything
   * being dropped. When not, onRoom is called once that may have changed.
   */
  ready(bytes: number): boolean;
  /** Of the last message that send() took. For the few that are kept until they have left; costs an object. */
  receipt(): Receipt;
  onRoom(handler: () => void): void;
  /**
   * req0, surveyor0: asks with `body`; many may be under way. `timeoutMs` 0 = no limit (surveys: a second). Gives the
   * function that gives up silently; null when requests without an answer fill `sendBuffer`, or when the protocol or
   * driver has no requests.
   */
  request?(body: Uint8Array, timeoutMs: number, asking: Asking): (() => void) | null;
  /** rep0, respondent0: requests go here instead of onMessage; each may be answered later, in any order. */
  onRequest?(handler: OnRequest): void;
  /** Stops reading from every peer soon, for a receiver that is behind; peers then wait or drop by their own policy. */
  pause(): void;
  resume(): void;
  /** A picture of now: plain values. */
  pipes(): PipeView[];
  endpoints(): EndpointView[];
  /** Stops everything: queued messages get up to `deadlineMs` to leave. */
  stop(deadlineMs: number): Promise<void>;
}

/** Makes sockets of one driver. Loading may fail (the addon is missing): GatewayError SP-DRIVER with one clear line. */
export interface SpDriver {
  readonly name: 'native' | 'nanomsg';
  open(protocol: Protocol, options: SpOptions): SpSocket;
  /** Whether the driver can serve a URL scheme; config is checked against it. */
  supports(scheme: string, protocol: Protocol): boolean;
}
