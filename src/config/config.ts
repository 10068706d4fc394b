// SEAM of config/: the effective configuration as the rest of the gateway sees it; load.ts reads it. Read by the wiring
// (gateway/gateway.ts and its neighbours), by cli/ and, as types, by console/; gateway/options.ts makes other stages'
// options of it. Values are checked and normalised: sizes are bytes, durations milliseconds (names end in Ms), defaults
// are filled in, the whole is frozen. Where a limit is 0 there is no limit, unless its line says otherwise. Bridges and
// proxy have files of their own beside this one. Nothing here opens a socket or a file of another section; a stage gets
// its section and never looks at the file itself. Sources: the tables of config/schema/schema.ts, which name every key
// once; docs/reference-config.md is made from them.
//
// Map (made by `make docs`):
//   bridges.ts              The effective configuration of the bridges: bridges.nng (SP peers) and bridges.mqtt
//   converting.ts           What `tidegate convert` needs of config/
//   counts.ts               Counted repetitions of a regular expression written out: `a{2,3}` becomes `a?aa`
//   documents.ts            Bridges that come as JSON documents at run time (REST, `ctl bridge add`)
//   dropins.ts              tidegate.d: files beside the main configuration file that are read after it
//   engine.ts               What the engine aedes cannot do: a configuration that asks for it is refused where it asks
//   features.ts             Configured features that this version does not run yet: one row each
//   foreign.ts              Recognises configurations of other brokers: those that only `tidegate convert` reads
//   keep.ts                 tidegate.d/50-console.conf as a tree
//   load.ts                 Reads a configuration: finds the file, parses it and its tidegate.d
//   loops.ts                Finds NNG bridges whose frames could come back: what a sub bridge publishes
//   nngbridges.ts           All NNG bridges of a configuration as one list, in the order in which they start
//   overrides.ts            Lays the environment
//   pattern.ts              Regular expressions that users write: compiled for V8's linear engine
//   problem.ts              What is wrong with a configuration, and where: the positions
//   proxy.ts                The effective configuration of the CONNECT-aware proxy: proxy.<name>
//   reload.ts               What is different between two configurations
//   report.ts               What an import has to tell: what is changed or left out
//   rules.ts                The effective configuration of the rules, as config.ts hands it out
//   sink.ts                 Where the checks of a configuration put what they find
//   topics.ts               The effective configuration of topics, payload checks and quotas, as config.ts hands it out
//   tree.ts                 The effective configuration as a tree of plain values: what `check --print` and REST show
//   values.ts               The small languages inside values: sizes, durations, addresses, URLs, topic filters
//   webusers.ts             Who may use console and REST API: http_server.username and http_server.users as one list
//   build/auth.ts           From the checked tree to AuthConfig: users, rights, tokens
//   build/bridges.ts        From the checked tree to NngConfig and MqttBridgeConfig
//   build/build.ts          Puts the sections together to a frozen Config and makes the checks between sections
//   build/core.ts           From the checked tree to MqttConfig, PersistenceConfig, HttpServerConfig, MetricsConfig
//   build/listeners.ts      From the checked tree to listeners, with the checks that take more than one key
//   build/proxy.ts          From the checked tree to ProxyConfig and UpstreamConfig
//   build/rules.ts          From the checked tree to the rules
//   build/topics.ts         From the checked tree to topics, payload checks and quotas
//   build/values.ts         Small steps that the files build*.ts share: addresses, QoS, the server side of TLS
//   mosquitto/bridge.ts     The options of mosquitto.conf that a bridge has
//   mosquitto/broker.ts     What holds for the whole broker: limits, sessions, persistence, the log
//   mosquitto/choices.ts    Differences between mosquitto and this gateway that stay by choice, whatever a file says
//   mosquitto/draft.ts      A mosquitto.conf with every line where it belongs: the broker, a listener, a bridge
//   mosquitto/dynsec.ts     Users and rights of mosquitto_dynamic_security.so
//   mosquitto/general.ts    The options of mosquitto.conf that hold for the whole broker, its security and its log
//   mosquitto/lines.ts      The grammar of mosquitto.conf: a text as lines of key and value
//   mosquitto/listener.ts   The options of mosquitto.conf that a listener has
//   mosquitto/mosquitto.ts  SEAM of config/mosquitto/: takes a mosquitto.conf over
//   mosquitto/option.ts     What a row of the tables of mosquitto.conf says: where a setting belongs
//   mosquitto/options.ts    All options of mosquitto.conf by name
//   mosquitto/place.ts      The listeners of a mosquitto.conf: which there are, where each is open, how it speaks TLS
//   mosquitto/read.ts       Reads the lines of a mosquitto.conf and of the folders it includes into a draft: scopes
//   mosquitto/remote.ts     The bridges of a mosquitto.conf as bridges.mqtt
//   mosquitto/security.ts   Who may log in and what they may do, of a mosquitto.conf
//   nanomq/choices.ts       Differences between NanoMQ and this gateway that stay by choice, whatever a file says
//   nanomq/keyvalue.ts      NanoMQ's configuration before 0.14: one key=value each line, a value to the end of its line
//   nanomq/nanomq.ts        SEAM of config/nanomq/
//   nanomq/tidy.ts          What NanoMQ's files write for "not given"
//   nanomq/v014.ts          The first HOCON form of nanomq.conf, of 0.14: mqtt.session, certificates under short names
//   schema/auth.ts          The keys of auth: each once, with type, default and text
//   schema/blocks.ts        The words the schema is written in, for keys that hold others: lists, blocks
//   schema/bridges.ts       The keys of bridges.nng, bridges.mqtt and bridges.aws: each once, with type
//   schema/core.ts          The keys of mqtt, persistence, http_server, metrics, webhook, log and broker: each once
//   schema/effective.ts     From a checked block to its part of the effective configuration
//   schema/key.ts           What a key of the schema is: how its value is read, what it is when absent, how it is shown
//   schema/keys.ts          The words the schema is written in, for keys with one value: flags, numbers, sizes
//   schema/listeners.ts     The keys of listeners, and of TLS wherever it is spoken: each once, with type
//   schema/logformat.ts     The form of a line in a proxy's access log: text, json
//   schema/match.ts         What a route, allow or deny of a proxy has to fit
//   schema/preset.ts        Presets of NNG bridges: what a known peer needs, as other defaults
//   schema/proxy.ts         The keys of proxy and upstreams: each once, with type, default and text
//   schema/quotas.ts        The keys of quotas.<name>: each once, with type, default and text
//   schema/rules.ts         The keys of rules.<name>, and NanoMQ's blocks below `rules`: each once, with type
//   schema/schema.ts        The whole schema: every key of every section once, with type, default, unit
//   schema/template.ts      Templates of the proxy as configurations write them: which variables there are
//   schema/topics.ts        The keys of topics and validation.<name>: each once, with type, default and text
//   schema/units.ts         A tree with its durations written with their unit
//   text/grow.ts            Small steps for building a tree: blocks on the way to a key, values as nodes
//   text/hocon.ts           Reads HOCON text
//   text/node.ts            The parsed form every dialect ends in: scalars, lists and blocks
//   text/raw.ts             HOCON values as they are written
//   text/resolve.ts         Puts values in the place of references (${a.b}, ${?a.b})
//   text/rulesql.ts         NanoMQ's rule SQL, read into the terms of a rule: SELECT becomes `set`, FROM becomes `from`
//   text/scanner.ts         The characters of a HOCON text: where we are, blanks and comments, quoted texts
//   text/toml.ts            Reads TOML
//   text/write.ts           Writes a tree as HOCON or TOML text that reads back to the same tree
import type { BridgesConfig } from './bridges.ts';
import type { Position, Problem } from './problem.ts';
import type { ProxyConfig, UpstreamConfig } from './proxy.ts';
import type { RuleConfig } from './rules.ts';
import type { BROKER, LOG, MQTT } from './schema/core.ts';
import type { Effective } from './schema/effective.ts';
import type { Checked, ValueOf } from './schema/key.ts';
import type { TLS_CLIENT, TLS_SERVER } from './schema/listeners.ts';
import type { QuotaConfig, TopicsConfig, ValidationConfig } from './topics.ts';
import type { Tree } from './tree.ts';

