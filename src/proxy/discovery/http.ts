// Servers from a document that a web server gives: Prometheus' http_sd form, or the form of a file (listed.ts). Made by
// discovery.ts. GET with a time limit and a bound on bytes; an answer other than 200 is a failure. ETags spare the
// parsing.
import type { DiscoveryOptions, ProxyParts } from '../proxy.ts';
import { MAX_ANSWER, type Source } from './found.ts';
import { listedServers } from './listed.ts';

export function httpSource(options: DiscoveryOptions, parts: ProxyParts): Source {
  const { url, timeoutMs, tls, token } = options;
  let etag = '';
  return {
    where: shownUrl(url),
    next: async (signal) => {
      const headers: Record<string, string> = { accept: 'application/json' };
      if (etag !== '') headers['if-none-match'] = etag;
      if (token !== null) headers.authorization = `Bearer ${token}`;
      const answer = await parts.transports.get(url, { headers, timeoutMs, maxBytes: MAX_ANSWER, tls, signal });
      if (answer.status === 304) return { servers: null, againMs: options.refreshMs };
      if (answer.status !== 200) throw new Error(`HTTP ${answer.status}`);
      const servers = listedServers(JSON.parse(answer.body.toString('utf8')), options);
      etag = answer.headers.etag ?? '';
      return { servers, againMs: options.refreshMs };
    },
  };
}

/** A URL as people may see it: without user, password and query. */
export function shownUrl(text: string): string {
  const { protocol, host, pathname } = new URL(text);
  return `${protocol}//${host}${pathname}`;
}
