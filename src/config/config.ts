// SEAM of config/: the effective configuration as the rest of the gateway sees it, and the one function that reads it.
// Read by gateway.ts, cli/ and (as types) by every stage. Values are checked and normalised: sizes are bytes, durations milliseconds
// (names end in Ms), defaults are filled in, the whole is frozen. Where a limit is 0 there is no limit, unless its line says otherwise.
// Nothing here opens a socket or a file of another section; a stage gets its section and never looks at the file itself.
// Sources: the tables of schema.ts, which name every key once; docs/reference-config.md is made from them.
import { load } from './load.ts';
import type { Position, Problem } from './problem.ts';

export type { Position, Problem } from './problem.ts';

export type QosLevel = 0 | 1 | 2;

/** Server side of TLS: takes the place of transport's TlsServerOptions. */
export interface TlsServerConfig {
  readonly keyfile: string;
  readonly certfile: string;
  readonly cacertfile: string | null;
  readonly crlfile: string | null;
  readonly keyPassword: string | null;
  readonly verifyPeer: boolean;
  readonly failIfNoPeerCert: boolean;
  readonly alpn: readonly string[];
}

/** Client side of TLS: takes the place of transport's TlsClientOptions. */
export interface TlsClientConfig {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  readonly keyPassword: string | null;
  readonly verify: boolean;
  readonly serverName: string | null;
}

export type ListenerKind = 'tcp' | 'ssl' | 'ws' | 'wss' | 'unix';

/** One enabled listener; disabled ones are not in the list. */
export interface ListenerConfig {
  /** "tcp" for listeners.tcp, "tcp.second" for listeners.tcp.second. */
  readonly name: string;
  readonly kind: ListenerKind;
  /** As written, "127.0.0.1:1883", "127.0.0.1:8083/mqtt"; the path for unix. */
  readonly bind: string;
  /** Without brackets; "" for unix. `*` has become "0.0.0.0". */
  readonly host: string;
  /** 0 = any free port; 0 for unix. */
  readonly port: number;
  /** The URL path of ws and wss, the socket path of unix, else "". */
  readonly path: string;
  /** Octal text such as "0660", unix only. */
  readonly mode: string | null;
  readonly group: string | null;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
  readonly proxyProtocol: boolean;
  /** Addresses and networks whose header is believed; empty = any. */
  readonly proxyProtocolFrom: readonly string[];
  /** Effective: the listener's own word, else that of auth, else the default rule. */
  readonly allowAnonymous: boolean;
  /** Instead of auth.password_file (and auth.password) for this listener; null = those of auth. */
  readonly passwordFile: string | null;
  /** Instead of auth.acl_file (and auth.acl) for this listener; null = those of auth. */
  readonly aclFile: string | null;
  /** Set for ssl and wss. */
  readonly tls: TlsServerConfig | null;
  readonly tlsNames: readonly TlsNameConfig[];
  /** What of the verified client certificate is the username; null = nothing. */
  readonly identity: 'cn' | 'subject' | null;
  /** Origin headers that ws and wss take, null = any. */
  readonly origins: readonly string[] | null;
  readonly source: Position;
}

export interface MqttConfig {
  /** Bytes of a whole Control Packet. */
  readonly maxPacketSize: number;
  /** 0 = no topic aliases. */
  readonly maxTopicAlias: number;
  readonly keepaliveMultiplier: number;
  /** Seconds; 0 = whatever the client asks for. */
  readonly maxKeepaliveSeconds: number;
  /** Outgoing QoS 1 and 2 messages in flight to one client. */
  readonly maxInflightWindow: number;
  /** Messages in the queue of one session. */
  readonly maxMqueueLen: number;
  readonly maxMqueueBytes: number;
  readonly queueQos0: boolean;
  /** Incoming QoS 1 and 2 messages of one client that are not done: the Receive Maximum it is told. */
  readonly maxAwaitingRel: number;
  readonly maxSessionExpiryMs: number;
  readonly maxQos: QosLevel;
  readonly retainAvailable: boolean;
  readonly wildcardAvailable: boolean;
  readonly sharedAvailable: boolean;
  readonly maxTopicLevels: number;
  /** Sessions, subscriptions of one session and of all, retained messages and their memory; 0 = no limit. */
  readonly maxSessions: number;
  readonly maxSubscriptions: number;
  readonly maxTotalSubscriptions: number;
  readonly maxRetainedMessages: number;
  readonly maxRetainedBytes: number;
  /** Bytes a slow reader may leave unsent. */
  readonly maxClientWriteBuffer: number;
  readonly sendTimeoutMs: number;
  /** Connections a second. */
  readonly maxConnectRate: number;
  readonly maxPendingConnections: number;
  /** Bytes; 0 = chosen by the memory of the machine. */
  readonly memoryBudget: number;
  /** 0 = nothing is published below $SYS. */
  readonly sysIntervalMs: number;
}

