// Names of what a client's TLS and certificate say, as configurations write them: in templates, route conditions and
// access logs. One list for config/, which checks names, and proxy/, which gives the values. Data alone. Source: NGINX,
// ngx_stream_ssl_module (embedded variables), whose names and forms are kept where it has them.

/** Known of every client whose TLS ends here. */
const TLS = ['ssl_protocol', 'ssl_cipher', 'ssl_server_name', 'ssl_alpn_protocol', 'ssl_client_verify'] as const;

/** Said by a verified certificate alone. */
export const CERTIFICATE_VARIABLES = [
  'ssl_client_cn',
  'ssl_client_serial',
  'ssl_client_s_dn',
  'ssl_client_i_dn',
  'ssl_client_fingerprint',
  'ssl_client_fingerprint_sha256',
  'ssl_client_v_start',
  'ssl_client_v_end',
  'ssl_client_san',
  'ssl_client_san_dns',
  'ssl_client_san_uri',
  'ssl_client_san_email',
  'ssl_client_san_ip',
] as const;

export const TLS_VARIABLES = [...TLS, ...CERTIFICATE_VARIABLES] as const;

export type CertificateVariable = (typeof CERTIFICATE_VARIABLES)[number];
export type TlsVariable = (typeof TLS_VARIABLES)[number];

export function isTlsVariable(name: string): name is TlsVariable {
  return (TLS_VARIABLES as readonly string[]).includes(name);
}
export function isCertificateVariable(name: string): name is CertificateVariable {
  return (CERTIFICATE_VARIABLES as readonly string[]).includes(name);
}
