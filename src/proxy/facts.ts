// What is known of a client when it is routed: fields of its CONNECT, its address, its TLS. Made by relay.ts, read by
// routes and templates. Values are text from outside: they are compared, matched by linear patterns and put into
// templates once, never interpreted.
import { isTlsVariable } from '../base/tlsvariables.ts';
import type { Connection } from '../transport/transport.ts';
import type { ConnectLayout } from './layout.ts';
import type { FactName } from './proxy.ts';
import { TlsFacts } from './tlsfacts.ts';

export interface Facts {
  readonly listener: string;
  readonly remoteAddress: string;
  readonly remotePort: string;
  /** Asked for in TLS, ended here or only passed through. */
  sni: string | null;
  readonly certCn: string | null;
  readonly tlsVersion: string | null;
  /** null = its TLS, if there is any, does not end here. */
  readonly tls: TlsFacts | null;
  /** "" where the client has none. */
  clientId: string;
  /** null = none, or not text. */
  username: string | null;
  /** 0 where no CONNECT was read. */
  version: 0 | 3 | 4 | 5;
  keepAlive: number;
  cleanStart: boolean;
  willTopic: string | null;
  /** What the pattern of the route has captured: numbers and names. */
  captures: ReadonlyMap<string, string>;
}

const NOTHING: ReadonlyMap<string, string> = new Map();

export function connectionFacts(listener: string, connection: Connection): Facts {
  const { remote, remoteAddress, tls } = connection;
  return {
    ...addressFacts(listener, remoteAddress, remoteAddress === '' ? '' : remote.slice(remote.lastIndexOf(':') + 1)),
    sni: tls?.serverName ?? null,
    certCn: tls?.peer?.commonName ?? null,
    tlsVersion: tls?.version ?? null,
    tls: tls === null ? null : new TlsFacts(tls),
  };
}

/** Of a client of whom nothing is known but its address. */
export function addressFacts(listener: string, remoteAddress: string, remotePort: string | number): Facts {
  return {
    listener,
    remoteAddress,
    remotePort: String(remotePort),
    sni: null,
    certCn: null,
    tlsVersion: null,
    tls: null,
    clientId: '',
    username: null,
    version: 0,
    keepAlive: 0,
    cleanStart: false,
    willTopic: null,
    captures: NOTHING,
  };
}

export function takeConnect(facts: Facts, layout: ConnectLayout): void {
  const { packet } = layout;
  facts.clientId = packet.clientId;
  facts.username = layout.username;
  facts.version = packet.version;
  facts.keepAlive = packet.keepAlive;
  facts.cleanStart = packet.cleanStart;
  facts.willTopic = packet.will?.topicName ?? null;
}

/** The value a condition looks at; null when the client has none. */
export function fact(facts: Facts, name: FactName): string | null {
  switch (name) {
    case 'clientid':
      return facts.version === 0 ? null : facts.clientId;
    case 'username':
      return facts.username;
    case 'version':
      return facts.version === 0 ? null : String(facts.version);
    case 'sni':
      return facts.sni;
    case 'listener':
      return facts.listener;
    case 'remote_addr':
      return facts.remoteAddress;
    case 'cert_cn':
      return facts.certCn;
    case 'tls_version':
      return facts.tlsVersion;
    default:
      return facts.tls?.value(name) ?? null;
  }
}

/** The value of a variable in a template, "" when there is none. */
export function variable(facts: Facts, name: string): string {
  switch (name) {
    case 'clientid':
      return facts.clientId;
    case 'username':
      return facts.username ?? '';
    case 'version':
      return facts.version === 0 ? '' : String(facts.version);
    case 'keep_alive':
      return facts.version === 0 ? '' : String(facts.keepAlive);
    case 'clean_start':
      return facts.version === 0 ? '' : facts.cleanStart ? '1' : '0';
    case 'will_topic':
      return facts.willTopic ?? '';
    case 'sni':
      return facts.sni ?? '';
    case 'cert_cn':
      return facts.certCn ?? '';
    case 'tls_version':
      return facts.tlsVersion ?? '';
    case 'listener':
      return facts.listener;
    case 'remote_addr':
      return facts.remoteAddress;
    case 'remote_port':
      return facts.remotePort;
    default:
      if (isTlsVariable(name)) return facts.tls?.value(name) ?? '';
      return name.startsWith('match.') ? (facts.captures.get(name.slice('match.'.length)) ?? '') : '';
  }
}
