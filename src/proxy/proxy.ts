// SEAM of proxy/: the CONNECT-aware proxy as the rest of the gateway sees it. Options come from the configuration (the
// types of config/ fit), transports and the built-in broker are handed in by gateway/gateway.ts, views go to REST and
// `ctl`. proxies.ts runs all of it; a connection lives in relay.ts. Nothing here reaches for sockets, files or names by
// itself but the access log. Source: docs/proxy.md, which says what users may rely on; NGINX's stream modules for
// balancing.
//
// Map (made by `make docs`):
//   accesslog.ts             The access log of the proxy: one line for each connection, in NGINX's escaping or as JSON
//   balance.ts               Which peer gets the next connection: NGINX's methods for streams
//   clienthello.ts           The server name a TLS client asks for, read from its first message without answering it
//   connack.ts               Watches what a server sends until its CONNACK: result
//   datagrams.ts             A proxy for datagrams (`protocol = udp`)
//   dialing.ts               From a pool to a connection: dials one server after the other until one takes the client
//   entrance.ts              One configured proxy: its listener, its rules, its limits, and the clients that are in
//   facts.ts                 What is known of a client when it is routed: fields of its CONNECT, its address, its TLS
//   filter.ts                What a client may publish and subscribe to behind a proxy with `inspect`
//   guard.ts                 The filter of one client at work: takes what both sides send
//   health.ts                Active health checks
//   inspect.ts               Every packet between one client and its server, with `inspect`
//   layout.ts                Where the fields of a CONNECT stand
//   limits.ts                Limits of a proxy: connections of one key at a time, events a second
//   logformat.ts             Lines of the access log in the form that the configuration chooses: text, json
//   map.ts                   Tables of upstreams: NGINX's map with its precedence, and its split of clients into shares
//   metrics.ts               The metrics of the proxy, each once: name, text, type, unit
//   ownfault.ts              Failures to reach a server that are this process's own: they say nothing about the server
//   packetstream.ts          A stream of MQTT bytes cut into packets, each of which may be passed on
//   peer.ts                  One address of a server of a pool: what balancing
//   pool.ts                  A pool of servers (`upstreams.<name>`): its peers, who of them is chosen
//   preread.ts               Reads a client's first packet without consuming it: decides, after every chunk
//   proxies.ts               All proxies and pools of a gateway: started, changed on reload and stopped together
//   publishhead.ts           The variable header of a PUBLISH
//   relay.ts                 One client of a proxy, from its acceptance to its line in the access log
//   rewrite.ts               A CONNECT with other values for client id, user name and password
//   ring.ts                  The points of consistent hashing: 160 for each unit of weight of a server
//   route.ts                 Which upstream a client goes to: the first route whose conditions all fit, then the map
//   rules.ts                 A proxy's configuration made ready for use: one snapshot
//   session.ts               An open session of a client with a server: the two connections joined, CONNACK looked at
//   splice.ts                Two connections joined: what comes in on one goes out on the other, both ways
//   sticky.ts                Which server each client was led to the last time (`sticky` of a pool): a key
//   tally.ts                 The bytes of one client, from it and to it: added up over the stages of its connection
//   tap.ts                   A connection that is handed to the built-in broker and still counted here
//   template.ts              Templates such as "ng-${clientid}": taken apart once, filled in for every client
//   tlsfacts.ts              What the TLS of one client says: protocol, cipher
//   verdict.ts               What becomes of a CONNECT
//   discovery/consul.ts      Servers from Consul: the healthy instances of a service, followed by blocking queries
//   discovery/discovery.ts   Keeps the servers of a pool up to date from a source outside the configuration
//   discovery/dns.ts         Servers from the DNS: the addresses of a name
//   discovery/file.ts        Servers from a file that is looked at again and again
//   discovery/found.ts       A server that a source names, and the checks every source's answer goes through: addresses
//   discovery/http.ts        Servers from a document that a web server gives
//   discovery/listed.ts      Servers out of a parsed document
//   topics/answers.ts        Answers of several servers that the client gets as one: SUBACK
//   topics/arrivals.ts       What servers send to the client of an exchange: messages under identifiers of the client's
//   topics/attendance.ts     What it means for a client of an exchange that one of its servers comes, comes back
//   topics/backlog.ts        What one server of a client has still to be given
//   topics/clientpackets.ts  What a client sends once its exchange is open, packet by packet
//   topics/clientside.ts     The client's end of an exchange: its bytes cut into packets on the way in
//   topics/cutter.ts         One side of an exchange cut into packets by codec/cutter.ts
//   topics/deliveries.ts     Packet identifiers of messages on their way from several servers to one client
//   topics/ends.ts           What the parts of one client's exchange share: its servers, the way to the client
//   topics/exchange.ts       One client with the servers of several upstreams, each for its topics
//   topics/exchanges.ts      What the clients of one proxy with `topics` share: their memory
//   topics/greeting.ts       The CONNECT that each server of a client gets
//   topics/held.ts           Memory that clients of a proxy with `topics` hold: what waits for a server
//   topics/leg.ts            The session of one client with one server of several: dialled when first needed
//   topics/legs.ts           The sessions of one client with servers, one for each upstream of its table
//   topics/loan.ts           What is read for an exchange, into buffers that are used again
//   topics/opening.ts        The beginning of an exchange: the sessions that are needed at once are opened
//   topics/outlet.ts         What goes out on one connection that several others write to
//   topics/owners.ts         Upstreams of topics by the bytes of their names
//   topics/pings.ts          When a server of several gets PINGREQ: the client's own packets may all go to the others
//   topics/publishes.ts      What a client publishes, led to the server of its topic
//   topics/requests.ts       SUBSCRIBE, UNSUBSCRIBE and PUBREL of a client
//   topics/retries.ts        How long a server that was lost is left alone, and when it makes no sense to try again
//   topics/run.ts            Packets that follow each other unchanged in one buffer and go the same way
//   topics/serverpackets.ts  What the servers of an exchange send, packet by packet
//   topics/silence.ts        When a client of an exchange has been silent for too long
//   topics/table.ts          Which upstream a topic belongs to, and which ones a Topic Filter may reach
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { AddressTest } from '../base/networks.ts';
import type { TlsVariable } from '../base/tlsvariables.ts';
import type {
  Connection,
  DatagramSocket,
  DialTarget,
  Listener,
  ListenerOptions,
  ReadBuffers,
  TlsClientOptions,
  TlsServerOptions,
} from '../transport/transport.ts';

