// NanoMQ's rule SQL, read into the terms of a rule: SELECT becomes `set`, FROM becomes `from`, WHERE becomes a CEL
// expression. Called by config/build/rules.ts for `rules.repub`. Pure. What is not supported has a text that names it.
// Source: NanoMQ's documentation (rule engine):
//
//   SELECT field [AS name] , ... | *  FROM "filter" , ...  [WHERE field op literal AND|OR ...]
//   field: topic qos clientid username timestamp payload payload.a.b, in WHERE also a name given with AS;
//   op: = != <> < <= > >=

export interface SqlRule {
  readonly from: readonly string[];
  readonly where: string;
  readonly set: readonly (readonly [string, string])[];
}

const LONGEST_SQL = 4096;

/** Fields and what they are in CEL. */
const FIELDS: Readonly<Record<string, string>> = {
  qos: 'qos',
  topic: 'topic',
  clientid: 'clientId',
  username: 'username',
  timestamp: 'millis(now)',
  payload: 'payload',
};
const UNSUPPORTED: Readonly<Record<string, string>> = {
  id: 'packet identifiers mean nothing behind the broker',
  password: 'passwords never leave the gateway',
};
const OPERATORS: Readonly<Record<string, string>> = {
  '=': '==',
  '==': '==',
  '!=': '!=',
  '<>': '!=',
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
};
/** Words of other SQL that people try. */
const NOT_SUPPORTED: ReadonlySet<string> = new Set(
  'group order limit having join union distinct case insert update delete between like in is foreach do'.split(' '),
);
const TOKEN =
  /\s*(?:("[^"]*"|'[^']*')|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|([A-Za-z_][\w-]*(?:\.[\w-]+)*)|(<>|[<>!=]=|[<>=*,()]))/y;

interface Token {
  readonly kind: 'quoted' | 'number' | 'word' | 'sign';
  readonly text: string;
}

class SqlError extends Error {}

/** The rule of a statement, or what is wrong with it. */
export function readSql(sql: string): SqlRule | string {
  if (sql.length > LONGEST_SQL) return `longer than ${LONGEST_SQL} characters`;
  try {
    return new Reader(tokens(sql)).statement();
  } catch (error) {
    if (error instanceof SqlError) return error.message;
    throw error;
  }
}

function tokens(sql: string): Token[] {
  const found: Token[] = [];
  const text = sql.trimEnd().replace(/;$/, '');
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(text);
    if (match === null) throw new SqlError(`not understood: ${text.slice(at).trim().slice(0, 30)}`);
    const [, quoted, number, word, sign] = match;
    if (quoted !== undefined) found.push({ kind: 'quoted', text: quoted });
    else if (number !== undefined) found.push({ kind: 'number', text: number });
    else if (word !== undefined) found.push({ kind: 'word', text: word });
    else found.push({ kind: 'sign', text: sign });
  }
  return found;
}

