// A connection of `tidegate pub` and `tidegate sub`, on the mqtt package (loaded here, when one of them runs). Called
// by pub.ts and sub.ts. Opens the byte stream itself, so that every failure has one clear text, and never tries again
// unasked.

import net from 'node:net';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { IClientOptions, MqttClient } from 'mqtt';
import { GatewayError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/systemerror.ts';
import type { Io } from '../cli.ts';
import type { ClientSettings } from './options.ts';

const CONNECT_MS = 30_000;
/** Between attempts of a subscriber, or a publisher of lines, whose connection was lost. */
const RECONNECT_MS = 1000;

function place(settings: ClientSettings): string {
  return settings.unix ?? `${settings.host}:${settings.port}`;
}

function openStream(settings: ClientSettings): net.Socket {
  const { tls: secure, host, port, unix, bind } = settings;
  const address = unix === null ? { host, port, localAddress: bind, noDelay: true } : { path: unix };
  if (secure === null) return net.connect(address);
  const servername = net.isIP(host) === 0 ? host : undefined;
  return tls.connect({
    ...address,
    ca: secure.ca === undefined ? undefined : [...secure.ca],
    cert: secure.cert,
    key: secure.key,
    ciphers: secure.ciphers,
    minVersion: secure.version,
    ALPNProtocols: secure.alpn === undefined ? undefined : [secure.alpn],
    servername,
    // --insecure gives up the name only, as mosquitto's does; the certificate itself has to be good.
    checkServerIdentity: secure.verify ? tls.checkServerIdentity : () => undefined,
  });
}

function clientOptions(settings: ClientSettings, reconnect: boolean): IClientOptions {
  const { will, properties } = settings;
  return {
    clientId: settings.clientId,
    protocolId: settings.protocol === 3 ? 'MQIsdp' : 'MQTT',
    protocolVersion: settings.protocol,
    username: settings.username,
    password: settings.password,
    clean: settings.clean,
    keepalive: settings.keepaliveSeconds,
    connectTimeout: CONNECT_MS,
    reconnectPeriod: reconnect ? RECONNECT_MS : 0,
    resubscribe: false,
    properties: properties.get('connect'),
    will: will === null ? undefined : { ...will, properties: will.properties },
  };
}

/** Each packet on standard error, without payloads. */
function showPackets(client: MqttClient, settings: ClientSettings, io: Io): void {
  const line = (what: string, packet: { cmd?: string; messageId?: number; topic?: unknown }): void => {
    const more = [
      packet.messageId === undefined ? '' : ` m${packet.messageId}`,
      typeof packet.topic === 'string' ? ` ${JSON.stringify(packet.topic)}` : '',
    ];
    io.stderr.write(`Client ${settings.clientId} ${what} ${String(packet.cmd).toUpperCase()}${more.join('')}\n`);
  };
  client.on('packetsend', (packet) => line('sending', packet));
  client.on('packetreceive', (packet) => line('received', packet));
}

export interface Opened {
  readonly client: MqttClient;
  /** Rejects with CLI-FAILED when the connection is lost and not tried again. Never resolves. */
  readonly lost: Promise<never>;
  /** Sends what is still to be sent and DISCONNECT, then closes. */
  close(): Promise<void>;
}

/**
 * Connects; resolves after a CONNACK that accepts. Throws CLI-FAILED. `prepare` is called before anything can come in:
 * a broker that has a session sends its messages at once behind CONNACK.
 */
export async function openClient(
  settings: ClientSettings,
  reconnect: boolean,
  io: Io,
  prepare: (client: MqttClient) => void = () => {},
): Promise<Opened> {
  const { MqttClient } = (await import('mqtt')).default;
  let why = 'the connection was closed';
  let state: 'connecting' | 'connected' | 'closing' = 'connecting';
  const build = (): Duplex => {
    const stream = openStream(settings);
    stream.on('error', (error) => {
      why = systemErrorText(error);
    });
    return stream;
  };
  const client = new MqttClient(build, clientOptions(settings, reconnect));
  if (settings.debug) showPackets(client, settings, io);
  prepare(client);
  const failure = (): GatewayError => new GatewayError('CLI-FAILED', `${place(settings)}: ${why}`);
  const lost = new Promise<never>((_resolve, reject) => {
    client.on('error', (error) => {
      // Refusals and failures of the network have a code; what the decoder finds wrong has none.
      why = 'code' in error ? systemErrorText(error) : `the answer is no MQTT (${error.message})`;
      // Refused by CONNACK or a protocol error: trying again would not help.
      if (state === 'connecting') reject(failure());
    });
    client.on('disconnect', (packet) => {
      why = `disconnected by the broker, reason code 0x${(packet.reasonCode ?? 0).toString(16)}`;
    });
    client.on('close', () => {
      if (state === 'connecting' || !reconnect) reject(failure());
      else if (state === 'connected' && !settings.quiet) {
        io.stderr.write(`tidegate: ${place(settings)}: ${why}; trying again\n`);
      }
    });
  });
  // Whoever waits for it sees it; when nobody does any more it is of no interest.
  lost.catch(() => {});
  const up = new Promise<void>((resolve) => client.once('connect', () => resolve()));
  try {
    await Promise.race([up, lost]);
  } catch (error) {
    client.end(true);
    throw error;
  }
  state = 'connected';
  const close = async (): Promise<void> => {
    state = 'closing';
    const properties = settings.properties.get('disconnect');
    await client.endAsync(false, properties === undefined ? {} : { properties }).catch(() => {});
  };
  return { client, lost, close };
}
