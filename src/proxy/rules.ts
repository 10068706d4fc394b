// A proxy's configuration made ready for use: one snapshot, taken by each connection when it comes. Made by
// entrance.ts.
import { type CompiledFilter, compileFilter } from './filter.ts';
import { compileLine, type LineOf } from './logformat.ts';
import { compileMap, type LookupTable } from './map.ts';
import type { ProxyOptions } from './proxy.ts';
import { compileSet, type Replacements } from './rewrite.ts';
import { compileTemplate, type Template } from './template.ts';
import { TopicRules } from './topics/table.ts';

export interface Rules {
  readonly options: ProxyOptions;
  /** null = CONNECT goes on as it came. */
  readonly set: Replacements | null;
  readonly map: { readonly source: Template; readonly table: LookupTable } | null;
  readonly splitKey: Template;
  /** null = a client has one server. */
  readonly topics: TopicRules | null;
  /** null = packets are not looked at. */
  readonly filter: CompiledFilter | null;
  /** A line of the access log; null = there is none. */
  readonly logLine: LineOf | null;
}

const UNCHANGED: Replacements = { clientId: undefined, username: undefined, password: undefined };

export function makeRules(options: ProxyOptions, env: Readonly<Record<string, string | undefined>>): Rules {
  const { map, filter } = options;
  return {
    options,
    // The name of a certificate has to be written into CONNECT even where nothing else is.
    set: compileSet(options.set, env) ?? (options.useIdentityAsUsername ? UNCHANGED : null),
    map: map === null ? null : { source: compileTemplate(map.source, env), table: compileMap(map) },
    splitKey: compileTemplate(options.splitKey, env),
    topics: options.topics.length === 0 ? null : new TopicRules(options.topics, env),
    filter: filter === null ? null : compileFilter(filter, env),
    logLine: options.accessLog === null ? null : compileLine(options.accessLog.format),
  };
}
