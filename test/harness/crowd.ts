// Very many MQTT clients at once on real sockets, each with next to no memory of its own: they connect, send one message to themselves, and
// are gone. Used by test/proxy/crowd.test.ts.
import { connect, type Socket } from 'node:net';
import { encodePublish } from '../../src/codec/publish.ts';
import { connectBytes } from './proxyparts.ts';

/** Connections that are opened side by side; more only wait in the kernel. */
const SIDE_BY_SIDE = 200;
const CONNACK_BYTES = 4;
const SUBACK_BYTES = 5;

export type Arrival = 'accepted' | 'refused';

class Member {
  private readonly socket: Socket;
  private bytes = 0;
  /** The beginning of what came: CONNACK. */
  private head: Buffer = Buffer.alloc(0);
  private wanted = 0;
  private reached: ((arrived: boolean) => void) | null = null;
  private gone = false;
  private readonly topic: string;

  constructor(port: number, clientId: string) {
    this.topic = `c/${clientId}`;
    this.socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.gone = true;
      this.settle();
    });
    this.socket.on('data', (chunk) => {
      if (this.bytes < CONNACK_BYTES) this.head = Buffer.concat([this.head, chunk.subarray(0, CONNACK_BYTES)]);
      this.bytes += chunk.length;
      this.settle();
    });
    this.socket.write(connectBytes({ clientId, keepAlive: 0 }));
  }

  /** False where it is closed, or told by CONNACK that it is refused. */
  async connected(): Promise<boolean> {
    return (await this.more(CONNACK_BYTES)) && this.head[3] === 0;
  }

  /** Subscribes and publishes with QoS 0: true when the message has come back. */
  async echo(): Promise<boolean> {
    const name = Buffer.from(this.topic);
    const subscribe = Buffer.concat([
      Buffer.from([0x82, name.length + 5, 0, 1, 0, name.length]),
      name,
      Buffer.from([0]),
    ]);
    this.socket.write(subscribe);
    if (!(await this.more(SUBACK_BYTES))) return false;
    const fields = { topic: this.topic, payload: name, qos: 0, retain: false, dup: false, packetId: 0 } as const;
    const publish = encodePublish(4, { ...fields, properties: null });
    this.socket.write(publish);
    return this.more(publish.length);
  }

  leave(): void {
    this.socket.resetAndDestroy();
  }

  private more(bytes: number): Promise<boolean> {
    this.wanted += bytes;
    return new Promise((resolve) => {
      this.reached = resolve;
      this.settle();
    });
  }

  private settle(): void {
    if (this.reached === null || (this.bytes < this.wanted && !this.gone)) return;
    const { reached } = this;
    this.reached = null;
    reached(this.bytes >= this.wanted);
  }
}

export class Crowd {
  private readonly members: Member[] = [];
  private readonly port: number;

  constructor(port: number) {
    this.port = port;
  }

  /** Opens `count` connections more; gives how many were not accepted. */
  async come(count: number): Promise<number> {
    const first = this.members.length;
    let refused = 0;
    await this.each(count, async (i) => {
      const member = new Member(this.port, `m${first + i}`);
      if (await member.connected()) this.members.push(member);
      else refused++;
    });
    return refused;
  }

  /** One message from each to itself; gives how many came back. */
  async round(): Promise<number> {
    let echoed = 0;
    await this.each(this.members.length, async (i) => {
      if (await this.members[i].echo()) echoed++;
    });
    return echoed;
  }

  leave(): void {
    for (const member of this.members.splice(0)) member.leave();
  }

  private async each(count: number, work: (i: number) => Promise<void>): Promise<void> {
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < count) await work(next++);
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, lane));
  }
}
