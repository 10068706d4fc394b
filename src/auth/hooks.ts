// What a program that embeds the gateway decides itself: its functions for CONNECT, PUBLISH and SUBSCRIBE, asked after
// the sources of the configuration. Made by gateway/hooks.ts where there are any; without them nothing of this file is
// in any path. A hook may refuse what the sources allow and let in whom they do not know; it never overrules a denial.
// Nothing fails open: one that throws, rejects, answers anything but true or false, or takes longer than 5 s, refuses;
// that is counted and logged.
import type { Clock } from '../base/clock.ts';
import { errorText } from '../base/errors.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { NOT_AUTHORIZED, SERVER_UNAVAILABLE } from '../mqtt/reason.ts';
import type {
  Access,
  Authenticator,
  Authorizer,
  Credentials,
  DenyAction,
  EnhancedExchange,
  EnhancedMethod,
  EnhancedStep,
  Identity,
  Verdict,
} from './auth.ts';
import type { Action } from './rules.ts';
import type { Answer, Source } from './source.ts';

/** Whom a hook is asked about. Of a client that is away, what is not known of it is "". */
export interface HookClient {
  readonly clientId: string;
  readonly username: string | null;
  /** Without port; "" for unix sockets. */
  readonly remoteAddress: string;
  /** Name of the listener, e.g. "tcp" or "tcp.second". */
  readonly listener: string;
}

/** The answer of a hook that decides: only true allows. */
export type HookAnswer = boolean | PromiseLike<boolean>;

/**
 * In the place of false from `authenticate`: the Reason Code of the CONNACK (MQTT 5.0 section 3.2.2.2); 3.1.1 clients
 * get the return code that corresponds: 0x85 identifier (2), 0x86 user name or password (4), 0x87 not authorised (5),
 * 0x88 unavailable (3), 0x8A banned (5).
 */
export type RefusalCode = 0x85 | 0x86 | 0x87 | 0x88 | 0x8a;
const REFUSAL_CODES: ReadonlySet<unknown> = new Set([0x85, 0x86, 0x87, 0x88, 0x8a]);

export interface AuthHooks {
  /**
   * Whether a client that the configured sources let in, or do not know, may come in. The password is a copy; null =
   * none.
   */
  authenticate?(
    client: HookClient,
    username: string | null,
    password: Uint8Array | null,
  ): HookAnswer | RefusalCode | PromiseLike<boolean | RefusalCode>;
  /** Whether a PUBLISH, a will or a retained message of this client may be sent; asked for each of them. */
  authorizePublish?(
    client: HookClient,
    packet: { readonly topic: string; readonly qos: number; readonly retain: boolean },
  ): HookAnswer;
  /** Whether a subscription is granted; asked for each filter of a SUBSCRIBE. */
  authorizeSubscribe?(client: HookClient, subscription: { readonly topic: string; readonly qos: number }): HookAnswer;
}

/** `failed`: the hook gave no answer. */
export type Judgement = 'allowed' | 'refused' | 'failed' | RefusalCode;

/** Longest time for an answer: clients give up a CONNECT not much later. */
export const HOOK_LIMIT_MS = 5000;
const LOG_PERIOD_MS = 10_000;

const FAILURES = {
  name: 'tidegate_hook_failures_total',
  text: 'Calls of functions of the embedding program that threw, rejected, gave no answer in time or a wrong one',
  type: 'counter',
  unit: 'items',
} as const;

export interface HookDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** The hooks of a program, called so that nothing they do gets further than their own call. */
export class Hooks implements Source {
  readonly given: AuthHooks;
  private readonly deps: HookDeps;
  private readonly warn: Log;
  private readonly clients = new WeakMap<Identity, HookClient>();

  constructor(given: AuthHooks, deps: HookDeps) {
    this.given = given;
    this.deps = deps;
    this.warn = limitLog(deps.log, () => deps.clock.mono(), LOG_PERIOD_MS);
  }

  /** Decides on a client that no other source knows. */
  async check(credentials: Credentials): Promise<Answer> {
    const { clientId, username, remoteAddress, listener, password } = credentials;
    const judged = await this.authenticate({ clientId, username, remoteAddress, listener }, password);
    return judged === 'allowed' ? { kind: 'accept', via: 'hook' } : { kind: 'refuse', ...refusalOf(judged) };
  }

