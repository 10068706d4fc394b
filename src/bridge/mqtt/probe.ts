// What a remote broker says to a bridge, asked once over a connection of its own: CONNACK, then SUBACK for each filter
// and, where it is wanted, PUBACK for one message. Called by gateway/probe.ts. Comes under a client id of its own, so
// that a running bridge keeps its session; leaves nothing behind. Must not acknowledge messages: none is taken.
// Sources: MQTT 5.0 sections 3.2, 3.9, 3.4; 3.1.1 section 3.2.2.3.
import { randomBytes } from 'node:crypto';
import { encodeConnect } from '../../codec/connect.ts';
import { PacketCutter } from '../../codec/cutter.ts';
import { decodePacket } from '../../codec/packet.ts';
import { encodePublish } from '../../codec/publish.ts';
import { encodeDisconnect } from '../../codec/session.ts';
import { encodeSubscribe } from '../../codec/subscribe.ts';
import {
  type AckPacket,
  CONNACK,
  type ConnackPacket,
  type ControlPacket,
  DISCONNECT,
  PUBACK,
  PUBLISH,
  SUBACK,
  SUBSCRIBE,
  type SubackPacket,
} from '../../mqtt/packet.ts';
import type { Connection } from '../../transport/transport.ts';
import { connectPacket } from './connect.ts';
import type { MqttBridgeOptions } from './options.ts';

/** Bytes read before the broker is given up: retained messages may come with the subscriptions. */
const MAX_READ_BYTES = 16 * 1024 * 1024;
const MAX_PACKET_BYTES = 8 * 1024 * 1024;
/** Filters that are asked for. */
const MAX_FILTERS = 64;

export interface FilterAnswer {
  /** Its place in `subscription`. */
  readonly index: number;
  readonly filter: string;
  /** shared: not asked, because messages meant for others would come here. */
  readonly code: number | 'shared';
}

export interface MqttAnswers {
  readonly clientId: string;
  readonly connack: number;
  /** What the broker says of its limits, where it says something. */
  readonly maximumQos: number;
  readonly filters: readonly FilterAnswer[];
  /** Reason code of the acknowledgement; null: nothing was published. */
  readonly publish: number | null;
}

/** Waits for packets by their type. */
class Answers {
  private readonly connection: Connection;
  private readonly version: 3 | 4 | 5;
  private readonly cutter = new PacketCutter(MAX_PACKET_BYTES);
  private readonly waiting: {
    type: number;
    resolve: (packet: ControlPacket) => void;
    reject: (error: Error) => void;
  }[] = [];
  private error: Error | null = null;
  private readBytes = 0;

  constructor(connection: Connection, version: 3 | 4 | 5) {
    this.connection = connection;
    this.version = version;
    connection.onClose((reason) => {
      this.fail(new Error(`the connection was closed${reason.error === undefined ? '' : ` (${reason.error})`}`));
    });
    connection.onData((chunk) => this.take(chunk));
  }

  next(type: number): Promise<ControlPacket> {
    if (this.error !== null) return Promise.reject(this.error);
    return new Promise((resolve, reject) => this.waiting.push({ type, resolve, reject }));
  }

  fail(error: Error): void {
    this.error ??= error;
    for (const one of this.waiting.splice(0)) one.reject(this.error);
    this.connection.destroy();
  }

