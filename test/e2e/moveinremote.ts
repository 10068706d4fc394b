// A remote broker that writes down what a bridge sends it, and random bridges of mosquitto.conf to compare two brokers with.
// Used by moveinbridge.test.ts.
import { createServer, type Server, type Socket } from 'node:net';
import type { Random } from '../harness/random.ts';

/** Answers everything, notes CONNECT, SUBSCRIBE and PUBLISH as lines. */
export class RemoteEar {
  readonly seen: string[] = [];
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private wake: () => void = () => {};
  private five = false;

  constructor() {
    this.server = createServer((socket) => this.serve(socket));
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve) => this.server.listen(port, '127.0.0.1', resolve));
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }

  /** Resolves when a line fits, false after `ms`. */
  async until(fits: (line: string) => boolean, ms = 8000): Promise<boolean> {
    for (const end = Date.now() + ms; Date.now() < end; ) {
      if (this.seen.some(fits)) return true;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, end - Date.now());
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.seen.some(fits);
  }

  private note(line: string): void {
    this.seen.push(line);
    this.wake();
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    let bytes = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      for (;;) {
        let [length, at] = [0, 1];
        for (let shift = 0; at < bytes.length; at++, shift += 7) {
          length |= (bytes[at] & 127) << shift;
          if (bytes[at] < 128) break;
        }
        if (at >= bytes.length || bytes.length < at + 1 + length) return;
        this.packet(socket, bytes[0], bytes.subarray(at + 1, at + 1 + length));
        bytes = Buffer.from(bytes.subarray(at + 1 + length));
      }
    });
  }

  private packet(socket: Socket, first: number, body: Buffer): void {
    const id = [body[0], body[1]];
    switch (first >> 4) {
      case 1:
        this.connect(body);
        socket.write(Buffer.from(this.five ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0]));
        return;
      case 3:
        this.publish(socket, first, body);
        return;
      case 6:
        socket.write(Buffer.from([0x70, 2, ...id]));
        return;
      case 8:
        this.subscribe(socket, body);
        return;
      case 10:
        socket.write(Buffer.from(this.five ? [0xb0, 4, ...id, 0, 0] : [0xb0, 2, ...id]));
        return;
      case 12:
        socket.write(Buffer.from([0xd0, 0]));
    }
  }

  private connect(body: Buffer): void {
    let at = 0;
    const take = (): Buffer => {
      const length = body.readUInt16BE(at);
      at += 2 + length;
      return body.subarray(at - length, at);
    };
    const protocol = take().toString();
    const [level, flags, keepAlive] = [body[at], body[at + 1], body.readUInt16BE(at + 2)];
    at += 4;
    this.five = (level & 127) === 5;
    const skip = (): void => {
      if (this.five) at += 1 + body[at];
    };
    skip();
    const parts = [`CONNECT ${protocol} ${level.toString(16)}`, `id ${take()}`, `keep alive ${keepAlive}`];
    parts.push(flags & 2 ? 'clean' : 'kept');
    if (flags & 4) {
      skip();
      parts.push(`will ${take()} ${take()} qos ${(flags >> 3) & 3} retain ${(flags >> 5) & 1}`);
    }
    if (flags & 0x80) parts.push(`user ${take()}`);
    if (flags & 0x40) parts.push(`password ${take()}`);
    this.note(parts.join(', '));
  }

  private subscribe(socket: Socket, body: Buffer): void {
    const granted: number[] = [];
    for (let at = 2 + (this.five ? 1 + body[2] : 0); at < body.length; ) {
      const length = body.readUInt16BE(at);
      const qos = body[at + 2 + length] & 3;
      this.note(`SUBSCRIBE ${body.subarray(at + 2, at + 2 + length)} qos ${qos}`);
      granted.push(qos);
      at += 3 + length;
    }
    const rest = [...(this.five ? [0] : []), ...granted];
    socket.write(Buffer.from([0x90, 2 + rest.length, body[0], body[1], ...rest]));
  }

  private publish(socket: Socket, first: number, body: Buffer): void {
    const qos = (first >> 1) & 3;
    const length = body.readUInt16BE(0);
    let at = 2 + length;
    const id = [body[at], body[at + 1]];
    if (qos > 0) at += 2;
    if (this.five) at += 1 + body[at];
    const topic = body.subarray(2, 2 + length).toString();
    // The state of the bridge: this gateway sends it with QoS 0, mosquitto with QoS 1.
    const level = body.subarray(at).toString() === '1' ? '-' : String(qos);
    this.note(`PUBLISH ${topic} ${body.subarray(at)} qos ${level} retain ${first & 1}`);
    if (qos === 1) socket.write(Buffer.from([0x40, 2, ...id]));
    if (qos === 2) socket.write(Buffer.from([0x50, 2, ...id]));
  }
}

const PATTERNS = ['a/#', 'b/+/c', 'x/y', '+/z', 'deep/+/+/#'];
/** Prefixes that do not let the bridge's own messages match again. */
const PREFIXES = ['', ' "" rem/', ' loc/ ""', ' loc/ rem/'];

/** Lines of one bridge to a port of this machine. */
export function randomBridge(r: Random, port: number): string {
  const lines = [`connection up${r.below(9)}`, `address 127.0.0.1:${port}`, 'restart_timeout 1'];
  const maybe = (line: string): void => {
    if (r.below(3) === 0) lines.push(line);
  };
  maybe(`cleansession ${r.pick(['true', 'false'])}`);
  maybe(`remote_clientid edge-${r.below(9)}`);
  maybe('notifications false');
  maybe('notification_topic state/edge');
  maybe('notifications_local_only true');
  maybe(`try_private ${r.pick(['true', 'false'])}`);
  maybe('bridge_outgoing_retain false');
  maybe(`keepalive_interval ${r.pick([3, 20, 90])}`);
  if (r.below(3) === 0) lines.push('remote_username joe', 'remote_password secret one');
  maybe(`bridge_protocol_version ${r.pick(['mqttv31', 'mqttv311'])}`);
  const used = new Set<string>();
  for (let count = 1 + r.below(3); count > 0; count--) {
    const pattern = r.pick(PATTERNS);
    if (used.has(pattern)) continue;
    used.add(pattern);
    const way = r.pick(['out', 'out', 'in', 'both']);
    const prefixes = r.pick(PREFIXES);
    const level = r.below(3);
    lines.push(
      r.below(4) === 0 && way === 'out' && prefixes === ''
        ? `topic ${pattern}`
        : `topic ${pattern} ${way} ${level}${prefixes}`,
    );
  }
  if (r.below(4) === 0) lines.push('topic "" out 1 one/here one/there');
  return `${lines.join('\n')}\n`;
}

/** What is published here, before and after the bridge is there. */
export const LOCAL_TOPICS = [
  'a/1',
  'a',
  'b/k/c',
  'x/y',
  'q/z',
  'deep/1/2/3',
  'loc/a/1',
  'loc/b/k/c',
  'loc/x/y',
  'loc/q/z',
  'loc/deep/1/2',
  'one/here',
  'other',
];