  /** Whether a client may come in that has been let in by others, or is known to nobody. */
  authenticate(client: HookClient, password: Uint8Array | null): Judgement | Promise<Judgement> {
    // The hook may keep it; the bytes that came are used again.
    const copy = password === null || password.length === 0 ? null : Buffer.from(password);
    return this.judge('authenticate', () => this.given.authenticate?.(client, client.username, copy));
  }

  mayPublish(identity: Identity, topic: string, qos: number, retain: boolean): Verdict {
    const client = this.clientOf(identity);
    return verdictOf(
      this.judge('authorizePublish', () => this.given.authorizePublish?.(client, { topic, qos, retain })),
    );
  }

  maySubscribe(identity: Identity, topic: string, qos: number): Verdict {
    const client = this.clientOf(identity);
    return verdictOf(this.judge('authorizeSubscribe', () => this.given.authorizeSubscribe?.(client, { topic, qos })));
  }

  /** Tells a hook of what has happened; nobody waits for it. */
  notify(hook: string, call: () => unknown): void {
    try {
      const done = call();
      if (isPromise(done)) Promise.resolve(done).then(undefined, (error: unknown) => this.failed(hook, 'error', error));
    } catch (error) {
      this.failed(hook, 'error', error);
    }
  }

  /** Asks a hook that answers at once; false where it threw or gave a promise, which is counted. */
  ask(hook: string, call: () => unknown): unknown {
    try {
      const answer = call();
      if (!isPromise(answer)) return answer;
      Promise.resolve(answer).catch(() => {});
      this.failed(hook, 'wrong-answer', 'the answer is a promise');
    } catch (error) {
      this.failed(hook, 'error', error);
    }
    return false;
  }

  /** Counts an answer that is none. */
  wrong(hook: string, why: string): void {
    this.failed(hook, 'wrong-answer', why);
  }

  /** The method, with this hook behind it. */
  guard(method: EnhancedMethod): EnhancedMethod {
    const begin = (credentials: Credentials): EnhancedExchange => {
      const exchange = method.begin(credentials);
      return {
        step: async (data) => this.confirm(await exchange.step(data), credentials),
      };
    };
    return { name: method.name, begin };
  }

  private async confirm(step: EnhancedStep, credentials: Credentials): Promise<EnhancedStep> {
    if (step.kind !== 'accept') return step;
    const { clientId, remoteAddress, listener } = credentials;
    const judged = await this.authenticate({ clientId, username: step.username, remoteAddress, listener }, null);
    return judged === 'allowed' ? step : { kind: 'refuse', ...refusalOf(judged) };
  }

  /** Never an Identity itself: what a program changes in what it is given must not change rights. */
  private clientOf(identity: Identity): HookClient {
    let client = this.clients.get(identity);
    if (client === undefined) {
      const { clientId, username, remoteAddress, listener } = identity;
      client = Object.freeze({ clientId, username, remoteAddress, listener });
      this.clients.set(identity, client);
    }
    return client;
  }

  private judge(hook: string, call: () => unknown): Judgement | Promise<Judgement> {
    try {
      const answer = call();
      return isPromise(answer) ? this.awaited(hook, answer) : this.judgement(hook, answer);
    } catch (error) {
      return this.failed(hook, 'error', error);
    }
  }

  private awaited(hook: string, answer: PromiseLike<unknown>): Promise<Judgement> {
    return new Promise((resolve) => {
      let open = true;
      const end = (judge: () => Judgement): void => {
        if (!open) return;
        open = false;
        timer.cancel();
        resolve(judge());
      };
      const timer = this.deps.clock.after(HOOK_LIMIT_MS, () => end(() => this.failed(hook, 'timeout', 'no answer')));
      Promise.resolve(answer).then(
        (value) => end(() => this.judgement(hook, value)),
        (error: unknown) => end(() => this.failed(hook, 'error', error)),
      );
    });
  }

  private judgement(hook: string, answer: unknown): Judgement {
    if (answer === true) return 'allowed';
    if (answer === false) return 'refused';
    if (hook === 'authenticate' && REFUSAL_CODES.has(answer)) return answer as RefusalCode;
    return this.failed(hook, 'wrong-answer', `the answer is neither true nor false but ${typeof answer}`);
  }

