// Writes lines to a descriptor without ever waiting for it: one write at a time, what comes meanwhile goes with the
// next one. Called by logger.ts. A descriptor that fails or does not take anything loses lines and says so once; it
// never stops the process, not even when everything has to be out at once (flush): a full disk is no reason to hang.
// Source: write(2) on EAGAIN and partial writes.
import { closeSync, write, writeSync } from 'node:fs';
import { errorText } from './errors.ts';

/** A pipe that is full is asked again after so long. */
const AGAIN_MS = 50;
/**
 * A flush gives up after so many tries of AGAIN_MS: a reader that takes nothing for a second does not read any more.
 */
const MOST_TRIES = 20;

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EBUSY');
}

/** Blocks this thread; only for flush, when the process is about to end or a file to change. */
function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

export class LineWriter {
  private readonly fd: number;
  private readonly mostChars: number;
  /** Told the first of a run of failures; the next one after a success in between. */
  private readonly report: (text: string) => void;
  private lines: string[] = [];
  /** Characters of lines that are not written yet, those under way among them. */
  private waitingChars = 0;
  private state: 'idle' | 'writing' | 'ending' | 'closed' = 'idle';
  private failing = false;

  /** @param mostChars what may wait; lines beyond that are lost */
  constructor(fd: number, mostChars: number, report: (text: string) => void) {
    this.fd = fd;
    this.mostChars = mostChars;
    this.report = report;
  }

  write(line: string): void {
    if (this.state === 'ending' || this.state === 'closed') return;
    if (this.waitingChars + line.length > this.mostChars) {
      this.fail('too slow, lines are lost');
      return;
    }
    this.lines.push(line);
    this.waitingChars += line.length;
    if (this.state === 'idle') this.next();
  }

  /**
   * Writes what waits before it returns, or loses it: takes at most about a second. What is under way is not waited
   * for.
   */
  flush(): void {
    const { bytes, chars } = this.take();
    this.waitingChars -= chars;
    let at = 0;
    let tries = 0;
    while (at < bytes.length && tries < MOST_TRIES) {
      try {
        at += writeSync(this.fd, bytes, at);
        tries = 0;
      } catch (error) {
        if (!isBusy(error)) {
          this.fail(errorText(error));
          return;
        }
        tries++;
        sleep(AGAIN_MS);
      }
    }
    if (at < bytes.length) this.fail('too slow, lines are lost');
  }

  /** Flushes, and closes the descriptor when nothing is under way any more. */
  end(): void {
    this.flush();
    if (this.state === 'writing') this.state = 'ending';
    else this.close();
  }

  private take(): { bytes: Buffer; chars: number } {
    const text = this.lines.join('');
    this.lines = [];
    return { bytes: Buffer.from(text), chars: text.length };
  }

  private next(): void {
    if (this.lines.length === 0) {
      this.state = 'idle';
      return;
    }
    this.state = 'writing';
    const { bytes, chars } = this.take();
    this.put(bytes, 0, chars);
  }

  private put(bytes: Buffer, at: number, chars: number): void {
    write(this.fd, bytes, at, bytes.length - at, null, (error, written) => {
      if (error !== null && isBusy(error)) {
        setTimeout(() => this.put(bytes, at, chars), AGAIN_MS);
        return;
      }
      if (error === null && at + written < bytes.length) {
        this.put(bytes, at + written, chars);
        return;
      }
      if (error === null) this.failing = false;
      else this.fail(errorText(error));
      this.waitingChars -= chars;
      if (this.state === 'ending') this.close();
      else this.next();
    });
  }

  private fail(text: string): void {
    if (!this.failing) this.report(text);
    this.failing = true;
  }

  private close(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    try {
      closeSync(this.fd);
    } catch (error) {
      this.fail(errorText(error));
    }
  }
}
