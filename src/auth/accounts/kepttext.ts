// A small text file that this process replaces as a whole: old or new, whenever the power fails. Made by accounts.ts.
// Never overwrites what somebody else has written in the meantime.
import { constants } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';

/** 50,000 users with their roles. */
const LARGEST_BYTES = 64 * 1024 * 1024;

export interface ReadText {
  /** null: there is no such file. */
  readonly text: string | null;
  readonly mode: number;
  /** What tells this version of the file from another. */
  readonly mark: string;
}

const NONE: ReadText = { text: null, mode: 0, mark: '' };

export class KeptText {
  private readonly path: string;
  private mark = '';

  constructor(file: string) {
    this.path = file;
  }

  /** Throws what the file system says, and for what is no regular file, too large or not UTF-8. */
  async read(): Promise<ReadText> {
    let handle: Awaited<ReturnType<typeof open>>;
    try {
      handle = await open(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return NONE;
      throw error;
    }
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw new Error('not a regular file');
      if (found.size > LARGEST_BYTES) throw new Error(`larger than ${LARGEST_BYTES} bytes`);
      const text = new TextDecoder('utf-8', { fatal: true }).decode(await handle.readFile());
      return { text, mode: found.mode & 0o7777, mark: markOf(found) };
    } finally {
      await handle.close();
    }
  }

  /** What was read is what holds: the next write takes its place. */
  take({ mark }: ReadText): void {
    this.mark = mark;
  }

  /** Writes and syncs. Throws where that is not possible; the file is then what it was. */
  async write(text: string): Promise<void> {
    const now = await stat(this.path).then(markOf, (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw error;
    });
    if (now !== this.mark) throw new Error('the file was changed by somebody else; reload the configuration first');
    const folder = path.dirname(this.path);
    await mkdir(folder, { mode: 0o700, recursive: true });
    const beside = path.join(folder, `.${path.basename(this.path)}.new`);
    await rm(beside, { force: true });
    try {
      const handle = await open(beside, 'wx', 0o600);
      try {
        await handle.writeFile(text);
        await handle.sync();
        this.mark = markOf(await handle.stat());
      } finally {
        await handle.close();
      }
      await rename(beside, this.path);
    } catch (error) {
      this.mark = now;
      await rm(beside, { force: true });
      throw error;
    }
    await syncFolder(folder);
  }
}

function markOf({
  ino,
  size,
  mtimeMs,
}: {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}): string {
  return `${ino} ${size} ${mtimeMs}`;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
