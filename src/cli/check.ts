// `tidegate check [-c FILE] [--set key=value] [--print]`: says whether a configuration is good, and what it comes to.
// Called by cli.ts. Opens no port and starts nothing. Exit codes: 0 good (warnings included), 78 not.
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Loaded } from '../config/config.ts';
import { missingFeatures } from '../config/features.ts';
import { loadConfig } from '../config/load.ts';
import { fileError, formatProblem, type Problem } from '../config/problem.ts';
import { ROOT } from '../config/schema/schema.ts';
import { withUnits } from '../config/schema/units.ts';
import { bridgeRights } from '../gateway/bridgerights.ts';
import { checkPolicies } from '../gateway/policies.ts';
import { checkRules } from '../gateway/rules.ts';
import type { Context, Io } from './cli.ts';
import { checkSets, configOptions } from './start.ts';

export interface CheckOptions {
  readonly config?: string;
  readonly set?: readonly string[];
  /** Show the effective configuration as JSON, secrets masked. */
  readonly print?: boolean;
  readonly nanomqDefaults?: boolean;
}

export interface CheckPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Gives the exit code. Throws ConfigError and GatewayError CFG-READ like loadConfig: cli.ts prints those. */
export async function check(
  options: CheckOptions,
  io: Pick<Io, 'stdout' | 'stderr'>,
  place: CheckPlace,
): Promise<number> {
  const loaded = loadConfig({
    file: options.config,
    set: options.set,
    nanomqDefaults: options.nanomqDefaults,
    ...place,
  });
  await checkRules(loaded.config);
  await checkPolicies(loaded.config);
  const warnings = [
    ...loaded.warnings,
    ...missingFeatures(loaded.config),
    ...unreadable(loaded, place.cwd),
    ...(await bridgeRights(loaded.config)),
  ];
  for (const warning of warnings) io.stderr.write(`${formatProblem(warning)} (warning)\n`);
  if (options.print) io.stdout.write(`${JSON.stringify(withUnits(ROOT, loaded.masked, true), null, 2)}\n`);
  else io.stdout.write(`${loaded.file ?? 'built-in defaults'}: ok${count(warnings.length)}\n`);
  return 0;
}

function count(warnings: number): string {
  return warnings === 0 ? '' : `, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`;
}

/** Certificates, users and rights that cannot be read from here: the gateway may run elsewhere, so this only warns. */
function unreadable({ config, file }: Loaded, cwd: string): Problem[] {
  const problems: Problem[] = [];
  const look = (path: string | null, key: string, at: Problem['at']) => {
    if (path === null) return;
    try {
      accessSync(resolve(cwd, path), constants.R_OK);
    } catch (error) {
      problems.push({ at, key, message: `${path} cannot be read: ${fileError(error)}` });
    }
  };
  for (const { name, tls, source, passwordFile, aclFile } of config.listeners) {
    const key = `listeners.${name}`;
    look(tls?.keyfile ?? null, `${key}.keyfile`, source);
    look(tls?.certfile ?? null, `${key}.certfile`, source);
    look(tls?.cacertfile ?? null, `${key}.cacertfile`, source);
    look(passwordFile, `${key}.password_file`, source);
    look(aclFile, `${key}.acl_file`, source);
  }
  const auth = { file: file ?? 'configuration', line: 0, column: 0 };
  look(config.auth.passwordFile, 'auth.password_file', auth);
  look(config.auth.aclFile, 'auth.acl_file', auth);
  return problems;
}

export function registerCheck(program: Command, context: Context): void {
  configOptions(program.command('check'))
    .description('validate a configuration; nothing is started')
    .option('--print', 'show the effective configuration as JSON, secrets masked')
    .action(async (options: { config?: string; set: string[]; print?: boolean; nanomqDefaults?: boolean }) => {
      checkSets(options.set);
      context.exit(await check(options, context.io, { env: process.env, cwd: process.cwd() }));
    });
}
