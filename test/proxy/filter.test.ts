// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Topic rules of a client behind a proxy: what a filter covers and touches, whose prefix is whose.
import { describe, expect, it } from 'vitest';
import type { Facts } from '../../src/proxy/facts.ts';
import { ClientFilter, compileFilter, covers, overlaps } from '../../src/proxy/filter.ts';
import type { FilterOptions } from '../../src/proxy/proxy.ts';
import { facts, OPEN_FILTER as OPEN } from '../harness/proxyparts.ts';

const filter = (options: Partial<FilterOptions>, client: Partial<Facts> = {}): ClientFilter =>
  new ClientFilter(compileFilter({ ...OPEN, ...options }, {}), facts(client));

describe('covers', () => {
  it.each([
    ['#', 'a/b', true],
    ['a/#', 'a', true],
    ['a/#', 'a/+/c', true],
    ['a/#', 'a/b/#', true],
    ['a/+', 'a/b', true],
    ['a/+', 'a/+', true],
    ['a/+', 'a/#', false],
    ['a/+', 'a/b/c', false],
    ['a/b', 'a/+', false],
    ['a/b', 'a/#', false],
    ['+/b', '#', false],
    ['#', '$SYS/#', false],
    ['+/x', '$SYS/x', false],
    ['$SYS/#', '$SYS/x', true],
  ])('%s covers %s: %s', (wide, narrow, expected) => {
    expect(covers(wide, narrow)).toBe(expected);
  });
});

describe('overlaps', () => {
  it.each([
    ['a/b', 'a/b', true],
    ['a/+', '+/b', true],
    ['a/#', 'a', true],
    ['a', 'a/#', true],
    ['a/#', '#', true],
    ['a/+/c', 'a/b/#', true],
    ['a/b', 'a/c', false],
    ['a/b', 'a/b/c', false],
    ['a/b/#', 'a/c/#', false],
  ])('%s and %s: %s', (one, other, expected) => {
    expect(overlaps(one, other)).toBe(expected);
    expect(overlaps(other, one)).toBe(expected);
  });
});

describe('the filter of a client', () => {
  it('denies topics that begin with $ by wildcards too, and allows them by none [MQTT-4.7.2-1]', () => {
    const denied = filter({ publish: { allow: [], deny: ['#'] } });
    const allowed = filter({ publish: { allow: ['#', '+/x'], deny: [] } });
    expect(['$SYS/x', 'a'].map((topic) => denied.mayPublish(topic))).toEqual([false, false]);
    expect(['$SYS/x', 'a'].map((topic) => allowed.mayPublish(topic))).toEqual([false, true]);
  });

  it('looks at deny before allow', () => {
    const { mayPublish } = {
      mayPublish: (t: string) => filter({ publish: { allow: ['dev/#'], deny: ['dev/secret/#'] } }).mayPublish(t),
    };
    expect(['dev/a', 'dev/secret/x', 'other'].map(mayPublish)).toEqual([true, false, false]);
  });

  it('refuses filters that reach beyond what is allowed or touch what is denied', () => {
    const rules = filter({ subscribe: { allow: ['dev/#'], deny: ['dev/secret/#'] } });
    expect(
      ['dev/a', 'dev/+', 'dev/#', '#', 'dev/secret', '$share/g/dev/a', '$share/g/x'].map((f) => rules.maySubscribe(f)),
    ).toEqual([true, false, false, false, false, true, false]);
  });

  it('puts its prefix behind the group of a shared subscription', () => {
    const rules = filter({ prefix: 't/${username}/' }, { username: 'ann' });
    expect([rules.outside('a/#'), rules.outside('$share/g/a'), rules.outside('$SYS/#')]).toEqual([
      't/ann/a/#',
      '$share/g/t/ann/a',
      't/ann/$SYS/#',
    ]);
  });

  it.each([
    [{ username: 'ann' }, true],
    [{ username: '' }, false],
    [{ username: null }, false],
    [{ username: 'a/b' }, false],
    [{ username: '+' }, false],
    [{ username: '#' }, false],
    [{ username: 'a\0' }, false],
  ])('has a prefix of its own for %j: %s', (client, sound) => {
    expect(filter({ prefix: '${username}/' }, client).sound).toBe(sound);
  });

  it('moves a will, its Response Topic too, or refuses it', () => {
    const rules = filter({ prefix: 't/', publish: { allow: [], deny: ['no'] } });
    const will = { payload: Buffer.alloc(0), qos: 1, retain: false, delayInterval: 0 } as const;
    expect(rules.will({ ...will, topicName: 'w', properties: { responseTopic: 'r' } })).toMatchObject({
      topicName: 't/w',
      properties: { responseTopic: 't/r' },
    });
    expect(rules.will({ ...will, topicName: 'no', properties: null })).toBeNull();
  });
});
