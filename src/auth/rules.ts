// NanoMQ's acl.rules: permit, action, topics, and who they are for; the first rule that matches decides, else no_match.
// Built by realms.ts from configuration; asked per verdict that session/ has not cached. Refuses the SUBSCRIBE itself;
// what a wide filter was granted is filtered again at delivery, so `#` never brings a topic that a deny names. Sources:
// NanoMQ's acl.md.
import { GatewayError } from '../base/errors.ts';
import type { Explanation } from './aclfile.ts';
import { addressTest } from './address.ts';
import { covers, isRuleFilter, sharedFilter } from './filter.ts';

/** Who a rule is for: every field that is set has to fit. "#" means anybody. */
export interface WhoOptions {
  readonly username: string | null;
  readonly clientId: string | null;
  /** Addresses or networks ("10.0.0.0/8"); one of them has to fit; empty = any. */
  readonly ipaddrs: readonly string[];
}
/** One element of auth.acl.rules. */
export interface RuleOptions extends WhoOptions {
  readonly permit: 'allow' | 'deny';
  readonly action: 'publish' | 'subscribe' | 'pubsub';
  /** Filters; `@x` is the text x itself; ${clientid} and ${username} stand for the client's. Empty: every topic. */
  readonly topics: readonly string[];
  /** All of these have to fit too. */
  readonly and: readonly WhoOptions[];
  /** One of these has to fit too; empty = nothing more. */
  readonly or: readonly WhoOptions[];
  /** Where it is configured, for explanations. */
  readonly source?: { readonly file: string; readonly line: number };
}
export interface RulesOptions {
  readonly rules: readonly RuleOptions[];
  readonly noMatch: 'allow' | 'deny';
}

/** The parts of an Identity that rules look at. */
export interface RuleSubject {
  readonly clientId: string;
  readonly username: string | null;
  readonly remoteAddress: string;
  /** The address is not known: a rule for addresses does not allow then, and denies. */
  readonly partial?: boolean;
}

export type Action = 'publish' | 'subscribe' | 'deliver';

type Test = (subject: RuleSubject) => boolean;

/** Everybody, in NanoMQ's words. */
const ANYBODY = '#';

function whoTests(who: WhoOptions, allow: boolean, where: string): Test[] {
  const tests: Test[] = [];
  const { username, clientId, ipaddrs } = who;
  if (username !== null) tests.push((subject) => username === ANYBODY || subject.username === username);
  if (clientId !== null) tests.push((subject) => clientId === ANYBODY || subject.clientId === clientId);
  if (ipaddrs.length > 0 && !ipaddrs.includes(ANYBODY)) {
    const fits = addressTest(ipaddrs, where);
    tests.push((subject) => (subject.partial === true ? !allow : fits(subject.remoteAddress)));
  }
  return tests;
}

function listTests(list: readonly WhoOptions[], allow: boolean, where: string): Test[] {
  return list.map((who, i) => {
    const own = whoTests(who, allow, `${where}[${i}]`);
    if (own.length === 0) throw new GatewayError('AUTH-SOURCE', `${where}[${i}]: names nobody`);
    return (subject) => own.every((test) => test(subject));
  });
}

/** Every field that is given has to hold. */
function subjectTest(options: RuleOptions, where: string): Test | null {
  const allow = options.permit === 'allow';
  const tests = [...whoTests(options, allow, where), ...listTests(options.and, allow, `${where}.and`)];
  const any = listTests(options.or, allow, `${where}.or`);
  if (any.length > 0) tests.push((subject) => any.some((test) => test(subject)));
  return tests.length === 0 ? null : (subject) => tests.every((test) => test(subject));
}

const CLIENT_ID = '$' + '{clientid}';
const USERNAME = '$' + '{username}';

/** A topic of a rule, prepared. */
class RuleTopic {
  /** `@topic`: the text itself, no wildcards. */
  private readonly literal: boolean;
  private readonly text: string;
  private readonly levels: readonly string[];
  private readonly byClientId: boolean;
  private readonly byUsername: boolean;

