// Server-sent events as the pages use them: one stream of counters, bridges and happenings for the whole console,
// others while a page is shown. Streams are closed while the tab is hidden: a browser has six connections to one host,
// and nobody looks.
import { useEffect, useState } from 'preact/hooks';
import { Series } from './rates.ts';
import { createStore } from './store.ts';
import { tracksOf } from './tracks.ts';
import type { BridgeState } from './types.ts';

/** stale: the connection is there, but nothing has come for a while. */
export type Link = 'connecting' | 'open' | 'stale' | 'lost';

/** Counters come every two seconds; a gateway that is silent for longer does not answer. */
const SILENT_MS = 4500;
/** A stream that is silent is opened again after this time, then twice as long, up to the last. */
const FIRST_RETRY_MS = 2000;
const LAST_RETRY_MS = 30_000;
type Handlers = Readonly<Record<string, (data: never) => void>>;

/** A stream that opens again by itself; `stop` ends it. */
export class Stream {
  private readonly path: string;
  private readonly handlers: Handlers;
  private readonly onLink: (link: Link) => void;
  private source: EventSource | null = null;
  private retry: ReturnType<typeof setTimeout> | null = null;
  private readonly visible = (): void => {
    if (document.hidden) this.close();
    else if (this.source === null) this.open();
  };

  constructor(path: string, handlers: Handlers, onLink: (link: Link) => void = () => {}) {
    this.path = path;
    this.handlers = handlers;
    this.onLink = onLink;
  }

  start(): this {
    document.addEventListener('visibilitychange', this.visible);
    this.visible();
    return this;
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.visible);
    this.close();
  }

  private open(): void {
    this.onLink('connecting');
    const source = new EventSource(this.path);
    this.source = source;
    source.onopen = () => this.onLink('open');
    source.onerror = () => {
      this.onLink('lost');
      // A refusal is final for EventSource; a gateway that restarts answers with one for a moment.
      if (source.readyState === EventSource.CLOSED && this.source === source) {
        this.close();
        this.retry = setTimeout(this.visible, 3000);
      }
    };
    for (const [name, handler] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => {
        handler(JSON.parse((event as MessageEvent<string>).data) as never);
      });
    }
  }

  private close(): void {
    if (this.retry !== null) clearTimeout(this.retry);
    this.retry = null;
    this.source?.close();
    this.source = null;
  }
}

export interface Stats {
  readonly time: number;
  readonly uptime_ms: number;
  readonly clients: number;
  readonly sessions: number;
  readonly subscriptions: number;
  readonly retained: number;
  readonly received: number;
  readonly sent: number;
  readonly dropped: number;
  readonly received_bytes: number;
  readonly sent_bytes: number;
  readonly queued: number;
  readonly queued_bytes: number;
  readonly connects: number;
  readonly refused: number;
  readonly denied: number;
  readonly memory: number;
  readonly cpu: number;
  readonly lag_p50: number;
  readonly lag_p99: number;
  readonly latency_p50: number;
  readonly latency_p99: number;
  /** Bounds in seconds; one more count than bounds. */
  readonly latency: { readonly bounds: readonly number[]; readonly counts: readonly number[] };
  readonly store: Readonly<Record<string, unknown>> | null;
}

export interface Happening {
  readonly event: string;
  readonly time: number;
  readonly [field: string]: unknown;
}

/** Ten minutes at one sample in two seconds. */
const SAMPLES = 300;
const HAPPENINGS = 100;
const COUNTERS = ['received', 'sent', 'dropped', 'received_bytes', 'sent_bytes', 'connects', 'refused', 'denied'];

export const link = createStore<Link>('connecting');
/** When the gateway was last heard of, as Date.now(); 0 = not yet. */
export const heardAt = createStore(0);
export const stats = createStore<Stats | null>(null);
export const series = new Series(SAMPLES);
export const happenings = createStore<readonly Happening[]>([]);
export const bridges = createStore<readonly BridgeState[] | null>(null);
/** Counters of each rule over time, by its key (tracks.ts). */
export const flows = new Map<string, Series>();

