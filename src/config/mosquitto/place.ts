// The listeners of a mosquitto.conf: which there are, where each is open, how it speaks TLS. Called by mosquitto.ts
// with a draft; fills the tree and the report. Who may log in is security.ts's. Sources: mosquitto.conf(5), mosquitto
// 2.0.11 on the wire.
import { isIP } from 'node:net';
import type { Position } from '../problem.ts';
import type { Report } from '../report.ts';
import { child, listOf, put } from '../text/grow.ts';
import { type BlockNode, blockNode } from '../text/node.ts';
import { parseDuration } from '../values.ts';
import type { Draft, ListenerDraft, Settings } from './draft.ts';
import type { Line } from './lines.ts';

/** A listener in the making. */
export interface PlacedListener {
  readonly draft: ListenerDraft;
  readonly block: BlockNode;
  readonly tls: boolean;
  /** Open to other machines with mosquitto's rule for anonymous clients: it lets anybody in unless told otherwise. */
  readonly implicit: 'local' | 'default' | null;
}

/** Settings before the first `listener` that open the listener on port 1883, and the value with which they do not. */
const OPENING: ReadonlyMap<string, string | null> = new Map<string, string | null>([
  ['port', null],
  ['bind_address', null],
  ['bind_interface', null],
  ['cafile', null],
  ['capath', null],
  ['certfile', null],
  ['keyfile', null],
  ['ciphers', null],
  ['ciphers_tls1.3', null],
  ['crlfile', null],
  ['psk_hint', null],
  ['socket_domain', null],
  ['require_certificate', 'false'],
  ['use_identity_as_username', 'false'],
  ['use_subject_as_username', 'false'],
  ['use_username_as_clientid', 'false'],
  ['protocol', 'mqtt'],
  ['max_qos', '2'],
]);
const OPENING_SECURITY = ['password_file', 'psk_file', 'allow_zero_length_clientid'];

/** Whether what stands before the first listener opens one of its own. */
function opensFirst(draft: Draft): boolean {
  const { settings, security } = draft.first;
  for (const [key, harmless] of OPENING) {
    const value = settings.text(key);
    if (value !== null && value !== harmless && !(harmless === 'false' && value === '0')) return true;
  }
  const connections = settings.number('max_connections');
  if (connections !== null && connections >= 0) return true;
  return (
    draft.perListener && (OPENING_SECURITY.some((key) => security.settings.has(key)) || security.plugins.length > 0)
  );
}

/** Every listener mosquitto would open, in its order. */
export function placeListeners(draft: Draft, root: BlockNode, report: Report): PlacedListener[] {
  const { first, listeners } = draft;
  const own = opensFirst(draft);
  const all: PlacedListener[] = [];
  const names = new Set<string>();
  const add = (listener: ListenerDraft, implicit: PlacedListener['implicit']): void => {
    const placed = placeOne(listener, implicit, root, names, report);
    if (placed !== null) all.push(placed);
  };
  for (const listener of listeners) add(listener, null);
  if (own) add(firstListener(first), listeners.length === 0 && !isNamed(first) ? 'default' : null);
  else if (listeners.length === 0) add(first, 'local');
  if (own && !isNamed(first)) tellFirst(first, listeners.length, report);
  if (!own && listeners.length > 0) tellUnused(first, report);
  return all;
}

function isNamed({ settings }: ListenerDraft): boolean {
  return settings.has('port') || settings.has('bind_address');
}

function firstListener(first: ListenerDraft): ListenerDraft {
  const { settings } = first;
  return { ...first, port: settings.number('port') ?? 1883, host: settings.text('bind_address') };
}

function tellFirst({ settings, security, at }: ListenerDraft, others: number, report: Report): void {
  const keys = [...settings.keys(), ...security.settings.keys()].filter((key) => key !== 'port');
  const line = settings.line(keys[0] ?? '') ?? security.settings.line(keys[0] ?? '');
  const more = others > 0 ? ', beside the listeners below it' : '';
  const message = `stands before any listener, so mosquitto opens port 1883 on every address${more}; so does this`;
  report.change(line?.at ?? at, line?.key ?? 'listener', message);
}

