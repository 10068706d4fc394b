// What tests of the proxy start from: options with their defaults, CONNECT bytes, and parts that need no sockets (connections live in a
// MemoryNetwork, under "host:port"). Used by test/proxy/.
import type { Fields, Level } from '../../src/base/log.ts';
import type { MsgId } from '../../src/base/messages.ts';
import { Metrics } from '../../src/base/metrics.ts';
import { encodeConnect } from '../../src/codec/connect.ts';
import { CONNECT, type ConnectPacket } from '../../src/mqtt/packet.ts';
import { addressFacts, type Facts } from '../../src/proxy/facts.ts';
import type {
  DiscoveryOptions,
  DnsRecord,
  FilterOptions,
  HttpAnswer,
  HttpQuery,
  ProxyOptions,
  ProxyParts,
  ServerOptions,
  UpstreamOptions,
} from '../../src/proxy/proxy.ts';
import { listenMemory, MemoryNetwork } from '../../src/transport/memory.ts';
import { encodeProxyHeader } from '../../src/transport/proxyline.ts';
import { withPushback } from '../../src/transport/pushback.ts';
import { LargeBuffers } from '../../src/transport/readbuffers.ts';
import type { Connection, DialTarget } from '../../src/transport/transport.ts';
import { FakeClock } from './clock.ts';

export function connectPacket(fields: Partial<ConnectPacket> = {}): ConnectPacket {
  return {
    type: CONNECT,
    version: 4,
    bridge: false,
    clientId: 'c1',
    cleanStart: true,
    keepAlive: 60,
    username: null,
    password: null,
    will: null,
    properties: null,
    ...fields,
  };
}

export function connectBytes(fields: Partial<ConnectPacket> = {}): Buffer {
  return encodeConnect(connectPacket(fields));
}

export function facts(fields: Partial<Facts> = {}): Facts {
  return { ...addressFacts('p', '127.0.0.1', 50000), version: 4, clientId: 'c1', ...fields };
}

export function serverOptions(addr: string, fields: Partial<ServerOptions> = {}): ServerOptions {
  const colon = addr.lastIndexOf(':');
  return {
    addr,
    host: addr.slice(0, colon),
    port: Number(addr.slice(colon + 1)),
    path: null,
    weight: 1,
    backup: false,
    down: false,
    maxFails: 1,
    failTimeoutMs: 10_000,
    maxConns: 0,
    ...fields,
  };
}

export function discoveryOptions(fields: Partial<DiscoveryOptions>): DiscoveryOptions {
  return {
    type: 'http',
    name: '',
    port: 1883,
    resolver: null,
    path: '',
    url: 'http://sd.example/targets',
    token: null,
    tag: null,
    datacenter: null,
    tls: null,
    weightLabel: 'weight',
    refreshMs: 10_000,
    timeoutMs: 1000,
    ...fields,
  };
}

export function upstreamOptions(
  name: string,
  servers: readonly ServerOptions[],
  fields: Partial<UpstreamOptions> = {},
): UpstreamOptions {
  return {
    name,
    balance: 'round_robin',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the proxy
    hashKey: '${clientid}',
    sticky: null,
    servers,
    discover: null,
    health: null,
    tls: null,
    protocol: 'tcp',
    path: '/mqtt',
    slowStartMs: 0,
    dnsRefreshMs: 30_000,
    sendProxyProtocol: 'off',
    ...fields,
  };
}

export function proxyOptions(fields: Partial<ProxyOptions> = {}): ProxyOptions {
  return {
    name: 'p',
    enable: true,
    host: 'proxy',
    port: 1,
    otherBinds: [],
    protocol: 'tcp',
    udpTimeoutMs: 60_000,
    web: null,
    tls: null,
    tlsNames: [],
    useIdentityAsUsername: false,
    proxyProtocol: false,
    proxyProtocolFrom: [],
    preread: true,
    nonMqtt: 'close',
    prereadMaxBytes: 65_536,
    prereadTimeoutMs: 10_000,
    connectTimeoutMs: 5_000,
    idleTimeoutMs: null,
    halfClose: false,
    nextUpstream: { tries: 0, timeoutMs: 0 },
    reject: 'close',
    set: { clientId: undefined, username: undefined, password: undefined },
    routes: [],
    map: null,
    split: [],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a template of the proxy
    splitKey: '${clientid}',
    default: 'pool',
    maxConnections: 0,
    limitConn: { perIp: 0, perClientId: 0, perUsername: 0 },
    limitRate: { connectsPerSecond: 0, perIpPerSecond: 0, perClientIdPerSecond: 0, burst: 10, banMs: 0 },
    deny: [],
    allow: [],
    filter: null,
    topics: [],
    topicRouting: {
      lost: 'close',
      maxSessions: 8,
      maxPacketBytes: 1_048_576,
      maxHeldBytes: 4_194_304,
      memoryBytes: 268_435_456,
    },
    accessLog: null,
    ...fields,
  };
}

