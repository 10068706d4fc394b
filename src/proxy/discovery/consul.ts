// Servers from Consul: the healthy instances of a service, followed by blocking queries, so that a change arrives at
// once. Made by discovery.ts. X-Consul-Index of an answer goes with the next query, which Consul holds until there is a
// newer one or WAIT is over; an index that goes backwards, or is not positive, starts over at 0, and queries are spaced
// by MIN_GAP_MS. Sources: https://developer.hashicorp.com/consul/api-docs/health (Service.Address, Node.Address,
// Weights.Passing), .../features/blocking.
import type { DiscoveryOptions, ProxyParts } from '../proxy.ts';
import { distinct, type Found, foundServer, isRecord, MAX_ANSWER, metadataOf, type Source } from './found.ts';
import { shownUrl } from './http.ts';

const WAIT_S = 60;
/** Consul may hold a query a sixteenth longer than it was asked to. */
const HOLD_MS = WAIT_S * 1000 * (1 + 1 / 16);
/** Between two queries: a service that flaps must not turn into a loop of requests. */
const MIN_GAP_MS = 500;

export function consulSource(options: DiscoveryOptions, parts: ProxyParts): Source {
  let index = 0;
  return {
    where: `consul ${options.name} at ${shownUrl(options.url)}`,
    next: async (signal) => {
      const url = new URL(`/v1/health/service/${encodeURIComponent(options.name)}`, options.url);
      url.searchParams.set('passing', '1');
      if (options.tag !== null) url.searchParams.set('tag', options.tag);
      if (options.datacenter !== null) url.searchParams.set('dc', options.datacenter);
      if (index > 0) {
        url.searchParams.set('index', String(index));
        url.searchParams.set('wait', `${WAIT_S}s`);
      }
      const headers: Record<string, string> = { accept: 'application/json' };
      if (options.token !== null) headers['x-consul-token'] = options.token;
      const timeoutMs = options.timeoutMs + (index > 0 ? HOLD_MS : 0);
      const request = { headers, timeoutMs, maxBytes: MAX_ANSWER, tls: options.tls, signal };
      const answer = await parts.transports.get(url.href, request);
      if (answer.status !== 200) {
        index = 0;
        throw new Error(`HTTP ${answer.status}`);
      }
      const servers = instances(JSON.parse(answer.body.toString('utf8')), options);
      const given = Number(answer.headers['x-consul-index'] ?? 0);
      const isNews = given !== index;
      index = Number.isSafeInteger(given) && given > 0 && given >= index ? given : 0;
      const followed = index > 0;
      return { servers: isNews || !followed ? servers : null, againMs: followed ? MIN_GAP_MS : options.refreshMs };
    },
  };
}

function instances(document: unknown, options: DiscoveryOptions): Found[] {
  if (!Array.isArray(document)) throw new Error('a list of instances expected');
  return distinct(
    document.map((item) => {
      const { Service: service, Node: node } = isRecord(item) ? item : {};
      if (!isRecord(service)) throw new Error('an instance without a service');
      const ownAddress = typeof service.Address === 'string' && service.Address !== '' ? service.Address : null;
      const host = ownAddress ?? (isRecord(node) ? node.Address : null);
      if (typeof host !== 'string') throw new Error('an instance without an address');
      const metadata = metadataOf(service.Meta);
      const weights = isRecord(service.Weights) ? service.Weights.Passing : undefined;
      const weight: unknown = metadata[options.weightLabel] ?? weights ?? 1;
      return foundServer(host, Number(service.Port), {
        weight: weight === 0 || weight === '0' ? 1 : weight,
        backup: metadata.backup,
        metadata,
      });
    }),
  );
}
