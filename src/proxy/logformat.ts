// Lines of the access log in the form that the configuration chooses: text, json, a template, or chosen keys of a JSON
// object. Compiled once for each reload by entrance.ts and datagrams.ts. A missing value is "-" in a template and null
// in JSON; values are escaped, so that no client can begin a line of its own or send anything to a terminal. Source:
// NGINX, ngx_stream_log_module.
import { type Entry, escapeText, jsonFields, jsonLine, jsonText, textLine } from './accesslog.ts';
import { variable } from './facts.ts';
import type { AccessLogOptions } from './proxy.ts';

export type LineOf = (entry: Entry) => string;

const VARIABLE = /\$\{([^}]*)\}/;
/** Numbers, where JSON has some. */
const COUNTS: ReadonlySet<string> = new Set(['version', 'keep_alive']);

export function compileLine(format: AccessLogOptions['format']): LineOf {
  if (format === 'text') return textLine;
  if (format === 'json') return jsonLine;
  if (typeof format !== 'string') {
    const keys = [...format];
    return (entry) => {
      const known = jsonFields(entry);
      return jsonText(Object.fromEntries(keys.map((key) => [key, fieldOf(known, entry, key)])));
    };
  }
  // split() with a group gives text, name, text, name ... text.
  const words = format.split(VARIABLE);
  return (entry) => {
    const known = jsonFields(entry);
    return `${words.map((word, i) => (i % 2 === 0 ? word : inText(known, entry, word))).join('')}\n`;
  };
}

type Fields = ReturnType<typeof jsonFields>;

function inText(known: Fields, entry: Entry, name: string): string {
  if (name === 'session_time') return (entry.sessionMs / 1000).toFixed(3);
  const value = fieldOf(known, entry, name);
  return value === null ? '-' : escapeText(String(value));
}

function fieldOf(known: Fields, entry: Entry, name: string): string | number | null {
  if (Object.hasOwn(known, name)) return known[name];
  const value = variable(entry.facts, name);
  if (value === '') return null;
  return COUNTS.has(name) ? Number(value) : value;
}