/** Settings of a listener that mosquitto does not open. */
function tellUnused({ settings }: ListenerDraft, report: Report): void {
  for (const key of settings.keys()) {
    const line = settings.line(key);
    if (line !== undefined)
      report.change(line.at, line.key, 'not carried over: it belongs to the default listener, which is not open');
  }
}

// ---- one listener

function placeOne(
  draft: ListenerDraft,
  implicit: PlacedListener['implicit'],
  root: BlockNode,
  names: Set<string>,
  report: Report,
): PlacedListener | null {
  const { settings, at, port, host } = draft;
  const isUnix = port === 0;
  const protocol = settings.text('protocol')?.split(/[ \t]/)[0] ?? 'mqtt';
  const protocolAt = settings.line('protocol')?.at ?? at;
  if (protocol === 'http_api') {
    report.change(protocolAt, 'protocol', 'not carried over: http_api; the REST API is http_server here');
    return null;
  }
  if (protocol !== 'mqtt' && protocol !== 'websockets') {
    report.invalid(protocolAt, 'protocol', 'mqtt or websockets expected');
    return null;
  }
  const block = blockNode(at);
  const isWs = protocol === 'websockets' && !isUnix;
  const tls = placeTls(draft, block, isUnix, report);
  const kind = isUnix ? 'unix' : isWs ? (tls ? 'wss' : 'ws') : tls ? 'ssl' : 'tcp';
  if (isUnix) put(block, 'path', host ?? '', at);
  else placeAddress(draft, implicit, block, report);
  if (isWs) placeWebSocket(draft, block, at, report);
  placeLimits(settings, block, report);
  placeProxy(settings, block, tls, report);
  const name = freeName(isUnix ? 'unix' : `port${port}`, names);
  child(child(root, 'listeners', at), kind, at).fields.set(name, { at, value: block });
  return { draft, block, tls, implicit };
}

function freeName(wanted: string, names: Set<string>): string {
  let name = wanted;
  for (let i = 2; names.has(name); i++) name = `${wanted}-${i}`;
  names.add(name);
  return name;
}

/** Without an address both families; mosquitto's IPv6 sockets take no IPv4. */
function placeAddress(
  { settings, at, port, host }: ListenerDraft,
  implicit: PlacedListener['implicit'],
  block: BlockNode,
  report: Report,
): void {
  const domain = settings.text('socket_domain')?.split(/[ \t]/)[0] ?? null;
  const domainAt = settings.line('socket_domain')?.at ?? at;
  if (domain !== null && domain !== 'ipv4' && domain !== 'ipv6')
    report.invalid(domainAt, 'socket_domain', 'ipv4 or ipv6 expected');
  let address = host ?? '*';
  if (implicit === 'local') address = 'localhost';
  else if (host === null && domain === 'ipv4') address = '0.0.0.0';
  else if (host === null && domain === 'ipv6') address = '::';
  const isV6 = isIP(address) === 6;
  put(block, 'bind', `${isV6 ? `[${address}]` : address}:${port}`, at);
  if (address === '::') put(block, 'ipv6_only', true, domainAt);
}

/** Without websockets_origin mosquitto takes pages of any origin. It knows no word for that. */
const ANY_ORIGIN = '*';

function placeWebSocket({ origins }: ListenerDraft, block: BlockNode, at: Position, report: Report): void {
  put(block, 'path', 'any', at);
  for (const line of origins)
    if (line.value === ANY_ORIGIN) report.invalid(line.at, line.key, 'a host or an origin expected');
  const named = origins.map((line) => line.value.toLowerCase());
  const place = origins[0]?.at ?? at;
  put(block, 'origins', listOf(named.length === 0 ? [ANY_ORIGIN] : named, place), place);
}

