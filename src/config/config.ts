// SEAM of config/: the effective configuration as the rest of the gateway sees it; load.ts reads it. Read by the wiring
// (gateway/gateway.ts and its neighbours), by cli/ and, as types, by console/; gateway/options.ts makes other stages'
// options of it. Values are checked and normalised: sizes are bytes, durations milliseconds (names end in Ms), defaults
// are filled in, the whole is frozen. Where a limit is 0 there is no limit, unless its line says otherwise. Bridges and
// proxy have files of their own beside this one. Nothing here opens a socket or a file of another section; a stage gets
// its section and never looks at the file itself. Sources: the tables of config/schema/schema.ts, which name every key
// once; docs/reference-config.md is made from them.
//
// Map (made by `make docs`):
//   auth.ts                 The effective configuration of auth, as config.ts hands it out
//   bridges.ts              The effective configuration of the bridges: bridges.nng (SP peers) and bridges.mqtt
//   converting.ts           What `tidegate convert` needs of config/
//   counts.ts               Counted repetitions of a regular expression written out: `a{2,3}` becomes `a?aa`
//   documents.ts            Bridges that come as JSON documents at run time (REST, `ctl bridge add`)
//   dropins.ts              tidegate.d: files beside the main configuration file that are read after it
//   engine.ts               What the engine aedes cannot do: a configuration that asks for it is refused where it asks
//   features.ts             Configured features that this version does not run yet: one row each
//   foreign.ts              Recognises configurations of other brokers: those that only `tidegate convert` reads
//   keep.ts                 tidegate.d/50-console.conf as a tree
//   listeners.ts            The effective configuration of listeners and of TLS, as config.ts hands it out
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
//   schema/bridgerule.ts    Keys that rules of NNG bridges and of bridges to remote brokers have alike: filters, QoS
//   schema/bridges.ts       The section bridges: its kinds
//   schema/broker.ts        The keys of broker, engine and memory profile: each once, with type, default and text
//   schema/effective.ts     From a checked block to its part of the effective configuration
//   schema/foreign.ts       Sections of NanoMQ's files that are no sections here: some mean another key
//   schema/httpserver.ts    The keys of http_server, for console and REST API: each once, with type, default and text
//   schema/key.ts           What a key of the schema is: how its value is read, what it is when absent, how it is shown
//   schema/keys.ts          The words the schema is written in, for keys with one value: flags, numbers, sizes
//   schema/listeners.ts     The keys of listeners, and of TLS wherever it is spoken: each once, with type
//   schema/log.ts           The keys of log: each once, with type, default and text
//   schema/logformat.ts     The form of a line in a proxy's access log: text, json
//   schema/match.ts         What a route, allow or deny of a proxy has to fit
//   schema/metrics.ts       The keys of metrics, a page for Prometheus on a port of its own: each once, with type
//   schema/mqtt.ts          The keys of mqtt, limits and features of MQTT: each once, with type, default and text
//   schema/nng.ts           The keys of bridges.nng, bridges to peers that speak Scalability Protocols: each once
//   schema/persistence.ts   The keys of persistence: each once, with type, default and text
//   schema/preset.ts        Presets of NNG bridges: what a known peer needs, as other defaults
//   schema/proxy.ts         The keys of proxy: each once, with type, default and text
//   schema/quotas.ts        The keys of quotas.<name>: each once, with type, default and text
//   schema/record.ts        The keys of record, the recording of messages: each once, with type, default and text
//   schema/remote.ts        The keys of bridges.mqtt, bridges to remote MQTT brokers: each once, with type
//   schema/rules.ts         The keys of rules.<name>, and NanoMQ's blocks below `rules`: each once, with type
//   schema/schema.ts        The whole schema: every key of every section once, with type, default, unit
//   schema/template.ts      Templates of the proxy as configurations write them: which variables there are
//   schema/topics.ts        The keys of topics and validation.<name>: each once, with type, default and text
//   schema/tracing.ts       The keys of tracing: each once, with type, default and text
//   schema/units.ts         A tree with its durations written with their unit
//   schema/upstreams.ts     The keys of upstreams, pools of servers for proxies: each once, with type, default and text
//   schema/webhook.ts       The keys of webhook: each once, with type, default and text
//   text/grow.ts            Small steps for building a tree: blocks on the way to a key, values as nodes
//   text/hocon.ts           Reads HOCON text
//   text/node.ts            The parsed form every dialect ends in: scalars, lists and blocks
//   text/raw.ts             HOCON values as they are written
//   text/resolve.ts         Puts values in the place of references (${a.b}, ${?a.b})
//   text/rulesql.ts         NanoMQ's rule SQL, read into the terms of a rule: SELECT becomes `set`, FROM becomes `from`
//   text/scanner.ts         The characters of a HOCON text: where we are, blanks and comments, quoted texts
//   text/toml.ts            Reads TOML
//   text/write.ts           Writes a tree as HOCON or TOML text that reads back to the same tree
import type { AuthConfig } from './auth.ts';
import type { BridgesConfig } from './bridges.ts';
import type { ListenerConfig, TlsClientConfig, TlsServerConfig } from './listeners.ts';
import type { Position, Problem } from './problem.ts';
import type { ProxyConfig, UpstreamConfig } from './proxy.ts';
import type { RuleConfig } from './rules.ts';
import type { BROKER } from './schema/broker.ts';
import type { Effective } from './schema/effective.ts';
import type { HTTP_SERVER, WEB_USER } from './schema/httpserver.ts';
import type { ValueOf } from './schema/key.ts';
import type { LOG } from './schema/log.ts';
import type { METRICS } from './schema/metrics.ts';
import type { MQTT } from './schema/mqtt.ts';
import type { PERSISTENCE } from './schema/persistence.ts';
import type { RECORD } from './schema/record.ts';
import type { WEBHOOK } from './schema/webhook.ts';
import type { QuotaConfig, TopicsConfig, ValidationConfig } from './topics.ts';
import type { Tree } from './tree.ts';

