// The points of consistent hashing: 160 for each unit of weight of a server, at the places where NGINX (and
// Cache::Memcached::Fast) has them. Built by pool.ts when servers change. Pure. Source: NGINX,
// ngx_stream_upstream_hash_module: crc32(HOST, 0, PORT, previous hash as four bytes, least significant first).
import { crc32 } from 'node:zlib';
import type { ServerOptions } from './proxy.ts';

const POINTS_PER_WEIGHT = 160;
const PORT = /^(.*):([0-9]*)$/s;

export interface Ring {
  /** Ascending, no value twice. */
  readonly hashes: Uint32Array;
  /** The text of the server each belongs to. */
  readonly servers: readonly string[];
}

export function buildRing(servers: readonly Pick<ServerOptions, 'addr' | 'weight'>[]): Ring {
  const points: { hash: number; addr: string; order: number }[] = [];
  const previous = Buffer.alloc(4);
  for (const { addr, weight } of servers) {
    const base = crc32(hashedName(addr));
    previous.fill(0);
    for (let i = 0; i < POINTS_PER_WEIGHT * weight; i++) {
      const hash = crc32(previous, base);
      points.push({ hash, addr, order: points.length });
      previous.writeUInt32LE(hash);
    }
  }
  points.sort((a, b) => a.hash - b.hash || a.order - b.order);
  const kept = points.filter((point, i) => i === 0 || point.hash !== points[i - 1].hash);
  return { hashes: Uint32Array.from(kept, (point) => point.hash), servers: kept.map((point) => point.addr) };
}

/** Host, a zero byte, port; a Unix socket has no port. */
function hashedName(addr: string): string {
  if (addr.slice(0, 5).toLowerCase() === 'unix:') return `${addr.slice(5)}\0`;
  const found = PORT.exec(addr);
  return found === null ? `${addr}\0` : `${found[1]}\0${found[2]}`;
}

/** Index of the first point at or after `hash`, 0 past the last one. O(log points). */
export function findPoint(ring: Ring, hash: number): number {
  const { hashes } = ring;
  let low = 0;
  let high = hashes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (hashes[middle] < hash) low = middle + 1;
    else high = middle;
  }
  return low === hashes.length ? 0 : low;
}
