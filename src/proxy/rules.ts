// A proxy's configuration made ready for use: one snapshot, taken by each connection when it comes. Made by entrance.ts.
import type { ProxyOptions } from './proxy.ts';
import { compileSet, type Replacements } from './rewrite.ts';

export interface Rules {
  readonly options: ProxyOptions;
  /** null = CONNECT goes on as it came. */
  readonly set: Replacements | null;
}

export function makeRules(options: ProxyOptions, env: Readonly<Record<string, string | undefined>>): Rules {
  const identity = options.useIdentityAsUsername
    ? { clientId: undefined, username: undefined, password: undefined }
    : null;
  return { options, set: compileSet(options.set, env) ?? identity };
}
