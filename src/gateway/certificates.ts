// The certificates that a configuration names: whose they are and until when they hold. Called by gateway.ts, which
// logs what expires soon and has a metric for each, by REST (/certificates) and by `tidegate doctor`. Reads files;
// changes nothing. A private key is never read here.
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Clock, Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { MetricSpec, Metrics } from '../base/metrics.ts';
import { isPemText } from '../base/pem.ts';
import { systemErrorText } from '../base/systemerror.ts';
import type { Tree, TreeValue } from '../config/config.ts';
import type { CertificateView } from '../console/console.ts';
import { certificateFacts } from '../transport/examine.ts';

/** Keys whose value is a certificate of this gateway, and one or more authorities. */
const OWN = new Set(['certfile', 'cert', 'jwks_certfile']);
const AUTHORITIES = new Set(['cacertfile', 'ca', 'jwks_cacertfile']);

const DAY_MS = 86_400_000;
/** Warned from here on. */
export const SOON_MS = 30 * DAY_MS;
const LOOK_MS = DAY_MS / 4;
/** Certificates of one file: a bundle of the system has about 150. */
const MAX_CERTIFICATES = 400;

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

export const CERTIFICATE_METRICS = {
  expires: {
    name: 'tidegate_certificate_expires_timestamp_seconds',
    text: 'When a certificate of the configuration expires, seconds since the epoch; of a bundle the next one.',
    type: 'gauge',
    unit: 'seconds',
  },
} as const satisfies Record<string, MetricSpec>;

interface Named {
  readonly key: string;
  readonly value: string;
  readonly own: boolean;
}

/** Every certificate key of the tree that is in use: blocks with `enable = false` are left out. */
function* named(value: TreeValue, path: string): Generator<Named> {
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* named(item, `${path}[${i}]`);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  const tree = value as Tree;
  if (tree.enable === false) return;
  for (const [name, member] of Object.entries(tree)) {
    const key = path === '' ? name : `${path}.${name}`;
    const isText = typeof member === 'string' && member !== '';
    if (isText && (OWN.has(name) || AUTHORITIES.has(name))) yield { key, value: member, own: OWN.has(name) };
    else yield* named(member, key);
  }
}

function look({ key, value, own }: Named, cwd: string, nowMs: number): CertificateView | null {
  const isText = isPemText(value);
  const file = isText ? '' : value;
  const base = { key, file, own };
  try {
    const path = resolve(cwd, value);
    // Folders of hashed names are the system's matter.
    if (!isText && statSync(path).isDirectory()) return null;
    const texts = (isText ? value : readFileSync(path, 'latin1')).match(PEM) ?? [];
    if (texts.length === 0) return { ...base, error: 'holds no certificate' };
    const all = texts.slice(0, MAX_CERTIFICATES).map((text) => certificateFacts(new X509Certificate(text)));
    const sorted = [...all].sort((a, b) => a.validTo - b.validTo);
    // A chain is as good as its weakest part; of authorities one that is over is not missed.
    const first = own ? sorted[0] : (sorted.find(({ validTo }) => validTo > nowMs) ?? sorted[sorted.length - 1]);
    return { ...base, ...first };
  } catch (error) {
    return { ...base, error: systemErrorText(error) };
  }
}

/** @param tree with secrets in clear, because a pasted text is read from it */
export function certificatesOf(tree: Tree, cwd: string, nowMs: number): CertificateView[] {
  return [...named(tree, '')].flatMap((one) => look(one, cwd, nowMs) ?? []);
}

/** Whole days from now until a certificate ends; negative when it has. */
export function daysLeft(validTo: number, nowMs: number): number {
  return Math.floor((validTo - nowMs) / DAY_MS);
}

export interface WatchParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tree: () => Tree;
  readonly cwd: string;
}

/** Looks at start, at each reload and four times a day. */
export class CertificateWatch {
  private readonly parts: WatchParts;
  private timer: Timer | null = null;
  /** Keys in the registry. */
  private shown = new Set<string>();
  /** When each key was last warned of, wall-clock milliseconds. */
  private readonly warned = new Map<string, number>();

  constructor(parts: WatchParts) {
    this.parts = parts;
  }

  start(): void {
    this.look();
    this.timer = this.parts.clock.every(LOOK_MS, () => this.look());
  }

  stop(): void {
    this.timer?.cancel();
  }

  list(): CertificateView[] {
    const { tree, cwd, clock } = this.parts;
    return certificatesOf(tree(), cwd, clock.now());
  }

  look(): void {
    const { metrics } = this.parts;
    const now = new Set<string>();
    for (const view of this.list()) {
      const { validTo, key } = view;
      if (validTo === undefined) continue;
      now.add(key);
      metrics.read(CERTIFICATE_METRICS.expires, () => validTo / 1000, { key });
      this.warn(view, validTo);
    }
    for (const key of this.shown) if (!now.has(key)) metrics.drop({ key });
    this.shown = now;
  }

  private warn({ key, file, subject }: CertificateView, validTo: number): void {
    const { clock, log } = this.parts;
    const nowMs = clock.now();
    if (validTo - nowMs > SOON_MS) return;
    const last = this.warned.get(key);
    if (last !== undefined && nowMs - last < DAY_MS) return;
    this.warned.set(key, nowMs);
    const days = daysLeft(validTo, nowMs);
    const expires = new Date(validTo).toISOString();
    const level = validTo <= nowMs ? 'error' : 'warn';
    log(level, 'TLS-EXPIRES', { key, file: file === '' ? undefined : file, subject, expires, days });
  }
}