function takeStats(next: Stats): void {
  heardAt.set(Date.now());
  const values: Record<string, number> = {};
  for (const [name, value] of Object.entries(next)) if (typeof value === 'number') values[name] = value;
  series.add({ time: next.time, values }, COUNTERS);
  stats.set(next);
}

function flow(key: string): Series {
  let found = flows.get(key);
  if (found === undefined) {
    found = new Series(30);
    flows.set(key, found);
  }
  return found;
}

function takeBridges(next: { time: number; bridges: readonly BridgeState[] }): void {
  const keys = new Set<string>();
  for (const bridge of next.bridges) {
    for (const { key, counters } of tracksOf(bridge)) {
      keys.add(key);
      const { matched, forwarded, bytes } = counters;
      flow(key).add({ time: next.time, values: { matched, forwarded, bytes } }, ['matched', 'forwarded']);
    }
  }
  for (const key of flows.keys()) if (!keys.has(key)) flows.delete(key);
  bridges.set(next.bridges);
}

/**
 * Takes what was just asked for, all bridges of one kind: after a switch it is newer than what the stream last said.
 */
export function adoptBridges(kind: BridgeState['kind'], list: readonly BridgeState[]): void {
  bridges.set([...list, ...(bridges.get() ?? []).filter((bridge) => bridge.kind !== kind)]);
}

function happened(event: Happening): void {
  happenings.set([event, ...happenings.get()].slice(0, HAPPENINGS));
}

/** The stream of the whole console with a watch over its silence, while somebody is logged in. */
export class Live {
  private stream: Stream;
  private readonly watch: ReturnType<typeof setInterval>;
  private retryMs = FIRST_RETRY_MS;
  private retryAt = 0;

  constructor() {
    this.stream = openLive();
    this.watch = setInterval(() => this.look(), 500);
  }

  stop(): void {
    clearInterval(this.watch);
    this.stream.stop();
  }

  /** A hidden tab hears nothing by intention. */
  private look(): void {
    const heard = heardAt.get();
    const now = Date.now();
    if (document.hidden || heard === 0) return;
    if (now - heard < SILENT_MS) {
      this.retryMs = FIRST_RETRY_MS;
      this.retryAt = 0;
      if (link.get() === 'stale') link.set('open');
      return;
    }
    if (link.get() === 'open') link.set('stale');
    if (this.retryAt === 0) this.retryAt = now + this.retryMs;
    else if (now >= this.retryAt) {
      this.stream.stop();
      this.stream = openLive();
      this.retryMs = Math.min(this.retryMs * 2, LAST_RETRY_MS);
      this.retryAt = now + this.retryMs;
    }
  }
}

function openLive(): Stream {
  const kinds = 'stats,bridges,bridge,connected,disconnected,refused,dropped';
  const told = Object.fromEntries(
    ['bridge', 'connected', 'disconnected', 'refused', 'dropped'].map((kind) => [kind, happened]),
  );
  // Opening again after a silence is no news until something is heard.
  const onLink = (state: Link): void => {
    const silent = heardAt.get() !== 0 && Date.now() - heardAt.get() >= SILENT_MS;
    link.set(silent && state !== 'lost' ? 'stale' : state);
  };
  const handlers = { ...told, stats: takeStats, bridges: takeBridges } as Handlers;
  return new Stream(`/api/v4/events?kinds=${kinds}`, handlers, onLink).start();
}

export interface Loaded<T> {
  readonly value: T | null;
  readonly error: unknown;
  reload(): void;
}

/** Loads something when `key` changes, again every `everyMs` while the tab is shown, and when asked. */
export function useLoaded<T>(load: () => Promise<T>, key: string, everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: unknown }>({ value: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    const run = (): void => {
      if (document.hidden) return;
      load().then(
        (value) => current && setState({ value, error: null }),
        (error: unknown) => current && setState((before) => ({ value: before.value, error })),
      );
    };
    run();
    const timer = everyMs > 0 ? setInterval(run, everyMs) : null;
    return () => {
      current = false;
      if (timer !== null) clearInterval(timer);
    };
  }, [key, everyMs, turn]);
  return { ...state, reload: () => setTurn((n) => n + 1) };
}
