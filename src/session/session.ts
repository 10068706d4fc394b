// SEAM of session/: the inbound half. broker/ builds a Core and hands connections to Client (client.ts); everything a client may do is
// obeyed in this folder, one file a noun. A Connection is bytes, a Client adds MQTT, a Session outlives both.
//
//   reader.ts     bytes to packets, waiting                               assembler.ts packets that come in pieces
//   intake.ts     the buffer that all connections are read to
//   client.ts     one connection: dispatch, the one place where a ProtocolError becomes bytes
//   connect.ts    CONNECT as named steps: check, authenticate, take over, open, answer
//   enhanced.ts   AUTH: enhanced authentication                           stall.ts    clients that do not read
//   publish.ts    PUBLISH in: topic, alias, rights, quota, routing        acks.ts     what is answered to it, in order
//   named.ts      the topic of a PUBLISH and the right to it                run.ts      QoS 0 packets handed on together
//   subscribe.ts  SUBSCRIBE and UNSUBSCRIBE; suback.ts what they are answered   registry.ts all sessions: lookup, expiry, wills
//   state.ts      one session's state                                     budget.ts   memory of all clients together
//   stall.ts      clients that do not read                        contest.ts  client ids that two programs use
//   weight.ts     what all of it weighs in memory                  pace.ts     time on the event loop for each client
//   held.ts       how much may wait for acknowledgements that are held back    caps.ts what is refused for lack of room
//
//   CONNECT -> authenticate -> [AUTH ...] -> open -> PUBLISH, SUBSCRIBE, ... -> DISCONNECT or loss -> session stays or ends
//                 \-> refused: CONNACK, close       \-> ProtocolError: (5.0) DISCONNECT, will, close
import type { Absentees } from '../auth/auth.ts';
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { Slab } from '../base/slab.ts';
import type { Turn } from '../base/turn.ts';
import type { BlockPool } from '../base/writer.ts';
import type { BrokerEvent } from '../broker/broker.ts';
import type { DeliveryStats, MakeOutbox, OutboxLimits } from '../delivery/delivery.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { RetainedLimits, Router } from '../router/router.ts';
import type { Journal } from '../store/store.ts';
import type { Budget } from './budget.ts';
import type { Caps } from './caps.ts';
import type { Contests } from './contest.ts';
import type { Held } from './held.ts';
import type { IntakeBuffer } from './intake.ts';
import type { Pace } from './pace.ts';

/** What clients may ask for. 0 = no limit, except where said. */
export interface SessionLimits {
  /** Bytes of a whole packet. */
  readonly maxPacketSize: number;
  /** Bytes of a payload; a publish with more is acknowledged and has no effect. */
  readonly maxPayloadSize: number;
  /** Bytes of a CONNECT, judged from its header. */
  readonly maxConnectSize: number;
  /** 0 = no aliases. */
  readonly maxTopicAlias: number;
  readonly keepaliveMultiplier: number;
  /** Seconds; 0 = whatever the client asks for. */
  readonly maxKeepaliveSeconds: number;
  /** Unacknowledged QoS 1 and 2 publishes of one client: the Receive Maximum it is told. */
  readonly maxAwaitingRel: number;
  readonly maxSessionExpiryMs: number;
  readonly maxQos: Qos;
  readonly retainAvailable: boolean;
  readonly wildcardAvailable: boolean;
  readonly sharedAvailable: boolean;
  readonly maxTopicLevels: number;
  /** What client ids have to begin with; '' = anything. */
  readonly clientIdPrefix: string;
  readonly maxSessions: number;
  /** Of one session, and of all together. */
  readonly maxSubscriptions: number;
  readonly maxTotalSubscriptions: number;
  readonly retained: RetainedLimits;
  readonly sendTimeoutMs: number;
  /** A retained message reaches a new subscription only while its publisher may still write the topic. */
  readonly checkRetainSource: boolean;
  /** A client id whose session is another user's: refused, or continued by whoever is let in with it. */
  readonly sessionOwner: 'user' | 'client_id';
  /** New connections a second over all listeners. */
  readonly maxConnectRate: number;
  /** Connections that have not been let in yet. */
  readonly maxPendingConnections: number;
  /** Bytes of unsent output and queued messages of all clients together, above which publishers are slowed down. */
  readonly memoryBudget: number;
  /** Bytes of sessions, subscriptions and retained messages together; above it the newest is refused. */
  readonly keptBudget: number;
  /** Filters of one client that may match one topic. */
  readonly maxMatching: number;
  readonly outbox: OutboxLimits;
}

/** Counters of the inbound half, changed in place; declared as metrics by broker/. */
export interface SessionStats {
  connects: number;
  refused: number;
  disconnects: number;
  takeovers: number;
  protocolErrors: number;
  received: number;
  receivedBytes: number;
  bytesIn: number;
  bytesOut: number;
  deniedPublish: number;
  tooLargePublish: number;
  deniedSubscribe: number;
  deniedWill: number;
  expiredSessions: number;
  duplicatesQos2: number;
  connected: number;
  /** Times that input of one client held the event loop for longer than 50 ms. */
  held: number;
}

export function newSessionStats(): SessionStats {
  return {
    connects: 0,
    refused: 0,
    disconnects: 0,
    takeovers: 0,
    protocolErrors: 0,
    received: 0,
    receivedBytes: 0,
    bytesIn: 0,
    bytesOut: 0,
    deniedPublish: 0,
    tooLargePublish: 0,
    deniedSubscribe: 0,
    deniedWill: 0,
    expiredSessions: 0,
    duplicatesQos2: 0,
    connected: 0,
    held: 0,
  };
}

/** What every client of a broker shares. */
export interface Core {
  readonly clock: Clock;
  readonly turn: Turn;
  readonly pool: BlockPool;
  /** Where connections are read to. */
  readonly intake: IntakeBuffer;
  /** Payloads of messages that are kept. */
  readonly slab: Slab;
  readonly log: Log;
  readonly journal: Journal;
  readonly router: Router;
  /** Replaced whole on reload; read at use. */
  limits: SessionLimits;
  readonly stats: SessionStats;
  readonly delivery: DeliveryStats;
  readonly makeOutbox: MakeOutbox;
  readonly budget: Budget;
  /** How clients that are not here are judged. */
  readonly absentees: Absentees;
  /** What everything costs that clients make the gateway keep. */
  readonly ledger: Ledger;
  /** Who has used his share of the loop. */
  readonly pace: Pace;
  /** What waits for acknowledgements that are held back. */
  readonly held: Held;
  /** What was refused for lack of room. */
  readonly caps: Caps;
  /** Client ids that several programs seem to use. */
  readonly contests: Contests;
  readonly emit: (event: BrokerEvent) => void;
}