/** Who an ACL rule is about: every field that is set has to fit. */
export interface AclWho {
  readonly username: string | null;
  readonly clientId: string | null;
  /** Addresses or networks ("10.0.0.0/8"); one of them has to fit; empty = any. */
  readonly ipaddrs: readonly string[];
}

/** One rule of auth.acl.rules; the first one that fits decides. */
export interface AclRule extends AclWho {
  readonly permit: 'allow' | 'deny';
  readonly action: 'publish' | 'subscribe' | 'pubsub';
  /** Topic filters with ${clientid} and ${username}, a leading @ takes the rest literally; empty = every topic. */
  readonly topics: readonly string[];
  /** All of these have to fit too; empty = nothing more. */
  readonly and: readonly AclWho[];
  /** One of these has to fit too; empty = nothing more. */
  readonly or: readonly AclWho[];
  readonly source: Position;
}

/** One of the three requests of auth.http_auth. */
export interface HttpAuthRequest {
  readonly url: string;
  readonly method: 'POST' | 'GET';
  readonly headers: readonly (readonly [string, string])[];
  /** Values with %u %c %a %P %p %C %d %t %m %A %r. */
  readonly params: readonly (readonly [string, string])[];
  readonly source: Position;
}

export interface HttpAuthConfig {
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
  /** 0 = no cache. */
  readonly cacheTtlMs: number;
  readonly authReq: HttpAuthRequest | null;
  readonly superReq: HttpAuthRequest | null;
  readonly aclReq: HttpAuthRequest | null;
}

/** Exactly one of secret and keyFile is given. */
export interface JwtConfig {
  readonly secret: string | null;
  readonly keyFile: string | null;
  /** Empty = all that fit the key. */
  readonly algorithms: readonly string[];
  readonly issuer: string | null;
  readonly audience: string | null;
  readonly clockToleranceSeconds: number;
  readonly usernameClaims: readonly string[];
  readonly clientIdClaim: string;
  readonly aclClaim: string;
}

/** Failed logins before a lock; 0 = no limit of that kind. */
export interface AuthLimitsConfig {
  readonly perPair: number;
  readonly perAddress: number;
  readonly perUser: number;
  readonly windowMs: number;
  readonly lockMs: number;
  readonly longestLockMs: number;
  /** Addresses and networks. */
  readonly exempt: readonly string[];
}

export interface UserConfig {
  readonly username: string;
  readonly password: string;
}

export interface AuthConfig {
  /** Effective, for listeners that say nothing themselves. */
  readonly allowAnonymous: boolean;
  readonly passwordFile: string | null;
  readonly aclFile: string | null;
  /** auth.password, in file order. */
  readonly users: readonly UserConfig[];
  /** auth.acl.rules; null when there is no enabled acl block, then noMatch has no meaning. */
  readonly acl: readonly AclRule[] | null;
  readonly noMatch: 'allow' | 'deny';
  readonly denyAction: 'ignore' | 'disconnect';
  /** granted: as mosquitto, SUBSCRIBE is granted and delivery filtered; truthful: acl_file refuses what it would never deliver. */
  readonly aclSubscribe: 'granted' | 'truthful';
  /** A retained message is delivered only while its publisher still may write the topic. */
  readonly checkRetainSource: boolean;
  readonly scramFile: string | null;
  /** null when absent or not enabled. */
  readonly jwt: JwtConfig | null;
  readonly limits: AuthLimitsConfig;
  /** null when absent or not enabled. */
  readonly httpAuth: HttpAuthConfig | null;
}

export interface PersistenceConfig {
  readonly enable: boolean;
  /** Path of the database file; "" while not enabled and none is given. */
  readonly path: string;
  readonly sync: 'ack' | 'interval' | 'off';
  readonly intervalMs: number;
  /** Bytes of the database. */
  readonly maxSize: number;
  /** What a damaged database does: it is put aside, or the start fails. */
  readonly onCorrupt: 'start' | 'stop';
  /** Which block asked for it: NanoMQ's sqlite block stands for persistence too. */
  readonly origin: 'default' | 'persistence' | 'sqlite';
  readonly source: Position;
}

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

