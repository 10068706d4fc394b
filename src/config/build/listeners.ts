// From the checked tree to listeners, with the checks that take more than one key.
// Called by build.ts. Pure: problems go to the sink.

import type { ListenerConfig, ListenerKind, TlsNameConfig, TlsServerConfig } from '../config.ts';
import { effectiveFields } from '../schema/effective.ts';
import type { Checked } from '../schema/key.ts';
import { type SSL, type TCP, TLS_SERVER, type UNIX, type WS } from '../schema/listeners.ts';
import type { CheckedRoot } from '../schema/schema.ts';
import type { Sink } from '../sink.ts';
import { checkSocketPath, isLoopback } from '../values.ts';
import { address, proxyProtocolFrom, qos, tlsNames, tlsServer, tlsVersion } from './values.ts';

type TcpKeys = Checked<typeof TCP>;
type SslKeys = Checked<typeof SSL>;
type WsKeys = Checked<typeof WS>;
type UnixKeys = Checked<typeof UNIX>;
type ListenerBlock = TcpKeys | SslKeys | WsKeys | UnixKeys;
interface Candidate {
  readonly name: string;
  readonly kind: ListenerKind;
  readonly block: ListenerBlock;
}

/** A listener whose allowAnonymous is not decided yet. */
export type OpenListener = Omit<ListenerConfig, 'allowAnonymous'> & { readonly anonymous: boolean | null };

export function buildListeners(root: CheckedRoot, sink: Sink): OpenListener[] {
  const candidates: Candidate[] = [];
  for (const kind of ['tcp', 'ssl', 'ws', 'wss', 'unix'] as const) {
    const group = root.listeners[kind];
    if (group.own !== null) candidates.push({ name: kind, kind, block: group.own });
    for (const [name, block] of group.named) {
      if (kind !== 'unix' && !sink.written(block, 'bind')) sink.refuse(block, 'bind', 'is missing');
      candidates.push({ name: `${kind}.${name}`, kind, block });
    }
  }
  const listeners: OpenListener[] = [];
  for (const candidate of candidates) {
    if (!candidate.block.enable) continue;
    const listener = buildListener(candidate, root, sink);
    if (listener !== null) listeners.push(listener);
  }
  return listeners;
}

function buildListener({ name, kind, block }: Candidate, root: CheckedRoot, sink: Sink): OpenListener | null {
  const common = {
    name,
    kind,
    maxConnections: block.max_connections,
    connectTimeoutMs: block.connect_timeout,
    maxQos: qos(block.max_qos),
    emptyClientId: block.allow_empty_clientid,
    assignedPrefix: block.auto_clientid_prefix,
    usernameAsClientId: block.use_username_as_clientid,
    proxyProtocol: block.proxy_protocol,
    anonymous: block.allow_anonymous,
    passwordFile: block.password_file,
    aclFile: block.acl_file,
    mountPoint: block.mount_point,
    source: sink.at(block),
  };
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
  const isWs = kind === 'ws' || kind === 'wss';
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
    path: !isWs || path === 'any' ? '' : path || '/mqtt',
    paths: !isWs || path === 'any' ? null : path === '' ? ['/mqtt', '/'] : [path],
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
