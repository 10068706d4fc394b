// The keys of listeners, and of TLS wherever it is spoken: each once, with type, default and text. Data for schema.ts;
// to add a key, add a row here and its name in code to the options of who uses it: ClientRules of broker/broker.ts,
// ListenerOptions or TLS of transport/transport.ts. Then run `make docs`. A kind of listener is a group in KINDS.
// Names, units and meanings are NanoMQ's where NanoMQ has the key; what it has and this gateway does not need is
// `ignored`.

import { holdsPrivateKey, isPemText } from '../../base/pem.ts';
import { checkNetwork, checkTopicName, parseAddress } from '../values.ts';
import { block, group, ignored, list } from './blocks.ts';
import { digit, duration, flag, int, masked, text, word } from './keys.ts';

/** An address without a path. */
export function checkBind(value: string): string | null {
  const address = parseAddress(value);
  if (typeof address === 'string') return address;
  return address.path === '' ? null : 'a path is not allowed here';
}

function checkBindPath(value: string): string | null {
  const address = parseAddress(value);
  return typeof address === 'string' ? address : null;
}

const ANY_ORIGIN = '*';
const BARE_HOST = /^(?:\[[0-9a-f:]+\]|[a-z0-9.-]{1,253})(?::\d{1,5})?$/;

/** As browsers write it: scheme, host and a port that is not the usual one, nothing behind; or a host alone. */
function checkOrigin(value: string): string | null {
  if (value === ANY_ORIGIN || BARE_HOST.test(value)) return null;
  try {
    if (value === 'null' || new URL(value).origin === value) return null;
  } catch {
    // falls through to the advice
  }
  return 'an origin such as "https://panel.example:8443" expected, in lower case and without a path';
}

/** Headers whose value is not shown. */
export const SECRET_HEADER = /auth|token|key|cookie|secret|password/i;

/** It is the beginning of a topic; the names of clients are one level each. */
function checkMountPoint(value: string): string | null {
  if (value === '') return null;
  return value.startsWith('$') ? 'a mount point cannot begin with $' : checkTopicName(value);
}

export function checkMode(value: string): string | null {
  return /^0?[0-7]{3}$/.test(value) ? null : 'permissions in octal expected, as in "0660"';
}

/** Bytes of a PEM text in a configuration: a chain of a few certificates. */
const MAX_PEM = 65_536;

/** A path, or the PEM text itself; a private key in it is never shown. */
function pem(options: { readonly default: null; readonly text: string; readonly example: string }) {
  const check = (value: string): string | null => {
    if (!isPemText(value)) return /[\r\n]/.test(value) ? 'a path, or a PEM text expected' : null;
    return value.length <= MAX_PEM ? null : `a PEM text of at most ${MAX_PEM} characters expected`;
  };
  return masked((value) => (holdsPrivateKey(value) ? '***' : value), text({ ...options, check }));
}

/** Either side of TLS: what is spoken at least. */
const TLS_STRENGTH = {
  min_version: word(['tlsv1.2', 'tlsv1.3'], { default: 'tlsv1.2', text: 'Lowest TLS version accepted.' }),
  ciphers: text({
    default: null,
    text: 'Cipher suites in OpenSSL notation, including those of TLS 1.3. Absent = for servers, suites with forward secrecy and authenticated encryption (no RSA key exchange, no CBC); for clients, the defaults of Node.js.',
    example: 'TLS_AES_256_GCM_SHA384:ECDHE-ECDSA-AES256-GCM-SHA384',
  }),
};

/** Server side of TLS, under the names NanoMQ's listeners.ssl uses. */
export const TLS_SERVER = {
  keyfile: text({ default: null, text: 'Private key, PEM.', example: '/etc/tidegate/certs/server.key' }),
  certfile: text({
    default: null,
    text: 'Certificate with its chain, PEM.',
    example: '/etc/tidegate/certs/server.pem',
  }),
  cacertfile: text({
    default: null,
    text: 'Certificate authorities trusted for client certificates, PEM: a file, or a folder prepared with `openssl rehash`.',
    example: '/etc/tidegate/certs/ca.pem',
  }),
  crlfile: text({
    default: null,
    text: 'Lists of revoked certificates, PEM; the authority that issued a client certificate needs one that is in date.',
    example: '/etc/tidegate/certs/ca.crl',
  }),
  key_password: text({ default: null, secret: true, text: 'Password of the private key.', example: 'change-me' }),
  verify_peer: flag({ default: false, text: 'Request a client certificate and verify it against cacertfile.' }),
  fail_if_no_peer_cert: flag({ default: false, text: 'With verify_peer: refuse clients that send no certificate.' }),
  alpn: list(text({ text: 'Protocol name.' }), {
    single: true,
    text: 'ALPN protocol names to offer; empty = no ALPN.',
    example: ['mqtt'],
  }),
  ...TLS_STRENGTH,
};

