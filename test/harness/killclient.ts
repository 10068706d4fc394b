// A client that keeps its half of the session whatever happens to its connection, and remembers what it was promised.
// Used by killcrew.ts: publishes numbered messages, acknowledges what it gets, comes back when it is told where.
// Obeys MQTT as a receiver: a QoS 2 Packet Identifier counts once until its PUBREL (MQTT 5.0 section 4.3.3).
import net from 'node:net';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { decodePacket, encodePacket } from '../../src/codec/packet.ts';
import { decodePublish, encodePublish, newScan } from '../../src/codec/publish.ts';
import { Publication } from '../../src/mqtt/message.ts';
import {
  type AckPacket,
  CONNACK,
  CONNECT,
  DISCONNECT,
  PINGREQ,
  PINGRESP,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  type Qos,
  SUBACK,
  SUBSCRIBE,
  type SubackPacket,
  type Version,
} from '../../src/mqtt/packet.ts';
import { SERVER_SHUTTING_DOWN } from '../../src/mqtt/reason.ts';

export interface KillClientOptions {
  readonly clientId: string;
  readonly version: Version;
  /** False for a client whose session ends with each connection. */
  readonly durable?: boolean;
  readonly subscriptions?: readonly { topicFilter: string; qos: Qos }[];
  readonly publishes?: {
    /** Topic of message n. */
    readonly topic: (n: number) => string;
    /** Bytes behind "<client id> <n> ". */
    readonly body: (n: number) => string;
    readonly qos: Qos;
    readonly retain: boolean;
    /** Unacknowledged messages at once. */
    readonly window: number;
    /** Milliseconds from one message to the next; 0 or absent = as fast as the window allows. */
    readonly everyMs?: number;
    /** False while it must not go on; asked again after `everyMs`. */
    readonly may?: () => boolean;
  };
  /** Milliseconds until what came is acknowledged; null = never on the connection it came on. */
  readonly ackAfterMs?: () => number | null;
  readonly receiveMaximum?: number;
  /** Its payload is "<client id> 1 will". */
  readonly will?: { readonly topic: string; readonly qos: Qos };
}

export interface Received {
  readonly from: string;
  readonly n: number;
  readonly qos: Qos;
  readonly topic: string;
  readonly retain: boolean;
}

interface Outgoing {
  readonly n: number;
  readonly packetId: number;
  released: boolean;
}

const NOBODY = { kind: 'server', clientId: '', username: null, bridge: null } as const;

export class KillClient {
  readonly options: KillClientOptions;
  /** Everything it was given, in order; a QoS 2 message that came again under its identifier is not repeated here. */
  received: Received[] = [];
  /** Numbers of messages that were acknowledged: PUBACK, or PUBREC for QoS 2. */
  acknowledged = new Set<number>();
  /** Number of the last message sent at least once. */
  last = 0;
  /** What must not happen: a session lost, a refusal, a connection closed by a gateway that lives. */
  readonly complaints: string[] = [];
  online = false;
  private socket: net.Socket | null = null;
  private publishing = false;
  private established = false;
  private outgoing: Outgoing[] = [];
  /** QoS 2 identifiers that wait for their PUBREL, with what came under them. */
  private readonly incoming = new Map<number, string>();
  private nextPacketId = 1;
  private rest: Buffer = Buffer.alloc(0);
  private readonly frame = newFrame();
  private waiting: { done: () => boolean; resolve: () => void }[] = [];
  private pings = 0;
  private pause: NodeJS.Timeout | null = null;

  constructor(options: KillClientOptions) {
    this.options = options;
  }