export type { Position, Problem } from './problem.ts';
export type { QuotaConfig, TopicsConfig, ValidationConfig } from './topics.ts';
export type { Tree, TreeValue } from './tree.ts';

export type QosLevel = 0 | 1 | 2;

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

/** Server side of TLS: takes the place of transport's TlsServerOptions. */
export type TlsServerConfig = Omit<Effective<Checked<typeof TLS_SERVER>>, 'keyfile' | 'certfile' | 'minVersion'> & {
  readonly minVersion: TlsVersion;
  readonly keyfile: string;
  readonly certfile: string;
  /** Keys instead of certificates; keyfile and certfile are "" then. */
  readonly psk?: { readonly file: string; readonly hint: string | null } | null;
};
/** Client side of TLS: takes the place of transport's TlsClientOptions. */
export type TlsClientConfig = Omit<Effective<Checked<typeof TLS_CLIENT>>, 'minVersion'> & {
  readonly minVersion: TlsVersion;
  /** A key in hexadecimal instead of certificates. */
  readonly psk?: string | null;
  readonly pskIdentity?: string | null;
};

/** Certificate for one server name: of a listener or a proxy that has more than one. */
export interface TlsNameConfig {
  readonly name: string;
  readonly keyfile: string;
  readonly certfile: string;
  readonly keyPassword: string | null;
}

