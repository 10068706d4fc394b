// Whose an error is that nothing has caught: by the file on top of its stack. Used by extensions.ts for plugins, whose
// errors must not end the process. Pure.
import { fileURLToPath } from 'node:url';

/** True when the first frame outside of Node.js is in `file`. */
export function isOfFile(error: unknown, file: string): boolean {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return false;
  const frame = error.stack.split('\n').find((line) => /^\s+at /.test(line) && !line.includes('node:'));
  const url = frame === undefined ? undefined : /file:\/\/[^):]*/.exec(frame)?.[0];
  return url !== undefined && fileURLToPath(url) === file;
}
