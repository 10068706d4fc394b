// What is wrong with a configuration, and where: the positions, problems and the one error that config/ throws. Made by
// every file of config/, printed by cli/ and by a failed reload. A message never shows a value that may be a secret.
import { errorText, GatewayError } from '../base/errors.ts';

/** Where a value was written: 1-based line and column; line 0 for the environment, `--set` and defaults. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** One thing to tell about a configuration. */
export interface Problem {
  readonly at: Position;
  /** Full key path, `bridges.nng.pub.p.forwards[0].qos`; `syntax` where the text could not be read at all. */
  readonly key: string;
  readonly message: string;
}

/** `file:line:column: key: message`; without line and column for the environment and `--set`. */
export function formatProblem(problem: Problem): string {
  const { file, line, column } = problem.at;
  const place = line > 0 ? `${file}:${line}:${column}` : file;
  // Names come from the file: nothing in them may reach a terminal as a control sequence.
  return `${place}: ${problem.key}: ${problem.message}`.replace(
    /[\p{Cc}\u2028\u2029]/gu,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const FILE_ERRORS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file'],
  ['ENOTDIR', 'no such file'],
  ['EACCES', 'permission denied'],
  ['EISDIR', 'this is a folder'],
  ['ELOOP', 'symbolic links in a circle'],
]);

/** Why a file could not be read, in words. */
export function fileError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return FILE_ERRORS.get(code) ?? errorText(error);
}

/** CFG-INVALID with everything that was found; its message has one line for each problem. */
export class ConfigError extends GatewayError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('CFG-INVALID', problems.map(formatProblem).join('\n'));
    this.problems = problems;
  }
}
