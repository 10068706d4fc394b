// Quotas: what the clients of one scope (a client id, a user, a listener, an address) may use together. Built by
// gateway/ where some are configured; session/ asks it at CONNECT, SUBSCRIBE and PUBLISH of the clients they concern.
// Scopes are made when somebody comes and forgotten when nothing of them is left; their number is bounded.
import type { Cell, Metrics } from '../base/metrics.ts';
import { Bucket } from './bucket.ts';
import type { QuotaAction, Quotas, QuotaView, QuotaWhat, Usage, Whose } from './policy.ts';

export interface QuotaOptions {
  readonly name: string;
  readonly per: 'client' | 'user' | 'listener' | 'address';
  /** Which clients it concerns; "" = all. */
  readonly listener: string;
  readonly username: string;
  /** A second; 0 = no limit. */
  readonly connects: number;
  readonly publishes: number;
  readonly bytes: number;
  /** Seconds whose amount may come at once. */
  readonly burst: number;
  /** At the same time; 0 = no limit. */
  readonly subscriptions: number;
  readonly sessions: number;
  readonly retained: number;
  readonly inflight: number;
  readonly action: QuotaAction;
}

/** Scopes of one quota; further ones share one. */
const MOST_SCOPES = 20_000;
/** Rows of a view. */
const SHOWN = 100;

const COUNTER = {
  name: 'tidegate_quota_total',
  text: 'Times a quota was exceeded, by what was done: connections, publishes or requests delayed, dropped or refused',
  type: 'counter',
  unit: 'items',
} as const;

/** What one scope uses. */
class Scope implements Usage {
  sessions = 0;
  subscriptions = 0;
  retained = 0;
  refusals = 0;
  /** Publishers that wait for their turn. */
  waiting = 0;
  readonly members = new Set<() => number>();
  readonly key: string;
  readonly connects: Bucket | null;
  readonly publishes: Bucket | null;
  readonly bytes: Bucket | null;
  private readonly quota: Quota;

  constructor(quota: Quota, key: string, nowMs: number) {
    const { connects, publishes, bytes, burst } = quota.options;
    const bucket = (rate: number): Bucket | null => (rate > 0 ? new Bucket(rate, rate * burst, nowMs) : null);
    this.quota = quota;
    this.key = key;
    this.connects = bucket(connects);
    this.publishes = bucket(publishes);
    this.bytes = bucket(bytes);
  }

  get action(): QuotaAction {
    return this.quota.options.action;
  }

  get metered(): boolean {
    const { publishes, bytes, inflight, retained } = this.quota.options;
    return publishes > 0 || bytes > 0 || inflight > 0 || retained > 0;
  }

  count(what: QuotaWhat, outcome: 'delayed' | 'dropped' | 'refused'): void {
    this.quota.cell(what, outcome).value++;
    if (outcome === 'refused') this.refusals++;
  }

  full(what: 'sessions' | 'subscriptions' | 'retained'): boolean {
    const most = this.quota.options[what];
    return most > 0 && this[what] >= most;
  }

  connectMs(nowMs: number): number {
    if (this.connects === null) return 0;
    const waitMs = this.connects.waitMs(nowMs);
    this.connects.take(1);
    return waitMs;
  }

  giveBackConnect(): void {
    this.connects?.take(-1);
  }

  publishMs(nowMs: number): number {
    const { publishes, bytes } = this;
    return Math.max(publishes?.waitMs(nowMs) ?? 0, bytes?.waitMs(nowMs) ?? 0);
  }

  inflightFull(): boolean {
    const { inflight } = this.quota.options;
    if (inflight === 0) return false;
    let sum = 0;
    for (const member of this.members) sum += member();
    return sum >= inflight;
  }

  room(nowMs: number): number {
    return this.publishes === null ? Number.POSITIVE_INFINITY : this.publishes.available(nowMs);
  }

  charge(messages: number, bytes: number): void {
    this.publishes?.take(messages);
    this.bytes?.take(bytes);
  }