function placeLimits(settings: Settings, block: BlockNode, report: Report): void {
  const connections = settings.line('max_connections');
  if (connections !== undefined)
    put(block, 'max_connections', Math.max(0, settings.number('max_connections') ?? 0), connections.at);
  const qos = settings.line('max_qos');
  if (qos !== undefined) put(block, 'max_qos', settings.number('max_qos') ?? 2, qos.at);
  const mount = settings.line('mount_point');
  if (mount !== undefined) put(block, 'mount_point', mount.value, mount.at);
  if (mount !== undefined && /%[cu]/.test(mount.value))
    report.change(mount.at, mount.key, '%c and %u stand for names of the client here, in mosquitto for themselves');
  const named = settings.line('use_username_as_clientid');
  if (named !== undefined && settings.flag('use_username_as_clientid') === true)
    put(block, 'use_username_as_clientid', true, named.at);
}

/**
 * The certificate of a client that came to the proxy is told in the header of version 2, on listeners without TLS:
 * mosquitto 2.1. Who asks for the identity and not for the certificate gets nobody in without one, as with TLS.
 */
function placeProxy(settings: Settings, block: BlockNode, tls: boolean, report: Report): void {
  const line = settings.line('enable_proxy_protocol');
  if (line === undefined) return;
  put(block, 'proxy_protocol', true, line.at);
  if (settings.number('enable_proxy_protocol') !== 2 || tls) return;
  const required = settings.flag('require_certificate') === true ? settings.line('require_certificate') : undefined;
  const identity =
    settings.flag('use_identity_as_username') === true ? settings.line('use_identity_as_username') : undefined;
  const asked = identity ?? required;
  if (asked === undefined) return;
  put(block, 'proxy_protocol_certificate', identity === undefined ? 'required' : 'username', asked.at);
  report.change(
    asked.at,
    asked.key,
    'mosquitto 2.1 takes the certificate from the PROXY header, as here; 2.0 ignores the option on a listener without TLS and lets everybody in',
  );
}

// ---- TLS

/** Options that mean nothing without a certificate of the listener. */
const TLS_ONLY = [
  'cafile',
  'capath',
  'ciphers',
  'ciphers_tls1.3',
  'crlfile',
  'require_certificate',
  'tls_version',
  'use_identity_as_username',
  'use_subject_as_username',
];

/** Whether the listener speaks TLS. */
function placeTls({ settings, at }: ListenerDraft, block: BlockNode, isUnix: boolean, report: Report): boolean {
  const cert = settings.line('certfile');
  const key = settings.line('keyfile');
  const psk = settings.line('psk_hint');
  if (psk !== undefined && /^websockets/.test(settings.text('protocol') ?? ''))
    report.invalid(psk.at, psk.key, 'mosquitto opens no WebSocket listener with keys');
  if (psk !== undefined && !isUnix) {
    placePsk(settings, block, psk, report);
    return true;
  }
  if (cert === undefined || key === undefined || isUnix) {
    const half = cert ?? key;
    if (half !== undefined) {
      const message = 'certfile and keyfile belong together: with one of them mosquitto 2.0 speaks clear text';
      report.refuse(half.at, half.key, `${message}, and 2.1 does not start`);
    }
    tellClear(settings, report);
    return false;
  }
  put(block, 'certfile', cert.value, cert.at);
  put(block, 'keyfile', key.value, key.at);
  const authorities = settings.line('cafile') ?? settings.line('capath');
  if (authorities !== undefined) put(block, 'cacertfile', authorities.value, authorities.at);
  const path = settings.line('capath');
  if (path !== undefined && path !== authorities)
    report.change(
      path.at,
      path.key,
      'not carried over: cafile is there; certificates of authorities only in here are refused',
    );
  const crl = settings.line('crlfile');
  if (crl !== undefined) put(block, 'crlfile', crl.value, crl.at);
  placeIdentity(settings, block, at, authorities !== undefined, report);
  placeCiphers(settings, block);
  placeVersion(settings.line('tls_version'), 'min_version', block, report);
  return true;
}

