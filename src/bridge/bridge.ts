// SEAM of bridge/: bridges to NNG and to remote MQTT brokers as the rest of the gateway sees them. Options come from
// the configuration (gateway/gateway.ts hands them in, the types of config/ fit), views go to REST, console and log. A
// bridge is a supervised worker: one socket, one client of the broker. Sources: docs/nng-bridges.md and
// docs/mqtt-bridges.md, which say what users may rely on.
//
// Map (made by `make docs`):
//   counters.ts          The metrics of bridges, declared once, and the counters of one rule
//   keeping.ts           One bridge's part of the journal: numbers what is kept
//   rate.ts              A rate limit for one rule: so many messages a second on average, a second's worth at once
//   supervisor.ts        Owns all bridges of a gateway, to NNG and to remote MQTT brokers: starts and stops them, adds
//   trace.ts             The trace header that eKuiper and Neuron put in front of a payload, and its ids as W3C text
//   mqtt/acks.ts         What a remote broker is answered to its QoS 1 and 2 messages
//   mqtt/bridge.ts       A bridge to a remote MQTT broker: connects and stays connected, forwards what its rules take
//   mqtt/bridges.ts      Bridges to remote brokers for the supervisor: makes their workers
//   mqtt/condition.ts    How a bridge to a remote broker is: its state and last error, and the log lines about them
//   mqtt/connect.ts      What a bridge says to a remote broker when it arrives: where to dial, CONNECT, SUBSCRIBE
//   mqtt/crowd.ts        Publishers whose messages are above the length of a bridge's queue
//   mqtt/doubt.ts        Messages of QoS 1 that a remote before 5.0 has acknowledged in the middle of QoS 2 exchanges
//   mqtt/exchanges.ts    QoS 2 exchanges with one remote broker
//   mqtt/fetch.ts        Remote to local
//   mqtt/guard.ts        Keeps a bridge before 5.0 from sending round in circles
//   mqtt/inbox.ts        Messages of a remote broker, from the decoded PUBLISH to the answer: topic aliases resolved
//   mqtt/loop.ts         Notices when messages go round in circles
//   mqtt/notice.ts       The state of a bridge as a retained message, 1 or 0, here and at the remote broker
//   mqtt/options.ts      What a bridge to a remote MQTT broker is made from: its options
//   mqtt/outbox.ts       What waits for one remote broker, in order
//   mqtt/outmessage.ts   One message on its way to a remote broker, and the connection it takes
//   mqtt/owed.ts         What a resumed session of a remote broker is owed again, in the order in which it was sent
//   mqtt/passing.ts      A message of QoS 0 on its way to a remote broker, which is not kept
//   mqtt/probe.ts        What a remote broker says to a bridge, asked once over a connection of its own: CONNACK
//   mqtt/pulse.ts        Whether a connection to a remote broker is alive
//   mqtt/records.ts      What the journal knows of one outbox
//   mqtt/remote.ts       One connection to a remote broker, from CONNECT to its end
//   mqtt/requests.ts     SUBSCRIBE and UNSUBSCRIBE under way at a remote broker: their packet ids
//   mqtt/rules.ts        The rules of a bridge to a remote broker at work
//   mqtt/servers.ts      The servers of a bridge to a remote broker: which one is tried
//   mqtt/session.ts      This end of the session that a remote broker keeps for a bridge
//   mqtt/spool.ts        Messages for a remote broker as bytes of the journal's spool, and back
//   mqtt/tally.ts        The counters of a bridge's rules by their place in the configuration
//   mqtt/topic.ts        How a bridge to a remote broker renames topics: filter and target from a rule
//   mqtt/transparent.ts  transparent = true
//   mqtt/trial.ts        Finds out whether a message that is forwarded again and again goes round in circles
//   mqtt/via.ts          Which bridges a message has crossed, in a User Property that goes with it
//   mqtt/window.ts       How many messages may be open at a remote broker, QoS 1 and 2 together: what it tells
//   nng/answer.ts        Local processes ask (type rep): a request over SP
//   nng/ask.ts           MQTT requests that a local process answers (type req)
//   nng/backlog.ts       Frames of one bridge that wait for its peers, in order: because nobody is there
//   nng/bridge.ts        One NNG bridge: a socket (link.ts), a client of the broker, and the halves that its type has
//   nng/forward.ts       One rule of `forwards` as a receiver of the broker: which messages it takes
//   nng/in.ts            The receiving half of an NNG bridge, NNG to MQTT
//   nng/incoming.ts      What a frame that a rule of `subscription` took becomes: topic and payload, byte for byte
//   nng/link.ts          The SP side of a bridge: its socket, the endpoints it should have, and what they say
//   nng/out.ts           The sending half of an NNG bridge, MQTT to NNG
//   nng/outgoing.ts      What a message becomes under one rule of `forwards`: head and payload of the frame
//   nng/rules.ts         What NNG bridge rules mean, pure: which bytes a message becomes (MQTT to NNG)
//   nng/spool.ts         What NNG bridges keep for peers that are not there
//   nng/taps.ts          Who wants the messages that come in through NNG bridges, by the name of the bridge
//   nng/transform.ts     Payloads in another form: base64 text for peers that cannot take bytes
import type { Qos } from '../mqtt/packet.ts';
import type { Overflow, PipeView } from '../sp/sp.ts';
import type { TlsClientOptions, TlsServerOptions } from '../transport/transport.ts';
import type { MqttBridgeOptions } from './mqtt/options.ts';

