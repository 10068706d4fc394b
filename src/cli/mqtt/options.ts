// The options that `tidegate pub` and `tidegate sub` share, named as in mosquitto_pub and mosquitto_sub, and what they
// come to. Called by pub.ts and sub.ts. Pure but for reading TLS files; whatever does not fit together is CLI-USAGE.
// Source: mosquitto_pub(1), mosquitto_sub(1).
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { rootCertificates, type SecureVersion } from 'node:tls';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/systemerror.ts';
import { isTopicName } from '../../mqtt/topic.ts';
import { usage } from '../usage.ts';
import { type PropertyCommand, type PropertySet, parseProperties } from './property.ts';

export type Qos = 0 | 1 | 2;

/** What commander hands over. */
export interface MqttFlags {
  readonly host?: string;
  readonly port?: number;
  readonly unix?: string;
  readonly username?: string;
  readonly password?: string;
  readonly id?: string;
  readonly idPrefix?: string;
  readonly keepalive: number;
  readonly protocol: 3 | 4 | 5;
  readonly persistent?: boolean;
  readonly sessionExpiry?: number;
  readonly qos: Qos;
  readonly url?: string;
  readonly property: readonly string[];
  readonly debug?: boolean;
  readonly quiet?: boolean;
  readonly bind?: string;
  readonly willTopic?: string;
  readonly willPayload?: string;
  readonly willQos?: Qos;
  readonly willRetain?: boolean;
  readonly cafile?: string;
  readonly capath?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly insecure?: boolean;
  readonly ciphers?: string;
  readonly tlsVersion?: SecureVersion;
  readonly tlsAlpn?: string;
  readonly tlsUseOsCerts?: boolean;
}

export interface TlsSettings {
  readonly ca: readonly (string | Buffer)[] | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
  readonly verify: boolean;
  readonly ciphers: string | undefined;
  readonly version: SecureVersion | undefined;
  readonly alpn: string | undefined;
}

export interface ClientSettings {
  readonly host: string;
  readonly port: number;
  readonly unix: string | null;
  readonly bind: string | undefined;
  readonly tls: TlsSettings | null;
  readonly protocol: 3 | 4 | 5;
  readonly clientId: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly clean: boolean;
  readonly keepaliveSeconds: number;
  readonly will: {
    topic: string;
    payload: Buffer;
    qos: Qos;
    retain: boolean;
    properties: PropertySet | undefined;
  } | null;
  readonly properties: ReadonlyMap<PropertyCommand, PropertySet>;
  readonly debug: boolean;
  readonly quiet: boolean;
  /** The path of -L: a topic, or null. */
  readonly urlTopic: string | null;
}

export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,10}$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`It has to be from ${min} to ${max}.`);
    return value;
  };
}

/** Seconds, with a fraction where it makes sense. */
export function seconds(text: string): number {
  const value = Number(text);
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text)) throw new InvalidArgumentError('It has to be a number of seconds.');
  return value;
}

export function qos(text: string): Qos {
  if (text === '0') return 0;
  if (text === '1') return 1;
  if (text === '2') return 2;
  throw new InvalidArgumentError('It has to be 0, 1 or 2.');
}

const VERSIONS: ReadonlyMap<string, 3 | 4 | 5> = new Map<string, 3 | 4 | 5>([
  ['mqttv31', 3],
  ['31', 3],
  ['3.1', 3],
  ['mqttv311', 4],
  ['311', 4],
  ['3.1.1', 4],
  ['mqttv5', 5],
  ['5', 5],
  ['5.0', 5],
]);

function protocol(text: string): 3 | 4 | 5 {
  const version = VERSIONS.get(text);
  if (version === undefined) throw new InvalidArgumentError('It has to be mqttv5, mqttv311 or mqttv31.');
  return version;
}

const NEVER = 0xffffffff;

function sessionExpiry(text: string): number {
  if (text === '-1' || text === '∞') return NEVER;
  return whole(0, NEVER)(text);
}

function tlsVersion(text: string): SecureVersion {
  if (text === 'tlsv1.3') return 'TLSv1.3';
  if (text === 'tlsv1.2') return 'TLSv1.2';
  if (text === 'tlsv1.1') return 'TLSv1.1';
  throw new InvalidArgumentError('It has to be tlsv1.3, tlsv1.2 or tlsv1.1.');
}