  constructor(topic: string, where: string) {
    this.literal = topic.startsWith('@');
    this.text = this.literal ? topic.slice(1) : topic;
    this.levels = this.text.split('/');
    this.byClientId = this.text.includes(CLIENT_ID);
    this.byUsername = this.text.includes(USERNAME);
    if (this.text === '' || (!this.literal && !isRuleFilter(this.text))) {
      throw new GatewayError('AUTH-SOURCE', `${where}: not a topic filter`);
    }
  }

  /**
   * Whether this topic of a rule holds for what is asked; 'unsafe' when a name with a wildcard would have to be put in.
   */
  matches(
    subject: RuleSubject,
    action: Action,
    topic: string,
    levels: readonly string[],
    allow: boolean,
  ): boolean | 'unsafe' {
    let text = this.text;
    let own = this.levels;
    if (this.byClientId || this.byUsername) {
      const clientId = this.byClientId ? subject.clientId : 'x';
      const username = this.byUsername ? (subject.username ?? '') : 'x';
      if (clientId === '' || username === '') return false;
      if (/[+#]/.test(clientId) || /[+#]/.test(username)) return 'unsafe';
      // A slash would move a right to levels that the rule does not speak of; a denial may reach further.
      if (allow && (clientId.includes('/') || username.includes('/'))) return false;
      text = text.replaceAll(CLIENT_ID, () => clientId).replaceAll(USERNAME, () => username);
      own = text.split('/');
    }
    // What a wildcard does not grant [MQTT-4.7.2-1] it may well deny: topics that begin with $.
    if (!this.literal) return covers(own, levels, !allow);
    // `allow @a/#` grants exactly this SUBSCRIBE: what it matches may then be delivered.
    if (action === 'deliver' && allow) return covers(own, levels);
    return text === topic;
  }
}

interface Rule {
  readonly allow: boolean;
  readonly publish: boolean;
  readonly subscribe: boolean;
  readonly who: Test | null;
  readonly topics: readonly RuleTopic[];
  readonly where: string;
}

export class Rules {
  private readonly rules: readonly Rule[];
  private readonly noMatch: boolean;
  private readonly otherwise: string;

  /** Throws AUTH-SOURCE naming the rule that makes no sense; `name` says where the rules come from. */
  constructor(options: RulesOptions, name = 'auth.acl.rules') {
    this.noMatch = options.noMatch === 'allow';
    this.otherwise = name === 'auth.acl.rules' ? 'auth.no_match' : `${name}: no rule matches`;
    this.rules = options.rules.map((rule, i) => {
      const where = `${name}[${i}]`;
      return {
        allow: rule.permit === 'allow',
        publish: rule.action !== 'subscribe',
        subscribe: rule.action !== 'publish',
        who: subjectTest(rule, where),
        topics: rule.topics.map((topic, k) => new RuleTopic(topic, `${where}.topics[${k}]`)),
        where: rule.source === undefined ? where : `${rule.source.file}:${rule.source.line}: ${where}`,
      };
    });
  }

  /** First match wins. At delivery the subscribe rules are asked about the topic itself. */
  allows(subject: RuleSubject, action: Action, topic: string): boolean {
    const found = this.first(subject, action, topic);
    return found === null ? this.noMatch : found.allowed;
  }

  explain(subject: RuleSubject, action: Action, topic: string): Explanation {
    return this.first(subject, action, topic) ?? { allowed: this.noMatch, rule: this.otherwise };
  }

  private first(subject: RuleSubject, action: Action, topic: string): Explanation | null {
    const asked = action === 'subscribe' ? sharedFilter(topic) : topic;
    const levels = asked.split('/');
    for (const rule of this.rules) {
      if (action === 'publish' ? !rule.publish : !rule.subscribe) continue;
      if (rule.who !== null && !rule.who(subject)) continue;
      let found: boolean | 'unsafe' = rule.topics.length === 0;
      for (let i = 0; i < rule.topics.length && found === false; i++) {
        found = rule.topics[i].matches(subject, action, asked, levels, rule.allow);
      }
      if (found === 'unsafe') return { allowed: false, rule: `${rule.where}: client id or user name with + or #` };
      if (found) return { allowed: rule.allow, rule: rule.where };
    }
    return null;
  }
}
