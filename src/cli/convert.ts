// `tidegate convert FILE [--to toml|hocon] [-o FILE] [--accept-weaker]`: writes a configuration in the other dialect,
// and takes mosquitto.conf and nanomq.conf over. Called by cli.ts. Text goes to standard output or the file, every line
// that was not carried over to standard error. What is written is read again and compared before anything is given
// away: the effective configuration stays the same. Exit codes: 0 written, 3 refused because security would be weaker
// (nothing is written), 78 not valid.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { GatewayError } from '../base/errors.ts';
import { systemErrorText } from '../base/systemerror.ts';
import { type ConvertedTree, effective, parseText, readForConvert, type SourceForm } from '../config/converting.ts';
import { formatProblem } from '../config/problem.ts';
import { writeHocon, writeToml } from '../config/text/write.ts';
import type { CheckPlace } from './check.ts';
import type { Context, Io } from './cli.ts';

export type Dialect = 'toml' | 'hocon';

export interface ConvertOptions {
  readonly file: string;
  /** Default: as the name of the output says; without one TOML from HOCON, HOCON from everything else. */
  readonly to?: Dialect;
  /** Where to write instead of standard output. */
  readonly output?: string;
  /** Leave out what cannot be carried over, though security is weaker without it. */
  readonly acceptWeaker?: boolean;
  /** What a NanoMQ file does not write is as NanoMQ has it. */
  readonly nanomqDefaults?: boolean;
}

/** Nothing was written, because security would be weaker. */
const REFUSED = 3;

const CALLED: Readonly<Record<SourceForm, string>> = {
  hocon: 'a HOCON file',
  toml: 'a TOML file',
  mosquitto: 'a mosquitto.conf',
  keyvalue: 'a nanomq.conf in its old key=value form',
};

/** Gives the exit code. Throws ConfigError for a file that is not valid, CFG-READ for one that cannot be read. */
export function convert(options: ConvertOptions, io: Pick<Io, 'stdout' | 'stderr'>, place: CheckPlace): number {
  const read = readForConvert({
    ...place,
    file: options.file,
    output: options.output ?? null,
    nanomqDefaults: options.nanomqDefaults === true,
  });
  for (const problem of read.dropped) io.stderr.write(`${formatProblem(problem)}\n`);
  for (const problem of [...read.refused, ...read.impossible])
    io.stderr.write(`${formatProblem(problem)} (security would be weaker)\n`);
  const asked = options.acceptWeaker === true && read.impossible.length === 0;
  if (read.impossible.length > 0 || (read.refused.length > 0 && !asked)) {
    const way = read.impossible.length > 0 ? '' : '; --accept-weaker leaves these lines out';
    io.stderr.write(`${options.file}: refused, nothing was written${way}\n`);
    return REFUSED;
  }
  const to = dialectOf(options, read.form);
  const text = `${headOf(read)}${to === 'toml' ? writeToml(read.tree) : writeHocon(read.tree)}`;
  prove(text, to, read);
  give(text, read.files, options, io, place);
  return 0;
}

function dialectOf({ to, output }: ConvertOptions, form: SourceForm): Dialect {
  if (to !== undefined) return to;
  if (output !== undefined && /\.toml$/i.test(output)) return 'toml';
  if (output !== undefined && /\.(?:conf|hocon|json)$/i.test(output)) return 'hocon';
  return form === 'hocon' ? 'toml' : 'hocon';
}

/** Comments at the top: what is not the same, and what never is. */
function headOf({ form, dropped, refused, choices }: ConvertedTree): string {
  if (form === 'hocon' || form === 'toml') return '';
  const told = [...dropped, ...refused].map(formatProblem);
  const lines = [`Taken over from ${CALLED[form]} by tidegate convert.`];
  if (told.length > 0) lines.push('', 'Not the same as there:', ...told.map((line) => `- ${line}`));
  if (choices.length > 0) lines.push('', 'Different by choice:', ...choices.map((line) => `- ${line}`));
  return `${lines.map((line) => `# ${line}`.trimEnd()).join('\n')}\n\n`;
}

function give(
  text: string,
  files: ReadonlyMap<string, string>,
  options: ConvertOptions,
  io: Pick<Io, 'stdout'>,
  place: CheckPlace,
): void {
  if (options.output === undefined) {
    io.stdout.write(text);
    return;
  }
  try {
    // Owner only: a configuration may hold passwords.
    for (const [path, content] of files) writeFileSync(path, content, { mode: 0o600 });
    writeFileSync(resolve(place.cwd, options.output), text, { mode: 0o600 });
  } catch (error) {
    throw new GatewayError('CLI-FAILED', `${options.output}: ${systemErrorText(error)}`, error);
  }
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
    .option('-o, --output <file>', 'write there instead of to standard output; .toml or .conf says what')
    .option('--accept-weaker', 'leave out what cannot be carried over, though security is weaker without it')
    .option('--nanomq-defaults', "take NanoMQ's defaults where a nanomq.conf says nothing: open on every address")
    .addHelpText('after', '\nExit codes: 0 written, 3 refused because security would be weaker, 78 not valid.')
    .action(
      (file: string, options: { to?: Dialect; output?: string; acceptWeaker?: boolean; nanomqDefaults?: boolean }) => {
        context.exit(convert({ file, ...options }, context.io, { env: process.env, cwd: process.cwd() }));
      },
    );
}
