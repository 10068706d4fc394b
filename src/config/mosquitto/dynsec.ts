// Users and rights of mosquitto_dynamic_security.so: its JSON file becomes that of auth.dynamic_security. Called by
// config/converting.ts for a plugin of that name that guards all listeners. A file that this gateway would not start
// with is refused. Sources: the plugin's documentation; mosquitto 2.0.11 with the plugin on the wire.
import { BookError, bookText, parseBook, type ReadBook } from '../../base/accountsfile.ts';
import type { Position } from '../problem.ts';
import type { Report } from '../report.ts';
import { put } from '../text/grow.ts';
import type { BlockNode } from '../text/node.ts';
import type { PluginDraft } from './draft.ts';

export interface DynsecParts {
  /** Throws ConfigError or CFG-READ. */
  read(file: string): string;
  /** Where its users go; null when nothing but standard output is written. */
  readonly file: string | null;
}

const PLUGIN = /(?:^|\/)mosquitto_dynamic_security(?:\.so|\.dll)?$/;

export function isDynsec({ path }: PluginDraft): boolean {
  return PLUGIN.test(path);
}

/** Fills `root` and gives the text of the file; null after a problem that has been reported. */
export function importDynsec(plugin: PluginDraft, root: BlockNode, report: Report, parts: DynsecParts): string | null {
  const { at, key } = plugin;
  const from = plugin.options.get('config_file');
  if (from === undefined) {
    report.invalid(at, key, 'the plugin needs plugin_opt_config_file');
    return null;
  }
  if (parts.file === null) {
    report.never(
      at,
      key,
      'its users need a file of their own: with -o FILE they are written to FILE.dynamic-security.json',
    );
    return null;
  }
  const place: Position = { file: from.value, line: 1, column: 1 };
  let found: ReadBook;
  try {
    found = parseBook(parts.read(from.value));
  } catch (error) {
    if (!(error instanceof BookError)) throw error;
    report.invalid(place, error.pointer, error.message);
    return null;
  }
  for (const warning of found.warnings) report.change(place, 'dynamic-security.json', warning);
  put(root, 'auth.dynamic_security.file', parts.file, at);
  return bookText(found.book, new WeakMap());
}
