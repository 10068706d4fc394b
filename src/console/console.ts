// SEAM of console/: everything the HTTP side needs, handed in by gateway/console.ts; console/ reaches for nothing
// itself. Built by gateway/console.ts, used by http.ts (http_server) and metricsserver.ts (metrics). Tests build it
// from stand-ins. What comes back from here is shown to people: no secret may be in it, masked values read "***".
//
// Map (made by `make docs`):
//   access.ts          Who is calling and whether he may: Basic (RFC 7617), Bearer (RFC 6750), session cookie; roles
//   accounts.ts        REST: MQTT users, groups and roles at run time (auth.dynamic_security): list, get, put, delete
//   admin.ts           REST beyond NanoMQ for people who run the gateway: who may do what, store, proxy, log lines
//   answer.ts          What a handler gives back, and the codes of failed calls
//   api.ts             REST: what NanoMQ tells about itself: /, /brokers, /nodes, /topic-tree, /metrics, /prometheus
//   app.ts             From an HTTP request to an Answer and back: target, route, who is calling, query, body, handler
//   audit.ts           Who did what through the HTTP API: a log line each, and the last of them for the console
//   body.ts            Request bodies: read up to a limit
//   bridgeapi.ts       REST: bridges of one kind at run time: list, create, read, change, remove, enable, disable
//   bridgecontrol.ts   Bridges at run time as REST and console ask for them: views, documents, trials
//   bridgedocument.ts  The document of a bridge on its way in: what is shown can be changed and sent back
//   clients.ts         REST: clients and subscriptions in NanoMQ's shapes, and what goes beyond them
//   configuration.ts   REST: GET /configuration and /reload in NanoMQ's shapes, the effective tree, and reloading
//   controlsocket.ts   The control socket
//   delayed.ts         REST: delayed messages ($delayed/<seconds>/<topic>): list, and take one back
//   download.ts        Long answers as files: rows are asked for page by page and written as the reader takes them
//   events.ts          Server-sent events (HTML Living Standard, section 9.2): what happens in the gateway, live
//   health.ts          /healthz and /readyz
//   heldbody.ts        The memory of one request body, from its first piece to the answer
//   http.ts            The HTTP server of `http_server`: REST API, events, console pages
//   jwt.ts             Bearer tokens for http_server.auth_type = jwt: signed by somebody else
//   keeping.ts         `?keep=true`: whether a change is to be written to tidegate.d or holds until the next start
//   keptlogins.ts      Console sessions that survive a restart: hashes of their tokens in a file beside the store
//   latency.ts         How long what is read takes to leave
//   limiter.ts         Failed logins by address: after a handful the address has to wait
//   listening.ts       A node:http or node:https server that is bound: limits of every HTTP server of the gateway
//   login.ts           Sessions of people at the console: a random token in a cookie that scripts cannot read
//   messages.ts        Server-sent messages: what is published on topics, live, for the console's message page
//   metrics.ts         The registry of base/metrics.ts as Prometheus text
//   metricsserver.ts   The small server of `metrics`: one page for Prometheus on a bind of its own, plain node:http
//   mqttbridge.ts      REST: bridges to remote brokers: /mqtt/bridges as for NNG bridges
//   nngapi.ts          REST: NNG bridges at run time (bridgeapi.ts), told apart by their type, and trying a rule
//   openapi.ts         The description of the API (OpenAPI 3.1), made from the list of routes
//   openstreams.ts     Answers that stay open (event streams): ended when their reader would not be let in any more
//   page.ts            Long lists in pages
//   pages.ts           The built pages of the console (dist/web) and of its documentation (dist/docs) as a PageSource
//   passwords.ts       Compares the passwords people send with those that are configured, plain or hashed
//   pastapi.ts         REST: figures over time, and what happened
//   pastcontrol.ts     What is kept of the past as REST and console ask for it: figures, events
//   probeapi.ts        REST: tests whether a bridge reaches its other side, before or after it is added
//   process.ts         Metrics of the process itself: memory, processor time, event-loop lag, file descriptors, uptime
//   proxyapi.ts        REST: the proxy's upstream pools, and taking a server out of its pool for maintenance
//   publish.ts         REST: POST /mqtt/publish and /mqtt/publish_batch, NanoMQ's fields
//   quotas.ts          REST: quotas: their limits, how often each was exceeded, and what their scopes use
//   recordingapi.ts    REST: recorded messages: found, thinned out, exported, published again
//   retained.ts        REST: retained messages: list, read, clear
//   rooms.ts           Places for requests that are being worked on
//   route.ts           A route: method, path, who may call it, what it takes, what it does
//   routes.ts          The one list of everything the HTTP server answers to
//   routeshapes.ts     What each call of the REST API takes and answers: shapes by method and path, for openapi.ts
//   ruleapi.ts         REST: rules at run time: list, put, remove, and trying one on a sample or on live messages
//   security.ts        REST: who may come in through which listener, and what decides on rights there
//   session.ts         REST: logging in and out at the console
//   settings.ts        REST: every key of the configuration with its text and default; checking and setting single keys
//   shape.ts           The words that the shapes of REST bodies are written in: JSON Schema 2020-12
//   shapes.ts          The shapes that several calls of the REST API share, by name: components of the OpenAPI document
//   target.ts          The request target: checked before any router sees it
//   text.ts            Bytes and times as people and scripts read them
//   timerange.ts       The query parameters `from` and `to` of calls that look back
//   topics.ts          REST: what is published topic by topic, with rates
//   users.ts           REST: who may use console and REST API, with which role; adding