/** TLS by keys; security.ts adds their file. */
function placePsk(settings: Settings, block: BlockNode, hint: Line, report: Report): void {
  put(block, 'psk_hint', hint.value, hint.at);
  for (const key of [
    'certfile',
    'keyfile',
    'cafile',
    'capath',
    'crlfile',
    'require_certificate',
    'use_subject_as_username',
  ]) {
    const line = settings.line(key);
    if (line === undefined || settings.flag(key) === false) continue;
    if (/^(cert|key)file$/.test(key)) report.invalid(line.at, line.key, 'cannot be combined with psk_hint');
    else report.change(line.at, line.key, 'not carried over: with psk_hint clients have keys, no certificates');
  }
  const identity = settings.line('use_identity_as_username');
  if (identity !== undefined && settings.flag('use_identity_as_username') === true)
    put(block, 'use_identity_as_username', true, identity.at);
  placeCiphers(settings, block);
  placeVersion(settings.line('tls_version'), 'min_version', block, report);
}

function tellClear(settings: Settings, report: Report): void {
  const unused = TLS_ONLY.filter((key) => settings.has(key));
  const byProxy = settings.number('enable_proxy_protocol') === 2;
  for (const key of unused) {
    const line = settings.line(key);
    if (line === undefined || (byProxy && (key === 'require_certificate' || key === 'use_identity_as_username')))
      continue;
    if (/^(require|use)_/.test(key) && settings.flag(key) !== true) continue;
    const message = 'not carried over: without certfile and keyfile it has no effect in mosquitto 2.0 either';
    report.change(line.at, line.key, message);
  }
}

function placeIdentity(
  settings: Settings,
  block: BlockNode,
  at: Position,
  hasAuthorities: boolean,
  report: Report,
): void {
  const required = settings.flag('require_certificate') === true;
  const requiredAt = settings.line('require_certificate')?.at ?? at;
  if (required && !hasAuthorities) {
    put(block, 'enable', false, requiredAt);
    const message =
      'without cafile or capath no certificate is good and nobody can connect: the listener is written with enable = false';
    report.change(requiredAt, 'require_certificate', message);
  } else if (required) {
    put(block, 'verify_peer', true, requiredAt);
    put(block, 'fail_if_no_peer_cert', true, requiredAt);
  }
  // The common name comes first where both are asked for.
  const key = ['use_identity_as_username', 'use_subject_as_username'].find((name) => settings.flag(name) === true);
  if (key === undefined) return;
  const keyAt = settings.line(key)?.at ?? at;
  put(block, key, true, keyAt);
  if (!required)
    report.change(
      keyAt,
      key,
      'without require_certificate no client is asked for a certificate, so nobody gets in: as in mosquitto',
    );
}

/** OpenSSL takes the names of both in one list. */
function placeCiphers(settings: Settings, block: BlockNode): void {
  const lines = ['ciphers_tls1.3', 'ciphers'].flatMap((key) => settings.line(key) ?? []);
  if (lines.length > 0) put(block, 'ciphers', lines.map((line) => line.value).join(':'), lines[0].at);
}

/** The least version of TLS of a listener or a bridge. */
export function placeVersion(
  line: { readonly at: Position; readonly key: string; readonly value: string } | undefined,
  path: string,
  block: BlockNode,
  report: Report,
): void {
  if (line === undefined) return;
  const version = line.value.toLowerCase();
  if (version === 'tlsv1.3') put(block, path, 'tlsv1.3', line.at);
  else if (version === 'tlsv1.1' || version === 'tlsv1')
    report.change(line.at, line.key, `${line.value} is not spoken: peers need TLS 1.2`);
  else if (version !== 'tlsv1.2') report.invalid(line.at, line.key, 'tlsv1.3, tlsv1.2 or tlsv1.1 expected');
}

/** A number of seconds as a duration that is in range; null when it is none. */
export function seconds(value: number): string | null {
  return parseDuration(`${value}s`, 's') === null ? null : `${value}s`;
}