  private failed(hook: string, why: 'error' | 'timeout' | 'wrong-answer', error: unknown): 'failed' {
    this.deps.metrics.cell(FAILURES, { hook, why }).value++;
    this.warn('error', 'HOOK-FAILED', { hook, why, error: safeText(error) });
    return 'failed';
  }
}

/** Why a hook that did not allow it keeps a client out: a program that fails says nothing about who asks. */
export function refusalOf(judged: Exclude<Judgement, 'allowed'>): { reasonCode: number; why: string } {
  if (typeof judged === 'number') return { reasonCode: judged, why: 'hook-refused' };
  return judged === 'refused'
    ? { reasonCode: NOT_AUTHORIZED, why: 'hook-refused' }
    : { reasonCode: SERVER_UNAVAILABLE, why: 'hook-failed' };
}

function verdictOf(judged: Judgement | Promise<Judgement>): Verdict {
  return judged instanceof Promise ? judged.then((one) => one === 'allowed') : judged === 'allowed';
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** What a program throws need not have a text. */
function safeText(error: unknown): string {
  try {
    return errorText(error);
  } catch {
    return 'an error without a text';
  }
}

/** Rights as the sources say, then as the hooks do. Clients inside the process are not judged by hooks. */
class HookedAuthorizer implements Authorizer {
  private readonly inner: Authorizer;
  private readonly hooks: Hooks;

  constructor(inner: Authorizer, hooks: Hooks) {
    this.inner = inner;
    this.hooks = hooks;
  }

  get version(): number {
    return this.inner.version;
  }

  get everyPublish(): boolean {
    return this.hooks.given.authorizePublish !== undefined;
  }

  publish(identity: Identity, topicName: string, qos: number, retain: boolean): Verdict {
    const { hooks } = this;
    const verdict = this.inner.publish(identity, topicName, qos, retain);
    if (verdict === false || identity.internal || hooks.given.authorizePublish === undefined) return verdict;
    if (verdict === true) return hooks.mayPublish(identity, topicName, qos, retain);
    return verdict.then((allowed) => allowed && hooks.mayPublish(identity, topicName, qos, retain));
  }

  subscribe(identity: Identity, topicFilter: string, qos: number): Verdict {
    const { hooks } = this;
    const verdict = this.inner.subscribe(identity, topicFilter, qos);
    if (verdict === false || identity.internal || hooks.given.authorizeSubscribe === undefined) return verdict;
    if (verdict === true) return hooks.maySubscribe(identity, topicFilter, qos);
    return verdict.then((allowed) => allowed && hooks.maySubscribe(identity, topicFilter, qos));
  }

  unsubscribe(identity: Identity, topicFilter: string): boolean {
    return this.inner.unsubscribe?.(identity, topicFilter) ?? true;
  }

  deliver(identity: Identity, topicName: string): boolean {
    return this.inner.deliver(identity, topicName);
  }

  explain(identity: Identity, action: Action, topic: string): { allowed: boolean; rule: string } {
    const found = this.inner.explain(identity, action, topic);
    const { authorizePublish, authorizeSubscribe } = this.hooks.given;
    const asked =
      (action === 'publish' && authorizePublish !== undefined) ||
      (action === 'subscribe' && authorizeSubscribe !== undefined);
    if (!found.allowed || identity.internal || !asked) return found;
    return { allowed: true, rule: `${found.rule}; a hook of the embedding program may still refuse` };
  }
}

/** Access of a listener, or of clients that are away, with the hooks behind it. */
export class HookedAccess implements Access {
  readonly authorizer: Authorizer;
  private readonly inner: Access;

  constructor(inner: Access, hooks: Hooks) {
    this.inner = inner;
    this.authorizer = new HookedAuthorizer(inner.authorizer, hooks);
  }

  get realm(): string {
    return this.inner.realm;
  }

  get authenticator(): Authenticator {
    return this.inner.authenticator;
  }

  get enhanced(): readonly EnhancedMethod[] {
    return this.inner.enhanced;
  }

  get denyAction(): DenyAction {
    return this.inner.denyAction;
  }

  vouches(identity: Identity): boolean {
    return this.inner.vouches(identity);
  }
}