  private take(chunk: Buffer): void {
    this.readBytes += chunk.length;
    if (this.readBytes > MAX_READ_BYTES) {
      this.fail(new Error('the broker sends more than a test reads'));
      return;
    }
    try {
      this.cutter.feed(chunk, (buffer) => this.packet(buffer));
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  private packet(buffer: Buffer): boolean {
    const { frame } = this.cutter;
    if (frame.type === PUBLISH) return true;
    const packet = decodePacket(this.version, buffer, frame, 'server');
    if (packet.type === DISCONNECT) {
      this.fail(new Error(`disconnected by the broker, reason code 0x${packet.reasonCode.toString(16)}`));
      return false;
    }
    const at = this.waiting.findIndex(({ type }) => type === packet.type);
    if (at >= 0) this.waiting.splice(at, 1)[0].resolve(packet);
    return true;
  }
}

function send(connection: Connection, bytes: Buffer): void {
  connection.write(bytes, () => {});
}

/** A client id that no bridge has: short enough for every version. */
export function probeClientId({ clientId, protoVer }: Pick<MqttBridgeOptions, 'clientId' | 'protoVer'>): string {
  const end = `-test-${randomBytes(3).toString('hex')}`;
  const begin = clientId ?? 'tidegate';
  return `${protoVer < 5 ? begin.slice(0, 23 - end.length) : begin}${end}`;
}

/**
 * Asks over `connection` and closes it. Rejects when the connection fails or `signal` ends the wait.
 * @param publishTo topic of one empty message that is not retained; null: none is sent
 */
export async function askBroker(
  connection: Connection,
  options: MqttBridgeOptions,
  publishTo: string | null,
  signal: AbortSignal,
): Promise<MqttAnswers> {
  const version = options.protoVer;
  const clientId = probeClientId(options);
  const answers = new Answers(connection, version);
  const onAbort = (): void => answers.fail(new Error('no answer in time'));
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    // A session that ends with the connection, and no will.
    const connProperties = { ...options.connProperties, sessionExpiryIntervalSeconds: 0 };
    const asked = { ...options, connProperties, cleanStart: true };
    send(connection, encodeConnect({ ...connectPacket(asked, clientId, MAX_PACKET_BYTES), will: null }));
    const connack = (await answers.next(CONNACK)) as ConnackPacket;
    const maximumQos = connack.properties?.maximumQos ?? 2;
    if (connack.reasonCode !== 0)
      return { clientId, connack: connack.reasonCode, maximumQos, filters: [], publish: null };
    const filters = await askFilters(connection, answers, options);
    const publish = publishTo === null ? null : await askPublish(connection, answers, version, publishTo);
    send(connection, encodeDisconnect(version, { type: DISCONNECT, reasonCode: 0, properties: null }));
    return { clientId, connack: 0, maximumQos, filters, publish };
  } finally {
    signal.removeEventListener('abort', onAbort);
    connection.end();
  }
}

async function askFilters(
  connection: Connection,
  answers: Answers,
  { subscription, protoVer: version }: MqttBridgeOptions,
): Promise<FilterAnswer[]> {
  const rules = subscription.slice(0, MAX_FILTERS).map((rule, index) => ({ index, rule, filter: rule.remoteTopic }));
  const isShared = (filter: string): boolean => filter.startsWith('$share/');
  const asked = rules.filter(({ filter }) => filter !== '' && !isShared(filter));
  const shared = rules.filter(({ filter }) => isShared(filter));
  const skipped = shared.map(({ index, filter }): FilterAnswer => ({ index, filter, code: 'shared' }));
  if (asked.length === 0) return skipped;
  const subscriptions = asked.map(({ filter, rule }) => ({
    topicFilter: filter,
    qos: rule.qos,
    noLocal: rule.noLocal,
    retainAsPublished: rule.retainAsPublished,
    // Never the stored messages: only the answer is wanted.
    retainHandling: 2 as const,
  }));
  send(connection, encodeSubscribe(version, { type: SUBSCRIBE, packetId: 1, subscriptions, properties: null }));
  const { reasonCodes } = (await answers.next(SUBACK)) as SubackPacket;
  const told = asked.map(({ index, filter }, i): FilterAnswer => ({ index, filter, code: reasonCodes[i] ?? 0x80 }));
  return [...told, ...skipped].sort((a, b) => a.index - b.index);
}

async function askPublish(
  connection: Connection,
  answers: Answers,
  version: 3 | 4 | 5,
  topic: string,
): Promise<number> {
  const message = { topic, payload: Buffer.alloc(0), qos: 1 as const, retain: false, dup: false, packetId: 2 };
  send(connection, encodePublish(version, { ...message, properties: null }));
  const { reasonCode } = (await answers.next(PUBACK)) as AckPacket;
  return reasonCode;
}
