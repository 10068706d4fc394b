// What the TLS of one client says: protocol, cipher, names, and the fields of its certificate. Made by facts.ts where
// TLS ends here. A certificate is read when a variable first asks for it; a proxy that asks for none does not pay.
// Values are text from outside. Must not give a value of a certificate that was not verified: the transport hands none
// over. A PROXY header tells of a certificate by its common name alone: the rest of it has no value then. Sources:
// NGINX, ngx_stream_ssl_module (forms of the values), RFC 2253 (names), Node's X509Certificate (subjectAltName).
import { X509Certificate } from 'node:crypto';
import { type CertificateVariable, isCertificateVariable, type TlsVariable } from '../base/tlsvariables.ts';
import type { TlsInfo } from '../transport/transport.ts';

/** An entry of subjectAltName as Node writes it: a value with a comma, quote or control character is a JSON text. */
const ALT_NAME = /([A-Za-z ]{1,20}):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/y;
const ALT_KINDS: Readonly<Partial<Record<CertificateVariable, string>>> = {
  ssl_client_san_dns: 'DNS',
  ssl_client_san_uri: 'URI',
  ssl_client_san_email: 'email',
  ssl_client_san_ip: 'IP Address',
};

interface AltName {
  readonly kind: string;
  readonly value: string;
}

export class TlsFacts {
  private readonly info: TlsInfo;
  private certificate: X509Certificate | null = null;
  private altNames: readonly AltName[] | null = null;

  constructor(info: TlsInfo) {
    this.info = info;
  }

  /** null = this client has none. */
  value(name: TlsVariable): string | null {
    if (isCertificateVariable(name)) return this.ofCertificate(name);
    const { info } = this;
    switch (name) {
      case 'ssl_protocol':
        return info.version || null;
      case 'ssl_cipher':
        return info.cipher || null;
      case 'ssl_server_name':
        return info.serverName;
      case 'ssl_alpn_protocol':
        return info.alpn ?? null;
      case 'ssl_client_verify':
        return info.peer === null ? 'NONE' : 'SUCCESS';
    }
  }

  private ofCertificate(name: CertificateVariable): string | null {
    const { peer } = this.info;
    if (peer === null) return null;
    switch (name) {
      case 'ssl_client_cn':
        return peer.commonName;
      case 'ssl_client_s_dn':
        return peer.subject || null;
      case 'ssl_client_fingerprint_sha256':
        return peer.fingerprint || null;
      default:
        break;
    }
    if (peer.pem === '') return null;
    this.certificate ??= new X509Certificate(peer.pem);
    const { certificate } = this;
    switch (name) {
      case 'ssl_client_serial':
        return certificate.serialNumber;
      case 'ssl_client_i_dn':
        return distinguishedName(certificate.issuer);
      case 'ssl_client_fingerprint':
        return certificate.fingerprint.replaceAll(':', '').toLowerCase();
      case 'ssl_client_v_start':
        return certificate.validFrom;
      case 'ssl_client_v_end':
        return certificate.validTo;
      default:
        return this.altName(certificate, name);
    }
  }

  /** All names, or the first of a kind. */
  private altName(certificate: X509Certificate, name: CertificateVariable): string | null {
    this.altNames ??= altNames(certificate.subjectAltName);
    if (name === 'ssl_client_san')
      return this.altNames.length === 0 ? null : this.altNames.map(({ kind, value }) => `${kind}:${value}`).join(',');
    return this.altNames.find(({ kind }) => kind === ALT_KINDS[name])?.value ?? null;
  }
}

/**
 * OpenSSL escapes the values by RFC 2253 and gives a line an RDN, least specific first; the type says string even for
 * none.
 */
function distinguishedName(lines: string | undefined): string {
  return (lines ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .reverse()
    .join(',');
}

/** Names with a NUL inside are made to be read in two ways: they count as none. What cannot be read ends the list. */
export function altNames(text: string | undefined): AltName[] {
  const names: AltName[] = [];
  const pattern = new RegExp(ALT_NAME);
  while (text !== undefined && pattern.lastIndex < text.length) {
    const found = pattern.exec(text);
    if (found === null) break;
    const value = unquoted(found[2]);
    if (value === null) break;
    if (value !== '' && !value.includes('\0')) names.push({ kind: found[1], value });
  }
  return names;
}

function unquoted(value: string): string | null {
  if (!value.startsWith('"')) return value;
  try {
    return String(JSON.parse(value));
  } catch {
    return null;
  }
}
