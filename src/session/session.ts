// SEAM of session/: the inbound half. broker/ builds a Core and hands connections to Client (client.ts); everything a
// client may do is obeyed in this folder, one file a noun. A Connection is bytes, a Client adds MQTT, a Session
// outlives both.
//
//   CONNECT -> authenticate -> [AUTH ...] -> open -> PUBLISH, SUBSCRIBE, ... -> DISCONNECT, loss -> session stays, ends
//                 \-> refused: CONNACK, close       \-> ProtocolError: (5.0) DISCONNECT, will, close
//
// Map (made by `make docs`):
//   acks.ts           What a client is answered to its QoS 1 and 2 publishes
//   admission.ts      A client on its way in: runs the steps of connect.ts
//   autosubscribe.ts  Subscriptions that a client gets by itself when it connects (topics.auto_subscribe)
//   budget.ts         The memory that all clients together may hold in unsent output and queues
//   caps.ts           Bounds on what clients together may make a gateway keep: sessions, subscriptions
//   checks.ts         What is checked at CONNECT before anything of an older connection is touched
//   client.ts         One connection that speaks MQTT
//   connack.ts        CONNACK: what a client is told when it is let in, and when it is not
//   connect.ts        CONNECT as an array of named steps: read CONNECT_STEPS from top to bottom
//   contest.ts        Two programs that share a client id throw each other off for ever
//   delayed.ts        Messages that are published later ($delayed/<seconds>/<topic>)
//   enhanced.ts       The enhanced authentication of one client (MQTT 5.0 section 4.12)
//   exchanges.ts      The receiving half of QoS 2
//   exclusive.ts      Exclusive subscriptions: $exclusive/<filter> is granted to one session at a time
//   firstpacket.ts    The first packet of a connection by itself
//   held.ts           How much may wait for acknowledgements that something holds back
//   intake.ts         The one buffer that all connections of a broker read to
//   named.ts          The topic of each PUBLISH of one connection: by its bytes or its alias
//   opening.ts        The session that a client gets: an older connection of its client id ends
//   origin.ts         What is kept of a client with its messages and session
//   pace.ts           Time on the event loop for work that one client's input leads to
//   payloads.ts       What the checks of a topic do with a message: passed, refused, dropped without a word, or tagged
//   peer.ts           One connection as the rest of session/ sees it: what its phases
//   publish.ts        PUBLISH from a client (MQTT 5.0 section 3.3, 3.1.1 section 3.3): topic, alias, rights, quota
//   quotas.ts         The scopes of quotas that a session counts in (policy/policy.ts)
//   reader.ts         The bytes of one connection as packets, in the order they came
//   registry.ts       All sessions of a broker: who has which client id, what happens when a connection ends
//   run.ts            A run: QoS 0 PUBLISH packets that lie one behind the other in a chunk and go to the same targets
//   served.ts         What a client has that is let in: its session
//   slices.ts         Work that one packet asks for in many steps
//   special.ts        The topics of one client that the configuration makes something else of (policy/policy.ts)
//   stall.ts          A client that does not read what it is sent
//   state.ts          One session: what MQTT keeps for a client id, connected or not
//   suback.ts         SUBACK and UNSUBACK: when they leave and what they say
//   subscribe.ts      SUBSCRIBE and UNSUBSCRIBE (MQTT 5.0 sections 3.8 to 3.11)
//   subscriptions.ts  The subscriptions of a session: put in force, withdrawn, ended, with what router, journal
//   throttle.ts       The publishes of one client whose rate is limited by quotas
//   verdicts.ts       Verdicts of the authorizer kept per client, so that rights cost a map look-up and not a rule walk
//   weight.ts         What a session weighs in the ledger
//   wills.ts          Wills from the end of a connection until they are published or nobody wants them: delays, rights
import type { Absentees, Identity } from '../auth/auth.ts';
import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Log } from '../base/log.ts';
import type { Slab } from '../base/slab.ts';
import type { Turn } from '../base/turn.ts';
import type { BlockPool } from '../base/writer.ts';
import type { BrokerEvent } from '../broker/broker.ts';
import type { Alter, DeliveryStats, MakeOutbox, OutboxLimits, Sent } from '../delivery/delivery.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Policies, Quotas } from '../policy/policy.ts';
import type { RetainedLimits, Router } from '../router/router.ts';
import type { Journal } from '../store/store.ts';
import type { Budget } from './budget.ts';
import type { Caps } from './caps.ts';
import type { Contests } from './contest.ts';
import type { Delayed } from './delayed.ts';
import type { Exclusives } from './exclusive.ts';
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
  rewrittenPublish: number;
  rewrittenSubscribe: number;
  /** Publishes that the configuration sends nowhere: no topic left of theirs. */
  misplacedPublish: number;
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
    rewrittenPublish: 0,
    rewrittenSubscribe: 0,
    misplacedPublish: 0,
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
  /** What the configuration says about topics and payloads; null = nothing. Replaced whole on reload. */
  policies: Policies | null;
  /** What clients may use; null = there are no quotas. Replaced whole on reload. */
  quotas: Quotas | null;
  /** What a program makes of each message for one client; null = nothing. */
  readonly alterFor: ((identity: Identity) => Alter) | null;
  /** Who is told of what was written to one client; null = nobody. */
  readonly sentFor: ((identity: Identity) => Sent) | null;
  /** Messages that are published later. */
  readonly delayed: Delayed;
  /** Who has which exclusive subscription. */
  readonly exclusives: Exclusives;
  readonly emit: (event: BrokerEvent) => void;
}