/** What a condition of a route looks at. */
export type FactName =
  | 'clientid'
  | 'username'
  | 'version'
  | 'sni'
  | 'listener'
  | 'remote_addr'
  | 'cert_cn'
  | 'tls_version'
  | TlsVariable;

/** A field that is missing fits == and =~ never, != and !~ always. */
export interface ConditionOptions {
  readonly field: FactName;
  readonly op: '==' | '!=' | '=~' | '!~' | '=~*' | '!~*';
  readonly value: string;
  /** For the linear engine; null for == and !=. */
  readonly pattern: RegExp | null;
  /** Whether an address is in the network that `value` names; left out or null: it names none. */
  readonly network?: AddressTest | null;
}

/** A share of the clients; the shares of a list follow each other. */
export interface ShareOptions {
  /** Hundredths of a percent; -1 = all that are left. */
  readonly percent: number;
  readonly upstream: string;
}

export interface RouteOptions {
  /** All have to fit. */
  readonly match: readonly ConditionOptions[];
  /** Name of an upstream, or "local"; null where `split` decides. */
  readonly upstream: string | null;
  readonly split: readonly ShareOptions[];
}

export interface MapOptions {
  /** Template that is looked up. */
  readonly source: string;
  readonly ignoreCase: boolean;
  /** "*.suffix", ".suffix" and "prefix.*" are masks. */
  readonly hostnames: boolean;
  readonly values: readonly {
    readonly key: string;
    readonly pattern: RegExp | null;
    /** Of a key that is a network; left out or null: it is none. */
    readonly network?: { readonly bits: number; readonly has: AddressTest } | null;
    readonly upstream: string;
  }[];
  /** null = what is not in the table is left to split and default. */
  readonly default: string | null;
}