export type MatchField = 'clientid' | 'username' | 'version' | 'sni' | 'listener' | 'remote_addr' | 'cert_cn';
export type MatchOp = '==' | '!=' | '=~' | '!~' | '=~*' | '!~*';
export interface RouteCondition {
  readonly field: MatchField;
  readonly op: MatchOp;
  /** The text to compare, or the pattern without its marks. */
  readonly value: string;
  /** Compiled for the linear engine, case already cared for; null for == and !=. */
  readonly pattern: RegExp | null;
}
/** A share of the clients; shares of a list follow each other. */
export interface ShareConfig {
  /** Hundredths of a percent; -1 = all that are left. */
  readonly percent: number;
  readonly upstream: string;
}
export interface RouteConfig {
  /** All have to fit. */
  readonly match: readonly RouteCondition[];
  /** Name of an upstream, or "local"; null where `split` decides. */
  readonly upstream: string | null;
  readonly split: readonly ShareConfig[];
  readonly source: Position;
}
export interface MapEntry {
  /** A text, "*.suffix" or "prefix.*"; patterns without their marks. */
  readonly key: string;
  /** null for texts and masks. */
  readonly pattern: RegExp | null;
  readonly upstream: string;
}
export interface ProxyMapConfig {
  readonly source: string;
  readonly ignoreCase: boolean;
  readonly hostnames: boolean;
  /** In the order of the file. */
  readonly values: readonly MapEntry[];
  readonly default: string | null;
}
export interface ProxyFilterConfig {
  readonly prefix: string;
  readonly publish: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly subscribe: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly denied: 'ignore' | 'disconnect';
  /** 0 = no limit. */
  readonly messagesPerSecond: number;
  readonly userProperties: readonly (readonly [string, string])[];
}
/** Certificates by server name. */
export interface TlsNameConfig {
  readonly name: string;
  readonly keyfile: string;
  readonly certfile: string;
  readonly keyPassword: string | null;
}
/** undefined = leave the field, null = remove it, text = a template with ${...}. */
export interface ProxySet {
  readonly clientId: string | null | undefined;
  readonly username: string | null | undefined;
  readonly password: string | null | undefined;
}
export interface ProxyConfig {
  readonly name: string;
  readonly enable: boolean;
  readonly bind: string;
  readonly host: string;
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  readonly udpTimeoutMs: number;
  readonly tls: TlsServerConfig | null;
  readonly tlsNames: readonly TlsNameConfig[];
  readonly useIdentityAsUsername: boolean;
  readonly proxyProtocol: boolean;
  /** Addresses and networks whose header is believed; empty = any. */
  readonly proxyProtocolFrom: readonly string[];
  readonly preread: boolean;
  readonly nonMqtt: 'close' | 'pass';
  readonly prereadMaxBytes: number;
  readonly prereadTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** null = auto: 1.5 x keep alive + 10 s; 0 = never. */
  readonly idleTimeoutMs: number | null;
  readonly halfClose: boolean;
  /** 0 = no limit, for both. */
  readonly nextUpstream: { readonly tries: number; readonly timeoutMs: number };
  readonly reject: 'close' | 'connack';
  readonly set: ProxySet;
  readonly routes: readonly RouteConfig[];
  readonly map: ProxyMapConfig | null;
  readonly split: readonly ShareConfig[];
  readonly splitKey: string;
  /** Name of an upstream, "local", or null: what no route takes is refused. */
  readonly default: string | null;
  readonly maxConnections: number;
  readonly limitConn: { readonly perIp: number; readonly perClientId: number; readonly perUsername: number };
  /** Connects allowed a second, 0 = no limit. */
  readonly limitRate: { readonly connectsPerSecond: number };
  /** Each a list of conditions that all have to fit. */
  readonly deny: readonly (readonly RouteCondition[])[];
  readonly allow: readonly (readonly RouteCondition[])[];
  /** Set with inspect = true. */
  readonly filter: ProxyFilterConfig | null;
  readonly accessLog: {
    readonly file: string;
    readonly format: 'text' | 'json';
    readonly rotation: { readonly size: number; readonly count: number };
  } | null;
  readonly source: Position;
}

export interface UpstreamServer {
  /** As written: it is hashed in this form. */
  readonly addr: string;
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket (addr "unix:/path"), else null. */
  readonly path: string | null;
  readonly weight: number;
  readonly backup: boolean;
  readonly down: boolean;
  /** 0 = failures never count. */
  readonly maxFails: number;
  readonly failTimeoutMs: number;
  readonly maxConns: number;
  readonly source: Position;
}
export interface UpstreamConfig {
  readonly name: string;
  readonly balance: 'round_robin' | 'least_conn' | 'ip_hash' | 'hash' | 'consistent_hash' | 'random';
  readonly hashKey: string;
  readonly servers: readonly UpstreamServer[];
  readonly health: {
    readonly type: 'tcp' | 'mqtt';
    readonly intervalMs: number;
    readonly timeoutMs: number;
    readonly fails: number;
    readonly passes: number;
    readonly anyConnack: boolean;
    readonly username: string | null;
    readonly password: string | null;
  } | null;
  readonly tls: TlsClientConfig | null;
  readonly slowStartMs: number;
  readonly dnsRefreshMs: number;
  readonly sendProxyProtocol: 'off' | 'v1' | 'v2';
  readonly source: Position;
}

