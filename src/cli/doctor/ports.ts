// `tidegate doctor`, ports: whether every address of the configuration can be listened on, and who has it if not.
// Called by doctor.ts. Binds each for a moment where nobody listens. Source: proc(5), /proc/net/tcp.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, isIP } from 'node:net';
import { listenErrorText } from '../../base/systemerror.ts';
import type { Config } from '../../config/config.ts';
import { nngBridges } from '../../config/nngbridges.ts';
import { parseSpUrl } from '../../sp/url.ts';
import { type Finding, Findings } from './finding.ts';

export interface Wanted {
  readonly key: string;
  readonly host: string;
  readonly port: number;
}

/** TCP addresses that a gateway with this configuration listens on; port 0 is any. */
export function wantedPorts(config: Config): Wanted[] {
  const { listeners, httpServer, metrics, bridges } = config;
  const wanted: Wanted[] = listeners
    .filter(({ kind }) => kind !== 'unix')
    .map(({ name, host, port }) => ({ key: `listeners.${name}`, host, port }));
  if (httpServer !== null) wanted.push({ key: 'http_server', host: httpServer.ipAddr, port: httpServer.port });
  if (metrics !== null) wanted.push({ key: 'metrics', host: metrics.host, port: metrics.port });
  for (const bridge of nngBridges(bridges.nng)) {
    if (!bridge.enable || bridge.mode !== 'listen') continue;
    for (const url of bridge.urls) {
      const parsed = parseSpUrl(url);
      if ('port' in parsed) wanted.push({ key: `bridges.nng.${bridge.type}.${bridge.name}`, ...parsed });
    }
  }
  return wanted.filter(({ port }) => port !== 0);
}

/** @param pids of gateways that run here: what they have is not in the way */
export async function checkPorts(config: Config, pids: readonly number[]): Promise<Finding[]> {
  const found = new Findings('ports');
  for (const { key, host, port } of wantedPorts(config)) {
    const about = `${key}: ${host.includes(':') ? `[${host}]` : host}:${port}`;
    const error = await bindError(host, port);
    if (error === null) {
      found.ok(`${about} is free`);
      continue;
    }
    const owner = error.code === 'EADDRINUSE' ? listenerOf(port) : null;
    if (owner !== null && pids.includes(owner.pid)) found.ok(`${about} is open, by the running gateway (${owner.pid})`);
    else found.fail(`${about}: ${listenErrorText(error)}`, adviceFor(error.code, port, owner));
  }
  return found.list;
}

function adviceFor(code: string | undefined, port: number, owner: { pid: number; name: string } | null): string {
  if (code === 'EADDRINUSE') {
    const who =
      owner === null ? `\`ss -ltnp 'sport = :${port}'\` as root shows who` : `${owner.name} (${owner.pid}) has it`;
    return `stop that program or choose another port: ${who}`;
  }
  if (code === 'EACCES')
    return 'ports below 1024 need CAP_NET_BIND_SERVICE: etc/systemd/tidegate.service says how; or choose a higher port';
  if (code === 'EADDRNOTAVAIL') return '`ip address` shows the addresses of this machine; 0.0.0.0 is all of them';
  return 'choose another address';
}

function bindError(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(error));
    const any = host === '*' || host === '';
    server.listen({ port, exclusive: true, ...(any ? {} : { host, ipv6Only: isIP(host) === 6 }) }, () => {
      server.close(() => resolve(null));
    });
  });
}

/** The process that listens on a port, as far as this user may see it. */
function listenerOf(port: number): { pid: number; name: string } | null {
  const inodes = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => listeningInodes(file, port)));
  if (inodes.size === 0) return null;
  for (const pid of entries('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const fd of entries(`/proc/${pid}/fd`)) {
      const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode !== undefined && inodes.has(inode))
        return { pid: Number(pid), name: textOf(`/proc/${pid}/comm`).trim() };
    }
  }
  return null;
}

/** Lines of /proc/net/tcp: number, local address, remote address, state (0A = listening) ... the tenth is the inode. */
function listeningInodes(file: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return textOf(file)
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[1]?.endsWith(wanted) && columns[3] === '0A')
    .map((columns) => columns[9]);
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