/** What happens to messages of clients whose packets are read. Topics are those the client writes. */
export interface FilterOptions {
  /** Template; "" = none. */
  readonly prefix: string;
  readonly publish: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly subscribe: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  readonly denied: 'ignore' | 'disconnect';
  /** 0 = no limit. */
  readonly messagesPerSecond: number;
  /** Values are templates. */
  readonly userProperties: readonly (readonly [string, string])[];
}

/** Topics that belong to another upstream than that of the route; the first filter that fits decides. */
export interface TopicRuleOptions {
  readonly filter: string;
  readonly upstream: string;
  /** Template of the client id there; null = the same as for the route's upstream. */
  readonly clientId: string | null;
}

export interface TopicRoutingOptions {
  /** What becomes of the topics of a server that is lost: the client is closed, they are refused, or they wait. */
  readonly lost: 'close' | 'refuse' | 'wait';
  /** Sessions with servers that one client may have. */
  readonly maxSessions: number;
  /** Largest packet, to either side. */
  readonly maxPacketBytes: number;
  /** What is held for one client, and for all clients of the proxy. */
  readonly maxHeldBytes: number;
  readonly memoryBytes: number;
}

/** Another certificate, for clients that ask for this name. */
export interface TlsNameOptions {
  readonly name: string;
  readonly keyfile: string;
  readonly certfile: string;
  readonly keyPassword: string | null;
}

/** MQTT over WebSocket in front of a proxy. */
export interface WebOptions {
  /** Paths that are served; null = any. */
  readonly paths: readonly string[] | null;
  /** Values of the Origin header that browsers may come with; null = any. */
  readonly origins: readonly string[] | null;
  readonly maxMessageBytes: number;
}

/** undefined = leave the field, null = remove it, text = a template. */
export interface SetOptions {
  readonly clientId: string | null | undefined;
  readonly username: string | null | undefined;
  readonly password: string | null | undefined;
}

export interface AccessLogOptions {
  readonly file: string;
  /** text, json, a template, or the keys of a JSON object. */
  readonly format: string | readonly string[];
  readonly rotation: { readonly size: number; readonly count: number };
}

export interface ProxyOptions {
  readonly name: string;
  readonly enable: boolean;
  readonly host: string;
  readonly port: number;
  /** Addresses besides the first; none with udp. */
  readonly otherBinds: readonly { readonly host: string; readonly port: number }[];
  /** udp: datagrams, one session for each address and port of a client; nothing is read of them. */
  readonly protocol: 'tcp' | 'udp' | 'ws' | 'wss';
  readonly udpTimeoutMs: number;
  /** null = no WebSocket. */
  readonly web: WebOptions | null;
  readonly tls: TlsServerOptions | null;
  readonly tlsNames: readonly TlsNameOptions[];
  readonly useIdentityAsUsername: boolean;
  readonly proxyProtocol: boolean;
  /** Addresses and networks whose header is believed; empty = any. */
  readonly proxyProtocolFrom: readonly string[];
  readonly preread: boolean;
  readonly nonMqtt: 'close' | 'pass';
  readonly prereadMaxBytes: number;
  readonly prereadTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** null = 1.5 times the keep alive and 10 s; 0 = never. */
  readonly idleTimeoutMs: number | null;
  readonly halfClose: boolean;
  /** 0 = no limit, for both. */
  readonly nextUpstream: { readonly tries: number; readonly timeoutMs: number };
  readonly reject: 'close' | 'connack';
  readonly set: SetOptions;
  readonly routes: readonly RouteOptions[];
  readonly map: MapOptions | null;
  readonly split: readonly ShareOptions[];
  readonly splitKey: string;
  /** Name of an upstream, "local", or null: what no route takes is refused. */
  readonly default: string | null;
  readonly maxConnections: number;
  readonly limitConn: { readonly perIp: number; readonly perClientId: number; readonly perUsername: number };
  readonly limitRate: {
    readonly connectsPerSecond: number;
    /** 0 = no limit, for both. */
    readonly perIpPerSecond: number;
    readonly perClientIdPerSecond: number;
    readonly burst: number;
    readonly banMs: number;
  };
  /** Each a list of conditions that all have to fit. */
  readonly deny: readonly (readonly ConditionOptions[])[];
  readonly allow: readonly (readonly ConditionOptions[])[];
  /** Empty = a client has one server. */
  readonly topics: readonly TopicRuleOptions[];
  readonly topicRouting: TopicRoutingOptions;
  /** null = bytes are passed on. */
  readonly filter: FilterOptions | null;
  readonly accessLog: AccessLogOptions | null;
}

