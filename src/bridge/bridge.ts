// SEAM of bridge/: bridges to NNG and to remote MQTT brokers as the rest of the gateway sees them. Options come from the configuration
// (gateway.ts hands them in, the types of config/ fit), views go to REST, console and log. A bridge is a supervised worker: one socket,
// one client of the broker.
// Sources: docs/nng-bridges.md and docs/mqtt-bridges.md, which say what users may rely on.
import type { Qos } from '../mqtt/packet.ts';
import type { Overflow, PipeView } from '../sp/sp.ts';
import type { TlsClientOptions, TlsServerOptions } from '../transport/transport.ts';
import type { MqttBridgeOptions } from './mqttoptions.ts';

export type { MqttBridgeOptions } from './mqttoptions.ts';

/** Whose rules hold where sources disagree: the documentation, or what NanoMQ of that version does. */
export type Compat = 'documented' | '0.25.5' | '0.25.6';

/** What happens to a payload on its way: as it is, base64 text, or a JSON envelope (transform.ts). */
export type PayloadForm = 'raw' | 'base64' | 'json';

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
  /** any: live messages, RETAIN or not; live: only those without RETAIN; retained: any, and the stored ones when the bridge starts. */
  readonly retain: 'any' | 'live' | 'retained';
  /** mqtt: not what other bridges brought in. */
  readonly from: 'any' | 'mqtt';
  readonly payload?: PayloadForm;
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
  /** "" = the extracted topic. May hold {topic} and {suffix}. */
  readonly localTopic: string;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly match: 'prefix' | 'level' | 'exact';
  readonly payload?: PayloadForm;
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
export interface PubBridgeOptions extends CommonOptions {
  readonly type: 'pub';
  /** Bytes a peer. */
  readonly sendBuffer: number;
  readonly overflow: Overflow;
  readonly forwards: readonly ForwardOptions[];
}
export interface SubBridgeOptions extends CommonOptions {
  readonly type: 'sub';
  readonly subscription: readonly SubscriptionOptions[];
}
export type NngBridgeOptions = PubBridgeOptions | SubBridgeOptions;
export type BridgeOptions = NngBridgeOptions | MqttBridgeOptions;
export type BridgeType = BridgeOptions['type'];

/**
 * starting: nothing known yet. listening: bound, no peer. connected: at least one peer. retrying: dialing, nobody answers yet.
 * error: an address cannot be bound or the driver not loaded (tried again). disabled: switched off.
 */
export type BridgeState = 'starting' | 'listening' | 'connected' | 'retrying' | 'error' | 'disabled';

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
  readonly rules: readonly RuleView[];
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
  /** Begins; resolves when every listener has had its first try, never rejects for what the network does. */
  start(): Promise<void>;
  /** Takes other rules and endpoints while it runs; false when the change needs a new worker. */
  change(options: BridgeOptions): boolean;
  /** Stops accepting messages, lets queued ones leave for up to `deadlineMs`. */
  stop(deadlineMs: number): Promise<void>;
  status(): BridgeStatus;
}