export type { AuthConfig } from './auth.ts';
export type { ListenerConfig } from './listeners.ts';
export type { Position, Problem } from './problem.ts';
export type { QuotaConfig, TopicsConfig, ValidationConfig } from './topics.ts';
export type { Tree, TreeValue } from './tree.ts';

export type QosLevel = 0 | 1 | 2;

export type MqttConfig = Effective<ValueOf<typeof MQTT>>;

/** What is recorded of messages, and where the past is kept; path "" = beside the database of persistence, if any. */
export type RecordConfig = Effective<ValueOf<typeof RECORD>>;

/** The path is "" while it is not enabled and none is given. */
export type PersistenceConfig = Omit<Effective<ValueOf<typeof PERSISTENCE>>, 'enable'> & {
  readonly enable: boolean;
  /** Which block asked for it: NanoMQ's sqlite block stands for persistence too. */
  readonly origin: 'default' | 'persistence' | 'sqlite';
  readonly source: Position;
};

type HttpKeys = NonNullable<Effective<ValueOf<typeof HTTP_SERVER>>>;
/** A user of console and REST API. The password is plain, or a hash: it then begins with $6$, $7$ or $argon2id$. */
export type WebUserConfig = Omit<Effective<ValueOf<typeof WEB_USER>>, 'enable'> & { readonly username: string };

/** ipAddr is loopback when there are no credentials. */
export type HttpServerConfig = Omit<HttpKeys, 'enable' | 'users' | 'jwt' | 'tls'> & {
  /** http_server.username, an admin, and the enabled ones of http_server.users. */
  readonly users: readonly WebUserConfig[];
  /** Path of the public key for authType jwt. */
  readonly jwtPublicKeyfile: string | null;
  /** Required claims of a token; null = not checked. */
  readonly jwtIssuer: string | null;
  readonly jwtAudience: string | null;
  readonly tls: TlsServerConfig | null;
  readonly source: Position;
};

export type MetricsConfig = NonNullable<Effective<ValueOf<typeof METRICS>>> & {
  readonly host: string;
  readonly port: number;
  readonly source: Position;
};

export type WebhookConfig = Omit<NonNullable<Effective<ValueOf<typeof WEBHOOK>>>, 'enable' | 'tls'> & {
  /** null: the system's authorities, no certificate of ours. */
  readonly tls: TlsClientConfig | null;
  readonly source: Position;
};

export interface TracingConfig {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly tls: TlsClientConfig | null;
  readonly timeoutMs: number;
  readonly serviceName: string;
  readonly ratio: number;
  readonly parents: boolean;
  readonly maxRate: number;
  readonly queueLength: number;
  readonly batchSize: number;
  readonly intervalMs: number;
  /** 0 = never. */
  readonly metricsIntervalMs: number;
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
  readonly tracing: TracingConfig | null;
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
