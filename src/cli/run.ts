// `tidegate start` in one piece: what every start of the gateway loads, imported together so that the build makes one
// file of it (scripts/core.ts). Imported by main.ts for that command only. Must not do anything of its own.
import { createGateway } from '../gateway/gateway.ts';
import { Tidy } from '../gateway/tidy.ts';
import { type Io, runCli } from './cli.ts';
import { registerStart } from './start.ts';

/** Loaded by the time `start` asks for them. */
export const LOADED: readonly unknown[] = [createGateway, Tidy, registerStart];

/** Runs the command line of a start; as runCli. */
export function runStart(argv: readonly string[], io: Io): Promise<number> {
  return runCli(argv, io);
}
