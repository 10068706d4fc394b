// A bare peer for SP sockets: writes any bytes to a TCP port or Unix path and collects what comes back.
import { connect, type Socket } from 'node:net';

export class RawSp {
  readonly socket: Socket;
  bytes = Buffer.alloc(0);
  ended = false;
  private waiting: { done: () => boolean; resolve: () => void }[] = [];

  constructor(where: number | string | Socket) {
    this.socket =
      typeof where === 'object' ? where : typeof where === 'number' ? connect(where, '127.0.0.1') : connect(where);
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
      this.look();
    });
    const end = (): void => {
      this.ended = true;
      this.look();
    };
    this.socket.on('end', end);
    this.socket.on('close', end);
  }

  write(hex: string): void {
    this.socket.write(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
  }

  until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ done, resolve }));
  }

  async take(count: number): Promise<string> {
    await this.until(() => this.bytes.length >= count || this.ended);
    const got = this.bytes.subarray(0, count).toString('hex');
    this.bytes = this.bytes.subarray(count);
    return got;
  }

  closed(): Promise<void> {
    return this.until(() => this.ended);
  }

  destroy(): void {
    this.socket.destroy();
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

export const HELLO = {
  pub: '0053500000200000',
  sub: '0053500000210000',
  pair1: '0053500000110000',
} as const;

/** One tcp frame, as hex. */
export function frameHex(text: string, ipc = false): string {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(Buffer.byteLength(text, 'latin1')));
  return (ipc ? '01' : '') + length.toString('hex') + Buffer.from(text, 'latin1').toString('hex');
}
