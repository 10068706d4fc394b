// What a bridge to a remote MQTT broker is made from: its options (the configuration's MqttBridgeConfig fits) and its
// surroundings. Read by bridge.ts and its helpers; handed in by the wiring. Types only. Source: docs/mqtt-bridges.md,
// which says what users may rely on.
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Turn } from '../../base/turn.ts';
import type { BlockPool } from '../../base/writer.ts';
import type { Broker } from '../../broker/broker.ts';
import type { Qos, Version } from '../../mqtt/packet.ts';
import type { Connection, DialTarget, TlsClientOptions } from '../../transport/transport.ts';
import type { TraceForm } from '../bridge.ts';
import type { OutboxJournal } from './records.ts';
import type { SessionJournal } from './session.ts';

export type UserProperties = readonly (readonly [string, string])[];

/** One entry of `forwards`: local to remote. */
export interface MqttForward {
  /** A Topic Filter; "" matches nothing. */
  readonly localTopic: string;
  /** "" = keep the topic; wildcards stand for what those of localTopic matched. */
  readonly remoteTopic: string;
  /** null = as published. */
  readonly qos: Qos | null;
  /** What is sent has this at most; absent = 2. */
  readonly maxQos?: Qos;
  /** null = as published. */
  readonly retain: boolean | null;
  /** Retained messages that match are sent each time the bridge connects. */
  readonly stored?: boolean;
  /** Topic where a {json:} field of remoteTopic is missing; absent or "" = the message is dropped. */
  readonly fallbackTopic?: string;
  /** Absent = keep. */
  readonly trace?: TraceForm;
  readonly prefix: string;
  readonly suffix: string;
}

/** One entry of `subscription`: remote to local. */
export interface MqttSubscription {
  readonly remoteTopic: string;
  /** "" = keep the topic; wildcards stand for what those of remoteTopic matched. */
  readonly localTopic: string;
  readonly qos: Qos;
  /** null = as received. */
  readonly retain: boolean | null;
  readonly retainAsPublished: boolean;
  readonly retainHandling: 0 | 1 | 2;
  readonly noLocal: boolean;
  /** Topic where a {json:} field of localTopic is missing; absent or "" = the message is dropped. */
  readonly fallbackTopic?: string;
  /** Absent = keep. */
  readonly trace?: TraceForm;
  readonly prefix: string;
  readonly suffix: string;
}

export interface MqttWillOptions {
  readonly topic: string;
  readonly payload: string;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly payloadFormatIndicator: number;
  readonly messageExpiryIntervalSeconds: number;
  readonly willDelayIntervalSeconds: number;
  readonly contentType: string | null;
  readonly responseTopic: string | null;
  readonly correlationData: string | null;
  readonly userProperty: UserProperties;
}

export interface MqttBridgeOptions {
  readonly type: 'mqtt';
  readonly name: string;
  readonly enable: boolean;
  /** URL: mqtt-tcp://, tls+mqtt-tcp://, ws:// or wss://. */
  readonly server: string;
  /** Tried in turn after `server`. */
  readonly hybridServers: readonly string[];
  readonly protoVer: Version;
  /** null = one of its own for each process. */
  readonly clientId: string | null;
  readonly username: string | null;
  readonly password: string | null;
  readonly keepaliveMs: number;
  readonly backoffMaxMs: number;
  readonly cleanStart: boolean;
  /** Subscriptions of local clients are made at the remote broker too. */
  readonly transparent: boolean;
  /** Keep QoS 0 messages while the remote broker is away. */
  readonly retryQos0: boolean;
  readonly noLocalV4: boolean;
  /** Messages leave with this bridge's mark (5.0), and what has it is not forwarded. */
  readonly loopGuard: boolean;
  readonly connProperties: {
    readonly sessionExpiryIntervalSeconds: number;
    readonly receiveMaximum: number;
    readonly topicAliasMaximum: number;
    /** 0 = no limit of its own. */
    readonly maximumPacketSize: number;
    readonly requestProblemInformation: boolean;
    readonly requestResponseInformation: boolean;
    readonly userProperty: UserProperties;
  };
  readonly will: MqttWillOptions | null;
  /**
   * Publishes its state here and, unless localOnly, at the remote broker; absent or null = not. Topic null = the usual
   * one.
   */
  readonly notifications?: {
    readonly topic: string | null;
    readonly localOnly: boolean;
    readonly remoteRetain: boolean;
  } | null;
  /** Bytes of the largest packet that is sent; absent or 0 = as the remote broker takes. */
  readonly maxPacketSize?: number;
  /** null with a TLS server: the system's authorities, and verification. */
  readonly tls: TlsClientOptions | null;
  /** Protocol names to ask for under TLS; absent or empty = none. */
  readonly alpn?: readonly string[];
  readonly tcp: { readonly bindInterface: string | null };
  readonly forwards: readonly MqttForward[];
  readonly subscription: readonly MqttSubscription[];
  readonly subProperties: { readonly identifier: number | null; readonly userProperty: UserProperties };
  /** Messages kept for the remote broker; 0 = no limit. */
  readonly maxSendQueueLen: number;
  /** Messages of QoS 1 and 2 that may be in flight; 0 = as many as the remote takes. */
  readonly maxInflight: number;
  /** Messages received and not yet accepted here; 0 = no limit. */
  readonly maxRecvQueueLen: number;
  /** Without an acknowledgement for so long the connection is probed. */
  readonly resendIntervalMs: number;
  /** Time for CONNACK and for the answer to a probe. */
  readonly cancelTimeoutMs: number;
}

/** Waits between attempts; transport/backoff.ts fits. */
export interface Retry {
  schedule(again: () => void): number;
  reset(): void;
  cancel(): void;
}

/** What is the same for all MQTT bridges of a gateway. */
export interface MqttParts {
  readonly broker: Pick<Broker, 'attach' | 'onEvent' | 'subscriptions'>;
  /** Connects once, TLS and WebSocket handshakes included. Rejects with the reason. */
  readonly dial: (target: DialTarget, timeoutMs: number, signal: AbortSignal) => Promise<Connection>;
  readonly retry: (maxMs: number) => Retry;
  readonly journal: OutboxJournal & SessionJournal;
  /** Bytes of the largest packet taken from a remote broker; 0 = as MQTT has it. */
  readonly maxPacketSize: () => number;
  readonly clock: Clock;
  readonly turn: Turn;
  readonly pool: BlockPool;
  readonly log: Log;
  readonly metrics: Metrics;
}