  idle(nowMs: number): boolean {
    const empty = this.sessions + this.subscriptions + this.retained + this.waiting + this.members.size === 0;
    return empty && [this.connects, this.publishes, this.bytes].every((bucket) => bucket?.isFull(nowMs) ?? true);
  }
}

class Quota {
  readonly options: QuotaOptions;
  readonly scopes = new Map<string, Scope>();
  private readonly metrics: Metrics;
  private readonly cells = new Map<string, Cell>();

  constructor(options: QuotaOptions, metrics: Metrics) {
    this.options = options;
    this.metrics = metrics;
  }

  concerns({ listener, username }: Whose): boolean {
    const { options } = this;
    return (
      (options.listener === '' || options.listener === listener) &&
      (options.username === '' || options.username === username)
    );
  }

  scope(whose: Whose, nowMs: number): Scope {
    const key = keyOf(this.options.per, whose);
    const known = this.scopes.get(key);
    if (known !== undefined) return known;
    if (this.scopes.size >= MOST_SCOPES) this.sweep(nowMs);
    // There are too many at once to tell them apart.
    const name = this.scopes.size >= MOST_SCOPES ? OTHERS : key;
    let made = this.scopes.get(name);
    if (made === undefined) {
      made = new Scope(this, name, nowMs);
      this.scopes.set(name, made);
    }
    return made;
  }

  cell(what: QuotaWhat, outcome: string): Cell {
    const key = `${what} ${outcome}`;
    let cell = this.cells.get(key);
    if (cell === undefined) {
      cell = this.metrics.cell(COUNTER, { quota: this.options.name, what, outcome });
      this.cells.set(key, cell);
    }
    return cell;
  }

  sweep(nowMs: number): void {
    for (const [key, scope] of this.scopes) if (scope.idle(nowMs)) this.scopes.delete(key);
  }

  view(): QuotaView {
    const { name, per, action, listener: _l, username: _u, burst: _b, ...limits } = this.options;
    const counts = Object.fromEntries([...this.cells].map(([key, cell]) => [key, cell.value]));
    const rows = [...this.scopes.values()]
      .sort((a, b) => b.waiting - a.waiting || b.sessions - a.sessions)
      .slice(0, SHOWN)
      .map(({ key, sessions, subscriptions, retained, waiting }) => ({
        key,
        sessions,
        subscriptions,
        retained,
        waiting,
      }));
    return { name, per, action, limits, counts, scopes: this.scopes.size, rows };
  }
}

/** No client id, user or address has a control character. */
const OTHERS = '\u0001others';

function keyOf(per: QuotaOptions['per'], whose: Whose): string {
  if (per === 'client') return whose.clientId;
  if (per === 'user') return whose.username ?? '';
  return per === 'listener' ? whose.listener : network(whose.remoteAddress);
}

/** Of IPv6 the first 64 bits: a machine has all addresses of its network. */
function network(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head] = address.split('::', 1);
  return head
    .split(':')
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}

export class QuotaSet implements Quotas {
  private readonly quotas: readonly Quota[];

  constructor(options: readonly QuotaOptions[], metrics: Metrics) {
    this.quotas = options.map((one) => new Quota(one, metrics));
  }

  /** Scopes of clients by where they come from, whoever they are. */
  ofPlace(whose: Whose, nowMs: number): Usage[] {
    const early = this.quotas.filter(({ options }) => isEarly(options) && options.username === '');
    return early.filter((one) => one.concerns(whose)).map((one) => one.scope(whose, nowMs));
  }

  ofName(whose: Whose, nowMs: number): Usage[] {
    const late = this.quotas.filter(({ options }) => !(isEarly(options) && options.username === ''));
    return late.filter((one) => one.concerns(whose)).map((one) => one.scope(whose, nowMs));
  }

  of(whose: Whose, nowMs: number): Usage[] {
    return this.quotas.filter((one) => one.concerns(whose)).map((one) => one.scope(whose, nowMs));
  }

  view(): QuotaView[] {
    return this.quotas.map((one) => one.view());
  }

  sweep(nowMs: number): void {
    for (const one of this.quotas) one.sweep(nowMs);
  }
}

function isEarly({ per }: QuotaOptions): boolean {
  return per === 'listener' || per === 'address';
}
