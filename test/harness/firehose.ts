// An MQTT 3.1.1 client that knows no limits of its own: sends publishes as fast as the socket takes them, waits for no acknowledgement,
// counts what comes. For tests of loss and back-pressure, where a well-behaved client would hide what the gateway does.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

const CONNECT = Buffer.from([0x10, 0x0c, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 2, 0, 0, 0, 0]);
/** Publishes written at once. */
const BATCH = 256;

function packet(type: number, body: Buffer): Buffer {
  const head = [type];
  let left = body.length;
  do {
    head.push(left > 127 ? (left & 127) | 128 : left);
    left >>= 7;
  } while (left > 0);
  return Buffer.concat([Buffer.from(head), body]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

export class Firehose {
  /** PUBACK and PUBREC so far. */
  acknowledged = 0;
  /** Payloads of the PUBLISH packets received, in order. */
  readonly received: Buffer[] = [];
  closed = false;
  readonly socket: Socket;
  private rest = Buffer.alloc(0);
  private waiting: { done: () => boolean; resolve: () => void }[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => this.data(chunk));
    socket.on('drain', () => this.look());
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.look();
    });
  }

  static async connect(port: number): Promise<Firehose> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    const client = new Firehose(socket);
    socket.write(CONNECT);
    await client.until(() => client.opened);
    return client;
  }

  private opened = false;
  private subscribed = 0;

  async subscribe(topicFilter: string, qos: number): Promise<void> {
    const before = this.subscribed;
    const body = Buffer.concat([Buffer.from([0, 1]), text(topicFilter), Buffer.from([qos])]);
    this.socket.write(packet(0x82, body));
    await this.until(() => this.subscribed > before);
  }

  /** Sends `count` publishes; payload(i) is theirs. Resolves when the socket has taken them all. */
  async publish(topic: string, qos: 0 | 1 | 2, count: number, payload: (i: number) => Buffer): Promise<void> {
    const name = text(topic);
    for (let i = 0; i < count && !this.closed; ) {
      const packets: Buffer[] = [];
      let bytes = 0;
      for (; i < count && packets.length < BATCH && bytes < 1 << 20; i++) {
        const id = (i % 65_000) + 1;
        const ids = qos > 0 ? [Buffer.from([id >> 8, id & 255])] : [];
        const made = packet(0x30 | (qos << 1), Buffer.concat([name, ...ids, payload(i)]));
        bytes += made.length;
        packets.push(made);
      }
      if (!this.socket.write(Buffer.concat(packets)))
        await this.until(() => !this.socket.writableNeedDrain || this.closed);
    }
  }

  /** Resolves once `done` holds; looked at after each chunk. */
  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  end(): void {
    this.socket.destroy();
  }

  private data(chunk: Buffer): void {
    const bytes = this.rest.length > 0 ? Buffer.concat([this.rest, chunk]) : chunk;
    let at = 0;
    for (;;) {
      let length = 0;
      let shift = 0;
      let o = at + 1;
      let byte = 128;
      while (byte > 127 && o < bytes.length) {
        byte = bytes[o++];
        length |= (byte & 127) << shift;
        shift += 7;
      }
      if (byte > 127 || o + length > bytes.length) break;
      this.packet(bytes[at], bytes.subarray(o, o + length));
      at = o + length;
    }
    this.rest = Buffer.from(bytes.subarray(at));
    this.look();
  }

  private packet(first: number, body: Buffer): void {
    const type = first >> 4;
    if (type === 2) this.opened = true;
    else if (type === 9) this.subscribed++;
    else if (type === 4) this.acknowledged++;
    else if (type === 5) {
      this.acknowledged++;
      this.socket.write(packet(0x62, Buffer.from(body.subarray(0, 2))));
    } else if (type === 3) this.publish3(first, body);
  }

  private publish3(first: number, body: Buffer): void {
    const qos = (first >> 1) & 3;
    const at = 2 + body.readUInt16BE(0);
    if (qos === 1) this.socket.write(packet(0x40, Buffer.from(body.subarray(at, at + 2))));
    this.received.push(Buffer.from(body.subarray(qos > 0 ? at + 2 : at)));
  }

  private look(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const one of waiting) {
      if (one.done()) one.resolve();
      else this.waiting.push(one);
    }
  }
}