/** A filter that lets everything through as it is. */
export const OPEN_FILTER: FilterOptions = {
  prefix: '',
  publish: { allow: [], deny: [] },
  subscribe: { allow: [], deny: [] },
  denied: 'ignore',
  messagesPerSecond: 0,
  userProperties: [],
};

export interface MemoryParts {
  /** Log lines so far. */
  readonly logged: { level: Level; id: MsgId; fields?: Fields }[];
  readonly parts: ProxyParts;
  readonly clock: FakeClock;
  readonly metrics: Metrics;
  readonly network: MemoryNetwork;
  /** Addresses that are dialled, in order. */
  readonly dialled: string[];
  /** What names stand for; a name that is not here cannot be resolved. */
  readonly names: Map<string, string[]>;
  /** Records by "type name"; a name that is not here has none. */
  readonly records: Map<string, DnsRecord[]>;
  /** What a web server answers; by default it cannot be reached. */
  readonly web: { answer: (url: string, query: HttpQuery) => Promise<HttpAnswer> };
  /** Texts of files by path. */
  readonly files: Map<string, string>;
  /** What went to the built-in broker. */
  readonly local: Connection[];
}

/** Parts without sockets: `dial` reaches what listens in `network` under "host:port", everything else refuses. */
export function memoryParts(env: Readonly<Record<string, string>> = {}): MemoryParts {
  const clock = new FakeClock();
  const metrics = new Metrics();
  const network = new MemoryNetwork();
  const dialled: string[] = [];
  const names = new Map<string, string[]>();
  const records = new Map<string, DnsRecord[]>();
  const files = new Map<string, string>();
  const web: MemoryParts['web'] = {
    answer: async () => {
      throw new Error('no web server here');
    },
  };
  const textOf = (path: string): string => {
    const text = files.get(path);
    if (text === undefined) throw new Error(`no file ${path}`);
    return text;
  };
  const local: Connection[] = [];
  const logged: MemoryParts['logged'] = [];
  const nothing = async (): Promise<never> => {
    throw new Error('no datagrams here');
  };
  const parts: ProxyParts = {
    clock,
    metrics,
    log: (level, id, fields) => logged.push({ level, id, fields }),
    env,
    local: (connection) => local.push(connection),
    transports: {
      buffers: new LargeBuffers(),
      descriptorLimit: null,
      listen: (at, options) => listenMemory({ ...options, network, name: `${at.host}:${at.port}` }),
      dial: async (target) => {
        const name = placeOf(target);
        dialled.push(name);
        return network.dial(name);
      },
      bindDatagrams: nothing,
      connectDatagrams: nothing,
      resolve: async (host) => {
        const found = names.get(host);
        if (found === undefined) throw new Error(`${host} is not known`);
        return found;
      },
      query: async (name, type) => {
        const found = records.get(`${type} ${name}`);
        if (found === undefined) throw new Error(`${name}: NXDOMAIN`);
        return found;
      },
      get: (url, query) => web.answer(url, query),
      files: {
        stamp: async (path) => textOf(path),
        read: async (path) => textOf(path),
        parse: (text) => JSON.parse(text) as unknown,
      },
      pushBack: withPushback,
      proxyHeader: (version) => encodeProxyHeader(version, null, null),
    },
  };
  return { parts, clock, metrics, network, dialled, names, records, web, files, local, logged };
}

function placeOf(target: DialTarget): string {
  return target.kind === 'tcp' || target.kind === 'tls' ? `${target.host}:${target.port}` : target.kind;
}

/** Accepts at "host:port" of the network; gives what has been accepted. */
export async function memoryServer(network: MemoryNetwork, name: string): Promise<Connection[]> {
  const accepted: Connection[] = [];
  const listener = listenMemory({
    network,
    name,
    accept: (connection) => accepted.push(connection),
    reject: () => {},
    maxConnections: 0,
    handshakeTimeoutMs: 1000,
    proxyProtocol: false,
  });
  await listener.start();
  return accepted;
}

/** Lets everything that is ready happen: promises, immediates, memory connections. */
export async function settled(turns = 8): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}