export type { MqttBridgeOptions } from './mqtt/options.ts';

/** Whose rules hold where sources disagree: the documentation, or what NanoMQ of that version does. */
export type Compat = 'documented' | '0.25.5' | '0.25.6';

/** What happens to a payload on its way: as it is, base64 text, or a JSON envelope (bridge/nng/transform.ts). */
export type PayloadForm = 'raw' | 'base64' | 'json';

/** topic: topic part, delimiter, payload. payload: the payload alone. */
export type FrameForm = 'topic' | 'payload';
/** What happens to the 26 bytes of a trace header in front of a payload (bridge/trace.ts). */
export type TraceForm = 'strip' | 'keep' | 'add';

/** One entry of `forwards`: MQTT to NNG. */
export interface ForwardOptions {
  readonly enable: boolean;
  /** A Topic Filter, never shared. */
  readonly localTopic: string;
  /** "" = the topic of the message. May hold {1} ... (what the wildcards matched, in order) and {topic}. */
  readonly remoteTopic: string;
  /** Never empty. */
  readonly nngDelimiter: string;
  readonly qos: Qos;
  /**
   * any: live messages, RETAIN or not; live: only those without RETAIN; retained: any, and the stored ones when the
   * bridge starts.
   */
  readonly retain: 'any' | 'live' | 'retained';
  /** mqtt: not what other bridges brought in. */
  readonly from: 'any' | 'mqtt';
  readonly payload?: PayloadForm;
  /** Absent: topic. */
  readonly frame?: FrameForm;
  /** Absent: keep. */
  readonly trace?: TraceForm;
  /** Messages a second, 0 or absent = no limit. */
  readonly rateLimit?: number;
}

/** One entry of `subscription`: NNG to MQTT. */
export interface SubscriptionOptions {
  readonly enable: boolean;
  /** As written, a trailing delimiter included. */
  readonly remoteTopic: string;
  /** Never empty. */
  readonly nngDelimiter: string;
  /** "" = the extracted topic. May hold {topic}, {suffix} and {json:field}. */
  readonly localTopic: string;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly match: 'prefix' | 'level' | 'exact';
  readonly payload?: PayloadForm;
  /** Absent: topic. */
  readonly frame?: FrameForm;
  /** Absent: keep. */
  readonly trace?: TraceForm;
  /** Where a field of localTopic is missing; absent or "" = the frame is dropped and counted. */
  readonly fallbackTopic?: string;
  /** Messages a second, 0 or absent = no limit. */
  readonly rateLimit?: number;
}

interface CommonOptions {
  readonly name: string;
  readonly enable: boolean;
  readonly urls: readonly string[];
  readonly mode: 'listen' | 'dial';
  /** null = nng-<name>-<random>. */
  readonly clientId: string | null;
  readonly driver: 'native' | 'nanomsg';
  readonly compat: Compat;
  readonly recvMaxSize: number;
  readonly reconnectMaxMs: number;
  readonly ipcMode: string | null;
  readonly ipcGroup: string | null;
  readonly tlsServer: TlsServerOptions | null;
  readonly tlsClient: TlsClientOptions | null;
}
/** What bridges have that send: MQTT to NNG. */
export interface SendingOptions {
  /** Bytes a peer. */
  readonly sendBuffer: number;
  readonly overflow: Overflow;
  /** Bytes of frames (of rules with QoS above 0) that are kept while no peer is there; 0 = none. */
  readonly spool: number;
  readonly forwards: readonly ForwardOptions[];
}
/** What bridges have that receive: NNG to MQTT. */
export interface ReceivingOptions {
  readonly subscription: readonly SubscriptionOptions[];
}
/** pub: every peer gets every frame. push: each frame goes to one peer that is ready for it. */
export interface PubBridgeOptions extends CommonOptions, SendingOptions {
  readonly type: 'pub' | 'push';
}
export interface SubBridgeOptions extends CommonOptions, ReceivingOptions {
  readonly type: 'sub' | 'pull';
}
/** Both ways with one peer. */
export interface PairBridgeOptions extends CommonOptions, SendingOptions, ReceivingOptions {
  readonly type: 'pair';
  readonly protocol: 'pair0' | 'pair1';
}
/** One entry of `requests`: MQTT requests that an SP peer answers. */
export interface RequestOptions {
  readonly enable: boolean;
  /** A Topic Filter, never shared. */
  readonly localTopic: string;
  readonly remoteTopic: string;
  /** Never empty. */
  readonly nngDelimiter: string;
  readonly frame: FrameForm;
  readonly timeoutMs: number;
  /** Where a request without Response Topic is answered: a template; "" = such a request is dropped and counted. */
  readonly responseTopic: string;
  /** Of the reply. */
  readonly qos: Qos;
}
/** req: MQTT clients ask, SP peers answer. */
export interface ReqBridgeOptions extends CommonOptions {
  readonly type: 'req';
  /** Bytes of requests without an answer. */
  readonly sendBuffer: number;
  readonly requests: readonly RequestOptions[];
}
/** rep: SP peers ask for retained values, or publish. */
export interface RepBridgeOptions extends CommonOptions {
  readonly type: 'rep';
  /** Topic Filters: what may be asked for and published to. */
  readonly topics: readonly string[];
  readonly publish: boolean;
}
export type SendingBridgeOptions = PubBridgeOptions | PairBridgeOptions;
export type ReceivingBridgeOptions = SubBridgeOptions | PairBridgeOptions;
export type NngBridgeOptions =
  | PubBridgeOptions
  | SubBridgeOptions
  | PairBridgeOptions
  | ReqBridgeOptions
  | RepBridgeOptions;