export type ListenerKind = 'tcp' | 'ssl' | 'ws' | 'wss' | 'unix';

/** One enabled listener; disabled ones are not in the list. */
export interface ListenerConfig {
  /** "tcp" for listeners.tcp, "tcp.second" for listeners.tcp.second. */
  readonly name: string;
  readonly kind: ListenerKind;
  /** As written, "127.0.0.1:1883", "127.0.0.1:8083/mqtt"; the path for unix. */
  readonly bind: string;
  /** Without brackets; "" for unix; "*" for IPv4 and IPv6. */
  readonly host: string;
  readonly ipv6Only: boolean;
  /** 0 = any free port; 0 for unix. */
  readonly port: number;
  /** The URL path of ws and wss, the socket path of unix, else "". */
  readonly path: string;
  /** Paths that ws and wss take, null = any. */
  readonly paths: readonly string[] | null;
  /** Octal text such as "0660", unix only. */
  readonly mode: string | null;
  readonly group: string | null;
  readonly maxConnections: number;
  readonly connectTimeoutMs: number;
  readonly maxQos: QosLevel;
  /** Whether a client may come without a client id, and what the one it is given begins with. */
  readonly emptyClientId: boolean;
  readonly assignedPrefix: string;
  readonly usernameAsClientId: boolean;
  readonly proxyProtocol: boolean;
  /** Addresses and networks whose header is believed; empty = any. */
  readonly proxyProtocolFrom: readonly string[];
  /** The header must tell of a verified certificate of the client. */
  readonly proxyCertificate: boolean;
  /** Effective: the listener's own word, else that of auth, else the default rule. */
  readonly allowAnonymous: boolean;
  /** Instead of auth.password_file (and auth.password) for this listener; null = those of auth. */
  readonly passwordFile: string | null;
  /** Instead of auth.acl_file (and auth.acl) for this listener; null = those of auth. */
  readonly aclFile: string | null;
  /** Begins all topics of its clients; "" = nothing does. */
  readonly mountPoint: string;
  /** Set for ssl and wss. */
  readonly tls: TlsServerConfig | null;
  readonly tlsNames: readonly TlsNameConfig[];
  /** What of the verified client certificate is the username; null = nothing. */
  readonly identity: 'cn' | 'subject' | null;
  /** Origin headers that ws and wss take, null = any. */
  readonly origins: readonly string[] | null;
  readonly source: Position;
}

export type MqttConfig = Effective<ValueOf<typeof MQTT>>;

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

/** Keys of tokens that are fetched. */
export interface RemoteKeysConfig {
  /** Null: the issuer's discovery document tells it. */
  readonly url: string | null;
  readonly issuer: string | null;
  readonly refreshMs: number;
  readonly staleMs: number;
  readonly timeoutMs: number;
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly certKeyFile: string | null;
}

