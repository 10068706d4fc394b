// Whether a client's certificate has been revoked. Built by certificate.ts for each TLS configuration, asked by tls.ts
// after a handshake whose chain OpenSSL has verified. Node makes OpenSSL demand a list of every authority of the chain;
// here, as in mosquitto, the issuer of the client's own certificate needs one, and what other lists name is refused
// too. Pure but for the clock. Source: RFC 5280 section 5.
import { constants, type KeyObject, type VerifyKeyObjectInput, verify, X509Certificate } from 'node:crypto';
import { booleanOf, children, type Der, readDer, readTime, timeTag } from './der.ts';

/** More certificates than any real chain has. */
const MOST_SENT = 16;

const PSS = '2a864886f70d01010a';
/** Digests by signature algorithm (its OID, DER in hex); null: the algorithm has its own. SHA-1 is not taken. */
const SIGNATURES: ReadonlyMap<string, string | null> = new Map([
  ['2a864886f70d01010b', 'sha256'],
  ['2a864886f70d01010c', 'sha384'],
  ['2a864886f70d01010d', 'sha512'],
  ['2a8648ce3d040302', 'sha256'],
  ['2a8648ce3d040303', 'sha384'],
  ['2a8648ce3d040304', 'sha512'],
  ['2b6570', null],
  ['2b6571', null],
]);
const DIGESTS: ReadonlyMap<string, string> = new Map([
  ['608648016503040201', 'sha256'],
  ['608648016503040202', 'sha384'],
  ['608648016503040203', 'sha512'],
]);
const ISSUING_DISTRIBUTION_POINT = '551d1c';

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const EXPLICIT_0 = 0xa0;

interface List {
  /** Names are compared by their bytes, in hex. */
  readonly issuer: string;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly serials: ReadonlySet<string>;
  /** Only certificates of authorities are in it. */
  readonly authoritiesOnly: boolean;
  /** Where not empty, it covers certificates that name one of these places. */
  readonly points: readonly Buffer[];
  readonly signedBy: (key: KeyObject) => boolean;
  /** Set once an authority's key has verified it. */
  verified: boolean;
}

interface Certificate {
  readonly x509: X509Certificate;
  readonly serial: string;
  readonly issuer: string;
  readonly subject: string;
}

export class Revocations {
  private readonly lists: readonly List[];
  private readonly authorities: readonly Certificate[];

  /** Texts with PEM blocks. Throws an Error that says which list cannot be used, and why. */
  constructor(lists: string, authorities: string) {
    this.lists = blocks(lists, 'X509 CRL').map((der, index) => readList(der, `list ${index + 1}`));
    this.authorities = blocks(authorities, 'CERTIFICATE').map((der) => certificateOf(new X509Certificate(der)));
  }

  /** Why a client is refused, or null. `resumed`: the certificates above its own were seen in an earlier handshake. */
  refusal(peer: X509Certificate, resumed: boolean, nowMs: number): string | null {
    const leaf = certificateOf(peer);
    const sent: Certificate[] = [];
    for (let above = peer.issuerCertificate; above !== undefined; above = above.issuerCertificate) {
      if (sent.length === MOST_SENT) return 'tls-bad-certificate';
      sent.push(certificateOf(above));
    }
    const known = [...this.authorities, ...sent];
    const chain = new Set([leaf, ...sent]);
    // The path that was verified is among these: everything that signed something in it, wherever it came from.
    for (const one of chain) for (const issuer of known) if (signed(issuer, one)) chain.add(issuer);
    for (const one of chain) if (this.lists.some((list) => names(list, one))) return 'tls-revoked';
    const issuers = known.filter((issuer) => signed(issuer, leaf));
    return this.lists.some((list) => covers(list, leaf, issuers, resumed, nowMs)) ? null : 'tls-crl';
  }
}

function names(list: List, certificate: Certificate): boolean {
  return list.issuer === certificate.issuer && list.serials.has(certificate.serial);
}

function covers(
  list: List,
  leaf: Certificate,
  issuers: readonly Certificate[],
  resumed: boolean,
  nowMs: number,
): boolean {
  if (list.issuer !== leaf.issuer || nowMs < list.fromMs || nowMs >= list.untilMs) return false;
  if (list.authoritiesOnly && !leaf.x509.ca) return false;
  if (list.points.length > 0 && !list.points.some((point) => leaf.x509.raw.includes(point))) return false;
  if (resumed && list.verified) return true;
  if (!issuers.some((issuer) => list.signedBy(issuer.x509.publicKey))) return false;
  list.verified = true;
  return true;
}

function signed(issuer: Certificate, certificate: Certificate): boolean {
  return issuer.subject === certificate.issuer && certificate.x509.verify(issuer.x509.publicKey);
}

function blocks(text: string, label: string): Buffer[] {
  const pattern = new RegExp(`-----BEGIN ${label}-----([A-Za-z0-9+/=\\s]*)-----END ${label}-----`, 'g');
  const found = [...text.matchAll(pattern)].map((match) => Buffer.from(match[1] ?? '', 'base64'));
  if (found.length < text.split(`-----BEGIN ${label}-----`).length - 1) throw new Error(`a block ${label} is cut off`);
  return found;
}