class Reader {
  private readonly tokens: readonly Token[];
  private at = 0;
  /** Names given with AS and what they stand for. */
  private readonly names = new Map<string, string>();

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens;
  }

  statement(): SqlRule {
    this.word('select');
    const set = this.fields();
    this.word('from');
    const from = [this.filter()];
    while (this.sign(',')) from.push(this.filter());
    let where = '';
    if (this.isWord('where')) {
      this.at++;
      where = this.either();
    }
    const left = this.tokens[this.at];
    if (left !== undefined) throw this.unexpected(left);
    return { from, where, set };
  }

  private fields(): [string, string][] {
    if (this.sign('*')) return Object.entries(FIELDS).map(([name, cel]) => [name, cel]);
    const set: [string, string][] = [];
    do {
      const field = this.take('word', 'a field');
      const cel = celOf(field.text);
      let name = field.text.split('.').at(-1) ?? field.text;
      if (this.isWord('as')) {
        this.at++;
        name = unquoted(this.take(this.tokens[this.at]?.kind === 'quoted' ? 'quoted' : 'word', 'a name').text);
      }
      this.names.set(name, cel);
      set.push([name, cel]);
    } while (this.sign(','));
    return set;
  }

  private filter(): string {
    return unquoted(this.take('quoted', 'a topic filter in quotes').text);
  }

  private either(): string {
    let left = this.both();
    while (this.isWord('or')) {
      this.at++;
      left = `(${left} || ${this.both()})`;
    }
    return left;
  }

  private both(): string {
    let left = this.comparison();
    while (this.isWord('and')) {
      this.at++;
      left = `${left} && ${this.comparison()}`;
    }
    return left;
  }

  private comparison(): string {
    if (this.sign('(')) {
      const inner = this.either();
      if (!this.sign(')')) throw new SqlError('a closing bracket is missing');
      return `(${inner})`;
    }
    const field = this.take('word', 'a field');
    const left = this.names.get(field.text) ?? celOf(field.text);
    const sign = this.take('sign', 'a comparison');
    const operator = OPERATORS[sign.text];
    if (operator === undefined) throw this.unexpected(sign);
    return `${left} ${operator} ${this.literal()}`;
  }

  private literal(): string {
    const token = this.tokens[this.at++];
    if (token === undefined) throw new SqlError('the value of a comparison is missing');
    if (token.kind === 'quoted') return JSON.stringify(unquoted(token.text));
    if (token.kind === 'number') return token.text;
    const word = token.text.toLowerCase();
    if (word === 'true' || word === 'false' || word === 'null') return word;
    throw new SqlError(`a comparison is with a number or a text in quotes, not with ${token.text}`);
  }

  private take(kind: Token['kind'], what: string): Token {
    const token = this.tokens[this.at++];
    if (token === undefined) throw new SqlError(`${what} is missing at the end`);
    if (token.kind !== kind) throw this.unexpected(token, what);
    return token;
  }

  private word(wanted: string): void {
    if (!this.isWord(wanted)) {
      const token = this.tokens[this.at];
      if (token !== undefined) throw this.unexpected(token, wanted.toUpperCase());
      throw new SqlError(`${wanted.toUpperCase()} is missing`);
    }
    this.at++;
  }

  private isWord(wanted: string): boolean {
    const token = this.tokens[this.at];
    return token?.kind === 'word' && token.text.toLowerCase() === wanted;
  }

  private sign(wanted: string): boolean {
    const token = this.tokens[this.at];
    if (token?.kind !== 'sign' || token.text !== wanted) return false;
    this.at++;
    return true;
  }

  private unexpected(token: Token, wanted = ''): SqlError {
    if (token.kind === 'word' && NOT_SUPPORTED.has(token.text.toLowerCase()))
      return new SqlError(`${token.text.toUpperCase()} is not supported`);
    return new SqlError(`${token.text.slice(0, 40)} where ${wanted === '' ? 'nothing' : wanted} was expected`);
  }
}

function celOf(field: string): string {
  const [name, ...path] = field.split('.');
  const lower = name.toLowerCase();
  const why = Object.hasOwn(UNSUPPORTED, lower) ? UNSUPPORTED[lower] : undefined;
  if (why !== undefined) throw new SqlError(`${name} is not supported: ${why}`);
  if (NOT_SUPPORTED.has(lower)) throw new SqlError(`${name.toUpperCase()} is not supported`);
  const cel = Object.hasOwn(FIELDS, lower) ? FIELDS[lower] : undefined;
  if (cel === undefined) throw new SqlError(`${name} is no field: ${Object.keys(FIELDS).join(', ')}`);
  if (path.length > 0 && lower !== 'payload') throw new SqlError(`${name} has no fields of its own`);
  return cel + path.map((part) => `[${JSON.stringify(part)}]`).join('');
}

function unquoted(text: string): string {
  return text.startsWith('"') || text.startsWith("'") ? text.slice(1, -1) : text;
}