export type NngType = NngBridgeOptions['type'];
export type BridgeOptions = NngBridgeOptions | MqttBridgeOptions;
export type BridgeType = BridgeOptions['type'];

/**
 * starting: nothing known yet. listening: bound, no peer. connected: at least one peer. retrying: dialing, nobody
 * answers yet. error: an address cannot be bound or the driver not loaded (tried again). disabled: switched off.
 */
export type BridgeState = 'starting' | 'listening' | 'connected' | 'retrying' | 'error' | 'denied' | 'disabled';

/** Counters of one rule since it was made. */
export interface RuleView {
  /** Position in the configuration, from 0. */
  readonly index: number;
  readonly matched: number;
  readonly forwarded: number;
  readonly bytes: number;
  /** By reason; only those that happened. */
  readonly dropped: Readonly<Record<string, number>>;
}

export interface EndpointStatus {
  readonly url: string;
  readonly state: string;
  /** The URL with the real port once bound. */
  readonly bound: string | null;
  readonly lastError: string | null;
}

export interface BridgeStatus {
  readonly type: BridgeType;
  readonly name: string;
  readonly enabled: boolean;
  readonly state: BridgeState;
  readonly lastError: string | null;
  readonly options: BridgeOptions;
  readonly clientId: string;
  readonly endpoints: readonly EndpointStatus[];
  readonly peers: readonly PipeView[];
  /** Of `forwards`, or of `subscription` where the bridge only receives. */
  readonly rules: readonly RuleView[];
  /** Only of pairs: those of `subscription`. */
  readonly taking?: readonly RuleView[];
  /**
   * Frames that wait for peers in the bridge itself, and those of them that the spool keeps; only of bridges that send.
   */
  readonly waiting?: { readonly frames: number; readonly bytes: number; readonly spooled: number };
  /** Peers refused for what they sent, frames that no rule took (sub), messages dropped by peers' queues (pub). */
  readonly refused: number;
  readonly unmatched: number;
  readonly dropped: number;
  /** Only of bridges to remote brokers. */
  readonly remote?: RemoteStatus;
}

/** What a bridge to a remote broker has to tell beyond the others; `rules` are those of `forwards` there. */
export interface RemoteStatus {
  /** Of `subscription`, in order. */
  readonly fetching: readonly (RuleView & { readonly refused: string | null })[];
  /** Messages that wait or are not acknowledged yet. */
  readonly queued: number;
  readonly queuedBytes: number;
  readonly inflight: number;
  /** Connections that were accepted so far. */
  readonly connects: number;
}

/** What the supervisor asks of a worker, whichever direction. */
export interface BridgeWorker {
  readonly options: BridgeOptions;
  /** Takes the messages of its rules from now on; they wait until it is started. */
  take(): void;
  /**
   * Begins, after take(); resolves when every listener has had its first try, never rejects for what the network does.
   */
  start(): Promise<void>;
  /** Takes other rules and endpoints while it runs; false when the change needs a new worker. */
  change(options: BridgeOptions): boolean;
  /** Takes no more messages from the local broker. */
  leave(): void;
  /** Takes nothing more in from its remote end: what is not acknowledged by then stays there. */
  quiet(): void;
  /**
   * After leave(): lets queued messages leave for up to `deadlineMs`. `replaced`: another worker goes on with what is
   * kept.
   */
  stop(deadlineMs: number, replaced: boolean): Promise<void>;
  status(): BridgeStatus;
}

/** The last error of a bridge whose messages are denied. */
export function deniedText(topic: string | null): string | null {
  return topic === null ? null : `its user may not publish "${topic}"`;
}
