// Expressions of rules in CEL (Common Expression Language): compiled once, evaluated for each message, bounded in time.
// Made by compiler.ts. Nothing here runs code that a message or an expression brings: the library interprets a checked
// syntax tree. On top of CEL: numbers of different kinds may be mixed (JSON knows only one), `now` has a text form, and
// round(), millis() and json() are there. Bounds: length and size of an expression; comprehensions by the largest list
// of the message; regular expressions run in linear time. Source: the language definition of cel-spec; docs/rules.md.
import { Environment, type ParseResult } from '@marcbachmann/cel-js';
import { writeJson } from '../base/json.ts';
import { compilePattern } from '../config/pattern.ts';

const LONGEST_SOURCE = 4096;
const LIMITS = { maxAstNodes: 1000, maxDepth: 48, maxListElements: 200, maxMapEntries: 200, maxCallArguments: 16 };
/** Steps of nested comprehensions over one message: some tens of milliseconds. */
const MOST_STEPS = 200_000;
const MACROS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);

/** What an expression sees of a message. */
export interface Scope {
  topic: string;
  payload: unknown;
  qos: bigint;
  retain: boolean;
  clientId: string;
  username: string;
  properties: unknown;
  now: Date;
}

export interface Expression {
  readonly source: string;
  /** Names of the scope that it reads: what it does not read need not be made. */
  readonly names: ReadonlySet<string>;
  /** Fields of the payload that it reads; null: the payload as a whole. */
  readonly fields: ReadonlySet<string> | null;
  /** How deep comprehensions stand in each other; 0 = none. */
  readonly loops: number;
  /** The value; throws Error with one line that says what is wrong with this message. */
  evaluate(scope: Scope): unknown;
}

/** One node of the library's syntax tree, as far as it is looked at. */
interface SyntaxNode {
  readonly op: string;
  readonly args: unknown;
}

/** What is known of a tree once it has been looked through. */
interface Found {
  readonly names: ReadonlySet<string>;
  readonly fields: ReadonlySet<string> | null;
  readonly loops: number;
  readonly splits: boolean;
}

const PAYLOAD = 'payload';

/** What calls of matches() become: CEL's own runs on a backtracking engine. */
const LINEAR = 'matchesInLinearTime';

export class Expressions {
  private readonly environment: Environment;
  private readonly patterns = new Map<string, RegExp>();

  constructor() {
    this.environment = new Environment({
      homogeneousAggregateLiterals: false,
      enableOptionalTypes: true,
      limits: LIMITS,
    });
    const { environment } = this;
    for (const name of ['topic', 'clientId', 'username']) environment.registerVariable(name, 'string');
    environment.registerVariable('payload', 'dyn');
    environment.registerVariable('qos', 'int');
    environment.registerVariable('retain', 'bool');
    environment.registerVariable('properties', 'map');
    environment.registerVariable('now', 'google.protobuf.Timestamp');
    registerNumbers(environment);
    environment.registerFunction('string(google.protobuf.Timestamp): string', (time: Date) => time.toISOString());
    environment.registerFunction('int(google.protobuf.Timestamp): int', (time: Date) =>
      BigInt(Math.floor(time.getTime() / 1000)),
    );
    environment.registerFunction('millis(google.protobuf.Timestamp): int', (time: Date) => BigInt(time.getTime()));
    environment.registerFunction('json(dyn): string', (value: unknown) => writeJson(value));
    environment.registerFunction(`string.${LINEAR}(string): bool`, (text: string, source: string) =>
      (this.patterns.get(source) ?? /$^/).test(text),
    );
  }

  /** The compiled expression, or what is wrong with it in one line. */
  compile(source: string): Expression | string {
    if (source.length > LONGEST_SOURCE) return `longer than ${LONGEST_SOURCE} characters`;
    try {
      const parsed = this.environment.parse(source);
      const found = this.inspect(parsed.ast as unknown as SyntaxNode);
      if (typeof found === 'string') return found;
      const checked = parsed.check();
      if (!checked.valid) return firstLine(checked.error);
      return expressionOf(source, parsed, found);
    } catch (error) {
      return firstLine(error);
    }
  }