  /** Connects; the rest happens by itself until cut() or the end of the connection. */
  connect(port: number): void {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket = socket;
    this.rest = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      if (this.socket === socket) this.data(chunk);
    });
    socket.on('close', () => {
      if (this.socket === socket) this.gone();
    });
    const { clientId, version, durable = true, receiveMaximum, will } = this.options;
    const properties =
      version === 5
        ? { sessionExpiryInterval: durable ? 3600 : 0, ...(receiveMaximum === undefined ? {} : { receiveMaximum }) }
        : null;
    this.write(
      encodePacket(version, {
        type: CONNECT,
        version,
        bridge: false,
        clientId,
        cleanStart: !durable,
        // The grace that a will has after a crash follows from it.
        keepAlive: will === undefined ? 0 : 2,
        username: null,
        password: null,
        will:
          will === undefined
            ? null
            : {
                topicName: will.topic,
                payload: Buffer.from(`${clientId} 1 will`),
                qos: will.qos,
                retain: false,
                delayInterval: 0,
                properties: null,
              },
        properties,
      }),
    );
  }

  /** Lets the connection go without DISCONNECT. */
  cut(): void {
    this.socket?.destroy();
    this.gone();
  }

  /** Publishes from now on as fast as its window allows, or stops with what is under way. */
  publish(on: boolean): void {
    this.publishing = on;
    if (on && this.online) this.pump();
  }

  /** Every message it has begun is acknowledged to the end. */
  get settled(): boolean {
    return this.online && this.outgoing.length === 0;
  }

  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  /** Resolves when everything the gateway wrote before has been handled. */
  async ping(): Promise<void> {
    const target = this.pings + 1;
    this.write(encodePacket(this.options.version, { type: PINGREQ }));
    await this.until(() => this.pings >= target);
  }

  /** Forgets what was received and acknowledged; numbers go on. */
  forget(): void {
    this.received = [];
    this.acknowledged = new Set();
  }

  // ---- inside

  private gone(): void {
    this.socket = null;
    this.online = false;
    this.look();
  }

  private write(bytes: Buffer): void {
    this.socket?.write(bytes);
  }

  private look(): void {
    if (this.waiting.length === 0) return;
    const waiting = this.waiting;
    this.waiting = [];
    for (const one of waiting) {
      if (one.done()) one.resolve();
      else this.waiting.push(one);
    }
  }

  private data(chunk: Buffer): void {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    this.socket?.cork();
    while (readFrame(this.rest, at, this.rest.length, this.frame, Number.POSITIVE_INFINITY) === 1) {
      const { end } = this.frame;
      this.packet();
      at = end;
    }
    this.socket?.uncork();
    this.rest = this.rest.subarray(at);
    this.look();
  }

  private packet(): void {
    const { version, clientId } = this.options;
    if (this.frame.type === PUBLISH) {
      this.delivered();
      return;
    }
    const packet = decodePacket(version, this.rest, this.frame, 'server');
    switch (packet.type) {
      case CONNACK:
        this.opened(packet.sessionPresent, packet.reasonCode);
        return;
      case SUBACK:
        for (const code of (packet as SubackPacket).reasonCodes)
          if (code >= 0x80) this.complaints.push(`${clientId}: SUBACK ${code}`);
        this.established = true;
        this.online = true;
        this.pump();
        return;
      case PUBACK:
      case PUBREC:
      case PUBCOMP:
        this.answered(packet as AckPacket);
        return;
      case PUBREL:
        this.incoming.delete(packet.packetId);
        this.ack(PUBCOMP, packet.packetId);
        return;
      case PINGRESP:
        this.pings++;
        return;
      case DISCONNECT:
        // A gateway that is told to stop says so.
        if (packet.reasonCode === SERVER_SHUTTING_DOWN) return;
        this.complaints.push(`${clientId}: DISCONNECT ${packet.reasonCode} ${packet.properties?.reasonString ?? ''}`);
    }
  }

  private opened(present: boolean, reasonCode: number): void {
    const { clientId, durable = true, subscriptions = [], version } = this.options;
    if (reasonCode !== 0) {
      this.complaints.push(`${clientId}: CONNACK ${reasonCode}`);
      return;
    }
    if (this.established && durable && !present) this.complaints.push(`${clientId}: the session was lost`);
    if (!durable) this.incoming.clear();
    for (const { n, packetId, released } of this.outgoing) {
      if (released) this.ack(PUBREL, packetId);
      else this.send(n, packetId, true);
    }
    if (subscriptions.length > 0 && !(present && this.established)) {
      const requests = subscriptions.map((s) => ({
        ...s,
        noLocal: false,
        retainAsPublished: false,
        retainHandling: 0 as const,
      }));
      this.write(
        encodePacket(version, { type: SUBSCRIBE, packetId: 65_535, subscriptions: requests, properties: null }),
      );
      return;
    }
    this.established = true;
    this.online = true;
    this.pump();
  }

  private pump(): void {
    const { publishes } = this.options;
    if (!this.publishing || publishes === undefined) return;
    const { everyMs = 0, may } = publishes;
    while (this.outgoing.length < publishes.window) {
      if (everyMs > 0 && this.pause !== null) return;
      if (may?.() === false) {
        this.pumpLater(everyMs);
        return;
      }
      const packetId = this.nextPacketId;
      this.nextPacketId = packetId === 60_000 ? 1 : packetId + 1;
      const n = ++this.last;
      this.outgoing.push({ n, packetId, released: false });
      this.send(n, packetId, false);
      if (everyMs > 0) this.pumpLater(everyMs);
    }
  }

  private pumpLater(ms: number): void {
    this.pause ??= setTimeout(() => {
      this.pause = null;
      if (this.online) this.pump();
    }, ms);
  }

  private send(n: number, packetId: number, dup: boolean): void {
    const { publishes, clientId, version } = this.options;
    if (publishes === undefined) return;
    const { qos, retain } = publishes;
    const body = publishes.body(n);
    const payload = Buffer.from(body === '' && retain ? '' : `${clientId} ${n} ${body}`);
    const parts = { topic: publishes.topic(n), payload, qos, retain, dup, packetId, properties: null };
    this.write(encodePublish(version, parts));
  }

  private answered(packet: AckPacket): void {
    const at = this.outgoing.findIndex((o) => o.packetId === packet.packetId);
    const { clientId } = this.options;
    // No subscriber (0x10) and an unknown identifier at PUBCOMP (0x92: its first PUBREL was the one that counted) are good ends.
    const good = packet.reasonCode < 0x80 || (packet.type === PUBCOMP && packet.reasonCode === 0x92);
    if (!good) this.complaints.push(`${clientId}: packet ${packet.type} with ${packet.reasonCode}`);
    if (at < 0) {
      this.complaints.push(`${clientId}: packet ${packet.type} for an identifier that waits for nothing`);
      return;
    }
    const entry = this.outgoing[at];
    if (packet.type === PUBREC) {
      this.acknowledged.add(entry.n);
      entry.released = true;
      this.ack(PUBREL, entry.packetId);
      return;
    }
    if (packet.type === PUBACK) this.acknowledged.add(entry.n);
    this.outgoing.splice(at, 1);
    this.pump();
  }

  private delivered(): void {
    const publication = new Publication(NOBODY);
    decodePublish(this.rest, this.frame, this.options.version, newScan(), publication);
    const { qos, packetId, topic, retain } = publication;
    const text = Buffer.from(publication.payload()).toString('latin1');
    const [from, n] = text.split(' ', 2);
    const before = qos === 2 ? this.incoming.get(packetId) : undefined;
    if (before === undefined) this.received.push({ from, n: Number(n), qos, topic, retain });
    else if (before !== text)
      this.complaints.push(
        `${this.options.clientId}: identifier ${packetId} of ${before.slice(0, 20)} came with ${text.slice(0, 20)}`,
      );
    if (qos === 0) return;
    if (qos === 2) this.incoming.set(packetId, text);
    this.later(() => this.ack(qos === 1 ? PUBACK : PUBREC, packetId));
  }

  private later(then: () => void): void {
    const afterMs = this.options.ackAfterMs?.() ?? (this.options.ackAfterMs === undefined ? 0 : null);
    const { socket } = this;
    if (afterMs === 0) then();
    else if (afterMs !== null)
      setTimeout(() => {
        if (this.socket === socket) then();
      }, afterMs);
  }

  private ack(type: AckPacket['type'], packetId: number): void {
    this.write(encodePacket(this.options.version, { type, packetId, reasonCode: 0, properties: null }));
  }
}
