// The form of a line in a proxy's access log: text, json, a template, or the keys of a JSON object. Data for proxy.ts
// of this folder. Lines are made in proxy/, which has a value for every name of LOG_FIELDS. Source: docs/proxy.md.
import { isNull, type Node } from '../text/node.ts';
import { nearest } from '../values.ts';
import type { Key } from './key.ts';
import { CLIENT_VARIABLES, VARIABLE } from './template.ts';

/** What is known of a connection when it ends. */
const OWN_FIELDS = [
  'time',
  'mqtt_version',
  'rewritten_clientid',
  'upstream_addr',
  'bytes_received',
  'bytes_sent',
  'session_time',
  'status',
  'reason',
];
export const LOG_FIELDS: readonly string[] = [...OWN_FIELDS, ...CLIENT_VARIABLES];
const CAPTURED = /^match\.[A-Za-z0-9_]{1,64}$/;
/** Of one line. */
const MAX_CHARACTERS = 4096;

function unknown(name: string): string | null {
  if (LOG_FIELDS.includes(name) || CAPTURED.test(name)) return null;
  const close = nearest(name, LOG_FIELDS);
  const hint = close === null ? `; known are ${LOG_FIELDS.join(', ')} and match.NAME` : `; did you mean ${close}?`;
  return `unknown field ${JSON.stringify(name.slice(0, 40))}${hint}`;
}

function wrongTemplate(text: string): string | null {
  const names = [...text.matchAll(VARIABLE)].map(([, name]) => name);
  if (names.length === 0)
    return 'text, json, a template such as "$' + '{clientid} $' + '{status}" or a list of keys expected';
  // A line is one line, whatever is in it.
  if (/\p{Cc}/u.test(text)) return 'a template has no control characters';
  if (text.length > MAX_CHARACTERS) return `a template has at most ${MAX_CHARACTERS} characters`;
  return names.map(unknown).find((problem) => problem !== null) ?? null;
}

export const LOG_FORMAT: Key<string | readonly string[]> = {
  doc: {
    type: 'text | json | template | list of keys',
    default: 'text',
    text: 'Form of a line; a list names the keys of a JSON object, a template is escaped like text.',
    example: ['time', 'clientid', 'status'],
  },
  inside: null,
  read(node: Node, path, sink) {
    if (isNull(node)) return 'text';
    if (node.kind === 'scalar') {
      const wanted = node.text.toLowerCase();
      if (wanted === 'text' || wanted === 'json') return wanted;
      const problem = wrongTemplate(node.text);
      return problem === null ? node.text : sink.problem(node.at, path, problem);
    }
    if (node.kind !== 'list' || node.items.length === 0)
      return sink.problem(node.at, path, 'a text or a list expected');
    const keys: string[] = [];
    for (const item of node.items) {
      const name = item.kind === 'scalar' ? item.text : '';
      const problem = keys.includes(name) ? `${name} is there twice` : unknown(name);
      if (problem !== null) return sink.problem(item.at, path, problem);
      keys.push(name);
    }
    return keys;
  },
  missing: () => 'text',
  show: (value) => value,
};