  /** Names and loops of a tree; a text where it holds what is not allowed. */
  private inspect(root: SyntaxNode): Found | string {
    const names = new Set<string>();
    const fields = new Set<string>();
    let whole = false;
    let splits = false;
    let loops = 0;
    let problem = '';
    const visit = (node: unknown, depth: number): void => {
      if (Array.isArray(node)) for (const one of node) visit(one, depth);
      if (!isNode(node)) return;
      const { op, args } = node;
      const field = fieldOf(node);
      if (field !== null) {
        names.add(PAYLOAD);
        fields.add(field);
        return;
      }
      if (op === 'id') names.add(String(args));
      if (op === 'id' && args === PAYLOAD) whole = true;
      if (op === 'map' && hasPrototypeKey(args)) problem = '__proto__ is no key of an object that is written out';
      if (op !== 'rcall') {
        visit(args, depth);
        return;
      }
      const [name, receiver, given] = args as [string, unknown, unknown[]];
      if (name === 'bind') problem = 'cel.bind is not supported';
      if (name === 'split') splits = true;
      if (name === 'matches') problem = this.linear(node, given) ?? problem;
      const inner = MACROS.has(name) ? depth + 1 : depth;
      loops = Math.max(loops, inner);
      visit(receiver, depth);
      visit(given, inner);
    };
    visit(root, 0);
    // What bounds loops is the size of the whole message.
    return problem === '' ? { names, fields: whole || loops > 1 || splits ? null : fields, loops, splits } : problem;
  }

  /** Makes a call of matches() one of the linear engine; what is wrong with its pattern, or null. */
  private linear(node: SyntaxNode, given: readonly unknown[]): string | null {
    const [pattern] = given;
    if (given.length !== 1 || !isNode(pattern) || pattern.op !== 'value' || typeof pattern.args !== 'string')
      return 'matches() takes one pattern that is written out';
    const compiled = compilePattern(pattern.args, false);
    if (typeof compiled === 'string') return compiled;
    this.patterns.set(pattern.args, compiled);
    (node.args as unknown[])[0] = LINEAR;
    return null;
  }
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}

/** Whether an object that is written out has the one key that the library's objects cannot have. */
function hasPrototypeKey(entries: unknown): boolean {
  if (!Array.isArray(entries)) return false;
  return entries.some((entry) => Array.isArray(entry) && isNode(entry[0]) && entry[0].args === '__proto__');
}

/** The name in payload.name and payload["name"], else null. */
function fieldOf({ op, args }: SyntaxNode): string | null {
  if (op !== '.' && op !== '[]') return null;
  const [left, right] = args as readonly unknown[];
  if (!isNode(left) || left.op !== 'id' || left.args !== PAYLOAD) return null;
  if (op === '.') return typeof right === 'string' ? right : null;
  return isNode(right) && right.op === 'value' && typeof right.args === 'string' ? right.args : null;
}

function expressionOf(source: string, parsed: ParseResult, found: Found): Expression {
  const { names, fields, loops, splits } = found;
  const evaluate = (scope: Scope): unknown => {
    if (loops > 1 || splits) bound(scope, loops, splits);
    try {
      return parsed(scope as unknown as Record<string, unknown>);
    } catch (error) {
      throw new Error(firstLine(error));
    }
  };
  return { source, names, fields, loops, evaluate };
}

/** Throws when loops in loops could take too many steps for this message. */
function bound(scope: Scope, loops: number, splits: boolean): void {
  const largest = Math.max(largestIn(scope.payload, splits), largestIn(scope.properties, splits), 1);
  if (largest ** Math.max(loops, 1) > MOST_STEPS) throw new Error('the message is too large for nested loops');
}

/**
 * Entries of the largest list or object below `value`; where texts may be split, characters of the longest text.
 * O(value).
 */
function largestIn(value: unknown, texts: boolean): number {
  if (typeof value === 'string') return texts ? value.length : 0;
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return 0;
  const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let most = items.length;
  for (const item of items) most = Math.max(most, largestIn(item, texts));
  return most;
}

function registerNumbers(environment: Environment): void {
  const operators: readonly (readonly [string, (a: number, b: number) => number])[] = [
    ['+', (a, b) => a + b],
    ['-', (a, b) => a - b],
    ['*', (a, b) => a * b],
    ['/', (a, b) => a / b],
    ['%', (a, b) => a % b],
  ];
  const mixed = ['double int', 'int double', 'double uint', 'uint double'];
  for (const [operator, compute] of operators) {
    for (const pair of operator === '%' ? [...mixed, 'double double'] : mixed) {
      const [left, right] = pair.split(' ');
      const handler = (a: unknown, b: unknown): number => compute(Number(a), Number(b));
      environment.registerOperator(`${left} ${operator} ${right}: double`, handler);
    }
  }
  environment.registerOperator('double == int', (a: number, b: bigint) => a === Number(b));
  environment.registerFunction('round(double): double', (value: number) => Math.round(value));
  environment.registerFunction('round(double, int): double', (value: number, digits: bigint) => {
    const factor = 10 ** Math.min(Math.max(Number(digits), 0), 15);
    return Math.round(value * factor) / factor;
  });
  environment.registerFunction('round(int): int', (value: bigint) => value);
}

/** The library's errors show the source below their first line. */
function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0] ?? '';
}
