// The client's half of a WebSocket handshake, on a socket that dial.ts has connected and secured. Loaded by the first
// such target. Must not connect, follow redirects or compress. Source: RFC 6455 section 4.1.
import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import { GRACE_MS, type Peer } from './stream.ts';
import type { Connection, TlsInfo } from './transport.ts';
import { WebSocketConnection } from './websocket.ts';

export interface WsClientOptions {
  readonly url: string;
  readonly subprotocol: string;
  /** Bytes of the largest message taken, 0 = no limit. */
  readonly maxMessageBytes: number;
  readonly framed: boolean;
}

/**
 * Asks for the WebSocket. Rejects with the server's refusal; the caller destroys `socket` when it has waited long
 * enough.
 */
export function openWebSocket(
  socket: Socket,
  carrier: Socket,
  peer: Peer,
  tls: TlsInfo | null,
  options: WsClientOptions,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const wsOptions = {
      createConnection: () => socket,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: options.maxMessageBytes,
      skipUTF8Validation: true,
      closeTimeout: GRACE_MS,
    };
    const webSocket = new WebSocket(options.url, [options.subprotocol], wsOptions);
    const onClose = (): void => reject(new Error('closed during the handshake'));
    webSocket.on('error', reject);
    webSocket.once('close', onClose);
    webSocket.once('open', () => {
      webSocket.removeListener('error', reject);
      webSocket.removeListener('close', onClose);
      resolve(new WebSocketConnection(webSocket, socket, carrier, peer, tls, options.framed));
    });
  });
}
