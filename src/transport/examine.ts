// A look at a TLS server: which certificate it shows, for which names, until when, and whether it would be trusted.
// Called by gateway/probe.ts for "test connection" and `tidegate doctor`. Makes a connection of its own that sends
// nothing after the handshake, so that an untrusted server learns nothing. Source: RFC 5280, Node's verification codes.
import type { X509Certificate } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect } from 'node:tls';
import { errorText, GatewayError } from '../base/errors.ts';
import { clientContext } from './certificate.ts';
import type { CertificateFacts, TlsClientOptions } from './transport.ts';

export interface TlsLook {
  readonly version: string;
  readonly cipher: string;
  /** null: the server has shown none. */
  readonly certificate: CertificateFacts | null;
  /** null: it is trusted. Else Node's code, such as CERT_HAS_EXPIRED. */
  readonly distrust: string | null;
}

const WRONG_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';
/** Characters of a name that is shown. */
const MAX_TEXT = 300;
const MAX_NAMES = 20;

/** "CN=a, O=b" of the lines that Node gives. */
function oneLine(name: string | undefined): string {
  return (name ?? '').split('\n').filter(Boolean).reverse().join(', ').slice(0, MAX_TEXT);
}

export function certificateFacts(certificate: X509Certificate): CertificateFacts {
  const alternatives = certificate.subjectAltName ?? '';
  // "DNS:a, IP Address:10.0.0.1"; others are of no use for a host.
  const names = [...alternatives.matchAll(/(?:DNS|IP Address):([^,"\s]{1,253})/g)].map((found) => found[1]);
  return {
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    names: names.slice(0, MAX_NAMES),
    validFrom: Date.parse(certificate.validFrom),
    validTo: Date.parse(certificate.validTo),
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  };
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  return String(error ?? '');
}

/**
 * Shakes hands on a connected socket and ends it. Rejects with TRANSPORT-TLS where own files cannot be used or the
 * handshake fails for another reason than trust.
 */
export function lookAtTls(socket: Socket, tls: TlsClientOptions, host: string, alpn?: readonly string[]) {
  return new Promise<TlsLook>((resolve, reject) => {
    const name = tls.serverName ?? host;
    let isNamed = true;
    const secured = connect({
      socket,
      secureContext: clientContext(tls),
      rejectUnauthorized: false,
      servername: isIP(name) === 0 ? name : undefined,
      // Kept, and told below: the handshake goes on.
      checkServerIdentity: (_, shown) => {
        isNamed = tls.verifyName === false || checkServerIdentity(name, shown) === undefined;
        return undefined;
      },
      ALPNProtocols: alpn === undefined ? undefined : [...alpn],
    });
    const fail = (error: Error): void => reject(new GatewayError('TRANSPORT-TLS', errorText(error), error));
    secured.on('error', fail);
    secured.once('close', () => fail(new Error('closed during the handshake')));
    secured.once('secureConnect', () => {
      const certificate = secured.getPeerX509Certificate();
      resolve({
        version: secured.getProtocol() ?? '',
        cipher: secured.getCipher().name,
        certificate: certificate === undefined ? null : certificateFacts(certificate),
        distrust: secured.authorized ? (isNamed ? null : WRONG_NAME) : codeOf(secured.authorizationError),
      });
      secured.destroy();
    });
  });
}
