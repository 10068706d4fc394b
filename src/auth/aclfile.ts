// The mosquitto ACL file: grammar and evaluation as in mosquitto 2.1. Called by realms.ts at start and reload, then
// asked per verdict. A line that is no rule stops the load and is named by file and line. Rules of a user go before
// pattern rules; in each list a deny wins in any order; what no rule grants is denied. %c and %u of pattern lines count
// only as a whole level.
import { covers, intersect, isRuleFilter, sharedFilter } from './filter.ts';
import { DENY, READ, RuleTree, WRITE } from './ruletree.ts';
import { lineError, readTextFile, type TextFile, trim, trimEnd } from './textfile.ts';

/** The parts of an Identity that rules look at. */
export interface Subject {
  readonly clientId: string;
  readonly username: string | null;
}

interface Rule {
  readonly bits: number;
  readonly filter: string;
  readonly pattern: boolean;
  readonly line: number;
  readonly text: string;
}

export interface Explanation {
  readonly allowed: boolean;
  /** "<file>:<line>: <rule>", or why no rule decided. */
  readonly rule: string;
}

/** One list of rules: of a user, of clients without user name, or of patterns. */
class RuleList {
  readonly rules: Rule[] = [];
  private readonly tree = new RuleTree();

  add(rule: Rule): void {
    this.rules.push(rule);
    this.tree.add(rule.filter.split('/'), rule.bits, rule.pattern);
  }

  match(topic: string, names: { clientId: string; username: string }): number {
    return this.tree.match(topic, names);
  }

  /** The rule that decides, as match() would: the first deny, else the first that grants `bit`. */
  decider(subject: Subject, topic: string[], bit: number): Rule | null {
    const matching = this.rules.filter((rule) => {
      const levels = ruleLevels(rule, subject);
      return levels !== null && covers(levels, topic);
    });
    return matching.find((rule) => rule.bits === DENY) ?? matching.find((rule) => (rule.bits & bit) !== 0) ?? null;
  }
}

/** The levels of a rule for this client, or null when it names what the client has not. */
function ruleLevels(rule: Rule, subject: Subject): string[] | null {
  const levels = rule.filter.split('/');
  if (!rule.pattern) return levels;
  for (let i = 0; i < levels.length; i++) {
    const name = levels[i] === '%c' ? subject.clientId : levels[i] === '%u' ? (subject.username ?? '') : null;
    if (name === null) continue;
    if (name === '' || name.includes('/')) return null;
    levels[i] = name;
  }
  return levels;
}

function isWildName(name: string): boolean {
  return name.includes('+') || name.includes('#');
}

const ACCESS: ReadonlyMap<string, number> = new Map([
  ['read', READ],
  ['write', WRITE],
  ['readwrite', READ | WRITE],
  ['deny', DENY],
]);

export class AclFile {
  readonly path: string;
  /** What a person should know of a file that loads: "<file>:<line>: ...". */
  readonly warnings: string[] = [];
  private readonly anonymous = new RuleList();
  private readonly users = new Map<string, RuleList>();
  private readonly patterns = new RuleList();

  constructor(file: TextFile) {
    this.path = file.path;
    let list = this.anonymous;
    for (let i = 0; i < file.lines.length; i++) {
      const text = trimEnd(file.lines[i]);
      if (text === '' || text.startsWith('#')) continue;
      // Only blanks separate words; a tab belongs to the word it stands in.
      const words = text.replace(/^ +/, '');
      const blank = words.indexOf(' ');
      const keyword = blank < 0 ? words : words.slice(0, blank);
      const rest = blank < 0 ? '' : words.slice(blank).replace(/^ +/, '');
      if (keyword === 'user') list = this.section(rest, i + 1);
      else if (keyword === 'topic') list.add(this.rule(rest, false, i + 1, text));
      else if (keyword === 'pattern') this.patterns.add(this.rule(rest, true, i + 1, text));
      else throw lineError(this.path, i + 1, 'a line begins with user, topic, pattern, or # for a comment');
    }
  }

  private section(rest: string, line: number): RuleList {
    const name = trim(rest);
    if (name === '') throw lineError(this.path, line, 'user without a name');
    let list = this.users.get(name);
    if (list === undefined) {
      list = new RuleList();
      this.users.set(name, list);
    }
    return list;
  }

