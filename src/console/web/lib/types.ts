// Documents of the REST API as the pages read them. Only what is shown is named.

/** What is wrong with a document, and where in it (RFC 6901). */
export interface Problem {
  readonly pointer: string;
  readonly message: string;
}

export interface Rule {
  readonly enable?: boolean;
  readonly local_topic?: string;
  readonly remote_topic?: string;
  readonly nng_delimiter?: string;
  readonly qos?: number;
  readonly retain?: boolean | string;
  readonly match?: string;
  readonly from?: string;
  readonly [key: string]: unknown;
}

export interface RuleCounters {
  readonly index: number;
  readonly matched: number;
  readonly forwarded: number;
  readonly bytes: number;
  readonly dropped: Readonly<Record<string, number>>;
}

export interface Peer {
  readonly remote?: string;
  readonly state?: string;
  readonly [key: string]: unknown;
}

export interface Endpoint {
  readonly url: string;
  readonly state: string;
  readonly bound: string | null;
  readonly lastError: string | null;
}

/** How an NNG bridge speaks; null for bridges to remote brokers. */
export type BridgeType = 'pub' | 'sub' | 'push' | 'pull' | 'pair' | 'req' | 'rep';

/** What a bridge is doing, as the event stream tells it. */
export interface BridgeState {
  readonly kind: 'nng' | 'mqtt';
  readonly type: BridgeType | null;
  readonly name: string;
  readonly enable: boolean;
  readonly state: string;
  readonly last_error: string | null;
  readonly rules?: readonly RuleCounters[];
  /** Of a pair: the rules that receive. */
  readonly taking?: readonly RuleCounters[];
  readonly waiting?: { readonly frames: number; readonly bytes: number; readonly spooled: number };
  readonly remote?: { readonly fetching?: readonly RuleCounters[]; readonly queued?: number };
  readonly peers?: readonly Peer[];
  readonly endpoints?: readonly Endpoint[];
  readonly dropped?: number;
  readonly unmatched?: number;
  readonly refused?: number;
}

/** A bridge with its document. */
export interface Bridge extends BridgeState {
  readonly mode?: string;
  readonly forwards?: readonly Rule[];
  readonly subscription?: readonly Rule[];
  readonly [key: string]: unknown;
}

/** A rule of the gateway with its document and counters. */
export interface RuleRow {
  readonly name: string;
  readonly enable: boolean;
  readonly matched: number;
  readonly passed: number;
  readonly dropped: Readonly<Record<string, number>>;
  readonly last_error: { readonly at: string; readonly topic: string; readonly text: string } | null;
  readonly from?: string | readonly string[];
  readonly where?: string;
  readonly set?: Readonly<Record<string, string>>;
  readonly to?: string;
  readonly to_nng?: string;
  readonly changed?: string;
  readonly [key: string]: unknown;
}

/** What a rule makes of one message, or why nothing. */
export interface RuleOutcome {
  readonly outcome: 'passed' | 'filtered' | 'error';
  readonly reason?: string;
  readonly topic?: string;
  readonly qos?: number;
  readonly retain?: boolean;
  readonly payload_base64?: string;
}

export interface Client {
  readonly client_id: string;
  readonly username: string | null;
  readonly keepalive: number;
  readonly conn_state: 'connected' | 'disconnected';
  readonly clean_start: boolean;
  readonly proto_ver: number;
  readonly will_topic?: string;
  readonly will_qos?: number;
  readonly remote: string;
  readonly listener: string;
  readonly since: number;
  readonly session_expiry_interval: number;
  readonly subscriptions: number;
  readonly inflight: number;
  readonly queued: number;
  readonly queued_bytes: number;
  readonly unsent_bytes: number;
  readonly recv_msg: number;
  readonly send_msg: number;
  readonly dropped: number;
  readonly last_error: string | null;
}

export interface Meta {
  readonly page: number;
  readonly limit: number;
  readonly count: number;
  readonly hasnext: boolean;
}

export interface Subscription {
  readonly clientid: string;
  readonly topic: string;
  readonly qos: number;
  readonly no_local: boolean;
  readonly retain_as_published: boolean;
  readonly retain_handling: number;
  readonly subscription_identifier: number;
}

export interface Retained {
  readonly topic: string;
  readonly qos: number;
  readonly bytes: number;
  readonly payload?: string;
  readonly payload_base64?: string;
  readonly cut?: boolean;
  readonly expires_at: number | null;
  readonly from_client_id: string;
  readonly from_username: string | null;
}

/** What is published on one topic, or on several. */
export interface Traffic {
  readonly messages: number;
  readonly bytes: number;
  /** A second. */
  readonly messages_rate: number;
  readonly bytes_rate: number;
}

export interface Topic extends Traffic {
  readonly topic: string;
}

export interface TopicMeta extends Meta {
  /** Milliseconds that the rates are over. */
  readonly window_ms: number;
  readonly sum: Traffic;
  readonly topics_limit: number;
  readonly others: Traffic;
  /** There is a file of recorded messages. */
  readonly recording: boolean;
}

export interface LiveMessage {
  readonly time: number;
  readonly topic: string;
  readonly qos: number;
  readonly retain: boolean;
  readonly from: string;
  readonly bridge: string | null;
  readonly content_type: string | null;
  readonly bytes: number;
  readonly cut?: boolean;
  readonly payload?: string;
  readonly payload_base64: string;
}

export interface LogLine {
  readonly time: number;
  readonly level: string;
  readonly msgid: string;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface ProxyServer {
  readonly server: string;
  /** 'config', or the type of discovery that has found it. */
  readonly from: string;
  readonly address: string;
  readonly weight: number;
  readonly backup: boolean;
  readonly state: string;
  readonly connections: number;
  readonly served: number;
  readonly fails: number;
  readonly lastError: string | null;
}
export interface Upstream {
  readonly name: string;
  readonly balance: string;
  readonly health: string | null;
  readonly discovery?: {
    readonly type: string;
    readonly source: string;
    readonly servers: number;
    readonly ageMs: number | null;
    readonly error: string | null;
  } | null;
  readonly servers: readonly ProxyServer[];
}

export interface AccessRow {
  readonly listener: string;
  readonly anonymous: boolean;
  readonly users: readonly string[] | null;
  readonly users_count: number | null;
  readonly sources: readonly string[];
  readonly acl_file: string | null;
  readonly rules: boolean;
}

export interface AuditEntry {
  readonly [key: string]: unknown;
}
