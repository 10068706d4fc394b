// `tidegate init KIND [-o FILE]`: writes a commented configuration to start from. Called by cli.ts. A file that is
// there is left alone unless --force says otherwise; what is written has passed the checks of `tidegate check`. Starts
// nothing. Exit codes: 0 written, 1 not.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { GatewayError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/systemerror.ts';
import type { Context, Io } from '../cli.ts';
import { usage } from '../usage.ts';
import { DRAFTS, type DraftKind, KINDS } from './drafts.ts';

export interface InitOptions {
  readonly kind: string;
  readonly output?: string;
  readonly force?: boolean;
  /** The remote broker of `central`. */
  readonly server?: string;
}

/** Owner only: a configuration may get passwords. */
const FILE_MODE = 0o600;

/** Gives the exit code. Throws CLI-USAGE and CLI-FAILED. */
export function init(options: InitOptions, io: Pick<Io, 'stdout' | 'stderr'>, cwd: string): number {
  const kind = KINDS.find((one) => one === options.kind);
  if (kind === undefined) throw usage(`${options.kind}: one of ${KINDS.join(', ')} expected`);
  if (options.server !== undefined && kind !== 'central') throw usage('--server is for central');
  const { text, next } = draft(kind, options.server);
  const { output } = options;
  if (output === undefined) {
    io.stdout.write(text);
    return 0;
  }
  try {
    writeFileSync(resolve(cwd, output), text, { mode: FILE_MODE, flag: options.force === true ? 'w' : 'wx' });
  } catch (error) {
    const there = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    const what = there ? 'there is such a file already; --force replaces it' : systemErrorText(error);
    throw new GatewayError('CLI-FAILED', `${output}: ${what}`, error);
  }
  const steps = next.map((line, i) => `  ${i + 1}. ${line.replaceAll('FILE', output)}\n`);
  io.stdout.write(`${output}: written. Next:\n${steps.join('')}`);
  return 0;
}

const SERVER = 'tls+mqtt-tcp://broker.example.org:8883';

function draft(kind: DraftKind, server: string | undefined): { text: string; next: readonly string[] } {
  const { text, next } = DRAFTS[kind];
  if (server === undefined) return { text, next };
  if (!/^[a-z0-9+-]{2,20}:\/\/[^\s"\\]{1,300}$/.test(server))
    throw usage(`--server wants a URL such as ${SERVER}, not "${server}"`);
  return { text: text.replace(SERVER, server), next };
}

export function registerInit(program: Command, context: Context): void {
  const kinds = KINDS.map((kind) => `  ${kind.padEnd(10)} ${DRAFTS[kind].about}`).join('\n');
  program
    .command('init')
    .description(`write a commented configuration to start from\n\nKinds:\n${kinds}`)
    .argument('<kind>', KINDS.join(', '))
    .option('-o, --output <file>', 'write there instead of to standard output')
    .option('--force', 'replace a file that is there')
    .addOption(new Option('--server <url>', 'central: the remote broker').default(undefined, SERVER))
    .action((kind: string, options: Omit<InitOptions, 'kind'>) => {
      context.exit(init({ kind, ...options }, context.io, process.cwd()));
    });
}
