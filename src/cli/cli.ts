// SEAM of cli/: the command line as a function of its words and streams, so that tests run it without a process.
// Called by main.ts. Finds the command, loads its module only then, and turns whatever happens into an exit code
// (sysexits(3): 0 ok, 1 failed, 64 usage, 78 configuration) and one line on standard error.
// A command lives in its own file and registers its options on the program; it must not call process.exit.
//
// Map (made by `make docs`):
//   check.ts                 `tidegate check [-c FILE] [--set key=value] [--print]`
//   completion.ts            `tidegate completion bash|zsh|fish`: prints a completion script for a shell
//   convert.ts               `tidegate convert FILE [--to toml|hocon] [-o FILE] [--accept-weaker]`
//   examples.ts              An example for every command, shown at the end of its --help and on its manual page
//   passwd.ts                `tidegate passwd`: edits a password file in mosquitto's format, or one of SCRAM keys
//   run.ts                   `tidegate start` in one piece: what every start of the gateway loads
//   secret.ts                Asks for a password: twice and without echo at a terminal, one line from a pipe
//   start.ts                 `tidegate start`: reads the configuration, opens the log
//   usage.ts                 The error of a command line that does not fit together
//   bench/bench.ts           `tidegate bench`: a load generator for MQTT brokers and for the SP side of bridges
//   bench/block.ts           A run of equal-sized messages in one buffer
//   bench/load.ts            The two sides of a load and the settings they share
//   bench/meter.ts           What one run measured
//   bench/mqttpublisher.ts   An MQTT publisher of the load generator: CONNECT
//   bench/mqttsubscriber.ts  An MQTT subscriber of the load generator
//   bench/payload.ts         What stands in each payload of the load generator, so that loss
//   bench/run.ts             One run of the load generator: connects both sides, keeps the window full (or the rate)
//   bench/spload.ts          Both sides of a load over SP: a pub0
//   bench/wire.ts            One TCP or Unix connection of the load generator: reads into one buffer of its own
//   ctl/account.ts           `tidegate ctl mqtt`: MQTT users, groups and roles at run time
//   ctl/bridge.ts            `tidegate ctl bridge`: adds, changes, shows, switches and removes bridges at run time
//   ctl/client.ts            The REST client of `tidegate ctl`: where the gateway is, who asks, one call at a time
//   ctl/config.ts            `tidegate ctl config`, `set`, `log`, `audit`, `subscriptions`, `access`
//   ctl/ctl.ts               `tidegate ctl`: looks at a running gateway and changes it, over its REST API
//   ctl/events.ts            `tidegate ctl events`: what happened on a gateway, over its restarts
//   ctl/local.ts             Finds the gateway that runs on this machine by its control socket
//   ctl/probe.ts             `tidegate ctl bridge connect`: tests whether a bridge reaches its other side
//   ctl/recording.ts         `tidegate ctl recording`: what is recorded
//   ctl/rule.ts              `tidegate ctl rule`: lists, shows, puts, removes and tries rules at run time
//   ctl/table.ts             Tables and values for people, on a terminal or not
//   ctl/top.ts               `tidegate ctl top`: the gateway's counters, live, from its event stream
//   ctl/topics.ts            `tidegate ctl topics`, and the busiest topics below `ctl top`
//   ctl/user.ts              `tidegate ctl users` and `ctl user`: who may use console and REST API, with which role
//   ctl/work.ts              What the subcommands of `tidegate ctl` share: the call to the gateway, its answer as rows
//   doctor/doctor.ts         `tidegate doctor [-c FILE]`
//   doctor/files.ts          `tidegate doctor`, files: folders that are written, how fast the disk of the store is
//   doctor/finding.ts        One thing that `tidegate doctor` found: good, doubtful or wrong, and what to do
//   doctor/machine.ts        `tidegate doctor`, the machine: descriptors, memory, clock, and the limits of the service
//   doctor/peers.ts          `tidegate doctor`, peers and certificates: whether bridges reach their other side
//   doctor/ports.ts          `tidegate doctor`, ports
//   init/drafts.ts           The configurations that `tidegate init` writes, with their comments and what to do next
//   init/init.ts             `tidegate init KIND [-o FILE]`: writes a commented configuration to start from
//   mqtt/client.ts           A connection of `tidegate pub` and `tidegate sub`, on the mqtt package
//   mqtt/format.ts           How `tidegate sub` shows a message: the payload, topic and payload
//   mqtt/options.ts          The options that `tidegate pub` and `tidegate sub` share
//   mqtt/property.ts         `-D command identifier value`
//   mqtt/pub.ts              `tidegate pub`: publishes messages, with the options of mosquitto_pub(1)
//   mqtt/sub.ts              `tidegate sub`: subscribes and prints what comes, with the options of mosquitto_sub(1)
//   nng/body.ts              What is typed and printed as a message body: text
//   nng/nng.ts               `tidegate nng pub`, `sub`, `push`, `pull`, `pair` and `bus`
//   nng/options.ts           The options of `tidegate nng ...`: what each command takes
//   nng/request.ts           `tidegate nng req`, `rep`, `survey` and `respond`: ask SP peers and answer them
//   nng/station.ts           A station: one SP socket with its endpoints as a command line sees it
//   store/lines.ts           The JSON lines of `tidegate store export` and `import`
//   store/mosquittodb.ts     The database of mosquitto 2.0 and 2.1 (format 6) as a Restored: retained messages
//   store/store.ts           `tidegate store`
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { Command, CommanderError, Help } from 'commander';
import { ERRORS, errorText, GatewayError } from '../base/errors.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import { version } from '../version.ts';
import { showExamples } from './examples.ts';

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
    name: 'init',
    summary: 'write a configuration to start from',
    load: async () => (await import('./init/init.ts')).registerInit,
  },
  {
    name: 'doctor',
    summary: 'check the machine for a configuration',
    load: async () => (await import('./doctor/doctor.ts')).registerDoctor,
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
  showExamples(program);
  return program;
}

/**
 * Subcommands made by register functions do not inherit the override when they were made before it: set it everywhere.
 */
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
