// Tables of upstreams: NGINX's map with its precedence, and its split of clients into shares. Made ready by rules.ts,
// asked by route.ts. Pure. Values may come from clients: texts are looked up, patterns run on the linear engine.
// Source: NGINX, ngx_stream_map_module (exact text, longest *. mask, longest .* mask, first pattern),
// ngx_stream_geo_module (the smallest network), ngx_stream_split_clients_module.
import type { AddressTest } from '../base/networks.ts';
import type { MapOptions, ShareOptions } from './proxy.ts';

export interface LookupTable {
  find(value: string): string | null;
}

interface Mask {
  readonly text: string;
  readonly upstream: string;
}

export function compileMap(map: Omit<MapOptions, 'source'>): LookupTable {
  const fold = map.ignoreCase ? (text: string): string => text.toLowerCase() : (text: string): string => text;
  const exact = new Map<string, string>();
  const suffixes: Mask[] = [];
  const prefixes: Mask[] = [];
  const patterns: { readonly pattern: RegExp; readonly upstream: string }[] = [];
  const networks: { readonly bits: number; readonly has: AddressTest; readonly upstream: string }[] = [];
  for (const { key, pattern, network, upstream } of map.values) {
    if (network) networks.push({ ...network, upstream });
    else if (pattern !== null) patterns.push({ pattern, upstream });
    else if (map.hostnames && key.startsWith('*.')) suffixes.push({ text: fold(key.slice(1)), upstream });
    else if (map.hostnames && key.startsWith('.')) {
      suffixes.push({ text: fold(key), upstream });
      addFirst(exact, fold(key.slice(1)), upstream);
    } else if (map.hostnames && key.endsWith('.*')) prefixes.push({ text: fold(key.slice(0, -1)), upstream });
    else addFirst(exact, fold(key), upstream);
  }
  const longestFirst = (a: Mask, b: Mask): number => b.text.length - a.text.length;
  suffixes.sort(longestFirst);
  prefixes.sort(longestFirst);
  networks.sort((a, b) => b.bits - a.bits);
  return {
    find(value) {
      const folded = fold(value);
      return (
        exact.get(folded) ??
        networks.find(({ has }) => has(value))?.upstream ??
        suffixes.find(({ text }) => folded.length > text.length && folded.endsWith(text))?.upstream ??
        prefixes.find(({ text }) => folded.length > text.length && folded.startsWith(text))?.upstream ??
        patterns.find(({ pattern }) => pattern.test(value))?.upstream ??
        map.default
      );
    },
  };
}

function addFirst(map: Map<string, string>, key: string, upstream: string): void {
  if (!map.has(key)) map.set(key, upstream);
}

/** Hundredths of a percent in all. */
const WHOLE = 10_000;

/** The share that a key falls into; null when the shares do not add up to everybody and it is in none. */
export function chooseShare(shares: readonly ShareOptions[], key: string): string | null {
  const place = murmur2(Buffer.from(key));
  let sum = 0;
  for (const { percent, upstream } of shares) {
    sum += percent;
    if (percent < 0 || sum >= WHOLE || place < Math.floor((sum * 0xffffffff) / WHOLE)) return upstream;
  }
  return null;
}

const M = 0x5bd1e995;

/** MurmurHash2 of 32 bits with seed 0, as NGINX has it. */
export function murmur2(data: Buffer): number {
  let left = data.length;
  let at = 0;
  let h = left;
  while (left >= 4) {
    let k = Math.imul(data.readInt32LE(at), M);
    k = Math.imul(k ^ (k >>> 24), M);
    h = Math.imul(h, M) ^ k;
    at += 4;
    left -= 4;
  }
  if (left === 3) h ^= data[at + 2] << 16;
  if (left >= 2) h ^= data[at + 1] << 8;
  if (left >= 1) h = Math.imul(h ^ data[at], M);
  h = Math.imul(h ^ (h >>> 13), M);
  return (h ^ (h >>> 15)) >>> 0;
}
