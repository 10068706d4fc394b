// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Where a client goes: conditions, their order, captures, and the lists of who may come.
import { describe, expect, it } from 'vitest';
import type { Facts } from '../../src/proxy/facts.ts';
import type { ConditionOptions, FactName, ProxyOptions } from '../../src/proxy/proxy.ts';
import { chooseUpstream, isAllowed } from '../../src/proxy/route.ts';
import { makeRules } from '../../src/proxy/rules.ts';
import { compileTemplate } from '../../src/proxy/template.ts';
import { load } from '../harness/configfiles.ts';
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

  it('takes a network for every address in it, in routes, lists and maps, where the smallest one decides', () => {
    const { config } =
      load(`upstreams { a { servers = [ { addr = "h:1" } ] }, b { servers = [ { addr = "h:1" } ] }, c { servers = [ { addr = "h:1" } ] } }
proxy.p { bind = "127.0.0.1:1", default = c
  deny = [ "remote_addr == 192.0.2.128/25" ], allow = [ { remote_addr = "192.0.2.0/24" }, "remote_addr != 10.0.0.0/8" ]
  routes = [ { match { remote_addr = "fd00::/8" }, upstream = a } ]
  map { source = "\${remote_addr}", values { "172.16.0.0/12" = a, "172.16.5.0/24" = b, "172.16.5.9" = c, "~^172[.]31" = c } } }`);
    const made = makeRules(config.proxy[0], {});
    const of = (address: string): Facts => ({ ...facts({}), remoteAddress: address });
    const allowed = ['192.0.2.1', '192.0.2.200', '10.1.2.3', '11.1.2.3', '::ffff:10.1.2.3', ''];
    expect(allowed.map((address) => isAllowed(made, of(address)))).toEqual([true, false, false, true, false, true]);
    const led = ['fd12::1', 'fe80::1', '172.17.0.1', '172.16.5.1', '172.16.5.9', '172.31.0.1', '172.32.0.1', ''];
    expect(led.map((address) => chooseUpstream(made, of(address)))).toEqual(['a', 'c', 'a', 'b', 'c', 'a', 'c', 'c']);
  });

  it('is refused where a network is none', () => {
    for (const line of [
      'deny = [ "remote_addr == 10.0.0.0/33" ]',
      'map { source = "${remote_addr}", values { "10.0/8" = a } }',
    ])
      expect(() =>
        load(`upstreams.a { servers = [ { addr = "h:1" } ] }\nproxy.p { bind = "127.0.0.1:1", default = a, ${line} }`),
      ).toThrow('an address or network expected');
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
