// SEAM of cli/: the command line as a function of its words and streams, so that tests run it without a process.
// Called by main.ts. Finds the command, loads its module only then, and turns whatever happens into an exit code
// (sysexits(3): 0 ok, 1 failed, 64 usage, 78 configuration) and one line on standard error.
// A command lives in its own file and registers its options on the program; it must not call process.exit.
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { Command, CommanderError, Help } from 'commander';
import { ERRORS, errorText, GatewayError } from '../base/errors.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import { version } from '../version.ts';

/** The streams of a command. */
export interface Io {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** What a command gets besides the program it registers on. */
export interface Context {
  readonly io: Io;
  /** Sets the exit code of a command that ends in order (0 unless it is called). */
  exit(code: number): void;
}

export type Register = (program: Command, context: Context) => void;

interface CommandRow {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Register>;
}

/** Every command, in the order of --help. */
const COMMANDS: readonly CommandRow[] = [
  {
    name: 'start',
    summary: 'run the gateway in the foreground',
    load: async () => (await import('./start.ts')).registerStart,
  },
  {
    name: 'check',
    summary: 'validate a configuration',
    load: async () => (await import('./check.ts')).registerCheck,
  },
  {
    name: 'passwd',
    summary: 'edit a password file',
    load: async () => (await import('./passwd.ts')).registerPasswd,
  },
  {
    name: 'pub',
    summary: 'publish MQTT messages',
    load: async () => (await import('./mqtt/pub.ts')).registerPub,
  },
  {
    name: 'sub',
    summary: 'subscribe to MQTT topics',
    load: async () => (await import('./mqtt/sub.ts')).registerSub,
  },
  {
    name: 'nng',
    summary: 'publish to or subscribe at SP peers',
    load: async () => (await import('./nng/nng.ts')).registerNng,
  },
  {
    name: 'bench',
    summary: 'measure a broker or a bridge',
    load: async () => (await import('./bench/bench.ts')).registerBench,
  },
  {
    name: 'ctl',
    summary: 'look at a running gateway and change it',
    load: async () => (await import('./ctl/ctl.ts')).registerCtl,
  },
  {
    name: 'convert',
    summary: 'convert a configuration, import others',
    load: async () => (await import('./convert.ts')).registerConvert,
  },
  {
    name: 'store',
    summary: 'check, export, import a database',
    load: async () => (await import('./store/store.ts')).registerStore,
  },
  {
    name: 'completion',
    summary: 'print a completion script for a shell',
    load: async () => (await import('./completion.ts')).registerCompletion(wholeProgram),
  },
];

function commandNamed(argv: readonly string[]): CommandRow | undefined {
  const word = argv.find((arg) => !arg.startsWith('-'));
  // `tidegate help pub` shows what `tidegate pub --help` does.
  const name = word === 'help' ? argv.slice(argv.indexOf(word) + 1).find((arg) => !arg.startsWith('-')) : word;
  return COMMANDS.find((row) => row.name === name);
}

/** The program with the one command that is wanted in full and the others by name. */
async function programFor(argv: readonly string[], context: Context): Promise<Command> {
  const wanted = commandNamed(argv);
  return programWith((row) => row === wanted, context);
}

/** The program with every command in full, to be looked at: for completion scripts and manual pages. */
export function wholeProgram(): Promise<Command> {
  const nowhere = new PassThrough();
  const io = { stdin: nowhere, stdout: nowhere, stderr: nowhere };
  return programWith(() => true, { io, exit: () => {} });
}

async function programWith(inFull: (row: CommandRow) => boolean, context: Context): Promise<Command> {
  const { io } = context;
  const program = new Command('tidegate');
  const help = new Help();
  program
    .description('Edge gateway that bridges MQTT and NNG (Scalability Protocols)')
    .version(version, '--version', 'show the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    // An empty list is no default that anybody wants to read.
    .configureHelp({
      optionDescription: (option) =>
        Array.isArray(option.defaultValue) ? option.description : help.optionDescription(option),
    })
    .showHelpAfterError(false)
    .enablePositionalOptions();
  for (const row of COMMANDS) {
    if (inFull(row)) (await row.load())(program, context);
    else program.command(row.name).description(row.summary);
  }
  return program;
}

/** Subcommands made by register functions do not inherit the override when they were made before it: set it everywhere. */
function overrideExits(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) overrideExits(child);
}

/** Points to the help of the innermost command that the words name. */
function usageHint(argv: readonly string[], program: Command | null): string {
  const words = ['tidegate'];
  let command = program;
  for (const arg of argv) {
    const inner = command?.commands.find((child) => child.name() === arg);
    if (inner === undefined) continue;
    command = inner;
    words.push(arg);
  }
  return `tidegate: see "${words.join(' ')} --help"\n`;
}

function exitOf(error: unknown, argv: readonly string[], program: Command | null, io: Io): number {
  if (error instanceof CommanderError) {
    // Asked for help or version: that is what was wanted. Help because a subcommand is missing is a usage error.
    if (error.exitCode === 0) return 0;
    if (error.code !== 'commander.help') io.stderr.write(usageHint(argv, program));
    return ERRORS['CLI-USAGE'].exit;
  }
  if (error instanceof ConfigError) {
    // One line each, as compilers write them, so that editors can jump there.
    for (const problem of error.problems) io.stderr.write(`${formatProblem(problem)}\n`);
    return error.exit;
  }
  if (error instanceof GatewayError) {
    io.stderr.write(`tidegate: ${error.message}\n`);
    if (error.code === 'CLI-USAGE') io.stderr.write(usageHint(argv, program));
    return error.exit;
  }
  io.stderr.write(`tidegate: ${errorText(error)}\n`);
  return 1;
}

/** Runs one command line (without node and script) to its end and gives the exit code. Never rejects. */
export async function runCli(argv: readonly string[], io: Io): Promise<number> {
  let code = 0;
  const context: Context = {
    io,
    exit: (value) => {
      code = value;
    },
  };
  let program: Command | null = null;
  try {
    program = await programFor(argv, context);
    overrideExits(program);
    if (argv.length === 0) program.help({ error: true });
    await program.parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    return exitOf(error, argv, program, io);
  }
}