export interface ServerOptions {
  /** As written: consistent hashing takes it in this form. */
  readonly addr: string;
  /** A name or an address without brackets; "" for a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket, else null. */
  readonly path: string | null;
  readonly weight: number;
  readonly backup: boolean;
  readonly down: boolean;
  /** 0 = failures never count. */
  readonly maxFails: number;
  readonly failTimeoutMs: number;
  readonly maxConns: number;
}

export interface HealthOptions {
  readonly type: 'tcp' | 'mqtt';
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly fails: number;
  readonly passes: number;
  /** With type mqtt: a refusal is a good answer as well. */
  readonly anyConnack: boolean;
  readonly username: string | null;
  readonly password: string | null;
}

/** Where a pool gets servers from while it runs, beside those that are configured. */
export interface DiscoveryOptions {
  readonly type: 'dns' | 'srv' | 'file' | 'http' | 'consul';
  /** Of the host (dns), the SRV records (srv) or the service (consul). */
  readonly name: string;
  /** dns: port of every server. file, http: port of an address that has none; 0 = it must have one. */
  readonly port: number;
  /** Of the name server, as "host:port"; null = those of the system. */
  readonly resolver: string | null;
  readonly path: string;
  /** http: the document. consul: its address. */
  readonly url: string;
  readonly token: string | null;
  readonly tag: string | null;
  readonly datacenter: string | null;
  readonly tls: TlsClientOptions | null;
  /** Label or metadata key that holds a server's weight. */
  readonly weightLabel: string;
  readonly refreshMs: number;
  readonly timeoutMs: number;
}

export interface UpstreamOptions {
  readonly name: string;
  readonly balance: 'round_robin' | 'least_conn' | 'ip_hash' | 'hash' | 'consistent_hash' | 'random';
  readonly hashKey: string;
  /** null = balance alone decides. `key` is a template. */
  readonly sticky: { readonly key: string; readonly expireMs: number; readonly size: number } | null;
  readonly servers: readonly ServerOptions[];
  /** null = only those servers. */
  readonly discover: DiscoveryOptions | null;
  readonly health: HealthOptions | null;
  readonly tls: TlsClientOptions | null;
  /** ws: MQTT over WebSocket; with TLS it is wss. */
  readonly protocol: 'tcp' | 'ws';
  /** Of the WebSocket request. */
  readonly path: string;
  readonly slowStartMs: number;
  readonly dnsRefreshMs: number;
  readonly sendProxyProtocol: 'off' | 'v1' | 'v2';
}

/** The built-in broker as the target of a route. */
export const LOCAL = 'local';

export interface ListenAt {
  readonly host: string;
  readonly port: number;
  /** null = bytes as they are. */
  readonly web: WebOptions | null;
  readonly tls: TlsServerOptions | null;
  readonly tlsNames: readonly TlsNameOptions[];
}

export interface ProxyDialOptions {
  readonly timeoutMs: number;
  /** Sent in clear before everything else. */
  readonly preface?: Uint8Array;
  readonly signal?: AbortSignal;
}

/** A listener whose certificates can be read again; connections keep those they began with. */
export interface ProxyListener extends Listener {
  reloadCertificates?(): Promise<void>;
}

