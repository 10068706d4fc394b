// Server-sent events as the pages use them: one stream of counters, bridges and happenings for the whole console, others while a page
// is shown. Streams are closed while the tab is hidden: a browser has six connections to one host, and nobody looks.
import { useEffect, useState } from 'preact/hooks';
import { Series } from './rates.ts';
import { createStore } from './store.ts';
import { tracksOf } from './tracks.ts';
import type { BridgeState } from './types.ts';

export type Link = 'connecting' | 'open' | 'lost';
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
export const stats = createStore<Stats | null>(null);
export const series = new Series(SAMPLES);
export const happenings = createStore<readonly Happening[]>([]);
export const bridges = createStore<readonly BridgeState[] | null>(null);
/** Counters of each rule over time, by its key (tracks.ts). */
export const flows = new Map<string, Series>();

function takeStats(next: Stats): void {
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

/** Takes what was just asked for, all bridges of one kind: after a switch it is newer than what the stream last said. */
export function adoptBridges(kind: BridgeState['kind'], list: readonly BridgeState[]): void {
  bridges.set([...list, ...(bridges.get() ?? []).filter((bridge) => bridge.kind !== kind)]);
}

function happened(event: Happening): void {
  happenings.set([event, ...happenings.get()].slice(0, HAPPENINGS));
}

/** The stream of the whole console, while somebody is logged in. */
export function startLive(): Stream {
  const kinds = 'stats,bridges,bridge,connected,disconnected,refused,dropped';
  const told = Object.fromEntries(
    ['bridge', 'connected', 'disconnected', 'refused', 'dropped'].map((kind) => [kind, happened]),
  );
  return new Stream(
    `/api/v4/events?kinds=${kinds}`,
    { ...told, stats: takeStats, bridges: takeBridges } as Handlers,
    (state) => link.set(state),
  ).start();
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