import type { Clock } from '../base/clock.ts';
import type { Ledger } from '../base/ledger.ts';
import type { Level, Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Broker } from '../broker/broker.ts';
import type { AuthConfig, HttpServerConfig, ListenerConfig, MqttConfig, PersistenceConfig } from '../config/config.ts';
import type { RuleSample, RuleStatus, RuleTrial } from '../rules/rules.ts';
import type { CertificateFacts, TlsServerOptions } from '../transport/transport.ts';
import type { BridgeControl } from './bridgecontrol.ts';
import type { PastControl } from './pastcontrol.ts';

export type {
  BridgeControl,
  BridgeRef,
  BridgeState,
  BridgeView,
  NngDirection,
  ProbeRequest,
  ProbeResult,
  ProbeStep,
  Trial,
  TrialResult,
} from './bridgecontrol.ts';
export type { PastControl, RecordingControl, ReplayRequest, ReplayView } from './pastcontrol.ts';

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/**
 * What a user of the API may do: read; also act on clients, messages and switches; also change bridges and
 * configuration.
 */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface WebUser {
  readonly username: string;
  readonly password: string;
  readonly role: Role;
  /** The password is a hash: ConsoleOptions.matchesHash compares. */
  readonly hashed?: boolean;
}

/**
 * Whether a password is the one of a hash. Never throws; a hash that cannot be read fits nothing. Takes milliseconds,
 * not on this thread.
 */
export type MatchesHash = (hash: string, password: string) => Promise<boolean>;

export interface JwtSettings {
  /** PEM file with the public key; only signatures by asymmetric keys are taken. */
  readonly publicKeyFile: string;
  /** Claims that have to be there, null = not looked at. */
  readonly issuer: string | null;
  readonly audience: string | null;
}

/** `http_server`, read again for each request where a reload may change it. */
export interface HttpSettings {
  readonly host: string;
  /** 0 = any free one. */
  readonly port: number;
  readonly tls: TlsServerOptions | null;
  /** 0 = no limit (a hard one of 256 MB stays). */
  readonly maxBodyBytes: number;
  /** Requests worked on at once, event streams not counted; more get 503. 0 = no limit. */
  readonly maxRequests: number;
  readonly authType: 'basic' | 'jwt' | 'no_auth';
  /** None and authType basic: only loopback may be bound and everybody there is admin. */
  readonly users: readonly WebUser[];
  readonly jwt: JwtSettings | null;
}

/** `metrics`. */
export interface MetricsSettings {
  readonly host: string;
  readonly port: number;
  readonly auth: 'none' | 'basic';
  readonly users: readonly WebUser[];
}

/** What is wrong with a document: a JSON pointer into it (RFC 6901) and a sentence that names the key. */
export interface Problem {
  readonly pointer: string;
  readonly message: string;
}
export type ChangeResult =
  /** `report`: what a reload did, for people. */
  | { readonly ok: true; readonly report?: JsonObject }
  | { readonly ok: false; readonly why: 'missing' }
  | { readonly ok: false; readonly why: 'exists' }
  /** Nothing is wrong with what was asked for: a disk, for one, did not take it. */
  | { readonly ok: false; readonly why: 'unavailable'; readonly message: string }
  | { readonly ok: false; readonly why: 'invalid'; readonly problems: readonly Problem[] };

/** One certificate key of the configuration: what its file says, or why it cannot be read. */
export interface CertificateView extends Partial<CertificateFacts> {
  readonly key: string;
  /** "" for a pasted text. */
  readonly file: string;
  /** A certificate of this gateway; false: an authority. */
  readonly own: boolean;
  readonly error?: string;
}

