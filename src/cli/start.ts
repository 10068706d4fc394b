// `tidegate start`: reads the configuration, opens the log, runs a gateway until a signal ends it. Called by cli.ts.
// Owns the signals of the process (SIGTERM and SIGINT stop, a second one forces, SIGHUP reloads) and the last resort
// for errors nobody caught: they are logged and end the process with exit code 1, because state that broke a rule
// cannot be trusted. Everything it starts comes in through StartParts, so that tests run it with a stand-in.
import type { EventEmitter } from 'node:events';
import { statSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { type Clock, systemClock } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { createLogger, type Logger, type LoggerOptions } from '../base/logger.ts';
import { runFolder } from '../base/runfolder.ts';
import type { Service } from '../base/service.ts';
import { systemErrorText } from '../base/systemerror.ts';
import type { Loaded, LogConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { formatProblem } from '../config/problem.ts';
import type { Context, Io } from './cli.ts';

/** How long a clean stop may take before connections are cut. */
const STOP_DEADLINE_MS = 5000;

/** A database that is worth optimising for what reads it. */
const MUCH_BYTES = 1024 * 1024;

/** What start needs of gateway/gateway.ts. */
export interface RunnableGateway extends Service {
  /** Reads the configuration again and applies it; logs the outcome itself and never rejects for a wrong file. */
  reload(): Promise<unknown>;
  /** Whether the gateway goes on after an error that nothing has caught: one of a plugin. */
  survives?(error: unknown): boolean;
}

export interface GatewayParts {
  readonly log: Log;
  readonly clock: Clock;
  /**
   * Reads the configuration of this start again, `set` on top, `kept` as LoadOptions has it. Throws like loadConfig.
   */
  readonly load: (set?: readonly string[], kept?: string) => Loaded;
  /** Applies log settings that may change while running. */
  readonly relog: (log: LogConfig) => void;
  /** Folder of the control socket. */
  readonly controlFolder: string | null;
}

export type MakeGateway = (loaded: Loaded, parts: GatewayParts) => RunnableGateway;

/** Gives memory back while there is little to do (gateway/tidy.ts). */
export interface Tidier {
  start(): void;
  stop(): void;
}

export interface StartParts {
  readonly tidy?: Tidier;
  /** Makes the engine use less memory: broker.profile = small. */
  readonly thrift?: () => void;
  /** Lets the engine optimise and grow: from when there is work. */
  readonly fullSpeed?: (small: boolean) => void;
  readonly make: () => Promise<MakeGateway>;
  /** `process`, or a stand-in that emits SIGTERM and so on. */
  readonly signals: EventEmitter;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly tty: boolean;
  readonly uid?: number;
  /** Ends the process at once; used by a second signal and by uncaught errors. */
  readonly die: (code: number) => void;
  readonly openLog: (options: LoggerOptions) => Promise<Logger>;
}

export interface StartOptions {
  readonly config?: string;
  readonly set?: readonly string[];
  readonly nanomqDefaults?: boolean;
}

function logFile(log: LogConfig, cwd: string): string | null {
  if (!log.to.includes('file')) return null;
  return path.resolve(cwd, log.dir, log.file);
}

function readConfig(options: StartOptions, parts: StartParts, kept?: string): Loaded {
  const { config: file, set, nanomqDefaults } = options;
  return loadConfig({ file, set, nanomqDefaults, env: parts.env, cwd: parts.cwd, kept });
}

/** Settles when the gateway has to end: with the signal's name. */
class Signals {
  private readonly source: EventEmitter;
  private readonly log: Log;
  private readonly die: (code: number) => void;
  /** Set once there is a gateway. */
  survives: (error: unknown) => boolean = () => false;
  private readonly handlers: [string, (...args: unknown[]) => void][] = [];

  constructor(parts: StartParts, logger: Logger) {
    this.source = parts.signals;
    this.log = logger.log;
    this.die = (code) => {
      logger.flush();
      parts.die(code);
    };
  }

  /** Resolves at the first SIGTERM or SIGINT; the second one ends the process. */
  untilStop(): Promise<string> {
    return new Promise((resolve) => {
      let asked = false;
      const stop = (name: string) => (): void => {
        if (asked) this.die(1);
        asked = true;
        resolve(name);
      };
      this.on('SIGTERM', stop('SIGTERM'));
      this.on('SIGINT', stop('SIGINT'));
    });
  }

  onReload(reload: () => void): void {
    this.on('SIGHUP', reload);
  }

  onInternalError(): void {
    const fail = (error: unknown): void => {
      if (this.survives(error)) return;
      this.log('fatal', 'GW-INTERNAL', { error });
      this.die(1);
    };
    this.on('uncaughtException', fail);
    this.on('unhandledRejection', fail);
  }

  /** Ends the process without any more order. */
  force(why: string): void {
    this.log('fatal', 'GW-INTERNAL', { error: why });
    this.die(1);
  }

  off(): void {
    for (const [name, handler] of this.handlers) this.source.off(name, handler);
  }

  private on(name: string, handler: (...args: unknown[]) => void): void {
    this.handlers.push([name, handler]);
    this.source.on(name, handler);
  }
}

async function openLogger(config: LogConfig, io: Io, parts: StartParts): Promise<Logger> {
  const file = logFile(config, parts.cwd);
  try {
    return await parts.openLog({
      level: config.level,
      format: config.format,
      console: config.to.includes('console'),
      file,
      rotateBytes: config.rotation.size,
      rotateCount: config.rotation.count,
      tty: parts.tty,
      // no-color.org: any value that is not empty.
      colours: parts.tty && (parts.env.NO_COLOR ?? '') === '' && parts.env.TERM !== 'dumb',
      onError: (text) => io.stderr.write(`tidegate: ${text}\n`),
    });
  } catch (error) {
    throw new GatewayError('CFG-INVALID', `log.file: ${file}: ${systemErrorText(error)}`, error);
  }
}

/** Runs a gateway until a signal ends it; gives the exit code. Throws GatewayError when it cannot start. */
export async function start(options: StartOptions, io: Io, parts: StartParts): Promise<number> {
  const loaded = readConfig(options, parts);
  const logger = await openLogger(loaded.config.log, io, parts);
  const signals = new Signals(parts, logger);
  signals.onInternalError();
  const stopped = signals.untilStop();
  // A SIGHUP that comes too early must not end the process.
  let reload = (): void => logger.reopen();
  signals.onReload(() => reload());
  const small = loaded.config.broker.profile === 'small';
  if (small) parts.thrift?.();
  const hasMuch = storedBytes(loaded, parts.cwd) > MUCH_BYTES;
  if (hasMuch) parts.fullSpeed?.(small);
  for (const warning of loaded.warnings) logger.log('warn', 'CFG-WARNING', { at: formatProblem(warning) });
  try {
    const make = await parts.make();
    const gateway = make(loaded, {
      log: logger.log,
      clock: systemClock,
      load: (set = [], kept) => readConfig({ ...options, set: [...(options.set ?? []), ...set] }, parts, kept),
      relog: (log) => logger.setLevel(log.level),
      controlFolder: parts.uid === undefined ? null : runFolder(parts.env, parts.uid),
    });
    signals.survives = (error) => gateway.survives?.(error) ?? false;
    reload = () => {
      logger.reopen();
      gateway.reload().catch((error: unknown) => logger.log('error', 'GW-RELOAD-FAILED', { error }));
    };
    await begin(gateway);
    if (!hasMuch) parts.fullSpeed?.(small);
    await runUntil(stopped, parts.tidy);
    // Whatever hangs in the stop of a stage ends here: a supervisor waits for this process.
    const late = setTimeout(() => signals.force('stopping took too long'), 2 * STOP_DEADLINE_MS);
    await gateway.stop(STOP_DEADLINE_MS);
    clearTimeout(late);
    return 0;
  } finally {
    signals.off();
    logger.flush();
  }
}

/** Bytes of the database that a start reads; 0 without one. */
function storedBytes({ config: { persistence } }: Loaded, cwd: string): number {
  if (!persistence.enable || persistence.path === '') return 0;
  try {
    return statSync(path.resolve(cwd, persistence.path)).size;
  } catch {
    // No database yet, or none that can be read: opening it says so.
    return 0;
  }
}

async function begin(gateway: RunnableGateway): Promise<void> {
  try {
    await gateway.start();
  } catch (error) {
    await gateway.stop(0);
    throw error;
  }
}

/** Waits for the signal to stop, which may have come while it was still starting. */
async function runUntil(stopped: Promise<string>, tidy?: Tidier): Promise<void> {
  // Timers and listeners may all be unreferenced; the gateway runs until it is told to end.
  const alive = setInterval(() => {}, 0x7fffffff);
  tidy?.start();
  await stopped;
  tidy?.stop();
  clearInterval(alive);
}

function collect(value: string, list: string[]): string[] {
  return [...list, value];
}

/** `-c FILE` and `--set key=value`, shared by the commands that read a configuration. */
export function configOptions(command: Command): Command {
  return command
    .option('-c, --config <file>', 'configuration file (.conf, .hocon, .json or .toml)')
    .option('--set <key=value>', 'set one key, literally; may be repeated', collect, [])
    .option('--nanomq-defaults', "take NanoMQ's defaults where a nanomq.conf says nothing: open on every address");
}

/** Refuses `--set` words without a value: exit code 64. */
export function checkSets(sets: readonly string[]): void {
  for (const set of sets)
    if (set.indexOf('=') < 1) throw new GatewayError('CLI-USAGE', `--set wants key=value, not "${set}"`);
}

export function registerStart(program: Command, context: Context): void {
  configOptions(program.command('start'))
    .description('run the gateway in the foreground; SIGTERM stops it, SIGHUP reloads its configuration')
    .action(async (options: { config?: string; set: string[]; nanomqDefaults?: boolean }) => {
      checkSets(options.set);
      const { fullSpeed, processParts, Tidy, thrift } = await import('../gateway/tidy.ts');
      const parts: StartParts = {
        thrift,
        fullSpeed,
        tidy: new Tidy(processParts(systemClock)),
        make: async () => (await import('../gateway/gateway.ts')).createGateway,
        signals: process,
        env: process.env,
        cwd: process.cwd(),
        tty: process.stdout.isTTY === true,
        uid: process.getuid?.(),
        die: (code) => process.exit(code),
        openLog: createLogger,
      };
      context.exit(await start(options, context.io, parts));
    });
}
