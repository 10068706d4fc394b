// `tidegate doctor [-c FILE]`: checks whether this machine fits a configuration, and says what to do where it does not.
// Called by cli.ts. Starts no gateway; one that runs is left alone. Exit codes: 0 nothing is wrong (warnings included),
// 1 something is, 78 the configuration is not valid.
import type { Command } from 'commander';
import { missingFeatures } from '../../config/features.ts';
import { loadConfig } from '../../config/load.ts';
import { formatProblem } from '../../config/problem.ts';
import { bridgeRights } from '../../gateway/bridgerights.ts';
import type { Context, Io } from '../cli.ts';
import { localGateways } from '../ctl/local.ts';
import { checkSets, configOptions } from '../start.ts';
import { checkDisk, checkFiles } from './files.ts';
import { type Finding, Findings } from './finding.ts';
import { checkClock, checkLimits, checkMemory, checkService } from './machine.ts';
import { checkCertificates, checkPeers } from './peers.ts';
import { checkPorts } from './ports.ts';

export interface DoctorOptions {
  readonly config?: string;
  readonly set?: readonly string[];
  readonly nanomqDefaults?: boolean;
  readonly json?: boolean;
  /** Only what is doubtful or wrong. */
  readonly quiet?: boolean;
  /** false: nobody is connected to. */
  readonly peers?: boolean;
}

export interface DoctorPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Gives the exit code. Throws ConfigError and CFG-READ like loadConfig. */
export async function doctor(options: DoctorOptions, io: Pick<Io, 'stdout'>, place: DoctorPlace): Promise<number> {
  const { config: file, set, nanomqDefaults } = options;
  const { env, cwd } = place;
  const loaded = loadConfig({ file, set, nanomqDefaults, env, cwd });
  const { config } = loaded;
  const gateways = await localGateways(env);
  const pids = gateways.map(({ pid }) => pid);
  const configuration = new Findings('configuration');
  const warnings = [...loaded.warnings, ...missingFeatures(config), ...(await bridgeRights(config))];
  for (const warning of warnings) configuration.warn(formatProblem(warning), 'the file and line say where');
  if (warnings.length === 0) configuration.ok(loaded.file ?? 'built-in defaults');
  const findings: Finding[] = [
    ...configuration.list,
    ...(await checkPorts(config, pids)),
    ...checkFiles(config, cwd),
    ...checkDisk(config, cwd),
    ...checkLimits(config),
    ...checkMemory(config),
    ...(await checkClock()),
    ...checkCertificates(loaded, cwd),
    ...(options.peers === false ? [] : await checkPeers(config, pids.length > 0)),
    ...(await checkService(config)),
  ];
  const shown =
    options.quiet === true ? findings.filter(({ state }) => state === 'warn' || state === 'fail') : findings;
  io.stdout.write(options.json === true ? `${JSON.stringify(shown, null, 2)}\n` : report(shown, findings));
  return findings.some(({ state }) => state === 'fail') ? 1 : 0;
}

const SIGNS = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL', skip: '-   ' } as const;

function report(shown: readonly Finding[], all: readonly Finding[]): string {
  const width = Math.max(0, ...shown.map(({ check }) => check.length));
  const lines = shown.flatMap(({ check, state, text, advice }) => {
    const line = `${SIGNS[state]}  ${check.padEnd(width)}  ${text}`;
    return advice === undefined ? [line] : [line, `${' '.repeat(width + 8)}-> ${advice}`];
  });
  const count = (wanted: Finding['state']): number => all.filter(({ state }) => state === wanted).length;
  return `${[...lines, `${count('ok')} ok, ${count('warn')} warnings, ${count('fail')} failures`].join('\n')}\n`;
}

export function registerDoctor(program: Command, context: Context): void {
  configOptions(program.command('doctor'))
    .description('check whether this machine fits a configuration, and what to do where it does not')
    .option('--no-peers', 'connect to no bridge peers')
    .option('--quiet', 'show only what is doubtful or wrong')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nRun it as the user of the gateway: sudo -u tidegate tidegate doctor -c FILE\n' +
        'Exit codes: 0 nothing is wrong, 1 something is, 78 the configuration is not valid.',
    )
    .action(async (options: DoctorOptions & { set: string[] }) => {
      checkSets(options.set);
      context.exit(await doctor(options, context.io, { env: process.env, cwd: process.cwd() }));
    });
}
