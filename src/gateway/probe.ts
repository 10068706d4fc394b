// "Test connection" of a bridge: name lookup, connection, TLS with the certificate, and what the other side says, each
// as a step with a sentence for people and the key of the bridge's document it hangs on. Called by bridges.ts (REST,
// console, `ctl bridge connect`) and by `tidegate doctor`. Takes at most PROBE_MS. Goes where the bridge itself would
// go with the same document, and nowhere else; sends what a bridge sends, and no message unless it is asked for one.
import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { errorText, GatewayError } from '../base/errors.ts';
import { systemErrorText } from '../base/systemerror.ts';
import type { MqttBridgeOptions } from '../bridge/bridge.ts';
import { remoteTarget } from '../bridge/mqtt/connect.ts';
import { askBroker, type MqttAnswers } from '../bridge/mqtt/probe.ts';
import type { ProbeStep } from '../console/console.ts';
import { dial } from '../transport/dial.ts';
import { lookAtTls, type TlsLook } from '../transport/examine.ts';
import type { DialTarget, TlsClientOptions } from '../transport/transport.ts';
import { connackText, filterText, type Keys, publishText, tlsTrouble } from './probewords.ts';

/** For everything together. */
export const PROBE_MS = 15_000;
/** For one attempt to connect. */
const CONNECT_MS = 6000;

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Keys of a document that a bridge to a remote broker has for its TLS. */
const MQTT_KEYS: Keys = { place: '/server', ca: '/ssl/cacertfile', cert: '/ssl/certfile', name: '/ssl/servername' };

/** Collects steps; the first one that fails ends the test. */
export class Steps {
  readonly list: ProbeStep[] = [];

  get failed(): boolean {
    return this.list.some((step) => step.outcome === 'failed');
  }

  add(step: ProbeStep): void {
    this.list.push(step);
  }
}

/** Addresses of a host. Gives false where there are none. */
export async function resolveStep({ host }: Place, keys: Keys, steps: Steps): Promise<boolean> {
  if (isIP(host) !== 0) return true;
  const startedMs = performance.now();
  try {
    const found = await lookup(host, { all: true });
    const text = found.map(({ address }) => address).join(', ');
    steps.add({ step: 'resolve', outcome: 'ok', about: host, text, ms: since(startedMs) });
    return true;
  } catch (error) {
    const text = systemErrorText(error);
    steps.add({ step: 'resolve', outcome: 'failed', about: host, text, pointer: keys.place });
    return false;
  }
}

function since(startedMs: number): number {
  return Math.round((performance.now() - startedMs) * 10) / 10;
}

/** A connected socket, or null where it failed; the caller destroys it. */
export async function connectStep(place: Place, keys: Keys, steps: Steps): Promise<Socket | null> {
  const startedMs = performance.now();
  const about = place.host.includes(':') ? `[${place.host}]:${place.port}` : `${place.host}:${place.port}`;
  try {
    const socket = await connected(place);
    const text = `${socket.remoteAddress ?? ''}:${socket.remotePort ?? ''}`;
    steps.add({ step: 'connect', outcome: 'ok', about, text, ms: since(startedMs) });
    return socket;
  } catch (error) {
    steps.add({ step: 'connect', outcome: 'failed', about, text: systemErrorText(error), pointer: keys.place });
    return null;
  }
}

function connected({ host, port }: Place): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const timer = setTimeout(
      () => socket.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })),
      CONNECT_MS,
    );
    socket.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(socket);
    });
  });
}

