// The effective configuration of the bridges: bridges.nng (SP peers) and bridges.mqtt (remote brokers), as config.ts
// hands it out. Made by config/build/bridges.ts; read by the wiring (gateway/bridges.ts, gateway/options.ts), which
// gives each bridge its part. Types alone. Keys, their types and texts stand in config/schema/nng.ts and
// config/schema/remote.ts; here is only what is not a key: names, and what several keys make together.
import type { TlsClientConfig, TlsServerConfig } from './listeners.ts';
import type { Position } from './problem.ts';
import type { Effective } from './schema/effective.ts';
import type { ValueOf } from './schema/key.ts';
import type {
  FORWARD,
  NNG_PAIR,
  NNG_PUB,
  NNG_PULL,
  NNG_PUSH,
  NNG_REP,
  NNG_REQ,
  NNG_SUB,
  REQUEST,
  SUBSCRIPTION,
} from './schema/nng.ts';
import type { MQTT_BRIDGE, MQTT_FORWARD, MQTT_SUBSCRIPTION } from './schema/remote.ts';

export type NngCompat = 'documented' | '0.25.5' | '0.25.6';

/** Where something was written. */
interface Placed {
  readonly source: Position;
}

/** A rule of forwards, in file order; nngDelimiter is never empty. */
export type ForwardRule = Effective<ValueOf<typeof FORWARD>> & Placed;
/** A rule of subscription, in file order; nngDelimiter is never empty. */
export type SubscriptionRule = Effective<ValueOf<typeof SUBSCRIPTION>> & Placed;

/** What is not one key of a bridge: its name, its rules, and what several keys say together. */
interface NngMade extends Placed {
  readonly name: string;
  readonly enable: boolean;
  /** Checked URLs, at least one when enabled. */
  readonly urls: readonly string[];
  readonly compat: NngCompat;
  /** Set with mode listen and a tls block. */
  readonly tlsServer: TlsServerConfig | null;
  /** Set with mode dial and a TLS URL or a tls block. */
  readonly tlsClient: TlsClientConfig | null;
}

/** The keys of a bridge that stand for themselves. */
type Own<K> = Omit<
  Effective<ValueOf<K>>,
  | 'enable'
  | 'tls'
  | 'forwards'
  | 'subscription'
  | 'pubUrl'
  | 'subUrl'
  | 'pushUrl'
  | 'pullUrl'
  | 'pairUrl'
  | 'reqUrl'
  | 'repUrl'
  | 'requests'
>;

interface Sending {
  readonly forwards: readonly ForwardRule[];
}
interface Receiving {
  readonly subscription: readonly SubscriptionRule[];
}

export type NngPubConfig = NngMade &
  Sending &
  Own<typeof NNG_PUB | typeof NNG_PUSH> & { readonly type: 'pub' | 'push' };
export type NngSubConfig = NngMade &
  Receiving &
  Own<typeof NNG_SUB | typeof NNG_PULL> & { readonly type: 'sub' | 'pull' };
export type NngPairConfig = NngMade & Sending & Receiving & Own<typeof NNG_PAIR> & { readonly type: 'pair' };
/** A rule of bridges.nng.req.<name>.requests; nngDelimiter is never empty. */
export type RequestRule = Effective<ValueOf<typeof REQUEST>> & Placed;
export type NngReqConfig = NngMade &
  Own<typeof NNG_REQ> & { readonly type: 'req'; readonly requests: readonly RequestRule[] };
export type NngRepConfig = NngMade & Own<typeof NNG_REP> & { readonly type: 'rep' };
export type NngBridgeConfig = NngPubConfig | NngSubConfig | NngPairConfig | NngReqConfig | NngRepConfig;
export type NngBridgeType = NngBridgeConfig['type'];

export interface NngConfig {
  readonly compat: NngCompat;
  readonly pub: readonly NngPubConfig[];
  readonly sub: readonly NngSubConfig[];
  readonly push: readonly NngPubConfig[];
  readonly pull: readonly NngSubConfig[];
  readonly pair: readonly NngPairConfig[];
  readonly req: readonly NngReqConfig[];
  readonly rep: readonly NngRepConfig[];
}

type MqttKeys = Effective<ValueOf<typeof MQTT_BRIDGE>>;
type WillKeys = NonNullable<MqttKeys['will']>;
/** A rule of bridges.mqtt.<name>.forwards. */
export type MqttForwardRule = Effective<ValueOf<typeof MQTT_FORWARD>> & Placed;
/** A rule of bridges.mqtt.<name>.subscription. */
export type MqttSubscriptionRule = Effective<ValueOf<typeof MQTT_SUBSCRIPTION>> & Placed;

export type MqttBridgeConfig = Omit<MqttKeys, 'will' | 'ssl' | 'forwards' | 'subscription'> &
  Placed & {
    readonly name: string;
    readonly will: (Omit<WillKeys, 'properties'> & WillKeys['properties']) | null;
    /** null where the server's URL does not ask for TLS. */
    readonly tls: TlsClientConfig | null;
    /** Protocol names to ask for under TLS. */
    readonly alpn: readonly string[];
    readonly forwards: readonly MqttForwardRule[];
    readonly subscription: readonly MqttSubscriptionRule[];
  };

export interface BridgesConfig {
  readonly nng: NngConfig;
  readonly mqtt: readonly MqttBridgeConfig[];
}
