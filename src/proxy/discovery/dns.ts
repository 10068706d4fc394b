// Servers from the DNS: the addresses of a name (A and AAAA), or the targets of SRV records with their ports and
// weights. Made by discovery.ts. Asked again when the shortest Time To Live has passed, never before MIN_AGAIN_MS nor
// after LONGEST_AGAIN_MS. SRV: the lowest priority gets clients, all higher ones are backups; weight 0 counts as 1.
// Sources: RFC 1035 section 3.2, RFC 2782 (SRV), RFC 2308 (names without records).
import type { DiscoveryOptions, DnsRecord, ProxyParts } from '../proxy.ts';
import { type Answer, distinct, type Found, foundServer, type Source } from './found.ts';

const MIN_AGAIN_MS = 1000;
const LONGEST_AGAIN_MS = 3_600_000;

export function dnsSource(options: DiscoveryOptions, parts: ProxyParts): Source {
  const { type, name, resolver } = options;
  const query = (host: string, kind: 'A' | 'AAAA' | 'SRV', signal: AbortSignal): Promise<readonly DnsRecord[]> =>
    parts.transports.query(host, kind, { server: resolver, timeoutMs: options.timeoutMs, signal });
  return {
    where: `${type} ${name}`,
    next: (signal) => (type === 'srv' ? services(options, query, signal) : addresses(options, query, signal)),
  };
}

type Query = (host: string, kind: 'A' | 'AAAA' | 'SRV', signal: AbortSignal) => Promise<readonly DnsRecord[]>;

async function addresses(options: DiscoveryOptions, query: Query, signal: AbortSignal): Promise<Answer> {
  const records = await both(options.name, query, signal);
  const servers = records.flatMap((record) =>
    record.type === 'SRV' ? [] : [foundServer(record.address, options.port)],
  );
  return { servers: distinct(servers), againMs: againAfter(records, options.refreshMs) };
}

/** One of the two families may fail as long as the other has an answer. */
async function both(host: string, query: Query, signal: AbortSignal): Promise<readonly DnsRecord[]> {
  const [v4, v6] = await Promise.allSettled([query(host, 'A', signal), query(host, 'AAAA', signal)]);
  const records = [v4, v6].flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
  if (records.length === 0 && v4.status === 'rejected') throw v4.reason;
  return records;
}

async function services(options: DiscoveryOptions, query: Query, signal: AbortSignal): Promise<Answer> {
  const records = await query(options.name, 'SRV', signal);
  const named = records.flatMap((record) => (record.type === 'SRV' && record.target !== '.' ? [record] : []));
  const first = Math.min(...named.map((record) => record.priority));
  const servers: Found[] = named.map(({ target, port, priority, weight }) =>
    foundServer(target.replace(/\.$/, ''), port, {
      weight: Math.max(1, weight),
      backup: priority > first,
      metadata: { priority: String(priority) },
    }),
  );
  return { servers: distinct(servers), againMs: againAfter(records, options.refreshMs) };
}

function againAfter(records: readonly DnsRecord[], refreshMs: number): number {
  const ttlMs = Math.min(...records.map((record) => record.ttl * 1000), LONGEST_AGAIN_MS);
  return Math.max(MIN_AGAIN_MS, records.length === 0 ? refreshMs : ttlMs);
}
