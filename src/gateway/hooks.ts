// The functions of a program that embeds the gateway: checks what was given, and tells it what happens. Called by
// gateway.ts and index.ts. Those that decide are asked by auth/hooks.ts. Here nobody waits for an answer; what goes
// wrong in one is counted and logged.
import type { Identity } from '../auth/auth.ts';
import { type AuthHooks, type HookClient, type HookDeps, Hooks } from '../auth/hooks.ts';
import { GatewayError } from '../base/errors.ts';
import type { Broker, BrokerEvent, ClientView, LocalReceiver } from '../broker/broker.ts';
import type { Alter, Altered } from '../delivery/delivery.ts';
import type { Publication } from '../mqtt/message.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { isTopicName } from '../mqtt/topic.ts';

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

/** What a client is to get in the place of a message; what is left out stays as it is. */
export interface DeliveredInstead {
  readonly payload?: Uint8Array | string;
  /** For MQTT 5.0 clients: in the place of all that the message has. */
  readonly properties?: Properties | null;
}

/** Functions of the embedding program, each optional. They may be async; what decides has 5 seconds. */
export interface GatewayHooks extends AuthHooks {
  /**
   * A message is about to be sent to a client: true or nothing = as it is, false = not at all, an object = with another
   * payload or other properties. Answers at once: delivery does not wait. `qos` and `retain` are those of the delivery.
   */
  deliver?(message: PublishedMessage, client: HookClient): boolean | DeliveredInstead | undefined;
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
  deliver: true,
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

  /** What `deliver` makes of each message for a client; null where it is not set. */
  get alterFor(): ((identity: Identity) => Alter) | null {
    const { deliver } = this.given;
    if (deliver === undefined) return null;
    return (identity) => {
      const { clientId, username, remoteAddress, listener } = identity;
      const client: HookClient = Object.freeze({ clientId, username, remoteAddress, listener });
      return (publication, qos, retain) => {
        const message = { ...messageOf(publication), qos, retain };
        const answer = this.auth.ask('deliver', () => deliver(message, client));
        return alteration(answer, message, (why) => this.auth.wrong('deliver', why));
      };
    };
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

/** A wrong answer drops the message: it may have been meant to hide something. */
function alteration(answer: unknown, message: PublishedMessage, wrong: (why: string) => void): Altered | false | null {
  if (answer === true || answer === undefined) return null;
  if (answer === false) return false;
  const found = typeof answer === 'object' && answer !== null ? replacement(answer, message) : null;
  if (found !== null) return found;
  wrong('the answer is neither true, false nor { payload, properties }');
  return false;
}

function replacement(answer: object, message: PublishedMessage): Altered | null {
  const { payload = message.payload, properties = message.properties } = answer as DeliveredInstead;
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  if (!(bytes instanceof Uint8Array)) return null;
  return properties === null || areProperties(properties) ? { payload: bytes, properties } : null;
}

/** Whether these can be properties of a PUBLISH: an encoder must not meet anything else. */
function areProperties(properties: unknown): properties is Properties {
  if (typeof properties !== 'object' || properties === null) return false;
  return Object.entries(properties).every(([name, value]) => {
    if (name === 'payloadFormatIndicator') return value === 0 || value === 1;
    if (name === 'messageExpiryInterval') return Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
    if (name === 'contentType') return isText(value);
    if (name === 'responseTopic') return isText(value) && isTopicName(value);
    if (name === 'correlationData') return value instanceof Uint8Array && value.length <= 65_535;
    return name === 'userProperties' && Array.isArray(value) && value.length <= 1000 && value.every(isPair);
  });
}

function isPair(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && isText(value[0]) && isText(value[1]);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0') && Buffer.byteLength(value) <= 65_535;
}

function messageOf(publication: Publication): PublishedMessage {
  const { topic, qos, retain, properties } = publication;
  return { topic, payload: Uint8Array.from(publication.payload()), qos, retain, properties };
}

function from({ origin }: Publication): Publisher {
  const { kind, clientId, username, bridge } = origin;
  return { kind, clientId, username, bridge };
}
