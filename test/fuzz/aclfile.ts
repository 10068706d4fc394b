// Fuzz target: ACL files. Holds: a file loads or is refused with its line; verdicts are those of a plain reading of the rules, one by
// one with the reference matcher; explain() says the same; a filter that a client may read from is never said to reach nothing.
import { AclFile } from '../../src/auth/aclfile.ts';
import { READ, WRITE } from '../../src/auth/ruletree.ts';
import { textFile } from '../../src/auth/textfile.ts';
import { GatewayError } from '../../src/base/errors.ts';
import { isTopicName, matches } from '../../src/mqtt/topic.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import type { Random } from '../harness/random.ts';

const WORDS = [
  'topic ',
  'topic ',
  'pattern ',
  'user ',
  'read ',
  'write ',
  'readwrite ',
  'deny ',
  '#',
  '+',
  '/',
  '/',
  'a',
  'b',
  '%c',
  '%u',
  '$x',
  ' ',
  '\t',
];
const LEVELS = ['a', 'b', '', '$x', 'c', 'u', '%c'];
const NAMES = ['c', 'u', 'a', 'a+', '#', 'x/y', '%c'];

interface PlainRule {
  readonly user: string | null;
  readonly pattern: boolean;
  readonly access: string;
  readonly filter: string;
}

/** The rules of a file that is known to load, read as simply as possible. */
function plainRules(text: string): PlainRule[] {
  const rules: PlainRule[] = [];
  let user: string | null = null;
  for (const line of text.split('\n').map((one) => one.replace(/[ \t\r]+$/, ''))) {
    if (line === '' || line.startsWith('#')) continue;
    const [, keyword, rest] = /^ *([^ ]+) *(.*)$/s.exec(line) ?? [];
    if (keyword === 'user') {
      user = rest.replace(/^[ \t]+/, '');
      continue;
    }
    const [, access, filter] = /^(read|write|readwrite|deny) +(.+)$/s.exec(rest) ?? ['', 'readwrite', rest];
    rules.push({ user, pattern: keyword === 'pattern', access, filter });
  }
  return rules;
}

function plainFilter(rule: PlainRule, clientId: string, username: string | null): string | null {
  if (!rule.pattern) return rule.filter;
  const levels = rule.filter
    .split('/')
    .map((level) => (level === '%c' ? clientId : level === '%u' ? (username ?? '') : level));
  const named = rule.filter
    .split('/')
    .every((level, i) => (level !== '%c' && level !== '%u') || (levels[i] !== '' && !levels[i].includes('/')));
  return named ? levels.join('/') : null;
}

function plainVerdict(
  rules: readonly PlainRule[],
  clientId: string,
  username: string | null,
  topic: string,
  access: 'read' | 'write',
): boolean {
  const judge = (list: readonly PlainRule[]): boolean | null => {
    const fitting = list.filter((rule) => {
      const filter = plainFilter(rule, clientId, username);
      return filter !== null && (topic.startsWith('$') ? filter.startsWith('$') : true) && matches(filter, topic);
    });
    if (fitting.some((rule) => rule.access === 'deny')) return false;
    return fitting.some((rule) => rule.access.includes(access)) ? true : null;
  };
  const patterns = rules.filter((rule) => rule.pattern);
  const own = judge(rules.filter((rule) => !rule.pattern && rule.user === username));
  if (own !== null) return own;
  if (patterns.length > 0 && /[+#]/.test(clientId + (username ?? ''))) return false;
  return judge(patterns) ?? false;
}

function randomText(random: Random): string {
  const lines = Array.from({ length: 1 + random.below(6) }, () => {
    if (random.below(4) === 0) return Array.from({ length: random.below(6) }, () => random.pick(WORDS)).join('');
    if (random.below(4) === 0) return `user ${random.pick(NAMES)}`;
    const levels = Array.from({ length: 1 + random.below(3) }, () =>
      random.pick(['a', 'b', '+', '%c', '%u', '$x', '']),
    );
    if (random.below(4) === 0) levels.push('#');
    const filter = levels.join('/') || 'a';
    return `${random.pick(['topic', 'pattern'])} ${random.pick(['read ', 'write ', 'readwrite ', 'deny ', ''])}${filter}`;
  });
  return lines.join(random.pick(['\n', '\r\n']));
}

export const target: FuzzTarget = {
  once(random: Random): void {
    const text = randomText(random);
    let acl: AclFile;
    try {
      acl = new AclFile(textFile('acl', Buffer.from(text), 0o600));
    } catch (error) {
      if (error instanceof GatewayError && /acl:\d+: /.test(error.message)) return;
      throw error;
    }
    const rules = plainRules(text);
    for (let i = 0; i < 20; i++) {
      const topic = Array.from({ length: 1 + random.below(3) }, () => random.pick(LEVELS)).join('/');
      if (!isTopicName(topic)) continue;
      const clientId = random.pick(NAMES);
      const username = random.pick([null, ...NAMES]);
      const access = random.pick(['read', 'write'] as const);
      const subject = { clientId, username };
      const bit = access === 'read' ? READ : WRITE;
      const wanted = plainVerdict(rules, clientId, username, topic, access);
      const what = JSON.stringify({ text, clientId, username, topic, access });
      if (acl.allows(subject, topic, bit) !== wanted) throw new Error(`not ${wanted}: ${what}`);
      if (acl.explain(subject, topic, bit).allowed !== wanted) throw new Error(`explained otherwise: ${what}`);
      if (wanted && access === 'read' && !acl.reaches(subject, topic)) throw new Error(`reaches nothing: ${what}`);
    }
  },
};
