// Servers out of a parsed document: this gateway's own list, or groups of targets with labels as Prometheus' service
// discovery has them. Used by file.ts and http.ts. Throws with what is wrong; nothing of a malformed document is used.
// Source: https://prometheus.io/docs/prometheus/latest/http_sd/ ([{ "targets": ["host:port"], "labels": { "name":
// "value" } }]).
import type { DiscoveryOptions } from '../proxy.ts';
import { distinct, type Found, foundServer, isRecord, MAX_SERVERS, metadataOf, splitAddress } from './found.ts';

export function listedServers(document: unknown, options: Pick<DiscoveryOptions, 'port' | 'weightLabel'>): Found[] {
  const list = isRecord(document) ? document.servers : document;
  if (!Array.isArray(list)) throw new Error('a list of servers expected');
  if (list.length > MAX_SERVERS) throw new Error(`more than ${MAX_SERVERS} servers`);
  return distinct(list.flatMap((item) => serversOf(item, options)));
}

function serversOf(item: unknown, { port, weightLabel }: Pick<DiscoveryOptions, 'port' | 'weightLabel'>): Found[] {
  const defaultPort = port === 0 ? null : port;
  const one = (text: unknown, extra: Parameters<typeof foundServer>[2]): Found => {
    if (typeof text !== 'string') throw new Error('an address expected, as text');
    const at = splitAddress(text, defaultPort);
    return foundServer(at.host, at.port, extra);
  };
  if (typeof item === 'string') return [one(item, {})];
  if (!isRecord(item)) throw new Error('a server is a text or a block');
  if (Array.isArray(item.targets)) {
    const metadata = metadataOf(item.labels);
    const extra = { weight: metadata[weightLabel] ?? 1, backup: metadata.backup, metadata };
    return item.targets.map((target) => one(target, extra));
  }
  const { addr, weight, backup, metadata } = item;
  return [one(addr, { weight: weight ?? 1, backup, metadata: metadataOf(metadata) })];
}
