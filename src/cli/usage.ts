// The error of a command line that does not fit together. Thrown by the commands; cli.ts prints its text and exits with
// 64. Source: sysexits(3), EX_USAGE.
import { GatewayError } from '../base/errors.ts';

/** A CLI-USAGE error. @param text one line, without the command's name */
export function usage(text: string): GatewayError {
  return new GatewayError('CLI-USAGE', text);
}
