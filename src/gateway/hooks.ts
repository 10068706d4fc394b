// The functions of a program that embeds the gateway: checks what was given, and tells it what happens. Called by
// gateway.ts and index.ts. Those that decide are asked by auth/hooks.ts. Here nobody waits for an answer; what goes
// wrong in one is counted and logged.
import { type AuthHooks, type HookDeps, Hooks } from '../auth/hooks.ts';
import { GatewayError } from '../base/errors.ts';
import type { Broker, BrokerEvent, ClientView, LocalReceiver } from '../broker/broker.ts';
import type { Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';

/** A message that was accepted; the bytes are its own. */
export interface PublishedMessage {
  readonly topic: string;
  readonly payload: Uint8Array;
  /** As published. */
  readonly qos: Qos;
  readonly retain: boolean;
  readonly properties: Properties | null;
}

/** Who published it: a client, a bridge, a program inside the gateway, or the gateway. */
export interface Publisher {
  readonly kind: 'client' | 'bridge' | 'api' | 'server';
  readonly clientId: string;
  readonly username: string | null;
  /** "nng:<name>" or "mqtt:<name>" for kind 'bridge'. */
  readonly bridge: string | null;
}

/** Functions of the embedding program, each optional. They may be async; what decides has 5 seconds. */
export interface GatewayHooks extends AuthHooks {
  /** A message was accepted. Topics that begin with `$` are not told. */
  published?(message: PublishedMessage, publisher: Publisher): unknown;
  subscribed?(subscription: { readonly clientId: string; readonly topicFilter: string }): unknown;
  unsubscribed?(subscription: { readonly clientId: string; readonly topicFilter: string }): unknown;
  connected?(client: ClientView): unknown;
  disconnected?(client: ClientView, reason: string): unknown;
}

const NAMES = {
  authenticate: true,
  authorizePublish: true,
  authorizeSubscribe: true,
  published: true,
  subscribed: true,
  unsubscribed: true,
  connected: true,
  disconnected: true,
} as const satisfies Record<keyof GatewayHooks, true>;

/**
 * A copy of the hooks that are set, or null when none is. Throws CFG-INVALID for anything else: a misspelt name would
 * be a check that is never made.
 */
export function checkHooks(given: unknown): GatewayHooks | null {
  if (given === undefined || given === null) return null;
  const wrong = (text: string): GatewayError => new GatewayError('CFG-INVALID', `hooks: ${text}`);
  const plain: unknown = typeof given === 'object' ? Object.getPrototypeOf(given) : given;
  if (plain !== Object.prototype && plain !== null) throw wrong('a plain object of functions is required');
  const set: [string, unknown][] = [];
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(NAMES, name)) throw wrong(`no hook is called ${JSON.stringify(name)}`);
    if (value === undefined) continue;
    if (typeof value !== 'function') throw wrong(`${name} is not a function`);
    set.push([name, value]);
  }
  return set.length === 0 ? null : Object.freeze(Object.fromEntries(set));
}

/** The hooks of one gateway. */
export class ProgramHooks {
  readonly auth: Hooks;
  private readonly given: GatewayHooks;
  private end: (() => void)[] = [];

  constructor(given: GatewayHooks, deps: HookDeps) {
    this.given = given;
    this.auth = new Hooks(given, deps);
  }

  /** From here on the program is told. */
  start(broker: Pick<Broker, 'attach' | 'onEvent'>): void {
    const { published, subscribed, unsubscribed, connected, disconnected } = this.given;
    if (subscribed || unsubscribed || connected || disconnected)
      this.end.push(broker.onEvent((event) => this.happened(event)));
    if (published === undefined) return;
    const client = broker.attach({ clientId: 'hooks', username: null, kind: 'api', bridge: null, trusted: true });
    const receiver: LocalReceiver = {
      receive: (publication) => {
        const message = messageOf(publication);
        const publisher = from(publication);
        this.later('published', () => published(message, publisher));
      },
    };
    client.subscribe({ topicFilter: '#', qos: 2, receiver, retainHandling: 2 });
    this.end.push(() => client.close());
  }

  stop(): void {
    for (const end of this.end) end();
    this.end = [];
  }

  /** In order, behind what the broker is doing: a hook may publish, subscribe or end a client. */
  private later(hook: keyof GatewayHooks, call: () => unknown): void {
    queueMicrotask(() => this.auth.notify(hook, call));
  }

  private happened(event: BrokerEvent): void {
    const { given } = this;
    const { kind } = event;
    if (kind === 'refused' || kind === 'dropped' || given[kind] === undefined) return;
    this.later(kind, () => tell(given, event));
  }
}

function tell(given: GatewayHooks, event: BrokerEvent): unknown {
  switch (event.kind) {
    case 'connected':
      return given.connected?.(event.client);
    case 'disconnected':
      return given.disconnected?.(event.client, event.reason);
    case 'subscribed':
      return given.subscribed?.({ clientId: event.clientId, topicFilter: event.topicFilter });
    case 'unsubscribed':
      return given.unsubscribed?.({ clientId: event.clientId, topicFilter: event.topicFilter });
    default:
      return undefined;
  }
}

function messageOf(publication: Publication): PublishedMessage {
  const { topic, qos, retain, properties } = publication;
  return { topic, payload: Uint8Array.from(publication.payload()), qos, retain, properties };
}

function from({ origin }: Publication): Publisher {
  const { kind, clientId, username, bridge } = origin;
  return { kind, clientId, username, bridge };
}