/** How sessions of TLS begin and are taken up again. */
export const TLS_SESSIONS = {
  curves: text({
    default: null,
    text: 'Groups for the key exchange in OpenSSL notation, preferred first. Absent = the defaults of Node.js.',
    example: 'X25519:P-256',
  }),
  session_tickets: flag({ default: true, text: 'Whether clients may take up a TLS session again.' }),
  ticket_keys: text({
    default: null,
    text: 'File of 48 random bytes that encrypt session tickets: sessions outlive a restart, and are taken up by other gateways with the same file. Absent = new keys at each start and reload.',
    example: '/etc/tidegate/certs/ticket.key',
  }),
};

/** Certificates beside the first one, wherever clients are served over TLS. */
export const CERTIFICATES = {
  certificates: list(
    block(
      {
        servername: text({
          text: 'Server name requested by clients (SNI); "*.example.org" matches exactly one level.',
          example: 'mqtt.example.org',
        }),
        keyfile: text({ text: 'Private key, PEM.', example: '/etc/tidegate/certs/other.key' }),
        certfile: text({ text: 'Certificate with its chain, PEM.', example: '/etc/tidegate/certs/other.pem' }),
        key_password: text({
          default: null,
          secret: true,
          text: 'Password of the private key.',
          example: 'change-me',
        }),
      },
      { unknown: 'error', text: 'One certificate.' },
    ),
    { text: 'Further certificates, selected by the server name that clients request (SNI).' },
  ),
};

/** Client side of TLS, for upstreams; the names of listeners.ssl are taken too. */
export const TLS_CLIENT = {
  ca: pem({
    default: null,
    text: 'Trusted certificate authorities, PEM: a file, a folder prepared with `openssl rehash`, or the PEM text itself. Absent = those of the system.',
    example: '/etc/tidegate/certs/ca.pem',
  }),
  cert: pem({
    default: null,
    text: 'Client certificate, PEM: a file, or the text itself.',
    example: '/etc/tidegate/certs/client.pem',
  }),
  key: pem({
    default: null,
    text: 'Private key of the client certificate, PEM: a file, or the text itself, which is then shown as "***".',
    example: '/etc/tidegate/certs/client.key',
  }),
  key_password: text({ default: null, secret: true, text: 'Password of the private key.', example: 'change-me' }),
  verify: flag({ default: true, text: 'Verify the certificate and name of the server.' }),
  servername: text({
    default: null,
    text: 'Server name to request (SNI) and to verify. Absent = the host of the address.',
    example: 'broker.example.org',
  }),
  verify_name: flag({
    default: true,
    text: 'With verify: whether the certificate must match that name. false = any certificate from a trusted authority is accepted.',
  }),
  ...TLS_STRENGTH,
};

/** On every kind of listener. */
export const LISTENER = {
  enable: flag({ default: true, text: 'Whether the listener is opened.' }),
  max_connections: int({
    default: 0,
    text: 'Largest number of connections on this listener; further ones are closed. 0 = no limit.',
  }),
  connect_timeout: duration({
    default: '10s',
    min: 100,
    text: 'Time allowed for TLS, WebSocket handshake and CONNECT together.',
  }),
  max_qos: digit([0, 1, 2], {
    default: 2,
    text: 'Highest QoS of publishes and subscriptions on this listener; mqtt.max_qos also applies.',
  }),
  allow_empty_clientid: flag({
    default: true,
    text: 'Accept clients without a client id and assign one.',
  }),
  auto_clientid_prefix: text({
    default: 'auto-',
    text: 'Prefix of assigned client ids.',
    check: (value) => (Buffer.byteLength(value) <= 50 ? null : 'at most 50 bytes expected'),
  }),
  use_username_as_clientid: flag({
    default: false,
    text: 'Use the username as client id and ignore the one sent. Clients without a username are refused.',
  }),
  proxy_protocol: flag({
    default: false,
    text: 'Expect a PROXY protocol header (version 1 or 2) on every connection.',
  }),
  allow_anonymous: flag({
    default: null,
    text: 'Replaces auth.allow_anonymous on this listener.',
    example: false,
  }),
  password_file: text({
    default: null,
    text: 'Replaces auth.password_file and auth.password on this listener.',
    example: '/etc/tidegate/passwd',
  }),
  acl_file: text({
    default: null,
    text: 'Replaces auth.acl_file and auth.acl on this listener.',
    example: '/etc/tidegate/acl',
  }),
  mount_point: text({
    default: '',
    text: 'Placed before every topic and filter of clients on this listener and removed from what they receive, so they see only topics below it; rights are judged with it. %c = client id, %u = username.',
    example: 'tenants/%u/',
    check: checkMountPoint,
  }),
};
/**
 * Where a PROXY protocol header is read: with it a peer says who the client is. Not for Unix sockets, whose peers have
 * no address.
 */
