// Streams of a command under test: what it writes is kept as text, what it reads comes from a string.
import { PassThrough, Readable, Writable } from 'node:stream';
import type { Io } from '../../src/cli/cli.ts';

/** A Writable that keeps what it gets and can be waited on. */
export class Sink extends Writable {
  private readonly chunks: Buffer[] = [];
  private readonly waiting = new Set<() => void>();

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    this.chunks.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
    done();
    for (const check of [...this.waiting]) check();
  }

  bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  text(): string {
    return this.bytes().toString('utf8');
  }

  /** Resolves as soon as the text so far matches. */
  until(pattern: RegExp): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!pattern.test(this.text())) return;
        this.waiting.delete(check);
        resolve();
      };
      this.waiting.add(check);
      check();
    });
  }
}

export interface FakeIo extends Io {
  readonly stdout: Sink;
  readonly stderr: Sink;
}

/** Streams with `input` to read and then the end; null leaves standard input open and silent. */
export function fakeIo(input: string | Uint8Array | null = ''): FakeIo {
  const stdin = input === null ? new PassThrough() : Readable.from([Buffer.from(input)]);
  return { stdin, stdout: new Sink(), stderr: new Sink() };
}
