// What a route, allow or deny of a proxy has to fit: the block form and the text form of conditions, patterns compiled.
// Data for proxy.ts. Must not repeat a value in a message: it may be a name of a person.
// Sources: NGINX's map (~ and ~* before patterns), docs/proxy.md (the text form).
import { type AddressTest, networkTest } from '../../base/networks.ts';
import { TLS_VARIABLES, type TlsVariable } from '../../base/tlsvariables.ts';
import { compilePattern } from '../pattern.ts';
import { isNull, joinPath, type Node } from '../text/node.ts';
import type { TreeValue } from '../tree.ts';
import { nearest } from '../values.ts';
import type { Key } from './key.ts';

export type MatchField = (typeof OWN_FIELDS)[number] | TlsVariable;
export type MatchOp = '==' | '!=' | '=~' | '!~' | '=~*' | '!~*';

export interface RouteCondition {
  readonly field: MatchField;
  readonly op: MatchOp;
  /** The text to compare, or the pattern without its marks. */
  readonly value: string;
  /** Compiled for the linear engine, case already cared for; null for == and !=. */
  readonly pattern: RegExp | null;
  /** Whether an address is in the network that `value` names; null where it names none. */
  readonly network: AddressTest | null;
}

const OWN_FIELDS = [
  'clientid',
  'username',
  'version',
  'sni',
  'listener',
  'remote_addr',
  'cert_cn',
  'tls_version',
] as const;
const FIELDS: readonly MatchField[] = [...OWN_FIELDS, ...TLS_VARIABLES];
const TEXT_FORM = /^\s*([a-z][a-z0-9_]{0,39})\s*(==|!=|=~\*|!~\*|=~|!~)\s*(.*?)\s*$/s;

const NO_NETWORK = 'an address or network expected, such as 10.0.0.0/8';

export interface Match {
  readonly conditions: readonly RouteCondition[];
  readonly written: TreeValue;
}

/** A condition, or what is wrong with it. */
function condition(field: string, op: MatchOp, value: string): RouteCondition | string {
  const known = FIELDS.find((name) => name === field);
  if (known === undefined) {
    const close = nearest(field, FIELDS);
    return `unknown field${close === null ? '' : `; did you mean ${close}?`}; known are ${FIELDS.join(', ')}`;
  }
  if (op === '==' || op === '!=') {
    // No address holds a slash.
    if (known !== 'remote_addr' || !value.includes('/'))
      return { field: known, op, value, pattern: null, network: null };
    const network = networkTest([value]);
    return network === null ? NO_NETWORK : { field: known, op, value, pattern: null, network };
  }
  const pattern = compilePattern(value, op.endsWith('*'));
  return typeof pattern === 'string' ? pattern : { field: known, op, value, pattern, network: null };
}

/** "~^x" is a pattern, "~*^x" one that ignores case, "\~x" the text "~x", anything else the text itself. */
function blockCondition(field: string, value: string): RouteCondition | string {
  if (value.startsWith('~*')) return condition(field, '=~*', value.slice(2));
  if (value.startsWith('~')) return condition(field, '=~', value.slice(1));
  return condition(field, '==', value.startsWith('\\~') ? value.slice(1) : value);
}

export const MATCH: Key<Match> = {
  doc: {
    type: 'block or text',
    default: undefined,
    text: 'Condition to match: { field = "text", field = "~pattern", field = "~*pattern in any case" }, or "field op value" with == != =~ !~ =~* !~*. A network such as 10.0.0.0/8 matches every remote_addr in it. Fields: clientid, username, version, sni, listener, remote_addr, cert_cn, tls_version and the ssl_ names of templates.',
    example: { clientid: '~^sensor-' },
  },
  inside: null,
  read(node: Node, path, sink) {
    if (isNull(node)) return this.missing(node.at, path, sink);
    const conditions: RouteCondition[] = [];
    if (node.kind === 'scalar') {
      const found = TEXT_FORM.exec(node.text);
      if (found === null) return sink.problem(node.at, path, '"field op value" expected, as in "clientid =~ ^sensor-"');
      const one = condition(found[1], found[2] as MatchOp, unquote(found[3]));
      if (typeof one === 'string') return sink.problem(node.at, path, one);
      return { conditions: [one], written: node.text };
    }
    if (node.kind !== 'block' || node.fields.size === 0)
      return sink.problem(node.at, path, 'a block with at least one field expected');
    const written = Object.create(null) as Record<string, TreeValue>;
    for (const [field, { at, value }] of node.fields) {
      const one = value.kind === 'scalar' ? blockCondition(field, value.text) : 'a text expected';
      if (typeof one === 'string') sink.problem(at, joinPath(path, field), one);
      else conditions.push(one);
      if (value.kind === 'scalar') written[field] = value.text;
    }
    return { conditions, written };
  },
  missing: (at, path, sink) => sink.problem(at, path, 'is missing'),
  show: (value) => value.written,
};

function unquote(value: string): string {
  return /^"[^"]*"$/.test(value) ? value.slice(1, -1) : value;
}