export type DnsRecord =
  | { readonly type: 'A' | 'AAAA'; readonly ttl: number; readonly address: string }
  | {
      readonly type: 'SRV';
      readonly ttl: number;
      readonly priority: number;
      readonly weight: number;
      readonly port: number;
      readonly target: string;
    };

export interface DnsQuery {
  /** "host:port"; null = the name servers of the system. */
  readonly server: string | null;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface HttpQuery {
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly tls: TlsClientOptions | null;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case; of a header that came more than once the last one. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Files that a pool reads its servers from. All reject with the reason. */
export interface WatchedFiles {
  /** Changes whenever the file may have changed. */
  stamp(path: string): Promise<string>;
  read(path: string, maxBytes: number): Promise<string>;
  /** Throws for what is not this dialect; objects have no prototype to reach. */
  parse(text: string, dialect: 'json' | 'toml'): unknown;
}

/** What the proxy needs of transport/. */
export interface ProxyTransports {
  listen(at: ListenAt, options: ListenerOptions): ProxyListener;
  /** What sessions read into that only pass bytes on. */
  readonly buffers: ReadBuffers;
  /** File descriptors that this process may have, null = the system does not tell. */
  readonly descriptorLimit: number | null;
  /** Connects once. Rejects with the reason, also after the time given; with EMFILE while descriptors are short. */
  dial(target: DialTarget, options: ProxyDialOptions): Promise<Connection>;
  /** A socket for datagrams of anybody. Rejects with TRANSPORT-BIND. */
  bindDatagrams(host: string, port: number): Promise<DatagramSocket>;
  /** A socket for datagrams to and from one address. */
  connectDatagrams(address: string, port: number): Promise<DatagramSocket>;
  /** Addresses of a host name, at least one. Rejects when there is none. */
  resolve(host: string): Promise<string[]>;
  /** Records of a name with their Times To Live; rejects when there are none, with the code of the answer. */
  query(name: string, type: DnsRecord['type'], options: DnsQuery): Promise<readonly DnsRecord[]>;
  /** One GET, redirects not followed. Rejects when the server cannot be reached, is too slow or says too much. */
  get(url: string, options: HttpQuery): Promise<HttpAnswer>;
  readonly files: WatchedFiles;
  /** The same connection, whose reader gets `bytes` first. */
  pushBack(connection: Connection, bytes: Buffer): Connection;
  /** The header that names the ends of `client`; null: one that names nobody. */
  proxyHeader(version: 1 | 2, client: Connection | null): Buffer;
}

export interface ProxyParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly transports: ProxyTransports;
  /** Hands a connection to the built-in broker, from CONNECT on. */
  readonly local: (connection: Connection, proxy: string, connectTimeoutMs: number) => void;
  /** What ${env.NAME} stands for. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** One address of a server, for REST, console and `ctl`. */
export interface PeerView {
  /** As configured. */
  readonly server: string;
  /** What names it: the configuration, or a source of discovery. */
  readonly from: 'config' | DiscoveryOptions['type'];
  readonly metadata: Readonly<Record<string, string>>;
  /** Where it is dialled. */
  readonly address: string;
  readonly weight: number;
  readonly backup: boolean;
  /** up; down by configuration; draining by hand; resting after failures; unhealthy by checks. */
  readonly state: 'up' | 'down' | 'draining' | 'resting' | 'unhealthy';
  readonly connections: number;
  readonly served: number;
  readonly fails: number;
  readonly lastError: string | null;
}
export interface DiscoveryView {
  readonly type: DiscoveryOptions['type'];
  /** For people, without credentials. */
  readonly source: string;
  readonly servers: number;
  /** Milliseconds since the last good answer; null = none yet. */
  readonly ageMs: number | null;
  /** Why the last answer was not used; null = it was. */
  readonly error: string | null;
}

export interface UpstreamView {
  readonly name: string;
  readonly balance: UpstreamOptions['balance'];
  readonly health: 'tcp' | 'mqtt' | null;
  readonly discovery: DiscoveryView | null;
  readonly servers: readonly PeerView[];
}
