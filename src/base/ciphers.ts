// The cipher suites that servers of the gateway take unless the configuration names others: a key exchange of its own
// for every connection and authenticated encryption only. No RSA key exchange, no CBC. Used by transport/certificate.ts
// and console/http.ts. Sources: RFC 9325 sections 4.1 and 4.2, RFC 8446 appendix B.4.

/**
 * In the notation of OpenSSL, strongest habits of embedded clients included: ChaCha20 for those without AES in
 * hardware.
 */
export const SERVER_CIPHERS: string = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/**
 * Those for pre-shared keys (RFC 4279, 5487, 5489; RFC 8446 section 2.2), forward secrecy first. Small devices know
 * only the last ones. Keys of TLS 1.3 go with SHA-256.
 */
export const PSK_CIPHERS: string = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-PSK-CHACHA20-POLY1305',
  'ECDHE-PSK-AES128-CBC-SHA256',
  'ECDHE-PSK-AES256-CBC-SHA384',
  'PSK-AES128-GCM-SHA256',
  'PSK-AES256-GCM-SHA384',
  'PSK-CHACHA20-POLY1305',
  'PSK-AES128-CCM',
  'PSK-AES128-CCM8',
  'PSK-AES128-CBC-SHA256',
  'PSK-AES256-CBC-SHA384',
  'PSK-AES128-CBC-SHA',
  'PSK-AES256-CBC-SHA',
].join(':');
