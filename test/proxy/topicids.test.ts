// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of the proxy are written like this
// Client ids that topic rules make of a client's certificate: a client without it is refused, it does not share an id.
import { expect, it } from 'vitest';
import { TopicRules } from '../../src/proxy/topics/table.ts';
import { facts } from '../harness/proxyparts.ts';

const rule = (clientId: string | null) => new TopicRules([{ filter: 'a/#', upstream: 'u', clientId }], {});

it('a variable of the certificate that the client does not give is named', () => {
  expect(rule('x-${ssl_client_serial}').missing(facts())).toBe('ssl_client_serial');
  expect(rule('x-${cert_cn}').missing(facts())).toBe('cert_cn');
});

it('a template without such variables, or none at all, misses nothing', () => {
  expect(rule('x-${clientid}').missing(facts())).toBeNull();
  expect(rule(null).missing(facts())).toBeNull();
});
