// Keys and certificates as files, or as the PEM text itself: read, checked and turned into TLS contexts; what a peer's
// certificate says. Called by tls.ts for both sides. Nothing fails open: a file that holds no certificate, no key or no
// list is an error, because an empty text would quietly mean "none" or "the system's authorities" to TLS.
// Source: RFC 2253 (subject), RFC 7468 (PEM), Node's tls.createSecureContext.
import { constants, createHash, createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { SecureContext, SecureContextOptions, TLSSocket } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { PSK_CIPHERS, SERVER_CIPHERS } from '../base/ciphers.ts';
import { errorText, GatewayError } from '../base/errors.ts';
import { isPemText } from '../base/pem.ts';
import { PSK_OPTIONS } from './psk.ts';
import { Revocations } from './revocations.ts';
import type { PeerCertificate, TlsClientOptions, TlsInfo, TlsServerOptions } from './transport.ts';

const CERTIFICATE = '-----BEGIN CERTIFICATE-----';
const CERTIFICATE_END = '-----END CERTIFICATE-----';
const LIST = '-----BEGIN X509 CRL-----';

/** A PEM text, which may hold a private key, is never part of an error. */
function failure(file: string, what: string, cause?: unknown): GatewayError {
  const name = isPemText(file) ? 'PEM text' : file;
  return new GatewayError('TRANSPORT-TLS', `${name}: ${what}`, cause);
}

function readText(file: string, wanted: string, what: string): string {
  let text: string;
  try {
    text = isPemText(file) ? file : readFileSync(file, 'latin1');
  } catch (error) {
    throw failure(file, errorText(error), error);
  }
  if (!text.includes(wanted)) throw failure(file, `holds no ${what}`);
  return text;
}

/** The certificates of a PEM file, each of them readable. */
function readCertificates(file: string): string {
  const text = readText(file, CERTIFICATE, 'certificate');
  for (let at = text.indexOf(CERTIFICATE); at >= 0; at = text.indexOf(CERTIFICATE, at + 1)) {
    const end = text.indexOf(CERTIFICATE_END, at);
    if (end < 0) throw failure(file, 'a certificate is cut off');
    try {
      new X509Certificate(text.slice(at, end + CERTIFICATE_END.length));
    } catch (error) {
      throw failure(file, `a certificate cannot be read: ${errorText(error)}`, error);
    }
  }
  return text;
}

/** As OpenSSL looks authorities up in a folder: by the hash of their name. */
const HASHED = /^[0-9a-f]{8}\.\d{1,4}$/;

/** The authorities of a PEM file, or of a folder of hashed names. */
function readAuthorities(path: string): string {
  if (isPemText(path)) return readCertificates(path);
  let names: string[];
  try {
    if (!statSync(path).isDirectory()) return readCertificates(path);
    names = readdirSync(path);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw failure(path, errorText(error), error);
  }
  const hashed = names.filter((name) => HASHED.test(name)).sort();
  if (hashed.length === 0) throw failure(path, 'holds no certificate under a hashed name; `openssl rehash` makes them');
  return hashed.map((name) => readCertificates(join(path, name))).join('\n');
}

function readKey(file: string, passphrase: string | null): string {
  const text = readText(file, 'PRIVATE KEY-----', 'private key');
  try {
    createPrivateKey(passphrase === null ? { key: text } : { key: text, passphrase });
  } catch (error) {
    throw failure(file, `the private key cannot be read: ${errorText(error)}`, error);
  }
  return text;
}

/** What a server's context is made of, read and found usable together. Throws TRANSPORT-TLS with the file at fault. */
export function serverMaterial(options: TlsServerOptions): SecureContextOptions {
  const { cacertfile, keyPassword, psk } = options;
  const versions = { minVersion: options.minVersion ?? 'TLSv1.2' } as const;
  if (psk)
    return checked(psk.file, { ...versions, ciphers: options.ciphers ?? PSK_CIPHERS, secureOptions: PSK_OPTIONS });
  const verify = verifiesPeers(options);
  if (verify && cacertfile === null)
    throw failure(options.certfile, 'client certificates are to be verified, but no cacertfile says by whom');
  const cert = readCertificates(options.certfile);
  const key = readKey(options.keyfile, keyPassword);
  const ca = cacertfile === null ? undefined : readAuthorities(cacertfile);
  const material: SecureContextOptions = {
    cert,
    key,
    ca,
    passphrase: keyPassword ?? undefined,
    ...versions,
    ciphers: options.ciphers ?? SERVER_CIPHERS,
    ...(options.curves ? { ecdhCurve: options.curves } : {}),
    ...(options.sessionTickets === false ? { secureOptions: constants.SSL_OP_NO_TICKET } : {}),
    ...(options.ticketKeys ? { ticketKeys: readTicketKeys(options.ticketKeys) } : {}),
  };
  return checked(options.certfile, material, ` (with ${options.keyfile})`);
}

const TICKET_KEYS_BYTES = 48;

/** Name, HMAC key and AES key of session tickets. Throws TRANSPORT-TLS for a file that cannot be they. */
function readTicketKeys(file: string): Buffer {
  let keys: Buffer;
  try {
    keys = readFileSync(file);
  } catch (error) {
    throw failure(file, errorText(error), error);
  }
  if (keys.length !== TICKET_KEYS_BYTES)
    throw failure(
      file,
      `ticket keys are ${TICKET_KEYS_BYTES} bytes, as \`openssl rand ${TICKET_KEYS_BYTES}\` makes them`,
    );
  return keys;
}

/**
 * What sessions belong to: of another context, none is taken up again. With ticket keys it stays the same as long as
 * they do, and all that decides on certificates: a ticket must not carry a verdict past a new list of revocations.
 */
export function sessionContextOf(options: TlsServerOptions): string {
  const { cacertfile, crlfile, ticketKeys, verifyPeer, failIfNoPeerCert } = options;
  if (!ticketKeys) return randomBytes(16).toString('hex');
  const hash = createHash('sha256').update(readTicketKeys(ticketKeys));
  hash.update(JSON.stringify([verifyPeer, failIfNoPeerCert, cacertfile === null ? null : readAuthorities(cacertfile)]));
  if (crlfile !== null) hash.update(readText(crlfile, LIST, 'certificate revocation list'));
  return hash.digest('hex').slice(0, 32);
}

function checked(file: string, material: SecureContextOptions, more = ''): SecureContextOptions {
  try {
    createSecureContext(material);
  } catch (error) {
    throw failure(file, `${errorText(error)}${more}`, error);
  }
  return material;
}

/** The revocation lists of the options, or null without any. Throws TRANSPORT-TLS when they cannot be used. */
export function revocationsOf(options: TlsServerOptions): Revocations | null {
  const { cacertfile, crlfile } = options;
  if (crlfile === null) return null;
  const lists = readText(crlfile, LIST, 'certificate revocation list');
  const authorities = cacertfile === null ? '' : readAuthorities(cacertfile);
  try {
    return new Revocations(lists, authorities);
  } catch (error) {
    throw failure(crlfile, errorText(error), error);
  }
}

/** A certificate that must be there must also be good. */
export function verifiesPeers(options: TlsServerOptions): boolean {
  return options.verifyPeer || options.failIfNoPeerCert;
}

/** A client's context; without a CA file the authorities are those of the system's Node. Throws TRANSPORT-TLS. */
export function clientContext(options: TlsClientOptions): SecureContext {
  const ca = options.ca === null ? undefined : readAuthorities(options.ca);
  if ((options.cert === null) !== (options.key === null))
    throw failure(options.cert ?? options.key ?? '', 'a client certificate needs both cert and key');
  const cert = options.cert === null ? undefined : readCertificates(options.cert);
  const key = options.key === null ? undefined : readKey(options.key, options.keyPassword);
  try {
    return createSecureContext({
      cert,
      key,
      ca,
      passphrase: options.keyPassword ?? undefined,
      minVersion: options.minVersion ?? 'TLSv1.2',
      ciphers: options.ciphers ?? (options.psk ? PSK_CIPHERS : undefined),
    });
  } catch (error) {
    throw failure(options.cert ?? options.ca ?? '', errorText(error), error);
  }
}

/** What a finished handshake has shown. `verified` says whether the peer's certificate counts. */
export function tlsInfo(socket: TLSSocket, serverName: string | null, verified: boolean): TlsInfo {
  const certificate = verified ? socket.getPeerX509Certificate() : undefined;
  return {
    version: socket.getProtocol() ?? '',
    cipher: socket.getCipher().name,
    serverName,
    // false and null both mean that none was agreed on.
    alpn: socket.alpnProtocol || null,
    peer: certificate === undefined ? null : peerCertificate(certificate),
  };
}

function peerCertificate(certificate: X509Certificate): PeerCertificate {
  return {
    commonName: commonName(certificate),
    subject: subjectOf(certificate),
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    pem: certificate.toString(),
  };
}

/** OpenSSL escapes the values by RFC 2253 already and gives a line an RDN, least specific first. */
function subjectOf(certificate: X509Certificate): string {
  // Absent for an empty subject, whatever the types say.
  const subject: string | undefined = certificate.subject;
  return (subject ?? '').split('\n').filter(notEmpty).reverse().join(',');
}

function notEmpty(text: string): boolean {
  return text !== '';
}

/**
 * The first common name; null for none, an empty one, and one with a NUL inside, which is made to be read in two ways.
 */
function commonName(certificate: X509Certificate): string | null {
  const subject: unknown = certificate.toLegacyObject().subject;
  if (typeof subject !== 'object' || subject === null) return null;
  const names: unknown = Object.hasOwn(subject, 'CN') ? (subject as Record<string, unknown>).CN : undefined;
  const name: unknown = Array.isArray(names) ? names[0] : names;
  return typeof name === 'string' && name !== '' && !name.includes('\0') ? name : null;
}
