// The effective configuration of the bridges: bridges.nng (SP peers) and bridges.mqtt (remote brokers), as config.ts hands it out.
// Filled in by config/build/bridges.ts; read by the wiring (gateway/bridges.ts, gateway/options.ts), which gives each bridge its part. Types alone.
// The same words hold as in config.ts: sizes are bytes, times milliseconds. Source: config/schema/bridges.ts, which names every key.
import type { QosLevel, TlsClientConfig, TlsServerConfig } from './config.ts';
import type { Position } from './problem.ts';

export type NngCompat = 'documented' | '0.25.5' | '0.25.6';

/** A rule of bridges.nng.pub.<name>.forwards, in file order. */
export interface ForwardRule {
  readonly enable: boolean;
  /** A valid Topic Filter, never shared. */
  readonly localTopic: string;
  /** "" = the topic of the message. */
  readonly remoteTopic: string;
  /** Never empty. */
  readonly nngDelimiter: string;
  readonly qos: QosLevel;
  readonly retain: 'any' | 'live' | 'retained';
  readonly from: 'any' | 'mqtt';
  readonly payload: 'raw' | 'base64' | 'json';
  /** Messages a second, 0 = no limit. */
  readonly rateLimit: number;
  readonly source: Position;
}

/** A rule of bridges.nng.sub.<name>.subscription, in file order. */
export interface SubscriptionRule {
  readonly enable: boolean;
  /** As written, a trailing delimiter included. */
  readonly remoteTopic: string;
  /** Never empty. */
  readonly nngDelimiter: string;
  /** "" = the extracted topic; may hold {topic} and {suffix}. */
  readonly localTopic: string;
  readonly qos: QosLevel;
  readonly retain: boolean;
  readonly match: 'prefix' | 'level' | 'exact';
  readonly payload: 'raw' | 'base64' | 'json';
  /** Messages a second, 0 = no limit. */
  readonly rateLimit: number;
  readonly source: Position;
}

interface NngBridgeCommon {
  readonly name: string;
  readonly enable: boolean;
  /** Checked URLs, at least one when enabled. */
  readonly urls: readonly string[];
  readonly mode: 'listen' | 'dial';
  /** null = nng-<name>-<random>. */
  readonly clientId: string | null;
  readonly driver: 'native' | 'nanomsg';
  readonly compat: NngCompat;
  readonly recvMaxSize: number;
  readonly reconnectMaxMs: number;
  readonly ipcMode: string | null;
  readonly ipcGroup: string | null;
  /** Set with mode listen and a tls block. */
  readonly tlsServer: TlsServerConfig | null;
  /** Set with mode dial and a TLS URL or a tls block. */
  readonly tlsClient: TlsClientConfig | null;
  readonly source: Position;
}

interface NngSending {
  /** Bytes a peer. */
  readonly sendBuffer: number;
  readonly overflow: 'drop_oldest' | 'drop_newest' | 'block';
  /** Bytes kept while no peer is there, 0 = none. */
  readonly spool: number;
  readonly forwards: readonly ForwardRule[];
}

interface NngReceiving {
  readonly subscription: readonly SubscriptionRule[];
}

export interface NngPubConfig extends NngBridgeCommon, NngSending {
  readonly type: 'pub' | 'push';
}

export interface NngSubConfig extends NngBridgeCommon, NngReceiving {
  readonly type: 'sub' | 'pull';
}

export interface NngPairConfig extends NngBridgeCommon, NngSending, NngReceiving {
  readonly type: 'pair';
  readonly protocol: 'pair0' | 'pair1';
}

export type NngBridgeConfig = NngPubConfig | NngSubConfig | NngPairConfig;
export type NngBridgeType = NngBridgeConfig['type'];

export interface NngConfig {
  readonly compat: NngCompat;
  readonly pub: readonly NngPubConfig[];
  readonly sub: readonly NngSubConfig[];
  readonly push: readonly NngPubConfig[];
  readonly pull: readonly NngSubConfig[];
  readonly pair: readonly NngPairConfig[];
}

/** A rule of bridges.mqtt.<name>.forwards. */
export interface MqttForwardRule {
  readonly localTopic: string;
  /** "" = keep the topic. */
  readonly remoteTopic: string;
  /** null = as published. */
  readonly qos: QosLevel | null;
  /** null = as published. */
  readonly retain: boolean | null;
  readonly prefix: string;
  readonly suffix: string;
  readonly source: Position;
}

/** A rule of bridges.mqtt.<name>.subscription. */
export interface MqttSubscriptionRule {
  readonly remoteTopic: string;
  /** "" = keep the topic. */
  readonly localTopic: string;
  readonly qos: QosLevel;
  /** null = as received. */
  readonly retain: boolean | null;
  readonly retainAsPublished: boolean;
  readonly retainHandling: 0 | 1 | 2;
  readonly noLocal: boolean;
  readonly prefix: string;
  readonly suffix: string;
  readonly source: Position;
}

export interface MqttBridgeWill {
  readonly topic: string;
  readonly payload: string;
  readonly qos: QosLevel;
  readonly retain: boolean;
  readonly payloadFormatIndicator: number;
  readonly messageExpiryIntervalSeconds: number;
  readonly willDelayIntervalSeconds: number;
  readonly contentType: string | null;
  readonly responseTopic: string | null;
  readonly correlationData: string | null;
  readonly userProperty: readonly (readonly [string, string])[];
}

export interface MqttBridgeConfig {
  readonly name: string;
  readonly enable: boolean;
  /** As written, mqtt-tcp://host:port. */
  readonly server: string;
  readonly scheme: 'mqtt-tcp' | 'tls+mqtt-tcp' | 'mqtt-quic' | 'ws' | 'wss';
  readonly host: string;
  readonly port: number;
  readonly protoVer: 3 | 4 | 5;
  /** null = random. */
  readonly clientId: string | null;
  readonly username: string | null;
  readonly password: string | null;
  readonly keepaliveMs: number;
  readonly backoffMaxMs: number;
  readonly cleanStart: boolean;
  readonly transparent: boolean;
  readonly retryQos0: boolean;
  /** Sets the bridge bit 0x80 with 3.1 and 3.1.1. */
  readonly noLocalV4: boolean;
  /** Messages forwarded with 5.0 carry a mark; what comes back with it is not forwarded again. */
  readonly loopGuard: boolean;
  readonly connProperties: {
    readonly sessionExpiryIntervalSeconds: number;
    readonly receiveMaximum: number;
    readonly topicAliasMaximum: number;
    readonly maximumPacketSize: number;
    readonly requestProblemInformation: boolean;
    readonly requestResponseInformation: boolean;
    readonly userProperty: readonly (readonly [string, string])[];
  };
  readonly will: MqttBridgeWill | null;
  readonly tls: TlsClientConfig | null;
  readonly tcp: {
    readonly nodelay: boolean;
    readonly keepalive: boolean;
    readonly bindInterface: string | null;
  };
  readonly forwards: readonly MqttForwardRule[];
  readonly subscription: readonly MqttSubscriptionRule[];
  readonly subProperties: {
    readonly identifier: number | null;
    readonly userProperty: readonly (readonly [string, string])[];
  };
  /** Messages kept while the remote broker is away. */
  readonly maxSendQueueLen: number;
  readonly maxRecvQueueLen: number;
  readonly resendIntervalMs: number;
  readonly cancelTimeoutMs: number;
  /** Servers to try in turn after `server`. */
  readonly hybridServers: readonly string[];
  readonly source: Position;
}

export interface BridgesConfig {
  readonly nng: NngConfig;
  readonly mqtt: readonly MqttBridgeConfig[];
}
