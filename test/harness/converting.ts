// `tidegate convert` on files in a folder of their own: exit code, what it writes, what it tells. For tests of imports.
import { Writable } from 'node:stream';
import { type ConvertOptions, convert } from '../../src/cli/convert.ts';
import type { Loaded } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { folder } from './configfiles.ts';

class Sink extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

export interface Conversion {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Lines of standard error. */
  readonly told: readonly string[];
  readonly cwd: string;
  /** What was written, loaded as `check` does. */
  load(): Loaded;
}

/** Converts `text` as `name` with `files` beside it. Throws what convert() throws. */
export function converted(
  text: string,
  name = 'mosquitto.conf',
  files: Readonly<Record<string, string>> = {},
  options: Partial<ConvertOptions> = {},
  env: Readonly<Record<string, string>> = {},
): Conversion {
  const made = folder({ ...files, [name]: text });
  const [stdout, stderr] = [new Sink(), new Sink()];
  const code = convert({ file: name, ...options }, { stdout, stderr }, { cwd: made, env });
  const told = stderr.text.split('\n').filter((line) => line !== '');
  return {
    code,
    out: stdout.text,
    err: stderr.text,
    told,
    cwd: made,
    load: () => loadConfig({ text: { text: stdout.text, dialect: 'hocon' }, env: {}, cwd: made }),
  };
}
