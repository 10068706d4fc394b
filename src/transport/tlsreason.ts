// Why a TLS handshake failed, as a stable word for metrics and log: one table for what OpenSSL and Node say. Called by
// tls.ts. Pure. Source: OpenSSL's reason names as Node shows them (ERR_SSL_...), X509_verify_cert_error_string(3).

/** Reasons in OpenSSL's codes; the first that the code contains decides. */
const CODES: readonly (readonly [part: string, reason: string])[] = [
  ['ERR_TLS_HANDSHAKE_TIMEOUT', 'handshake-timeout'],
  ['UNKNOWN_CA', 'tls-alert-unknown-ca'],
  ['ALERT_PROTOCOL_VERSION', 'tls-old-version'],
  ['ALERT_BAD_CERTIFICATE', 'tls-alert-certificate'],
  ['ALERT_CERTIFICATE', 'tls-alert-certificate'],
  ['ALERT', 'tls-alert'],
  ['UNSUPPORTED_PROTOCOL', 'tls-old-version'],
  ['VERSION_TOO_LOW', 'tls-old-version'],
  ['NO_PROTOCOLS_AVAILABLE', 'tls-old-version'],
  ['WRONG_VERSION_NUMBER', 'plain-on-tls'],
  ['HTTP_REQUEST', 'plain-on-tls'],
  ['HTTPS_PROXY_REQUEST', 'plain-on-tls'],
  ['PACKET_LENGTH_TOO_LONG', 'plain-on-tls'],
  ['NO_SHARED_CIPHER', 'tls-no-shared-cipher'],
  ['NO_SUITABLE', 'tls-no-shared-cipher'],
  ['NO_SHARED_GROUP', 'tls-no-shared-cipher'],
  ['PEER_DID_NOT_RETURN_A_CERTIFICATE', 'tls-no-certificate'],
  ['NO_APPLICATION_PROTOCOL', 'tls-alpn'],
];

/** The reason of a failed handshake from the error's code; what nobody has named is "tls-handshake". */
export function failureReason(code: string): string {
  for (const [part, reason] of CODES) if (code.includes(part)) return reason;
  return 'tls-handshake';
}

const VERIFY: ReadonlyMap<string, string> = new Map([
  ['UNABLE_TO_GET_ISSUER_CERT', 'tls-unknown-ca'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls-unknown-ca'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls-unknown-ca'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls-unknown-ca'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls-unknown-ca'],
  ['CERT_UNTRUSTED', 'tls-unknown-ca'],
  ['CERT_HAS_EXPIRED', 'tls-expired'],
  ['CERT_NOT_YET_VALID', 'tls-not-yet-valid'],
  ['CERT_REVOKED', 'tls-revoked'],
  ['INVALID_PURPOSE', 'tls-purpose'],
  ['UNABLE_TO_GET_CRL', 'tls-crl'],
  ['CRL_HAS_EXPIRED', 'tls-crl'],
  ['CRL_NOT_YET_VALID', 'tls-crl'],
  ['CRL_SIGNATURE_FAILURE', 'tls-crl'],
]);

/** The reason for a peer's certificate that was not accepted. */
export function verifyReason(code: string): string {
  return VERIFY.get(code) ?? 'tls-bad-certificate';
}
