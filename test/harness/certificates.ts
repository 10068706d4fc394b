// Keys and certificates for tests, made by the openssl program in a folder that is removed when the test process ends its file.
// Used by TLS tests of every stage. Nothing of it is ever kept: no key lies in the repository.
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TlsClientOptions, TlsServerOptions } from '../../src/transport/transport.ts';

export interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

export interface CertificateOptions {
  /** Common name; null makes a certificate without one. */
  readonly name: string | null;
  /** subjectAltName entries such as "DNS:localhost" and "IP:127.0.0.1". */
  readonly alt?: readonly string[];
  /** More of the subject, in OpenSSL's form: "/C=FR/O=Some". */
  readonly subject?: string;
  readonly expired?: boolean;
  /** Encrypts the key. */
  readonly passphrase?: string;
  /** "clientAuth", "serverAuth"; both when left out. */
  readonly usage?: string;
}

/** Whether openssl can be run; tests that need certificates are skipped without it. */
export function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** One authority and what it has signed. Call remove() when the tests are over. */
export class Authority {
  readonly folder: string;
  readonly ca: string;
  private readonly caKey: string;
  private count = 0;

  /** `by`: an authority above it, which signs its certificate; otherwise it signs its own. */
  constructor(name = 'Test Authority', by: Authority | null = null, kind = 'ec') {
    this.folder = mkdtempSync(join(tmpdir(), 'tidegate-ca-'));
    this.ca = join(this.folder, 'ca.pem');
    this.caKey = join(this.folder, 'ca.key');
    if (kind === 'ec') openssl(['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', this.caKey]);
    else openssl(['genpkey', '-algorithm', kind, '-out', this.caKey]);
    const extensions = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=keyCertSign,cRLSign'];
    const signer = by === null ? [] : ['-CA', by.ca, '-CAkey', by.caKey];
    openssl([
      'req',
      '-x509',
      '-new',
      '-key',
      this.caKey,
      '-subj',
      `/CN=${name}`,
      '-days',
      '2',
      ...extensions,
      ...signer,
      '-out',
      this.ca,
    ]);
    writeFileSync(join(this.folder, 'index.txt'), '');
    writeFileSync(join(this.folder, 'crlnumber'), '01\n');
    writeFileSync(
      join(this.folder, 'ca.cnf'),
      CA_CONFIGURATION.replaceAll('FOLDER', this.folder).replace(
        'default_md = sha256',
        `default_md = ${kind === 'ed25519' ? 'default' : 'sha256'}`,
      ),
    );
  }

  /** Makes a key and has its certificate signed. */
  issue(options: CertificateOptions): KeyPair {
    const n = ++this.count;
    const [key, cert, request] = ['key', 'pem', 'csr'].map((kind) => join(this.folder, `${n}.${kind}`));
    openssl(['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key]);
    const name = options.name === null ? '' : `/CN=${options.name}`;
    const subject = `${options.subject ?? '/O=Tidegate Test'}${name}`;
    openssl(['req', '-new', '-utf8', '-key', key, '-subj', subject, '-out', request]);
    const extensions = [`extendedKeyUsage=${options.usage ?? 'serverAuth,clientAuth'}`];
    if (options.alt !== undefined) extensions.push(`subjectAltName=${options.alt.join(',')}`);
    const file = join(this.folder, `${n}.ext`);
    writeFileSync(file, `[ext]\n${extensions.join('\n')}\n`);
    const dates =
      options.expired === true ? ['-startdate', '20200101000000Z', '-enddate', '20200102000000Z'] : ['-days', '2'];
    const config = join(this.folder, 'ca.cnf');
    openssl([
      'ca',
      '-batch',
      '-notext',
      '-utf8',
      '-preserveDN',
      '-config',
      config,
      '-extfile',
      file,
      '-extensions',
      'ext',
      ...dates,
      '-in',
      request,
      '-out',
      cert,
    ]);
    if (options.passphrase !== undefined)
      openssl(['ec', '-in', key, '-aes256', '-passout', `pass:${options.passphrase}`, '-out', key]);
    return { key, cert };
  }

  /** A certificate that nobody but its own key has signed. */
  alone(name: string): KeyPair {
    const n = ++this.count;
    const [key, cert] = ['key', 'pem'].map((kind) => join(this.folder, `${n}.${kind}`));
    openssl(['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key]);
    openssl(['req', '-x509', '-new', '-key', key, '-subj', `/CN=${name}`, '-days', '2', '-out', cert]);
    return { key, cert };
  }

  /** Revokes certificates (none: an empty list) and writes the list that says so. */
  revoke(...pairs: KeyPair[]): string {
    const config = join(this.folder, 'ca.cnf');
    for (const { cert } of pairs) openssl(['ca', '-config', config, '-revoke', cert]);
    const list = join(this.folder, `${++this.count}.crl`);
    openssl(['ca', '-config', config, '-gencrl', '-crldays', '2', '-out', list]);
    return list;
  }

  /** What a client of this authority shows where the server does not know the authority: its certificate and the authority's. */
  chain(pair: KeyPair): KeyPair {
    const cert = join(this.folder, `${++this.count}.chain`);
    writeFileSync(cert, `${readFileSync(pair.cert, 'utf8')}\n${readFileSync(this.ca, 'utf8')}`);
    return { key: pair.key, cert };
  }

  /** A file with several lists. */
  lists(...files: string[]): string {
    const file = join(this.folder, `${++this.count}.lists`);
    for (const one of files) appendFileSync(file, readFileSync(one));
    return file;
  }

  /** A file with the certificates of several authorities. */
  together(...others: Authority[]): string {
    const file = join(this.folder, `${++this.count}.bundle`);
    for (const { ca } of [this, ...others]) appendFileSync(file, readFileSync(ca));
    return file;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Server options around a key pair. */
export function serverTls(pair: KeyPair, more: Partial<TlsServerOptions> = {}): TlsServerOptions {
  return {
    keyfile: pair.key,
    certfile: pair.cert,
    cacertfile: null,
    crlfile: null,
    keyPassword: null,
    verifyPeer: false,
    failIfNoPeerCert: false,
    alpn: [],
    ...more,
  };
}

/** Client options that trust an authority. */
export function clientTls(ca: string | null, more: Partial<TlsClientOptions> = {}): TlsClientOptions {
  return { ca, cert: null, key: null, keyPassword: null, verify: true, serverName: null, ...more };
}

function openssl(args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}

const CA_CONFIGURATION = `
[ca]
default_ca = this
[this]
dir = FOLDER
database = FOLDER/index.txt
new_certs_dir = FOLDER
certificate = FOLDER/ca.pem
private_key = FOLDER/ca.key
rand_serial = yes
crlnumber = FOLDER/crlnumber
default_md = sha256
default_crl_days = 2
unique_subject = no
string_mask = utf8only
policy = any
[any]
countryName = optional
organizationName = optional
organizationalUnitName = optional
commonName = optional
`;