/** A user of console and REST API. */
export interface WebUserConfig {
  readonly username: string;
  /** Plain, or a hash: it then begins with $6$, $7$ or $argon2id$. */
  readonly password: string;
  readonly role: 'viewer' | 'operator' | 'admin';
}

export interface HttpServerConfig {
  /** Effective: loopback when there are no credentials. */
  readonly ipAddr: string;
  readonly port: number;
  readonly username: string | null;
  readonly password: string | null;
  /** http_server.username, an admin, and the enabled ones of http_server.users. */
  readonly users: readonly WebUserConfig[];
  readonly authType: 'basic' | 'no_auth' | 'jwt';
  /** Path of the public key for authType jwt. */
  readonly jwtPublicKeyfile: string | null;
  /** Claims that a token has to have; null = not looked at. */
  readonly jwtIssuer: string | null;
  readonly jwtAudience: string | null;
  /** Requests at once. */
  readonly limitConn: number;
  /** Bytes of a request body. */
  readonly maxBody: number;
  readonly tls: TlsServerConfig | null;
  readonly source: Position;
}

export interface MetricsConfig {
  readonly bind: string;
  readonly host: string;
  readonly port: number;
  /** basic: with the credentials of http_server. */
  readonly auth: 'none' | 'basic';
  readonly source: Position;
}

export interface WebhookEvent {
  readonly event: string;
  /** Topic filter, only for on_message_publish. */
  readonly topic: string | null;
}
export interface WebhookConfig {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly encoding: 'plain' | 'base64' | 'base62';
  readonly poolSize: number;
  readonly cancelTimeoutMs: number;
  /** 1 = each event alone, not as an array. */
  readonly batchSize: number;
  readonly batchIntervalMs: number;
  readonly events: readonly WebhookEvent[];
  readonly source: Position;
}

export interface LogConfig {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';
  readonly to: readonly ('console' | 'file')[];
  /** "" = the current folder. */
  readonly dir: string;
  readonly file: string;
  readonly rotation: { readonly size: number; readonly count: number };
  /** auto: pretty on a terminal, else json. */
  readonly format: 'json' | 'pretty' | 'auto';
}

export interface BrokerConfig {
  readonly engine: 'native' | 'aedes';
  readonly redis: string | null;
  readonly source: Position;
}

/** The whole. null = the block is not there, so the feature is off. */
export interface Config {
  readonly listeners: readonly ListenerConfig[];
  readonly mqtt: MqttConfig;
  readonly auth: AuthConfig;
  readonly persistence: PersistenceConfig;
  readonly bridges: BridgesConfig;
  readonly proxy: readonly ProxyConfig[];
  readonly upstreams: readonly UpstreamConfig[];
  readonly httpServer: HttpServerConfig | null;
  readonly metrics: MetricsConfig | null;
  readonly webhook: WebhookConfig | null;
  readonly log: LogConfig;
  readonly broker: BrokerConfig;
}

/** A tree with the key names of the file, defaults included, sizes in bytes and durations in milliseconds. */
export type Tree = { readonly [key: string]: TreeValue };
export type TreeValue = string | number | boolean | null | readonly TreeValue[] | Tree;

export interface LoadOptions {
  /** Path of the file; without it ./tidegate.conf, ./tidegate.toml and the same in /etc/tidegate are tried. */
  readonly file?: string;
  /** Instead of a file: the configuration itself, which can include nothing. */
  readonly text?: { readonly text: string; readonly dialect: 'hocon' | 'toml' };
  /** Stands in the place of tidegate.d/50-console.conf: what would hold if that said this; "" = as if it was not there. */
  readonly kept?: string;
  /** `a.b=value`, literal; the last ones win. */
  readonly set?: readonly string[];
  /** Usually process.env. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where relative paths of the command line start; usually process.cwd(). */
  readonly cwd?: string;
}

export interface Loaded {
  readonly config: Config;
  readonly warnings: readonly Problem[];
  /** The main file, null when built-in defaults are used. */
  readonly file: string | null;
  /** Every file that was read, the main one first. */
  readonly files: readonly string[];
  /** The effective tree, secrets in clear. */
  readonly tree: Tree;
  /** The same with secrets as "***": for `check --print`, REST and logs. */
  readonly masked: Tree;
}

/**
 * Reads defaults, file, environment and `--set`, in this order.
 * Throws ConfigError (problem.ts; a GatewayError CFG-INVALID) with every problem found, CFG-READ when the file cannot be read.
 */
export function loadConfig(options: LoadOptions): Loaded {
  return load(options);
}