  /** One word is the filter, with all rights; of more words the first is the access and the others the filter. */
  private rule(rest: string, pattern: boolean, line: number, text: string): Rule {
    const blank = rest.indexOf(' ');
    const access = blank < 0 ? 'readwrite' : rest.slice(0, blank);
    const filter = blank < 0 ? rest : rest.slice(blank).replace(/^ +/, '');
    const bits = ACCESS.get(access);
    if (filter === '') throw lineError(this.path, line, 'no topic');
    if (bits === undefined) throw lineError(this.path, line, 'the access is none of read, write, readwrite, deny');
    if (!isRuleFilter(filter)) throw lineError(this.path, line, 'not a topic filter');
    if (pattern) this.warnOf(filter, line);
    return { bits, filter, pattern, line, text: trim(text) };
  }

  private warnOf(filter: string, line: number): void {
    const levels = filter.split('/');
    const partial = levels.some((level) => level.length > 2 && (level.includes('%c') || level.includes('%u')));
    if (partial) this.warnings.push(`${this.path}:${line}: %c and %u count only as a whole level, here they are text`);
    else if (!levels.includes('%c') && !levels.includes('%u')) {
      this.warnings.push(`${this.path}:${line}: a pattern without %c and %u holds for every client`);
    }
  }

  private listOf(subject: Subject): RuleList | undefined {
    return subject.username === null ? this.anonymous : this.users.get(subject.username);
  }

  /**
   * A name with + or # would widen what a pattern says: with any pattern in the file such a client has only the rules
   * of its user.
   */
  private patternsFor(subject: Subject): boolean {
    if (this.patterns.rules.length === 0) return false;
    return !isWildName(subject.clientId) && (subject.username === null || !isWildName(subject.username));
  }

  /** Whether the client may read (deliver) or write (publish) the topic. */
  allows(subject: Subject, topicName: string, bit: typeof READ | typeof WRITE): boolean {
    const list = this.listOf(subject);
    const names = { clientId: subject.clientId, username: subject.username ?? '' };
    if (list !== undefined) {
      const bits = list.match(topicName, names);
      if ((bits & DENY) !== 0) return false;
      if ((bits & bit) !== 0) return true;
    }
    if (!this.patternsFor(subject)) return false;
    const bits = this.patterns.match(topicName, names);
    return (bits & DENY) === 0 && (bits & bit) !== 0;
  }

  /**
   * Whether the filter could ever bring the client a message: some rule that grants reading has topics in common with
   * it that no single deny rule takes away. For `acl_subscribe = truthful`; mosquitto grants every SUBSCRIBE.
   */
  reaches(subject: Subject, topicFilter: string): boolean {
    const wanted = sharedFilter(topicFilter).split('/');
    const own = this.listOf(subject)?.rules ?? [];
    const shared = this.patternsFor(subject) ? this.patterns.rules : [];
    return reachable(own, own, wanted, subject) || reachable(shared, [...own, ...shared], wanted, subject);
  }

  /** Whether any rule lets the client write anything. */
  grantsWriting(subject: Subject): boolean {
    const patterns = this.patternsFor(subject) ? this.patterns.rules : [];
    return [...(this.listOf(subject)?.rules ?? []), ...patterns].some(({ bits }) => (bits & WRITE) !== 0);
  }

  /** Which line decides on a topic. Linear in the rules; for people, not for the data path. */
  explain(subject: Subject, topicName: string, bit: typeof READ | typeof WRITE): Explanation {
    const topic = topicName.split('/');
    const own = this.listOf(subject)?.decider(subject, topic, bit) ?? null;
    if (own !== null) return this.told(own);
    if (this.patterns.rules.length > 0 && !this.patternsFor(subject)) {
      return { allowed: false, rule: `${this.path}: client id or user name with + or # gets no pattern rights` };
    }
    const pattern = this.patterns.decider(subject, topic, bit);
    if (pattern !== null) return this.told(pattern);
    return { allowed: false, rule: `${this.path}: no rule grants it` };
  }

  private told(rule: Rule): Explanation {
    return { allowed: rule.bits !== DENY, rule: `${this.path}:${rule.line}: ${rule.text}` };
  }
}

function reachable(grants: readonly Rule[], denies: readonly Rule[], wanted: string[], subject: Subject): boolean {
  for (const grant of grants) {
    if (grant.bits === DENY || (grant.bits & READ) === 0) continue;
    const levels = ruleLevels(grant, subject);
    const common = levels === null ? null : intersect(levels, wanted);
    if (common === null) continue;
    const taken = denies.some((deny) => {
      if (deny.bits !== DENY) return false;
      const denied = ruleLevels(deny, subject);
      return denied !== null && covers(denied, common);
    });
    if (!taken) return true;
  }
  return false;
}

/** Reads an ACL file from disk; throws AUTH-SOURCE naming path and line. */
export async function loadAclFile(path: string): Promise<AclFile> {
  return new AclFile(await readTextFile(path));
}
