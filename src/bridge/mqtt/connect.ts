// What a bridge says to a remote broker when it arrives: where to dial, CONNECT, SUBSCRIBE. Pure: options in, packets
// out. Called by bridge.ts and remote.ts. Sources: MQTT 5.0 sections 3.1, 3.8; 3.1.1 the same; the bridge bit 0x80 of
// the Protocol Level.
import { parseBrokerUrl } from '../../base/brokerurl.ts';
import type { ConnackPacket, ConnectPacket, SubscribePacket, SubscriptionRequest, Will } from '../../mqtt/packet.ts';
import { CONNECT, SUBSCRIBE } from '../../mqtt/packet.ts';
import type { Properties } from '../../mqtt/property.ts';
import type { DialTarget, TlsClientOptions } from '../../transport/transport.ts';
import { noticeWill } from './notice.ts';
import type { MqttBridgeOptions, MqttWillOptions, UserProperties } from './options.ts';

const SYSTEM_TLS: TlsClientOptions = {
  ca: null,
  cert: null,
  key: null,
  keyPassword: null,
  verify: true,
  serverName: null,
};
/** Where a server's URL leads; null when it is no URL of a kind that is known here. */
export function remoteTarget(
  server: string,
  options: Pick<MqttBridgeOptions, 'tls' | 'alpn'> & { readonly tcp: { readonly bindInterface: string | null } },
): DialTarget | null {
  const tls = options.tls ?? SYSTEM_TLS;
  const alpn = options.alpn === undefined || options.alpn.length === 0 ? undefined : options.alpn;
  const url = parseBrokerUrl(server);
  if (typeof url === 'string' || url.kind === 'quic') return null;
  const { kind, host, port } = url;
  if (kind === 'ws') return { kind, url: server, subprotocol: 'mqtt' };
  if (kind === 'wss') return { kind, url: server, subprotocol: 'mqtt', tls };
  const place = { host, port, interface: options.tcp.bindInterface ?? undefined };
  return kind === 'tcp' ? { kind, ...place } : { kind, ...place, tls, alpn };
}

function pairs(userProperty: UserProperties): [string, string][] | undefined {
  return userProperty.length === 0 ? undefined : userProperty.map(([name, value]) => [name, value]);
}

/** The set without members that are undefined; null when nothing is left. */
function present(properties: Properties): Properties | null {
  const entries = Object.entries(properties).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

function orAbsent(value: number): number | undefined {
  return value === 0 ? undefined : value;
}

function connectProperties(options: MqttBridgeOptions, maxPacketBytes: number): Properties | null {
  const { connProperties: conn, maxRecvQueueLen } = options;
  // What may not be accepted here must not be sent there: both limits are told.
  const receiveMaximum = maxRecvQueueLen > 0 ? Math.min(conn.receiveMaximum, maxRecvQueueLen) : conn.receiveMaximum;
  return present({
    sessionExpiryInterval: orAbsent(conn.sessionExpiryIntervalSeconds),
    receiveMaximum: receiveMaximum === 65_535 ? undefined : receiveMaximum,
    topicAliasMaximum: orAbsent(conn.topicAliasMaximum),
    maximumPacketSize: maxPacketBytes,
    requestProblemInformation: conn.requestProblemInformation ? undefined : false,
    requestResponseInformation: conn.requestResponseInformation ? true : undefined,
    userProperties: pairs(conn.userProperty),
  });
}

function willOf(will: MqttWillOptions, five: boolean): Will {
  const properties = present({
    payloadFormatIndicator: orAbsent(will.payloadFormatIndicator),
    messageExpiryInterval: orAbsent(will.messageExpiryIntervalSeconds),
    contentType: will.contentType ?? undefined,
    responseTopic: will.responseTopic ?? undefined,
    correlationData: will.correlationData === null ? undefined : Buffer.from(will.correlationData),
    userProperties: pairs(will.userProperty),
  });
  return {
    topicName: will.topic,
    payload: Buffer.from(will.payload),
    qos: will.qos,
    retain: will.retain,
    properties: five ? properties : null,
    delayInterval: five ? will.willDelayIntervalSeconds : 0,
  };
}

/** CONNECT of this bridge. */
export function connectPacket(options: MqttBridgeOptions, clientId: string, maxPacketBytes: number): ConnectPacket {
  const { protoVer: version, username, password, will } = options;
  return {
    type: CONNECT,
    version,
    // Tells brokers that know the bit not to send back what comes from here.
    bridge: options.noLocalV4 && version < 5,
    clientId,
    cleanStart: options.cleanStart,
    keepAlive: Math.min(65_535, Math.ceil(options.keepaliveMs / 1000)),
    // Before 5.0 a password needs a user name [MQTT-3.1.2-22].
    username: username ?? (password !== null && version < 5 ? '' : null),
    password: password === null ? null : Buffer.from(password),
    will: will === null ? noticeWill(options, clientId) : willOf(will, version === 5),
    properties: version === 5 ? connectProperties(options, maxPacketBytes) : null,
  };
}

/** SUBSCRIBE for one filter. @param identifier Subscription Identifier, 0 = none */
export function subscribePacket(
  options: MqttBridgeOptions,
  packetId: number,
  request: SubscriptionRequest,
  identifier: number,
): SubscribePacket {
  const properties = present({
    subscriptionIdentifiers: identifier === 0 ? undefined : [identifier],
    userProperties: pairs(options.subProperties.userProperty),
  });
  return {
    type: SUBSCRIBE,
    packetId,
    subscriptions: [request],
    properties: options.protoVer === 5 ? properties : null,
  };
}

const RETURN_CODES = [
  '',
  'protocol version not supported',
  'client id refused',
  'server unavailable',
  'wrong user name or password',
  'not authorised',
];

/** Why a remote broker has refused, in words. */
export function connackText(version: number, { reasonCode, properties }: ConnackPacket): string {
  if (version < 5) return RETURN_CODES[reasonCode] ?? `return code ${reasonCode}`;
  const text = properties?.reasonString === undefined ? '' : `: ${properties.reasonString}`;
  return `reason code 0x${reasonCode.toString(16)}${text}`;
}

/** Whether only rules differ, which a connection need not notice. */
export function sameConnection(a: MqttBridgeOptions, b: MqttBridgeOptions): boolean {
  const plain = (options: MqttBridgeOptions): string =>
    JSON.stringify(options, (key, value: unknown) =>
      key === 'source' || key === 'forwards' || key === 'subscription' || key === 'maxSendQueueLen' ? undefined : value,
    );
  return plain(a) === plain(b);
}
