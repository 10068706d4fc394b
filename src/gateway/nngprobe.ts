// "Test connection" of an NNG bridge: for each URL the connection, TLS and the greeting of the peer; where the bridge
// listens, whether it can. Called by bridges.ts and `tidegate doctor`. Reads the peer's greeting and sends none, so no
// peer takes the test for a new one and sends it work. Sources: sp-tcp-mapping-01, sp-ipc-mapping-01.
import { connect, createServer, isIP, type Socket } from 'node:net';
import { errorText } from '../base/errors.ts';
import { listenErrorText, systemErrorText } from '../base/systemerror.ts';
import type { BridgeStatus, NngBridgeOptions } from '../bridge/bridge.ts';
import { GREETING_BYTES } from '../codec/sp.ts';
import type { ProbeStep } from '../console/console.ts';
import { PROTOCOLS } from '../sp/protocol.ts';
import { parseSpUrl, type SpUrl } from '../sp/url.ts';
import type { TlsClientOptions } from '../transport/transport.ts';
import { connectStep, resolveStep, Steps, tlsStep } from './probe.ts';
import type { Keys } from './probewords.ts';

/** A peer says its greeting as soon as it is connected. */
const GREETING_MS = 3000;
/** URLs of one bridge that are tried. */
const MAX_URLS = 8;
const SYSTEM_TLS: TlsClientOptions = {
  ...{ ca: null, cert: null, key: null, keyPassword: null },
  ...{ verify: true, serverName: null },
};

/** The SP protocol that each type of bridge speaks. */
function protocolOf(options: NngBridgeOptions): keyof typeof PROTOCOLS {
  return options.type === 'pair' ? options.protocol : `${options.type}0`;
}

function keysOf(options: NngBridgeOptions): Keys {
  return { place: `/${options.type}_url`, ca: '/tls/ca', cert: '/tls/cert', name: '/tls/servername' };
}

/** @param running what a bridge of this name is doing; null: there is none */
export async function probeNngBridge(options: NngBridgeOptions, running: BridgeStatus | null): Promise<ProbeStep[]> {
  const steps: ProbeStep[] = [];
  for (const url of options.urls.slice(0, MAX_URLS)) {
    const one = new Steps();
    try {
      if (options.mode === 'listen') await listenUrl(url, running, keysOf(options), one);
      else await dialUrl(parseSpUrl(url), options, one);
    } catch (error) {
      one.add({
        step: 'connect',
        outcome: 'failed',
        about: url,
        text: errorText(error),
        pointer: keysOf(options).place,
      });
    }
    steps.push(...one.list);
  }
  return steps;
}

async function dialUrl(url: SpUrl, options: NngBridgeOptions, steps: Steps): Promise<void> {
  const keys = keysOf(options);
  if (url.scheme === 'inproc' || url.scheme === 'program') {
    steps.add({ step: 'connect', outcome: 'skipped', about: url.name, text: 'not tested: inside this process' });
    return;
  }
  if (!('port' in url)) {
    const path = url.scheme === 'ipc' ? url.path : `\0${url.name}`;
    const socket = await unixStep(path, keys, steps);
    if (socket !== null) await greetingStep(socket, options, steps);
    return;
  }
  if (!(await resolveStep(url, keys, steps))) return;
  const first = await connectStep(url, keys, steps);
  if (first === null) return;
  const isSecure = url.scheme === 'tls+tcp' || url.scheme === 'wss';
  if (isSecure) {
    const tls = options.tlsClient ?? SYSTEM_TLS;
    const alpn = url.scheme === 'wss' ? ['http/1.1'] : undefined;
    if (!(await tlsStep(first, tls, url.host, alpn, keys, steps))) return;
  }
  if (url.scheme === 'tcp') await greetingStep(first, options, steps);
  else if (url.scheme === 'tls+tcp') await securedGreeting(url.host, url.port, options, steps);
  else {
    first.destroy();
    const text = 'not tested: over WebSocket a peer would take the test for a new peer';
    steps.add({ step: 'sp', outcome: 'skipped', text });
  }
}

