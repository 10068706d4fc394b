// NanoMQ's acl.rules: who, what, placeholders, order, and what a wide subscription may not bring.
import { describe, expect, it } from 'vitest';
import { type Action, type RuleOptions, Rules } from '../../src/auth/rules.ts';
import { identity } from './support.ts';

const ANY: RuleOptions = {
  permit: 'allow',
  action: 'pubsub',
  topics: [],
  username: null,
  clientId: null,
  ipaddrs: [],
  and: [],
  or: [],
};
const NOBODY = { username: null, clientId: null, ipaddrs: [] };

function rules(noMatch: 'allow' | 'deny', ...list: Partial<RuleOptions>[]): Rules {
  return new Rules({ noMatch, rules: list.map((rule) => ({ ...ANY, ...rule })) });
}

function ask(set: Rules, action: Action, topic: string, username: string | null = 'u', more = {}): boolean {
  return set.allows(identity(username, more), action, topic);
}

describe('acl.rules', () => {
  it('lets the first match decide and then no_match', () => {
    const set = rules('deny', { permit: 'deny', topics: ['a/x'] }, { permit: 'allow', topics: ['a/#'] });
    expect(ask(set, 'publish', 'a/x')).toBe(false);
    expect(ask(set, 'publish', 'a/y')).toBe(true);
    expect(ask(set, 'publish', 'b')).toBe(false);
    expect(ask(rules('allow'), 'publish', 'b')).toBe(true);
  });

  it('tells publish from subscribe', () => {
    const set = rules('deny', { action: 'subscribe', topics: ['s/#'] }, { action: 'publish', topics: ['p/#'] });
    expect(ask(set, 'subscribe', 's/#')).toBe(true);
    expect(ask(set, 'publish', 's/1')).toBe(false);
    expect(ask(set, 'publish', 'p/1')).toBe(true);
    expect(ask(set, 'subscribe', 'p/1')).toBe(false);
  });

  it('grants a SUBSCRIBE only when the rule holds the whole filter', () => {
    const set = rules('deny', { action: 'subscribe', topics: ['ok/#'] });
    for (const filter of ['ok/#', 'ok/+', 'ok', 'ok/a/+/b', '$share/g/ok/1'])
      expect(ask(set, 'subscribe', filter), filter).toBe(true);
    for (const filter of ['#', '+/1', 'no/#', '$share/g/#', '$share/g/no'])
      expect(ask(set, 'subscribe', filter), filter).toBe(false);
  });

  it('filters the delivery of a wide filter by the denials it overlaps', () => {
    const set = rules('allow', { permit: 'deny', action: 'subscribe', topics: ['secret/#', '@#'] });
    expect(ask(set, 'subscribe', '#')).toBe(false);
    expect(ask(set, 'subscribe', '+/+')).toBe(true);
    expect(ask(set, 'deliver', 'secret/x')).toBe(false);
    expect(ask(set, 'deliver', 'open/x')).toBe(true);
  });

  it('takes @ as the text itself and delivers what such an allowed filter matches', () => {
    const set = rules('deny', { action: 'subscribe', topics: ['@a/#'] });
    expect(ask(set, 'subscribe', 'a/#')).toBe(true);
    expect(ask(set, 'subscribe', 'a/b')).toBe(false);
    expect(ask(set, 'deliver', 'a/b')).toBe(true);
    expect(ask(set, 'deliver', 'b')).toBe(false);
  });

  it('puts client id and user name into topics', () => {
    const set = rules('deny', { topics: ['c/$' + '{clientid}/#', 'u/x-$' + '{username}'] });
    expect(ask(set, 'publish', 'c/c/1')).toBe(true);
    expect(ask(set, 'publish', 'c/d/1')).toBe(false);
    expect(ask(set, 'publish', 'u/x-u')).toBe(true);
    expect(ask(set, 'publish', 'u/x-', null)).toBe(false);
    expect(ask(set, 'publish', 'c/a/b/1', 'u', { clientId: 'a/b' })).toBe(false);
  });

  it.each(['+', '#', 'a+'])('denies a client id of %s where a rule would put it into a topic', (clientId) => {
    const set = rules('allow', { topics: ['c/$' + '{clientid}/#'] });
    expect(ask(set, 'publish', 'c/x/1', 'u', { clientId })).toBe(false);
    expect(ask(set, 'subscribe', 'c/+/#', 'u', { clientId })).toBe(false);
  });

  it('does not put replacement patterns of a name into a topic', () => {
    const set = rules('deny', { topics: ['c/$' + '{clientid}'] });
    expect(ask(set, 'publish', 'c/$&', 'u', { clientId: '$&' })).toBe(true);
  });

  it('matches users, clients, addresses and networks', () => {
    const set = rules('deny', { username: 'ann' }, { clientId: 'dev' }, { ipaddrs: ['10.0.0.0/8', '::1'] });
    expect(ask(set, 'publish', 't', 'ann')).toBe(true);
    expect(ask(set, 'publish', 't', 'bob')).toBe(false);
    expect(ask(set, 'publish', 't', null, { clientId: 'dev' })).toBe(true);
    expect(ask(set, 'publish', 't', null, { remoteAddress: '10.2.3.4' })).toBe(true);
    expect(ask(set, 'publish', 't', null, { remoteAddress: '::ffff:10.2.3.4' })).toBe(true);
    expect(ask(set, 'publish', 't', null, { remoteAddress: '::1' })).toBe(true);
    expect(ask(set, 'publish', 't', null, { remoteAddress: '11.2.3.4' })).toBe(false);
    expect(ask(set, 'publish', 't', null, { remoteAddress: '' })).toBe(false);
    expect(ask(rules('deny', { username: '#' }), 'publish', 't', null)).toBe(true);
  });

  it('combines conditions with and, or', () => {
    const who = (username: string | null, clientId: string | null) => ({ ...NOBODY, username, clientId });
    const all = rules('deny', { and: [who('ann', null), who(null, 'c')] });
    expect(ask(all, 'publish', 't', 'ann')).toBe(true);
    expect(ask(all, 'publish', 't', 'ann', { clientId: 'd' })).toBe(false);
    const any = rules('deny', { or: [who('ann', null), who(null, 'd')] });
    expect(ask(any, 'publish', 't', 'ann')).toBe(true);
    expect(ask(any, 'publish', 't', 'bob', { clientId: 'd' })).toBe(true);
    expect(ask(any, 'publish', 't', 'bob')).toBe(false);
  });

  it.each([
    ['a topic that is no filter', { topics: ['a/#/b'] }],
    ['an empty topic', { topics: [''] }],
    ['an address that is none', { ipaddrs: ['10.0.0.300'] }],
    ['a network that is none', { ipaddrs: ['10.0.0.0/33'] }],
    ['a condition that names nobody', { or: [NOBODY] }],
  ])('refuses %s', (_name, rule) => {
    expect(() => rules('deny', rule)).toThrow(/auth\.acl\.rules\[0\]/);
  });

  it('tells which rule decided', () => {
    const set = rules('deny', { topics: ['a'], source: { file: '/x.conf', line: 7 } });
    expect(set.explain(identity('u'), 'publish', 'a')).toEqual({ allowed: true, rule: '/x.conf:7: auth.acl.rules[0]' });
    expect(set.explain(identity('u'), 'publish', 'b')).toEqual({ allowed: false, rule: 'auth.no_match' });
  });

  it('a wildcard that denies means topics that begin with $ as well, one that allows does not', () => {
    for (const filter of ['#', '+/#', '+/x']) {
      const deny = rules('allow', { permit: 'deny', topics: [filter] });
      for (const action of ['publish', 'subscribe', 'deliver'] as const) {
        expect(ask(deny, action, '$app/x')).toBe(false);
        expect(ask(deny, action, 'app/x')).toBe(false);
      }
      expect(ask(rules('deny', { topics: [filter] }), 'publish', '$app/x')).toBe(false);
    }
    expect(ask(rules('allow', { permit: 'deny', topics: ['+/x'] }), 'publish', '$app/y')).toBe(true);
  });
});
