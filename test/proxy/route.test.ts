// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Where a client goes: conditions, their order, captures, and the lists of who may come.
import { describe, expect, it } from 'vitest';
import type { Facts } from '../../src/proxy/facts.ts';
import type { ConditionOptions, FactName, ProxyOptions } from '../../src/proxy/proxy.ts';
import { chooseUpstream, isAllowed } from '../../src/proxy/route.ts';
import { makeRules } from '../../src/proxy/rules.ts';
import { compileTemplate } from '../../src/proxy/template.ts';
import { facts, proxyOptions } from '../harness/proxyparts.ts';

function condition(field: FactName, op: ConditionOptions['op'], value: string): ConditionOptions {
  return { field, op, value, pattern: op.includes('~') ? new RegExp(value) : null };
}
const to = (upstream: string, ...match: ConditionOptions[]) => ({ match, upstream, split: [] });
const rules = (fields: Partial<ProxyOptions>) => makeRules(proxyOptions(fields), {});
const go = (fields: Partial<ProxyOptions>, client: Partial<Facts>) => chooseUpstream(rules(fields), facts(client));

describe('a route', () => {
  it('needs all of its conditions, and the first that fits decides', () => {
    const routes = [
      to('both', condition('clientid', '=~', '^s-'), condition('username', '==', 'admin')),
      to('sensors', condition('clientid', '=~', '^s-')),
      to('admins', condition('username', '==', 'admin')),
    ];
    const upstreams = [
      { clientId: 's-1', username: 'admin' },
      { clientId: 's-1' },
      { clientId: 'x', username: 'admin' },
      { clientId: 'x', username: 'Admin' },
    ].map((client) => go({ routes }, client));
    expect(upstreams).toEqual(['both', 'sensors', 'admins', 'pool']);
  });

  it('tells a user name that is empty from none', () => {
    const routes = [to('empty', condition('username', '==', ''))];
    expect([go({ routes }, { username: '' }), go({ routes }, { username: null })]).toEqual(['empty', 'pool']);
  });

  it('takes a missing field as different from everything', () => {
    const missing = { username: null };
    for (const op of ['==', '=~'] as const)
      expect(go({ routes: [to('x', condition('username', op, ''))] }, missing)).toBe('pool');
    for (const op of ['!=', '!~'] as const)
      expect(go({ routes: [to('x', condition('username', op, ''))] }, missing)).toBe('x');
  });

  it('leaves its captures to templates', () => {
    const client = facts({ clientId: 'site-7-pump', version: 5 });
    const set = rules({ routes: [to('x', condition('clientid', '=~', '^site-(?<site>\\d+)-(.+)$'))] });
    expect(chooseUpstream(set, client)).toBe('x');
    expect(compileTemplate('${match.site}/${match.2}/${match.9}/${keep_alive}', {}).fill(client)).toBe('7/pump//0');
  });

  it('comes before the map, the map before the split, the split before the default', () => {
    const map = {
      source: '${clientid}',
      ignoreCase: false,
      hostnames: false,
      values: [{ key: 'm', pattern: null, upstream: 'mapped' }],
      default: null,
    };
    const all = {
      routes: [to('routed', condition('clientid', '==', 'r'))],
      map,
      split: [{ percent: -1, upstream: 'shared' }],
    };
    expect(['r', 'm', 'x'].map((clientId) => go(all, { clientId }))).toEqual(['routed', 'mapped', 'shared']);
    expect(go({ map }, { clientId: 'x' })).toBe('pool');
    expect(go({ default: null }, { clientId: 'x' })).toBeNull();
  });
});

describe('allow and deny', () => {
  const deny = [[condition('clientid', '=~', '^bad')]];
  const allow = [[condition('username', '==', 'ann')], [condition('remote_addr', '==', '10.0.0.1')]];
  it.each([
    [{ clientId: 'bad-1', username: 'ann' }, false],
    [{ clientId: 'x', username: 'ann' }, true],
    [{ clientId: 'x', remoteAddress: '10.0.0.1' }, true],
    [{ clientId: 'x' }, false],
  ])('%j is let in: %s', (client, allowed) => {
    expect(isAllowed(rules({ deny, allow }), facts(client))).toBe(allowed);
  });

  it('without lists let everybody in', () => {
    expect(isAllowed(rules({}), facts())).toBe(true);
  });
});
