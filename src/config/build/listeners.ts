// From the checked tree to listeners, with the checks that take more than one key.
// Called by build.ts. Pure: problems go to the sink.

import type { ListenerConfig, ListenerKind, TlsNameConfig, TlsServerConfig } from '../listeners.ts';
import { effectiveFields } from '../schema/effective.ts';
import type { Checked } from '../schema/key.ts';
import {
  LISTENER,
  LISTENER_KINDS,
  type SSL,
  type TCP,
  TLS_SERVER,
  type UNIX,
  type WS,
  type WSS,
} from '../schema/listeners.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import { checkSocketPath, isLoopback } from '../values.ts';
import { address, proxyProtocolFrom, tlsNames, tlsServer, tlsVersion } from './values.ts';

type TcpKeys = Checked<typeof TCP>;
type SslKeys = Checked<typeof SSL>;
type WsKeys = Checked<typeof WS> | Checked<typeof WSS>;
type UnixKeys = Checked<typeof UNIX>;
type ListenerBlock = TcpKeys | SslKeys | WsKeys | UnixKeys;
interface Candidate {
  readonly name: string;
  readonly kind: ListenerKind;
  readonly block: ListenerBlock;
}

/** A listener whose allowAnonymous is not decided yet. */
export type OpenListener = Omit<ListenerConfig, 'allowAnonymous'> & { readonly anonymous: boolean | null };

/** Every block of a listener, enabled or not, in the order of the kinds. */
export function* listenerBlocks({ listeners }: CheckedRoot): Generator<Candidate> {
  for (const kind of LISTENER_KINDS) {
    const { own, named } = listeners[kind];
    if (own !== null) yield { name: kind, kind, block: own };
    for (const [name, block] of named) yield { name: `${kind}.${name}`, kind, block };
  }
}

export function buildListeners(root: CheckedRoot, sink: Sink): OpenListener[] {
  const listeners: OpenListener[] = [];
  for (const candidate of listenerBlocks(root)) {
    const { name, kind, block } = candidate;
    if (name !== kind && 'bind' in block && !sink.written(block, 'bind')) sink.refuse(block, 'bind', 'is missing');
    if (!block.enable) continue;
    const listener = buildListener(candidate, root, sink);
    if (listener !== null) listeners.push(listener);
  }
  return listeners;
}

function buildListener({ name, kind, block }: Candidate, root: CheckedRoot, sink: Sink): OpenListener | null {
  const { enable: _, allowAnonymous: anonymous, ...own } = effectiveFields(LISTENER, block);
  const common = { ...own, anonymous, name, kind, source: sink.at(block) };
  if (!('bind' in block)) {
    const wrong = block.path === null ? 'is missing' : checkSocketPath(block.path);
    if (wrong !== null) sink.refuse(block, 'path', wrong);
    const path = block.path ?? '';
    const unix = {
      bind: path,
      host: '',
      port: 0,
      path,
      mode: block.mode,
      group: block.group,
      proxyProtocolFrom: [],
      proxyCertificate: false,
    };
    const open = { ipv6Only: false, paths: null };
    return { ...common, ...unix, ...open, tls: null, tlsNames: [], identity: null, origins: null };
  }
  const { port, path: bound, ...at } = address(block.bind);
  const host = block.bind.startsWith('*') ? '*' : at.host;
  const path = ('path' in block ? block.path : null) ?? bound;
  let tls: TlsServerConfig | null = null;
  let names: TlsNameConfig[] = [];
  if ('keyfile' in block) {
    const own = block.keyfile !== null || block.certfile !== null || block.psk_file !== null;
    const shared = kind === 'wss' && !own ? root.listeners.ssl.own : null;
    const from = shared ?? block;
    tls = from.psk_file === null ? tlsServer(from, sink) : pskServer(from, from.psk_file, sink);
    names = tlsNames(from.certificates);
    if (from.psk_file === null && from.psk_hint !== null)
      sink.doubt(from, 'psk_hint', 'has no effect without psk_file');
    checkIdentity(block, from, sink);
  }
  return {
    ...common,
    bind: block.bind,
    host,
    port,
    path: !('path' in block) || path === 'any' ? '' : path || '/mqtt',
    paths: !('path' in block) || path === 'any' ? null : path === '' ? ['/mqtt', '/'] : [path],
    ipv6Only: block.ipv6_only,
    proxyProtocolFrom: proxyProtocolFrom(block, [host], sink),
    proxyCertificate: proxyCertificate(block, host, sink),
    mode: null,
    group: null,
    tls,
    tlsNames: names,
    identity: 'keyfile' in block ? identityOf(block) : block.proxy_protocol_certificate === 'username' ? 'cn' : null,
    origins: 'origins' in block && block.origins.length > 0 ? block.origins : null,
  };
}

/** Whether certificates come in the PROXY header: who is believed may be anybody he likes. */
function proxyCertificate(block: TcpKeys | SslKeys, host: string, sink: Sink): boolean {
  if (!('proxy_protocol_certificate' in block) || block.proxy_protocol_certificate === 'off') return false;
  const key = 'proxy_protocol_certificate';
  if (!block.proxy_protocol) sink.refuse(block, key, 'needs proxy_protocol = true');
  if (block.proxy_protocol_from.length === 0 && !isLoopback(host))
    sink.doubt(block, key, 'whoever can connect may claim any certificate; name the proxies in proxy_protocol_from');
  return true;
}

/** TLS by pre-shared keys: neither side has a certificate. */
function pskServer(block: SslKeys, file: string, sink: Sink): TlsServerConfig {
  for (const key of ['keyfile', 'certfile', 'cacertfile', 'crlfile'] as const)
    if (block[key] !== null) sink.refuse(block, key, 'cannot be combined with psk_file');
  for (const key of ['verify_peer', 'fail_if_no_peer_cert', 'use_subject_as_username'] as const)
    if (block[key]) sink.refuse(block, key, 'cannot be combined with psk_file: clients have no certificate');
  if (block.certificates.length > 0) sink.refuse(block, 'certificates', 'cannot be combined with psk_file');
  const fields = effectiveFields(TLS_SERVER, block);
  const psk = { file, hint: block.psk_hint };
  return { ...fields, minVersion: tlsVersion(block.min_version), keyfile: '', certfile: '', psk };
}

/** `tls` is the block the certificate settings are taken from. */
function checkIdentity(block: SslKeys, tls: SslKeys, sink: Sink): void {
  for (const key of ['use_identity_as_username', 'use_subject_as_username'] as const) {
    if (block[key] && !tls.verify_peer && tls.psk_file === null)
      sink.doubt(block, key, 'without verify_peer no client is asked for a certificate, so nobody gets in');
  }
  if (block.use_identity_as_username && block.use_subject_as_username) {
    sink.refuse(block, 'use_subject_as_username', 'cannot be combined with use_identity_as_username');
  }
}

function identityOf(block: SslKeys): 'cn' | 'subject' | null {
  return block.use_subject_as_username ? 'subject' : block.use_identity_as_username ? 'cn' : null;
}