/** A rule that runs. */
export interface RuleView extends RuleStatus {
  /** Its block, with the keys of the file. */
  readonly config: JsonObject;
}
/** A rule, by its name or as a document, and a message to try it on. */
export interface RuleSampleTrial {
  readonly rule: string | JsonObject;
  readonly sample: RuleSample;
}
/** Rules at run time; as BridgeControl has it for bridges. */
export interface RuleControl {
  list(): RuleView[];
  /** Adds a rule or takes another one's place. */
  put(name: string, document: JsonObject, keep?: boolean): Promise<ChangeResult>;
  remove(name: string, keep?: boolean): Promise<ChangeResult>;
  test(
    trial: RuleSampleTrial,
  ): Promise<
    { readonly ok: true; readonly result: RuleTrial } | { readonly ok: false; readonly problems: readonly Problem[] }
  >;
  /** Tries a rule on messages that come within `ms`, at most `most` of them. */
  watch(
    rule: string | JsonObject,
    ms: number,
    most: number,
  ): Promise<
    | { readonly ok: true; readonly results: readonly { readonly sample: RuleSample; readonly result: RuleTrial }[] }
    | { readonly ok: false; readonly problems: readonly Problem[] }
  >;
}

/** The parts of the configuration that NanoMQ's calls show in their own shape. A Config fits. */
export interface ShownConfig {
  readonly listeners: readonly Pick<ListenerConfig, 'name' | 'kind' | 'bind' | 'tls'>[];
  readonly mqtt: Pick<MqttConfig, 'maxPacketSize' | 'maxMqueueLen' | 'keepaliveMultiplier'>;
  readonly auth: Pick<AuthConfig, 'allowAnonymous' | 'users' | 'httpAuth'>;
  readonly httpServer: Pick<HttpServerConfig, 'ipAddr' | 'port' | 'username' | 'password' | 'authType'> | null;
  readonly persistence: Pick<PersistenceConfig, 'enable' | 'path' | 'sync'>;
}

export interface ConfigControl {
  /** The running configuration; what is secret in it is left out by whoever shows it. */
  current(): ShownConfig;
  /**
   * The effective configuration as `check --print` shows it: defaults included, bytes and milliseconds, secrets masked.
   */
  view(): JsonObject;
  /** Reads the file again and applies it; nothing changes when it is wrong. */
  reload(): Promise<ChangeResult>;
  /**
   * Sets single keys ("mqtt.max_packet_size") until the next restart, or with `keep` in tidegate.d too; all or nothing.
   */
  set(values: ReadonlyMap<string, string | number | boolean>, keep?: boolean): Promise<ChangeResult>;
  /** The file that kept changes are written to; null or absent where nothing can be kept. */
  keptFile?(): string | null;
  /** What set() would say to these values, without setting them; absent where it cannot be told. */
  check?(values: ReadonlyMap<string, string | number | boolean>): ChangeResult;
  /** Every key there is; absent where the schema is not at hand. */
  keys?(): readonly ConfigKey[];
}

/** One key of the configuration, for people who look at it or change it. */
export interface ConfigKey {
  /** "mqtt.max_packet_size"; `*` stands for a name that the user chose, `[]` for an entry of a list. */
  readonly key: string;
  /** What may be written. */
  readonly type: string;
  readonly text: string;
  /** As ConfigControl.view() shows it; absent where it has to be given. */
  readonly default?: Json;
  readonly unit: string | null;
  /** A change takes a restart. */
  readonly restart: boolean;
  readonly secret: boolean;
}

export interface LogLine {
  /** Wall-clock milliseconds. */
  readonly time: number;
  readonly level: Level;
  readonly msgid: string;
  readonly text: string;
  readonly fields: JsonObject;
}
/** The last log lines, kept in memory in a bounded number. */
export interface LogTail {
  /** Newest last. */
  recent(limit: number): readonly LogLine[];
  /** Calls `handler` for each new line until the returned function is called. */
  follow(handler: (line: LogLine) => void): () => void;
}

export interface ExplainQuery {
  readonly clientId: string;
  readonly username: string | null;
  readonly remoteAddress: string;
  readonly listener: string;
  /** connect: whether the client id is free for the user. */
  readonly action: 'publish' | 'subscribe' | 'deliver' | 'connect';
  /** Empty for connect. */
  readonly topic: string;
}
/** What came of commands: an answer for each, in their order; `error` in it where one was refused. */
export type AccountsOutcome =
  | { readonly ok: true; readonly responses: readonly JsonObject[] }
  | { readonly ok: false; readonly why: 'busy' | 'unwritable' | 'invalid'; readonly message: string };
