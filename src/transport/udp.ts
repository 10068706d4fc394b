// Datagram sockets for the proxy's `protocol = udp`: one bound where clients send to, one connected for each session
// with a server. Built by gateway/transports.ts. A datagram that cannot be sent is lost, as datagrams are; errors are
// told, never thrown. Source: RFC 768; udp(7) (a connected socket learns that nobody listens at the other end).
import { createSocket, type Socket } from 'node:dgram';
import { isIPv4, isIPv6 } from 'node:net';
import { bindError } from './acceptor.ts';
import { formatHostPort, plainAddress } from './address.ts';
import { dialError } from './dial.ts';
import { bareHost } from './tcp.ts';
import type { DatagramSocket } from './transport.ts';

class UdpSocket implements DatagramSocket {
  readonly local: string;
  readonly port: number;
  private readonly socket: Socket;
  private readonly connected: boolean;
  /** IPv4 clients of an IPv6 socket have mapped addresses, which are shown and taken in their plain form. */
  private readonly mapped: boolean;
  private open = true;

  constructor(socket: Socket, connected: boolean) {
    const { address, port, family } = socket.address();
    this.local = formatHostPort(plainAddress(address), port);
    this.port = port;
    this.socket = socket;
    this.connected = connected;
    this.mapped = family === 'IPv6';
  }

  send(bytes: Buffer, port?: number, address?: string): void {
    if (!this.open) return;
    if (this.connected) this.socket.send(bytes);
    else this.socket.send(bytes, port ?? 0, this.mapped && isIPv4(address ?? '') ? `::ffff:${address}` : address);
  }

  onMessage(handler: (bytes: Buffer, address: string, port: number) => void): void {
    this.socket.on('message', (bytes, from) => handler(bytes, plainAddress(from.address), from.port));
  }

  onError(handler: (error: Error) => void): void {
    this.socket.on('error', handler);
  }

  close(): void {
    if (!this.open) return;
    this.open = false;
    this.socket.close();
  }
}

/** Listens for datagrams on a host (a name, an address, "*") and port, 0 = any. Rejects with TRANSPORT-BIND. */
export async function bindUdp(host: string, port: number): Promise<DatagramSocket> {
  const bare = bareHost(host);
  const socket = createSocket({ type: bare === '*' || isIPv6(bare) ? 'udp6' : 'udp4' });
  try {
    await settled(socket, (done) => socket.bind({ address: bare === '*' ? '::' : bare, port }, done));
  } catch (error) {
    socket.close();
    throw bindError(formatHostPort(bare, port), error);
  }
  return new UdpSocket(socket, false);
}

/** A socket that sends to, and hears from, one address only. Rejects with TRANSPORT-DIAL. */
export async function connectUdp(address: string, port: number): Promise<DatagramSocket> {
  const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4' });
  try {
    await settled(socket, (done) => socket.connect(port, address, done));
  } catch (error) {
    socket.close();
    throw dialError(formatHostPort(address, port), error);
  }
  return new UdpSocket(socket, true);
}

function settled(socket: Socket, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    begin(() => {
      socket.removeListener('error', reject);
      resolve();
    });
  });
}
