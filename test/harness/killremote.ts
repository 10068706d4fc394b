// The remote broker of a bridge: takes QoS 1 publishes of MQTT 3.1.1, acknowledges them after a while, remembers them in order.
// Used by killcrew.ts. It stays while the gateway is killed, and cuts the bridge's connection itself when it is told to.
import net from 'node:net';
import { newFrame } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { decodePacket, encodePacket } from '../../src/codec/packet.ts';
import { decodePublish, newScan } from '../../src/codec/publish.ts';
import { Publication } from '../../src/mqtt/message.ts';
import { CONNACK, CONNECT, PINGREQ, PINGRESP, PUBACK, PUBLISH, SUBACK, SUBSCRIBE } from '../../src/mqtt/packet.ts';

const NOBODY = { kind: 'server', clientId: '', username: null, bridge: null } as const;
const ACK_AFTER_MS = 2;

export class KillRemote {
  /** Payloads in the order they came, repeated ones included. */
  received: string[] = [];
  private readonly server = net.createServer((socket) => this.accept(socket));
  private readonly sockets = new Set<net.Socket>();
  private known = false;
  private waiting: { done: () => boolean; resolve: () => void }[] = [];

  async start(): Promise<number> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return (this.server.address() as net.AddressInfo).port;
  }

  stop(): void {
    this.cut();
    this.server.close();
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  private accept(socket: net.Socket): void {
    this.sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    const frame = newFrame();
    let rest: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let at = 0;
      while (readFrame(rest, at, rest.length, frame, Number.POSITIVE_INFINITY) === 1) {
        const { end } = frame;
        if (frame.type === PUBLISH) this.published(socket, rest, frame);
        else this.packet(socket, rest, frame);
        at = end;
      }
      rest = rest.subarray(at);
    });
  }

  private packet(socket: net.Socket, bytes: Buffer, frame: ReturnType<typeof newFrame>): void {
    const packet = decodePacket(4, bytes, frame);
    if (packet.type === CONNECT) {
      const sessionPresent = this.known;
      this.known = true;
      socket.write(encodePacket(4, { type: CONNACK, sessionPresent, reasonCode: 0, properties: null }));
    } else if (packet.type === PINGREQ) socket.write(encodePacket(4, { type: PINGRESP }));
    else if (packet.type === SUBSCRIBE) {
      const reasonCodes = packet.subscriptions.map((s) => s.qos);
      socket.write(encodePacket(4, { type: SUBACK, packetId: packet.packetId, reasonCodes, properties: null }));
    }
  }

  private published(socket: net.Socket, bytes: Buffer, frame: ReturnType<typeof newFrame>): void {
    const publication = new Publication(NOBODY);
    decodePublish(bytes, frame, 4, newScan(), publication);
    this.received.push(Buffer.from(publication.payload()).toString('latin1'));
    const { packetId, qos } = publication;
    if (qos > 0)
      setTimeout(
        () => socket.write(encodePacket(4, { type: PUBACK, packetId, reasonCode: 0, properties: null })),
        ACK_AFTER_MS,
      );
    const waiting = this.waiting;
    this.waiting = [];
    for (const one of waiting) {
      if (one.done()) one.resolve();
      else this.waiting.push(one);
    }
  }
}