export interface AccountsCaller {
  readonly user: string;
  readonly remote: string;
}
/** MQTT users, groups and roles at run time, in the words of mosquitto's dynamic security. Hashes only in text(). */
export interface AccountsControl {
  /** The file that keeps them. */
  readonly path: string;
  users(): Iterable<string>;
  user(name: string): JsonObject | undefined;
  groups(): Iterable<string>;
  group(name: string): JsonObject | undefined;
  roles(): Iterable<string>;
  role(name: string): JsonObject | undefined;
  /** What holds where no role says anything, and the group of clients without a user name. */
  defaults(): JsonObject;
  /** `whole`: one command that is refused undoes them all. */
  run(commands: readonly JsonObject[], by: AccountsCaller, whole: boolean): Promise<AccountsOutcome>;
  /** The whole file, with its hashes. */
  text(): string;
  replace(text: string, by: AccountsCaller): Promise<AccountsOutcome>;
}

/** Which rule of the ACL decides. */
export type Explain = (query: ExplainQuery) => { readonly allowed: boolean; readonly rule: string };

/** Where each upstream pool of the proxy stands. */
export interface ProxyControl {
  upstreams(): JsonObject[];
  /** Takes a server out of its pool (connections it has go on) or puts it back; absent where that is not possible. */
  drain?(upstream: string, server: string, on: boolean): ChangeResult;
}

/** Who may come in through one listener, and what decides on rights there. No passwords, no hashes. */
export interface SecurityView {
  /** "" = for listeners that say nothing themselves. */
  readonly listener: string;
  readonly anonymous: boolean;
  /** null: users are not known here (none configured, or asked elsewhere). */
  readonly users: readonly string[] | null;
  /** Other sources of users: "token", "http", "certificate". */
  readonly sources: readonly string[];
  readonly aclFile: string | null;
  /** Whether acl.rules are looked at. */
  readonly rules: boolean;
}

/** One file of the console pages, held in memory. */
export interface Page {
  readonly body: Uint8Array;
  readonly contentType: string;
  /** Quoted, as in the ETag header. */
  readonly etag: string;
  /** Whether its name changes with its content, so that browsers may keep it. */
  readonly immutable: boolean;
  /** The same packed by gzip, for whoever takes it; absent where it would not be smaller. */
  readonly gzip?: Uint8Array;
}
/** The console pages by exact path ("/", "/assets/app.js"): no path of a file is made from a request. */
export interface PageSource {
  page(path: string): Page | undefined | Promise<Page | undefined>;
}

export interface ConsoleOptions {
  readonly version: string;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Counts the memory of bodies and of readers of events; absent: nobody counts it. */
  readonly ledger?: Pick<Ledger, 'add' | 'watch' | 'isFull'>;
  readonly broker: Broker;
  readonly bridges: BridgeControl;
  /** Absent where there are none. */
  readonly rules?: RuleControl;
  /** null: none are configured now; absent where the gateway has none. */
  readonly accounts?: () => AccountsControl | null;
  /** Schemas of the documents of bridges and rules, for the description of the API. */
  readonly documents?: () => Readonly<Record<string, JsonObject>>;
  /** Where logins of the console are kept over a restart; absent or null: nowhere. */
  readonly loginsFile?: string | null;
  /** What is kept of the past; absent or null: nothing is. */
  readonly past?: () => PastControl | null;
  /** Certificates that the configuration names; absent: nobody looks. */
  readonly certificates?: () => readonly CertificateView[];
  /** Where the control socket is made; absent or null: there is none. */
  readonly controlFolder?: string | null;
  /** Calls back for each change of them that came over MQTT; absent where none can come. */
  readonly followAccounts?: (note: (by: AccountsCaller, done: string) => void) => () => void;
  readonly config: ConfigControl;
  readonly explain: Explain;
  /** Who may come in where; absent where that is not known. */
  readonly security?: () => readonly SecurityView[];
  /** null: this gateway has no proxy, keeps no log lines, persists nothing, has no pages. */
  readonly proxy: ProxyControl | null;
  readonly logTail: LogTail | null;
  readonly store: (() => JsonObject) | null;
  readonly pages: PageSource | null;
  /** True from GW-READY until stop begins: what /readyz tells first. */
  ready(): boolean;
  /** Whether every configured listener is open; absent where that is not known. */
  readonly listening?: () => boolean;
  settings(): HttpSettings;
  /** Absent: users with hashed passwords are not let in. */
  readonly matchesHash?: MatchesHash;
  /** A hash that matchesHash takes; absent: users cannot be added at run time. */
  readonly makeHash?: (password: string) => Promise<string>;
}