/** The handshake and the certificate. Gives false where the bridge would not trust the server. */
export async function tlsStep(
  socket: Socket,
  tls: TlsClientOptions,
  host: string,
  alpn: readonly string[] | undefined,
  keys: Keys,
  steps: Steps,
): Promise<boolean> {
  // A key in the place of certificates has nothing to look at; dialling says whether it fits.
  if (tls.psk) {
    socket.destroy();
    return true;
  }
  const startedMs = performance.now();
  const timer = setTimeout(() => socket.destroy(), CONNECT_MS);
  try {
    const look = await lookAtTls(socket, tls, host, alpn);
    steps.add({ ...tlsFinding(look, tls, host, keys), ms: since(startedMs) });
    return !steps.failed;
  } catch (error) {
    const own = error instanceof GatewayError && error.cause === undefined;
    const pointer = own ? keys.ca : keys.place;
    steps.add({ step: 'tls', outcome: 'failed', text: errorText(error), pointer });
    return false;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

function tlsFinding(look: TlsLook, tls: TlsClientOptions, host: string, keys: Keys): ProbeStep {
  const { certificate, version, cipher, distrust } = look;
  const facts = certificate === null ? {} : { certificate };
  const base = { step: 'tls' as const, about: `${version} ${cipher}`, ...facts };
  if (distrust === null && tls.verify) return { ...base, outcome: 'ok', text: 'trusted' };
  if (!tls.verify) return { ...base, outcome: 'warning', text: 'not verified: verify_peer is off', pointer: keys.ca };
  const { text, pointer } = tlsTrouble(distrust ?? '', certificate, tls.serverName ?? host, keys);
  return { ...base, outcome: 'failed', text, pointer };
}

/** Everything of a bridge to a remote broker; each server in turn until one answers. */
export async function probeMqttBridge(options: MqttBridgeOptions, publishTo: string | null): Promise<ProbeStep[]> {
  const signal = AbortSignal.timeout(PROBE_MS);
  const steps = new Steps();
  const target = remoteTarget(options.server, options);
  if (target === null) {
    steps.add({ step: 'resolve', outcome: 'failed', text: 'not a server that can be dialled', pointer: '/server' });
    return steps.list;
  }
  const place = placeOf(target);
  if (place === null) return steps.list;
  if (!(await resolveStep(place, MQTT_KEYS, steps))) return steps.list;
  const socket = await connectStep(place, MQTT_KEYS, steps);
  if (socket === null) return steps.list;
  if ('tls' in target && target.tls !== undefined) {
    const alpn = target.kind === 'tls' ? target.alpn : ['http/1.1'];
    if (!(await tlsStep(socket, target.tls, place.host, alpn, MQTT_KEYS, steps))) return steps.list;
  } else socket.destroy();
  await askStep(target, options, publishTo, signal, steps);
  return steps.list;
}

/** Host and port of a target; null for those without. */
export function placeOf(target: DialTarget): Place | null {
  if (target.kind === 'tcp' || target.kind === 'tls') return { host: target.host, port: target.port };
  if (target.kind !== 'ws' && target.kind !== 'wss') return null;
  const { hostname, port } = new URL(target.url);
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return { host, port: port === '' ? (target.kind === 'ws' ? 80 : 443) : Number(port) };
}

async function askStep(
  target: DialTarget,
  options: MqttBridgeOptions,
  publishTo: string | null,
  signal: AbortSignal,
  steps: Steps,
): Promise<void> {
  const startedMs = performance.now();
  try {
    const connection = await dial(target, { timeoutMs: CONNECT_MS, signal });
    const answers = await askBroker(connection, options, publishTo, signal);
    tellAnswers(answers, options, publishTo, since(startedMs), steps);
  } catch (error) {
    const distrusted = error instanceof GatewayError && error.code === 'TRANSPORT-TLS';
    const pointer = distrusted ? MQTT_KEYS.cert : MQTT_KEYS.place;
    steps.add({ step: distrusted ? 'tls' : 'mqtt', outcome: 'failed', text: errorText(error), pointer });
  }
}

function tellAnswers(
  answers: MqttAnswers,
  { protoVer, forwards }: MqttBridgeOptions,
  publishTo: string | null,
  ms: number,
  steps: Steps,
): void {
  const { text, pointer } = connackText(answers.connack, protoVer);
  const about = answers.clientId;
  if (answers.connack !== 0) {
    steps.add({ step: 'mqtt', outcome: 'failed', about, text, pointer, code: answers.connack });
    return;
  }
  steps.add({ step: 'mqtt', outcome: 'ok', about, text, ms });
  for (const { index, filter, code } of answers.filters) {
    const pointer = `/subscription/${index}/remote_topic`;
    if (code === 'shared') {
      const text = 'not tested: a shared subscription would take messages from its other members';
      steps.add({ step: 'subscribe', outcome: 'skipped', about: filter, text });
    } else {
      const outcome = code < 0x80 ? 'ok' : 'failed';
      const more = outcome === 'ok' ? {} : { pointer, code };
      steps.add({ step: 'subscribe', outcome, about: filter, text: filterText(code, protoVer), ...more });
    }
  }
  if (publishTo !== null && answers.publish !== null) {
    const { outcome, text } = publishText(answers.publish, protoVer);
    steps.add({ step: 'publish', outcome, about: publishTo, text });
  } else if (forwards.length > 0) {
    const text = 'not tested: a test message has to be sent for it';
    steps.add({ step: 'publish', outcome: 'skipped', text });
  }
}
