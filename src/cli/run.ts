// `tidegate start` in one piece: what every start of the gateway loads, imported together so that the build makes one file
// of it (scripts/core.ts). Imported by main.ts for that command only. Must not do anything of its own.
import '../gateway/gateway.ts';
import '../gateway/tidy.ts';
import './start.ts';

export { runCli } from './cli.ts';