export function collect(value: string, list: string[]): string[] {
  return [...list, value];
}

/** Adds the options that pub and sub share. -h is the host, so help is --help only. */
export function mqttOptions(command: Command): Command {
  return command
    .helpOption('--help', 'show this help')
    .option('-h, --host <host>', 'broker (default: localhost)')
    .option('-p, --port <port>', 'port (default: 1883, with TLS 8883)', whole(1, 65_535))
    .option('--unix <path>', 'Unix socket of the broker')
    .option('-L, --url <url>', 'mqtt(s)://[username[:password]@]host[:port]/topic')
    .option('-u, --username <name>', 'user name')
    .option('-P, --password <password>', 'password (others on this machine can see it)')
    .option('-i, --id <id>', 'client id (default: a random one)')
    .option('-I, --id-prefix <prefix>', 'client id: this and the process id')
    .option('-k, --keepalive <seconds>', 'keep alive', whole(0, 65_535), 60)
    .addOption(
      new Option('-V, --protocol <version>', 'mqttv5, mqttv311 or mqttv31; 5, 311 or 31')
        .argParser(protocol)
        .default(4, '311'),
    )
    .option('-c, --persistent', 'keep the session: not a clean start')
    .option('-x, --session-expiry <seconds>', 'session expiry interval, -1 = never (MQTT 5.0)', sessionExpiry)
    .option('-q, --qos <qos>', 'quality of service', qos, 0)
    .option('-D, --property <words...>', 'MQTT 5.0 property: command identifier value', collect, [])
    .option('-A, --bind <address>', 'local address to connect from')
    .option('-d, --debug', 'show the packets on standard error')
    .option('--quiet', 'no error messages')
    .option('--nodelay', 'no effect: small packets are never held back')
    .option('--will-topic <topic>', 'topic of the will')
    .option('--will-payload <text>', 'payload of the will')
    .option('--will-qos <qos>', 'QoS of the will', qos)
    .option('--will-retain', 'the will is retained')
    .option('--cafile <file>', 'trusted CA certificates (PEM); turns TLS on')
    .option('--capath <folder>', 'folder of trusted CA certificates; turns TLS on')
    .option('--tls-use-os-certs', 'trust the CA certificates that come with Node.js; turns TLS on')
    .option('--cert <file>', 'client certificate')
    .option('--key <file>', 'key of the client certificate')
    .option('--ciphers <list>', 'TLS ciphers in OpenSSL form')
    .option('--tls-version <version>', 'tlsv1.3, tlsv1.2 or tlsv1.1, no older one', tlsVersion)
    .option('--tls-alpn <protocol>', 'ALPN protocol')
    .option('--insecure', 'do not check the name in the server certificate');
}

interface UrlParts {
  readonly tls: boolean;
  readonly host: string;
  readonly port: number | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly topic: string | null;
}

function part(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw usage(`-L: the ${what} has a wrong % escape`);
  }
}

function parseUrl(text: string): UrlParts {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw usage(`-L ${text}: not a URL`);
  }
  if (url.protocol !== 'mqtt:' && url.protocol !== 'mqtts:') throw usage('-L wants mqtt:// or mqtts://');
  if (url.hostname === '') throw usage('-L lacks the host');
  const topic = text.replace(/^[a-z]+:\/\/[^/]*\/?/i, '');
  return {
    tls: url.protocol === 'mqtts:',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? undefined : Number(url.port),
    username: url.username === '' ? undefined : part(url.username, 'user name'),
    password: url.password === '' ? undefined : part(url.password, 'password'),
    topic: topic === '' ? null : topic,
  };
}

function readTlsFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `cannot read ${file}: ${systemErrorText(error)}`, error);
  }
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `cannot read ${folder}: ${systemErrorText(error)}`, error);
  }
}

function caList(flags: MqttFlags): (string | Buffer)[] | undefined {
  const list: (string | Buffer)[] = [];
  if (flags.cafile !== undefined) list.push(readTlsFile(flags.cafile));
  if (flags.capath !== undefined) {
    const folder = flags.capath;
    const names = filesOf(folder).filter((name) => /\.(pem|crt|cer)$/i.test(name));
    for (const name of names) list.push(readTlsFile(path.join(folder, name)));
  }
  if (flags.tlsUseOsCerts === true) list.push(...rootCertificates);
  return list.length > 0 ? list : undefined;
}