export const PROXY_FROM = {
  proxy_protocol_from: list(text({ text: 'Address or network.', check: checkNetwork }), {
    single: true,
    text: 'Addresses and networks that may connect with that header; other connections are closed before anything is read. Empty = any.',
    example: ['10.0.0.0/8'],
  }),
};
/** Of listeners without TLS of their own. */
const PROXY_CERTIFICATE = {
  proxy_protocol_certificate: word(['off', 'required', 'username'], {
    default: 'off',
    text: 'Client certificate in the PROXY header (version 2): required = connections whose header does not tell of a verified one are closed; username = required, its common name is the username, and passwords are not checked.',
  }),
};
const IDENTITY = {
  use_identity_as_username: flag({
    default: false,
    text: 'Use the common name of the verified client certificate as username; passwords are not checked.',
  }),
  use_subject_as_username: flag({
    default: false,
    text: 'Use the whole subject of the verified client certificate as username, as in "CN=sensor-1,O=Plant".',
  }),
};
const PSK = {
  psk_file: text({
    default: null,
    text: 'Pre-shared keys instead of certificates: lines of identity:key, the key in hexadecimal. With use_identity_as_username the identity is the username.',
    example: '/etc/tidegate/psk',
  }),
  psk_hint: text({ default: null, text: 'With psk_file: hint sent to clients in TLS 1.2.', example: 'plant' }),
};
export const ORIGINS = {
  origins: list(text({ text: 'Origin.', check: checkOrigin }), {
    single: true,
    text: 'Origins of web pages that may connect. Empty = the same host, any port; "*" = any origin; a bare host = http and https on any port. Non-browser clients send no Origin header and are not checked.',
    example: ['https://panel.example'],
  }),
};
export const WS_PATH = {
  path: text({
    default: null,
    text: 'Path of the WebSocket request; replaces the path in bind. any = every path. With neither, /mqtt and / are accepted.',
    example: 'any',
    check: (value) =>
      value === 'any' || /^\/\S{0,1000}$/.test(value) ? null : 'any, or a path such as /mqtt expected',
  }),
};
const IPV6_ONLY = {
  ipv6_only: flag({ default: false, text: 'With an IPv6 address such as [::]: accept no IPv4 connections.' }),
};
function bind(fallback: string, path: boolean) {
  return {
    bind: text({
      default: fallback,
      text: path
        ? 'Address, port and path to listen on; * or [::] = IPv4 and IPv6.'
        : 'Address and port to listen on; * or [::] = IPv4 and IPv6, port 0 = any free port.',
      check: path ? checkBindPath : checkBind,
    }),
  };
}

export const TCP = { ...bind('127.0.0.1:1883', false), ...IPV6_ONLY, ...LISTENER, ...PROXY_FROM, ...PROXY_CERTIFICATE };
export const SSL = {
  ...bind('0.0.0.0:8883', false),
  ...IPV6_ONLY,
  ...LISTENER,
  ...PROXY_FROM,
  ...TLS_SERVER,
  ...CERTIFICATES,
  ...PSK,
  ...IDENTITY,
};
export const WS = {
  ...bind('127.0.0.1:8083/mqtt', true),
  ...WS_PATH,
  ...IPV6_ONLY,
  ...LISTENER,
  ...PROXY_FROM,
  ...PROXY_CERTIFICATE,
  ...ORIGINS,
};
export const WSS = {
  ...bind('127.0.0.1:8084/mqtt', true),
  ...WS_PATH,
  ...IPV6_ONLY,
  ...LISTENER,
  ...PROXY_FROM,
  ...ORIGINS,
  ...TLS_SERVER,
  ...CERTIFICATES,
  ...PSK,
  ...IDENTITY,
};
export const UNIX = {
  path: text({ default: null, text: 'Path of the socket; required.', example: '/run/tidegate/mqtt.sock' }),
  mode: text({ default: '0660', text: 'Permissions of the socket, octal.', check: checkMode }),
  group: text({ default: null, text: 'Group of the socket, a name or number.', example: 'tidegate' }),
  ...LISTENER,
};
const KINDS = {
  tcp: group(TCP, { unknown: 'warn', example: 'second', text: 'MQTT over TCP.' }),
  ssl: group(SSL, { unknown: 'warn', example: 'second', text: 'MQTT over TLS; requires keyfile and certfile.' }),
  ws: group(WS, { unknown: 'warn', example: 'second', text: 'MQTT over WebSocket.' }),
  wss: group(WSS, {
    unknown: 'warn',
    example: 'second',
    text: 'MQTT over WebSocket and TLS; without keyfile and certfile, those of listeners.ssl are used.',
  }),
  unix: group(UNIX, { unknown: 'warn', example: 'second', text: 'MQTT over a Unix socket.' }),
};
export const LISTENER_KINDS = Object.freeze(Object.keys(KINDS)) as readonly (keyof typeof KINDS)[];

export const LISTENERS = block(
  { ...KINDS, quic: ignored('QUIC listeners are not supported', 'block') },
  {
    unknown: 'warn',
    text: 'MQTT listeners. Without this block, tcp on 127.0.0.1:1883; with it, only the listeners it lists.',
  },
);