/** Certificate: { tbs: { [0] version?, serial, algorithm, issuer, validity, subject, ... }, algorithm, signature }. */
function certificateOf(x509: X509Certificate): Certificate {
  const [tbs] = children(readDer(x509.raw, 0));
  const fields = tbs === undefined ? [] : children(tbs);
  const first = fields[0]?.tag === EXPLICIT_0 ? 1 : 0;
  const [serial, , issuer, , subject] = fields.slice(first);
  if (serial === undefined || issuer === undefined || subject === undefined) throw new Error('no certificate');
  return { x509, serial: hex(serial.body), issuer: hex(issuer.whole), subject: hex(subject.whole) };
}

/**
 * CertificateList: { tbs: { version?, algorithm, issuer, thisUpdate, nextUpdate?, entries?, [0] extensions? },
 * algorithm, signature }.
 */
function readList(der: Buffer, name: string): List {
  const [tbs, algorithm, signature] = children(readDer(der, 0));
  if (tbs === undefined || algorithm === undefined || signature === undefined)
    throw new Error(`${name} cannot be read`);
  const fields = children(tbs);
  let at = fields[0]?.tag === INTEGER ? 2 : 1;
  const issuer = fields[at++];
  const from = fields[at++];
  if (issuer?.tag !== SEQUENCE || from === undefined) throw new Error(`${name} cannot be read`);
  const until = timeTag(fields[at]?.tag) ? fields[at++] : undefined;
  const entries = fields[at]?.tag === SEQUENCE ? fields[at++] : undefined;
  const extensions = fields[at]?.tag === EXPLICIT_0 ? fields[at] : undefined;
  return {
    issuer: hex(issuer.whole),
    fromMs: readTime(from),
    untilMs: until === undefined ? Number.POSITIVE_INFINITY : readTime(until),
    serials: new Set((entries === undefined ? [] : children(entries)).map((entry) => serialOf(entry, name))),
    ...scopeOf(extensions, name),
    // The first byte of a BIT STRING counts unused bits.
    signedBy: verifier(algorithm, tbs.whole, signature.body.subarray(1), name),
    verified: false,
  };
}

function serialOf(entry: Der, name: string): string {
  const [serial, , extensions] = children(entry);
  if (serial?.tag !== INTEGER) throw new Error(`${name} cannot be read`);
  // Such an entry is about another issuer's certificate.
  if (extensions !== undefined && extensionsOf(extensions).some(({ critical }) => critical))
    throw new Error(`${name}: lists of other issuers (indirect) are not supported`);
  return hex(serial.body);
}

function extensionsOf(sequence: Der): { id: string; critical: boolean; value: Buffer }[] {
  return children(sequence).map((extension) => {
    const parts = children(extension);
    const value = parts.at(-1)?.body ?? Buffer.alloc(0);
    return { id: hex(parts[0]?.body ?? value), critical: parts.length === 3 && booleanOf(parts[1]), value };
  });
}

function scopeOf(extensions: Der | undefined, name: string): Pick<List, 'authoritiesOnly' | 'points'> {
  let authoritiesOnly = false;
  const points: Buffer[] = [];
  const [all] = extensions === undefined ? [] : children(extensions);
  for (const { id, critical, value } of all === undefined ? [] : extensionsOf(all)) {
    if (id !== ISSUING_DISTRIBUTION_POINT) {
      if (critical) throw new Error(`${name}: delta lists and unknown critical extensions are not supported`);
      continue;
    }
    for (const part of children(readDer(value, 0))) {
      const [fullName] = part.tag === EXPLICIT_0 ? children(part) : [];
      if (fullName?.tag === EXPLICIT_0) for (const point of children(fullName)) points.push(point.whole);
      else if (part.tag === 0x82) authoritiesOnly = booleanOf(part);
      else if (part.tag !== 0x81)
        throw new Error(`${name}: indirect lists and lists of some reasons are not supported`);
    }
  }
  return { authoritiesOnly, points };
}

function verifier(algorithm: Der, signed: Buffer, signature: Buffer, name: string): (key: KeyObject) => boolean {
  const [oid, parameters] = children(algorithm);
  const id = oid === undefined ? '' : hex(oid.body);
  let digest = SIGNATURES.get(id);
  let padding: Omit<VerifyKeyObjectInput, 'key'> = {};
  if (id === PSS && parameters !== undefined) {
    const parts = children(parameters);
    const [hash] = children(children(parts.find(({ tag }) => tag === EXPLICIT_0) ?? parameters)[0] ?? parameters);
    const salt = children(parts.find(({ tag }) => tag === 0xa2) ?? parameters)[0];
    digest = DIGESTS.get(hex(hash?.body ?? signature));
    padding = {
      padding: constants.RSA_PKCS1_PSS_PADDING,
      saltLength: Number.parseInt(hex(salt?.body ?? signature), 16),
    };
  }
  if (digest === undefined) throw new Error(`${name}: its signature algorithm is not supported`);
  const used = digest;
  return (key) => {
    try {
      return verify(used, signed, { key, ...padding }, signature);
    } catch {
      // A key of another kind than the signature has not made it.
      return false;
    }
  };
}

function hex(bytes: Buffer): string {
  return bytes.toString('hex');
}