function tlsSettings(flags: MqttFlags, url: UrlParts | null): TlsSettings | null {
  const wanted =
    flags.cafile !== undefined || flags.capath !== undefined || flags.tlsUseOsCerts === true || url?.tls === true;
  if (!wanted) {
    if (flags.cert !== undefined || flags.key !== undefined)
      throw usage('--cert and --key need --cafile, --capath or mqtts://');
    return null;
  }
  if ((flags.cert === undefined) !== (flags.key === undefined)) throw usage('--cert and --key go together');
  return {
    ca: caList(flags),
    cert: flags.cert === undefined ? undefined : readTlsFile(flags.cert),
    key: flags.key === undefined ? undefined : readTlsFile(flags.key),
    verify: flags.insecure !== true,
    ciphers: flags.ciphers,
    version: flags.tlsVersion,
    alpn: flags.tlsAlpn,
  };
}

function will(flags: MqttFlags, properties: PropertySet | undefined): ClientSettings['will'] {
  const { willTopic: topic } = flags;
  if (topic === undefined) {
    const given = flags.willPayload !== undefined || flags.willQos !== undefined || flags.willRetain === true;
    if (given || properties !== undefined) throw usage('a will needs --will-topic');
    return null;
  }
  if (!isTopicName(topic)) throw usage(`--will-topic ${topic}: not a topic name`);
  const payload = Buffer.from(flags.willPayload ?? '');
  return { topic, payload, qos: flags.willQos ?? 0, retain: flags.willRetain === true, properties };
}

/** Session Expiry Interval of 5.0: -x, else for ever with -c, else that of -D. */
function connectProperties(flags: MqttFlags, given: PropertySet | undefined): PropertySet | undefined {
  const expiry = flags.sessionExpiry ?? (flags.persistent === true ? NEVER : undefined);
  if (expiry === undefined || given?.sessionExpiryInterval !== undefined) return given;
  return { ...given, sessionExpiryInterval: expiry };
}

function clientId(flags: MqttFlags, name: string): string {
  if (flags.id !== undefined && flags.idPrefix !== undefined) throw usage('-i and -I exclude each other');
  if (flags.id !== undefined) return flags.id;
  if (flags.persistent === true) throw usage('-c needs -i: a session is found again by its client id');
  if (flags.idPrefix !== undefined) return `${flags.idPrefix}${process.pid}`;
  return `${name}-${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
}

/**
 * Puts options together. `name` begins the random client id. Throws CLI-USAGE, or CLI-FAILED when a TLS file cannot be
 * read.
 */
export function clientSettings(flags: MqttFlags, name: string): ClientSettings {
  const url = flags.url === undefined ? null : parseUrl(flags.url);
  if (url !== null && (flags.host !== undefined || flags.unix !== undefined)) throw usage('-L excludes -h and --unix');
  const properties = new Map(parseProperties(flags.property));
  if (flags.protocol !== 5 && (properties.size > 0 || flags.sessionExpiry !== undefined)) {
    throw usage('-D and -x are for MQTT 5.0: add -V 5');
  }
  const ofWill = properties.get('will');
  const ofConnect = flags.protocol === 5 ? connectProperties(flags, properties.get('connect')) : undefined;
  if (ofConnect !== undefined) properties.set('connect', ofConnect);
  const tls = tlsSettings(flags, url);
  return {
    host: url?.host ?? flags.host ?? 'localhost',
    port: flags.port ?? url?.port ?? (tls === null ? 1883 : 8883),
    unix: flags.unix ?? null,
    bind: flags.bind,
    tls,
    protocol: flags.protocol,
    clientId: clientId(flags, name),
    username: flags.username ?? url?.username,
    password: flags.password ?? url?.password,
    clean: flags.persistent !== true,
    keepaliveSeconds: flags.keepalive,
    will: will(flags, ofWill),
    properties,
    debug: flags.debug === true,
    quiet: flags.quiet === true,
    urlTopic: url?.topic ?? null,
  };
}
