// A few MQTT 5.0 packets over a plain socket: enough to log in, publish at QoS 1 and see what arrives. Independent of src/ on purpose.
import { connect, type Socket } from 'node:net';

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function packet(first: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const head = [first];
  let rest = body.length;
  do {
    head.push((rest & 127) | (rest > 127 ? 128 : 0));
    rest >>= 7;
  } while (rest > 0);
  return Buffer.concat([Buffer.from(head), body]);
}

export interface RawPacket {
  readonly type: number;
  readonly body: Buffer;
}

export class RawClient {
  /** The reason code of CONNACK, -1 when the connection was closed instead. */
  code = -1;
  private readonly socket: Socket;
  private pending: Buffer = Buffer.alloc(0);
  private readonly packets: RawPacket[] = [];
  private wake: (() => void) | null = null;
  private closed = false;
  private nextId = 1;

  private constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk) => this.read(chunk));
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.closed = true;
      this.wake?.();
    });
  }

  static async open(
    port: number,
    clientId: string,
    username: string | null,
    password: string | null,
  ): Promise<RawClient> {
    const client = new RawClient(port);
    const flags = 2 | (username === null ? 0 : 128) | (password === null ? 0 : 64);
    const fields = [
      text(clientId),
      ...(username === null ? [] : [text(username)]),
      ...(password === null ? [] : [text(password)]),
    ];
    client.socket.write(packet(0x10, text('MQTT'), Buffer.from([5, flags, 0, 0, 0]), ...fields));
    const connack = await client.next((one) => one.type === 2);
    client.code = connack === null ? -1 : connack.body[1];
    return client;
  }

  /** The reason code of the PUBACK. */
  async publish(topic: string, payload: string): Promise<number> {
    const id = this.nextId++;
    const idBytes = Buffer.from([id >> 8, id & 255]);
    this.socket.write(packet(0x32, text(topic), idBytes, Buffer.from([0]), Buffer.from(payload)));
    const ack = await this.next((one) => one.type === 4 && one.body.readUInt16BE(0) === id);
    return ack === null ? -1 : (ack.body[2] ?? 0);
  }

  async subscribe(...filters: string[]): Promise<number[]> {
    const id = this.nextId++;
    const idBytes = Buffer.from([id >> 8, id & 255, 0]);
    this.socket.write(packet(0x82, idBytes, ...filters.flatMap((filter) => [text(filter), Buffer.from([0])])));
    const ack = await this.next((one) => one.type === 9 && one.body.readUInt16BE(0) === id);
    return ack === null ? [] : [...ack.body.subarray(3)];
  }

  /** Payloads that have arrived until the answer to a PINGREQ. */
  async received(): Promise<string[]> {
    this.socket.write(Buffer.from([0xc0, 0]));
    const found: string[] = [];
    for (;;) {
      const one = await this.next((each) => each.type === 13 || each.type === 3);
      if (one === null || one.type === 13) return found;
      const length = one.body.readUInt16BE(0);
      found.push(one.body.subarray(2 + length + 1).toString());
    }
  }

  close(): void {
    this.socket.destroy();
  }

  private read(chunk: Buffer): void {
    this.pending = Buffer.concat([this.pending, chunk]);
    for (;;) {
      let length = 0;
      let at = 1;
      for (let shift = 0; ; shift += 7, at++) {
        if (at >= this.pending.length) return;
        length |= (this.pending[at] & 127) << shift;
        if (this.pending[at] < 128) break;
      }
      const end = at + 1 + length;
      if (this.pending.length < end) return;
      this.packets.push({ type: this.pending[0] >> 4, body: this.pending.subarray(at + 1, end) });
      this.pending = this.pending.subarray(end);
      this.wake?.();
    }
  }

  private async next(wanted: (packet: RawPacket) => boolean): Promise<RawPacket | null> {
    for (;;) {
      const index = this.packets.findIndex(wanted);
      if (index >= 0) return this.packets.splice(index, 1)[0];
      if (this.closed) return null;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }
}