/** Exactly one of secret, keyFile and remote is given. */
export interface JwtConfig {
  readonly secret: string | null;
  readonly keyFile: string | null;
  readonly remote: RemoteKeysConfig | null;
  /** Empty = all that fit the key. */
  readonly algorithms: readonly string[];
  readonly issuer: string | null;
  readonly audience: string | null;
  readonly clockToleranceSeconds: number;
  readonly requireExpiry: boolean;
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

/** Users, groups and roles that are managed at run time. */
export interface DynamicSecurityConfig {
  readonly file: string | null;
  readonly controlTopic: boolean;
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
  /**
   * granted: as mosquitto, SUBSCRIBE is granted and delivery filtered; truthful: acl_file refuses what it would never
   * deliver.
   */
  readonly aclSubscribe: 'granted' | 'truthful';
  /** A retained message is delivered only while its publisher still may write the topic. */
  readonly checkRetainSource: boolean;
  readonly sessionOwner: 'user' | 'client_id';
  readonly scramFile: string | null;
  /** null when absent or not enabled; file null = the default place. */
  readonly dynamicSecurity: DynamicSecurityConfig | null;
  /** null when absent or not enabled. */
  readonly jwt: JwtConfig | null;
  readonly limits: AuthLimitsConfig;
  /** null when absent or not enabled. */
  readonly httpAuth: HttpAuthConfig | null;
}

/** What is recorded of messages, and where the past is kept. */
export interface RecordConfig {
  /** Topic filters. */
  readonly topics: readonly string[];
  readonly keepMs: number;
  /** Bytes of the file. */
  readonly maxSize: number;
  /** Of the file that also holds figures and events; "" = beside the database of persistence, if there is one. */
  readonly path: string;
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
  /** null: the system's authorities, no certificate of ours. */
  readonly tls: TlsClientConfig | null;
  readonly events: readonly WebhookEvent[];
  readonly source: Position;
}

/** `to` holds only what is supported, each once, and is never empty. */
export type LogConfig = Omit<Effective<ValueOf<typeof LOG>>, 'to'> & { readonly to: readonly ('console' | 'file')[] };

export type BrokerConfig = Effective<ValueOf<typeof BROKER>> & { readonly source: Position };

/** A session that is there before its client. */
export interface PresetSession {
  readonly name: string;
  readonly clientId: string;
  readonly subscriptions: readonly {
    readonly topicFilter: string;
    readonly qos: QosLevel;
    readonly retainAsPublished: boolean;
    readonly retainHandling: 0 | 1 | 2;
  }[];
  readonly source: Position;
}

/** The whole. null = the block is not there, so the feature is off. */
export interface Config {
  readonly listeners: readonly ListenerConfig[];
  readonly mqtt: MqttConfig;
  readonly auth: AuthConfig;
  readonly persistence: PersistenceConfig;
  readonly record: RecordConfig;
  readonly bridges: BridgesConfig;
  readonly proxy: readonly ProxyConfig[];
  readonly upstreams: readonly UpstreamConfig[];
  readonly httpServer: HttpServerConfig | null;
  readonly metrics: MetricsConfig | null;
  readonly webhook: WebhookConfig | null;
  /** Paths as they were written. */
  readonly plugins: readonly string[];
  readonly topics: TopicsConfig;
  readonly validation: readonly ValidationConfig[];
  readonly quotas: readonly QuotaConfig[];
  readonly rules: readonly RuleConfig[];
  readonly log: LogConfig;
  readonly broker: BrokerConfig;
  readonly presets: readonly PresetSession[];
}

export interface LoadOptions {
  /** Path of the file; without it ./tidegate.conf, ./tidegate.toml and the same in /etc/tidegate are tried. */
  readonly file?: string;
  /** Instead of a file: the configuration itself, which can include nothing. */
  readonly text?: { readonly text: string; readonly dialect: 'hocon' | 'toml' };
  /**
   * Stands in the place of tidegate.d/50-console.conf: what would hold if that said this; "" = as if it was not there.
   */
  readonly kept?: string;
  /** What a NanoMQ file does not write is as NanoMQ has it: open on every address, anonymous clients. */
  readonly nanomqDefaults?: boolean;
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
