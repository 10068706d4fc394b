// The way out of a pipe whose transport keeps messages whole (WebSocket): no frame header, each message is a write of
// its own. Made by pipe.ts, which decides what may leave and what has to wait. Knows what it has handed over and is not
// confirmed. Source: sp-websocket-mapping (one SP message is one binary WebSocket message).
import { copyBytes } from '../base/writer.ts';
import { TCP_HEADER_BYTES } from '../codec/sp.ts';
import type { Connection } from '../transport/transport.ts';

export class MessageWriter {
  /** Bytes handed to the transport and not confirmed, with those a frame header would have. */
  pendingBytes = 0;
  private readonly connection: Connection;
  private readonly hopBytes: 0 | 4;
  private readonly confirmed: (bytes: number, error: unknown) => void;

  /** @param confirmed called once for each message; `error` is set when it went down with the connection */
  constructor(connection: Connection, hopBytes: 0 | 4, confirmed: (bytes: number, error: unknown) => void) {
    this.connection = connection;
    this.hopBytes = hopBytes;
    this.confirmed = confirmed;
  }

  /** Sends protocol header + head + body[start, end). Copies before it returns. */
  send(head: Uint8Array, body: Uint8Array, start: number, end: number): void {
    const message = Buffer.allocUnsafe(this.hopBytes + head.length + end - start);
    if (this.hopBytes > 0) message.writeUInt32BE(1, 0);
    message.set(head, this.hopBytes);
    copyBytes(body, start, message, this.hopBytes + head.length, end - start);
    this.write(message);
  }

  /** Sends a message that is complete. */
  write(message: Buffer): void {
    const bytes = message.length + TCP_HEADER_BYTES;
    this.pendingBytes += bytes;
    this.connection.write(message, (error?: unknown) => {
      this.pendingBytes -= bytes;
      this.confirmed(bytes, error);
    });
  }
}
