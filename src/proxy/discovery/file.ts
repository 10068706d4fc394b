// Servers from a file that is looked at again and again: JSON, or TOML where its name ends in .toml. Made by
// discovery.ts. Form: a list, or { servers: [...] }, of "host:port" or { addr, weight, backup, metadata }; also the
// form of Prometheus' file_sd (listed.ts reads all of them). A file that is being written, or is gone, keeps the
// servers there are.
import type { DiscoveryOptions, ProxyParts } from '../proxy.ts';
import { MAX_ANSWER, type Source } from './found.ts';
import { listedServers } from './listed.ts';

export function fileSource(options: DiscoveryOptions, parts: ProxyParts): Source {
  const { path } = options;
  const dialect = path.endsWith('.toml') ? 'toml' : 'json';
  let seen = '';
  return {
    where: `file ${path}`,
    next: async () => {
      const stamp = await parts.transports.files.stamp(path);
      if (stamp === seen) return { servers: null, againMs: options.refreshMs };
      const text = await parts.transports.files.read(path, MAX_ANSWER);
      const servers = listedServers(parts.transports.files.parse(text, dialect), options);
      seen = stamp;
      return { servers, againMs: options.refreshMs };
    },
  };
}
