// Console sessions that survive a restart: hashes of their tokens in a file beside the store, mode 0600. Used by
// http.ts where there is a store. What cannot be read or written costs people a login and nothing else.
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { errorText } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { KeptLogins } from './login.ts';

/** 256 sessions with long names are less. */
const MOST_BYTES = 1 << 20;

export class LoginFile {
  private readonly file: string;
  private readonly log: Log;
  private written = '';
  private writing: Promise<void> = Promise.resolve();

  constructor(file: string, log: Log) {
    this.file = file;
    this.log = log;
  }

  /** null: there is none, or it is of no use. */
  async read(): Promise<KeptLogins | null> {
    try {
      const text = await readFile(this.file, 'utf8');
      return text.length > MOST_BYTES ? null : asLogins(JSON.parse(text));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.failed(error);
      return null;
    }
  }

  /** One after the other; what is already there is not written again. Never rejects. */
  write(logins: KeptLogins): Promise<void> {
    const text = JSON.stringify(logins);
    this.writing = this.writing.then(async () => {
      if (text === this.written) return;
      try {
        // One that was left by a crash may be readable for others.
        await rm(`${this.file}.new`, { force: true });
        await writeFile(`${this.file}.new`, text, { mode: 0o600, flag: 'wx' });
        await rename(`${this.file}.new`, this.file);
        this.written = text;
      } catch (error) {
        this.failed(error);
      }
    });
    return this.writing;
  }

  private failed(error: unknown): void {
    this.log('warn', 'WEB-NOT-KEPT', { file: this.file, error: errorText(error) });
  }
}

function isTexts(value: unknown, names: readonly string[]): value is Record<string, string> {
  return (
    typeof value === 'object' && value !== null && names.every((name) => typeof Reflect.get(value, name) === 'string')
  );
}

/** Only what has the shape that write() gives. */
function asLogins(value: unknown): KeptLogins | null {
  if (!isTexts(value, ['pepper'])) return null;
  const found: unknown = Reflect.get(value, 'sessions');
  if (!Array.isArray(found)) return null;
  const sessions: KeptLogins['sessions'][number][] = [];
  for (const one of found as unknown[]) {
    if (!isTexts(one, ['key', 'username', 'csrf', 'credentials', 'role'])) continue;
    const { key, username, csrf, credentials, role } = one;
    const [endsAt, usedAt]: unknown[] = [Reflect.get(one, 'endsAt'), Reflect.get(one, 'usedAt')];
    if (typeof endsAt !== 'number' || typeof usedAt !== 'number') continue;
    if (role !== 'viewer' && role !== 'operator' && role !== 'admin') continue;
    sessions.push({ key, username, csrf, credentials, role, endsAt, usedAt });
  }
  return { pepper: value.pepper, sessions };
}