function unixStep(path: string, keys: Keys, steps: Steps): Promise<Socket | null> {
  const about = path.startsWith('\0') ? `@${path.slice(1)}` : path;
  if (path.startsWith('\0')) {
    steps.add({ step: 'connect', outcome: 'skipped', about, text: 'not tested: an abstract name' });
    return Promise.resolve(null);
  }
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('error', (error) => {
      steps.add({ step: 'connect', outcome: 'failed', about, text: systemErrorText(error), pointer: keys.place });
      resolve(null);
    });
    socket.once('connect', () => {
      steps.add({ step: 'connect', outcome: 'ok', about, text: 'connected' });
      resolve(socket);
    });
  });
}

/** The greeting under TLS: the first look ended its connection. */
async function securedGreeting(host: string, port: number, options: NngBridgeOptions, steps: Steps): Promise<void> {
  const { secure } = await import('../transport/tls.ts');
  const socket = connect({ host, port });
  const timer = setTimeout(() => socket.destroy(), GREETING_MS);
  try {
    const [secured] = await secure(socket, options.tlsClient ?? SYSTEM_TLS, { host });
    await greetingStep(secured, options, steps);
  } catch (error) {
    steps.add({ step: 'tls', outcome: 'failed', text: errorText(error), pointer: '/tls/cert' });
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

async function greetingStep(socket: Socket, options: NngBridgeOptions, steps: Steps): Promise<void> {
  const own = protocolOf(options);
  const wanted = PROTOCOLS[own].peer;
  const bytes = await greeting(socket);
  socket.destroy();
  const pointer = keysOf(options).place;
  if (bytes.length < GREETING_BYTES) {
    const text = 'the peer does not say which protocol it speaks: it may be no SP peer, or take no more';
    steps.add({ step: 'sp', outcome: 'failed', text, pointer });
  } else if (bytes[0] !== 0 || bytes[1] !== 0x53 || bytes[2] !== 0x50) {
    steps.add({ step: 'sp', outcome: 'failed', text: 'no SP peer answers here', pointer });
  } else {
    const number = bytes.readUInt16BE(4);
    const about = nameOf(number);
    const fits = number === wanted;
    const text = fits ? 'the peer fits' : `a peer for ${own} has to be ${nameOf(wanted)}`;
    steps.add({ step: 'sp', outcome: fits ? 'ok' : 'failed', about, text, ...(fits ? {} : { pointer }) });
  }
}

function nameOf(number: number): string {
  const found = Object.entries(PROTOCOLS).find(([, row]) => row.number === number);
  return found?.[0] ?? `protocol ${number}`;
}

function greeting(socket: Socket): Promise<Buffer> {
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);
    const finish = (): void => {
      clearTimeout(timer);
      resolve(bytes);
    };
    const timer = setTimeout(finish, GREETING_MS);
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk.subarray(0, GREETING_BYTES)]);
      if (bytes.length >= GREETING_BYTES) finish();
    });
    socket.once('error', finish);
    socket.once('close', finish);
  });
}

async function listenUrl(url: string, running: BridgeStatus | null, keys: Keys, steps: Steps): Promise<void> {
  const here = running?.endpoints.find((endpoint) => endpoint.url === url);
  if (here?.state === 'listening') {
    const text = `the bridge listens here, ${running?.peers.length ?? 0} peers are connected`;
    steps.add({ step: 'listen', outcome: 'ok', about: url, text });
    return;
  }
  const parsed = parseSpUrl(url);
  if (!('port' in parsed)) {
    steps.add({ step: 'listen', outcome: 'skipped', about: url, text: 'not tested' });
    return;
  }
  const error = await bindError(parsed.host, parsed.port);
  if (error === null) steps.add({ step: 'listen', outcome: 'ok', about: url, text: 'the address is free' });
  else steps.add({ step: 'listen', outcome: 'failed', about: url, text: error, pointer: keys.place });
}

/** Why an address cannot be listened on; null when it can. It is let go at once. */
export function bindError(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(listenErrorText(error)));
    const any = host === '*' || host === '' || host === '::';
    server.listen({ port, exclusive: true, ...(any ? {} : { host, ipv6Only: isIP(host) === 6 }) }, () => {
      server.close(() => resolve(null));
    });
  });
}
