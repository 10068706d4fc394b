// What a test of a connection found, in words: why a certificate is not trusted, what CONNACK, SUBACK and PUBACK say.
// Called by probe.ts and nngprobe.ts. Tables and pure functions; every sentence is also in the console's dictionary.
// Sources: MQTT 5.0 sections 3.2.2.2, 3.9.3, 3.4.2.1; 3.1.1 sections 3.2.2.3, 3.9.3; X509_verify_cert_error_string(3).
import type { ProbeStep } from '../console/console.ts';
import { NO_MATCHING_SUBSCRIBERS, NOT_AUTHORIZED, reasonText } from '../mqtt/reason.ts';
import type { CertificateFacts } from '../transport/transport.ts';

/** JSON pointers to the keys that a finding hangs on. */
export interface Keys {
  readonly place: string;
  readonly ca: string;
  readonly cert: string;
  readonly name: string;
}

interface Finding {
  readonly text: string;
  readonly pointer: string;
}

const UNKNOWN_AUTHORITY = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
]);

function day(ms: number): string {
  return Number.isNaN(ms) ? '?' : new Date(ms).toISOString().slice(0, 10);
}

/** Why the certificate of a server is not accepted. */
export function tlsTrouble(code: string, certificate: CertificateFacts | null, wanted: string, keys: Keys): Finding {
  if (UNKNOWN_AUTHORITY.has(code))
    return { text: 'signed by an authority that is not trusted: give its certificate', pointer: keys.ca };
  if (code === 'CERT_HAS_EXPIRED')
    return { text: `the certificate expired on ${day(certificate?.validTo ?? Number.NaN)}`, pointer: keys.place };
  if (code === 'CERT_NOT_YET_VALID') {
    const from = day(certificate?.validFrom ?? Number.NaN);
    return { text: `the certificate is valid from ${from}: is the clock right?`, pointer: keys.place };
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return { text: `the certificate is not for ${wanted}`, pointer: keys.name };
  return { text: `the certificate is not accepted: ${code}`, pointer: keys.ca };
}

/** CONNACK of 5.0 (section 3.2.2.2): the sentence and the key it is about. */
const REASONS: ReadonlyMap<number, Finding> = new Map([
  [0x80, { text: 'refused without a reason', pointer: '/server' }],
  [0x81, { text: 'the broker cannot read CONNECT', pointer: '/proto_ver' }],
  [0x82, { text: 'the broker finds CONNECT against the protocol', pointer: '/proto_ver' }],
  [0x84, { text: 'the broker does not speak this MQTT version', pointer: '/proto_ver' }],
  [0x85, { text: 'the broker does not accept this client id', pointer: '/clientid' }],
  [0x86, { text: 'wrong user name or password', pointer: '/username' }],
  [0x87, { text: 'not authorised: user name, password or a missing right', pointer: '/username' }],
  [0x88, { text: 'the broker is not available', pointer: '/server' }],
  [0x89, { text: 'the broker is busy', pointer: '/server' }],
  [0x8a, { text: 'this client is banned', pointer: '/clientid' }],
  [0x8c, { text: 'the broker wants another authentication method', pointer: '/username' }],
  [0x95, { text: 'CONNECT is too large for the broker', pointer: '/server' }],
  [0x97, { text: 'a quota of the broker is exceeded', pointer: '/server' }],
  [0x9c, { text: 'the broker asks to use another server', pointer: '/server' }],
  [0x9d, { text: 'the broker has moved to another server', pointer: '/server' }],
  [0x9f, { text: 'too many connections a second for the broker', pointer: '/server' }],
]);
/** Return codes of 3.1 and 3.1.1 as those of 5.0. */
const RETURN_CODES: ReadonlyMap<number, number> = new Map([
  [1, 0x84],
  [2, 0x85],
  [3, 0x88],
  [4, 0x86],
  [5, 0x87],
]);

export function connackText(code: number, version: 3 | 4 | 5): Finding {
  if (code === 0) return { text: 'accepted', pointer: '' };
  const reason = version === 5 ? code : (RETURN_CODES.get(code) ?? 0x80);
  return REASONS.get(reason) ?? { text: reasonText(code), pointer: '/server' };
}

export function filterText(code: number, version: 3 | 4 | 5): string {
  if (code < 0x80) return `granted with QoS ${code}`;
  if (code === NOT_AUTHORIZED || (version < 5 && code === 0x80)) return 'not authorised';
  return reasonText(code);
}

/** What an acknowledgement is worth: before 5.0 it has no code. */
export function publishText(code: number, version: 3 | 4 | 5): Pick<ProbeStep, 'outcome' | 'text'> {
  if (code === NOT_AUTHORIZED) return { outcome: 'failed', text: 'not authorised' };
  if (code >= 0x80) return { outcome: 'failed', text: reasonText(code) };
  if (version < 5) {
    return {
      outcome: 'warning',
      text: 'acknowledged, but before MQTT 5 a broker acknowledges what it refuses as well',
    };
  }
  return { outcome: 'ok', text: code === NO_MATCHING_SUBSCRIBERS ? 'accepted, nobody subscribes' : 'accepted' };
}
