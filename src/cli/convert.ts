// `tidegate convert FILE [--to toml|hocon] [-o FILE]`: writes a configuration in the other dialect, and takes mosquitto.conf and
// nanomq.conf over. Called by cli.ts. Text goes to standard output or the file, every line that was not carried over to standard error.
// What is written is read again and compared before anything is given away: the effective configuration stays the same.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { GatewayError } from '../base/errors.ts';
import { systemErrorText } from '../base/systemerror.ts';
import { type ConvertedTree, effective, parseText, readForConvert } from '../config/converting.ts';
import { formatProblem } from '../config/problem.ts';
import { writeHocon, writeToml } from '../config/text/write.ts';
import type { CheckPlace } from './check.ts';
import type { Context, Io } from './cli.ts';

export type Dialect = 'toml' | 'hocon';

export interface ConvertOptions {
  readonly file: string;
  /** Default: TOML from HOCON, HOCON from everything else. */
  readonly to?: Dialect;
  /** Where to write instead of standard output. */
  readonly output?: string;
}

/** Gives the exit code. Throws ConfigError for a file that is not valid, CFG-READ for one that cannot be read. */
export function convert(options: ConvertOptions, io: Pick<Io, 'stdout' | 'stderr'>, place: CheckPlace): number {
  const read = readForConvert(options.file, place.cwd, place.env);
  const to = options.to ?? (read.dialect === 'hocon' ? 'toml' : 'hocon');
  const text = to === 'toml' ? writeToml(read.tree) : writeHocon(read.tree);
  prove(text, to, read);
  for (const problem of read.dropped) io.stderr.write(`${formatProblem(problem)}\n`);
  if (options.output === undefined) {
    io.stdout.write(text);
    return 0;
  }
  try {
    // Owner only: a configuration may hold passwords.
    writeFileSync(resolve(place.cwd, options.output), text, { mode: 0o600 });
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `${options.output}: ${systemErrorText(error)}`, error);
  }
  return 0;
}

function prove(text: string, to: Dialect, read: ConvertedTree): void {
  if (effective(parseText(text, to)) === effective(read.tree)) return;
  throw new GatewayError('CLI-FAILED', `${to} cannot express this configuration`);
}

export function registerConvert(program: Command, context: Context): void {
  program
    .command('convert')
    .description('convert between HOCON and TOML, import mosquitto.conf and nanomq.conf')
    .argument('<file>', 'the file to read')
    .addOption(new Option('--to <dialect>', 'what to write').choices(['toml', 'hocon']))
    .option('-o, --output <file>', 'write there instead of to standard output')
    .action((file: string, options: { to?: Dialect; output?: string }) => {
      context.exit(convert({ file, ...options }, context.io, { env: process.env, cwd: process.cwd() }));
    });
}
