// What becomes of a CONNECT: refused, or sent on to an upstream in the form the rules give it. Called by relay.ts once
// for each client. Decides in the order of cost: what the packet itself says, who may come, limits, route, rewriting,
// filter. Counts what it lets in. Must not show a password. Source: MQTT 5.0 sections 3.1 and 3.2.2.2 (reason codes),
// 3.1.1 the same; docs/proxy.md.
import { ProtocolError } from '../base/errors.ts';
import { TextTooLong } from '../base/linearpattern.ts';
import { newFrame } from '../codec/codec.ts';
import { decodeConnect, encodeConnect } from '../codec/connect.ts';
import { readFrame } from '../codec/frame.ts';
import {
  BAD_USER_NAME_OR_PASSWORD,
  CLIENT_IDENTIFIER_NOT_VALID,
  CONNECTION_RATE_EXCEEDED,
  NOT_AUTHORIZED,
  QUOTA_EXCEEDED,
  SERVER_UNAVAILABLE,
} from '../mqtt/reason.ts';
import type { Status } from './accesslog.ts';
import type { Facts } from './facts.ts';
import { ClientFilter } from './filter.ts';
import type { ConnectLayout } from './layout.ts';
import type { ConnectionCount, KeyedRate, Rate } from './limits.ts';
import { type Replacements, type RewriteFailure, rewriteConnect } from './rewrite.ts';
import { chooseUpstream, isAllowed } from './route.ts';
import type { Rules } from './rules.ts';

export interface Refusal {
  readonly refused: true;
  readonly status: Status;
  readonly reason: string;
  /** For CONNACK; 0 = the client is told nothing. */
  readonly code: number;
}

export interface Passage {
  readonly refused: false;
  readonly upstream: string;
  /** The packet as the server gets it. */
  readonly connect: Buffer;
  /** Whether it is not what the client sent. */
  readonly rewritten: boolean;
  /** null = the client's own. */
  readonly clientId: string | null;
  readonly filter: ClientFilter | null;
}

/** The limits of a proxy, shared by all of its clients. */
export interface Limits {
  readonly connects: Rate;
  readonly ratesOfIds: KeyedRate;
  readonly byClientId: ConnectionCount;
  readonly byUsername: ConnectionCount;
}

/** What was counted for one client. */
export class Counted {
  private readonly limits: Limits;
  private clientId: string | null = null;
  private username: string | null = null;

  constructor(limits: Limits) {
    this.limits = limits;
  }

  /** An empty id is nobody's: it is not counted. */
  takeClientId(clientId: string, most: number): boolean {
    if (clientId === '') return true;
    if (!this.limits.byClientId.enter(clientId, most)) return false;
    this.clientId = clientId;
    return true;
  }

  takeUsername(username: string | null, most: number): boolean {
    if (username === null || username === '') return true;
    if (!this.limits.byUsername.enter(username, most)) return false;
    this.username = username;
    return true;
  }

  /** Gives back what was taken, once. */
  release(): void {
    if (this.clientId !== null) this.limits.byClientId.leave(this.clientId);
    if (this.username !== null) this.limits.byUsername.leave(this.username);
    this.clientId = null;
    this.username = null;
  }
}

function refuse(status: Status, reason: string, code: number): Refusal {
  return { refused: true, status, reason, code };
}

const REWRITE_REFUSALS: Readonly<Record<RewriteFailure, Refusal>> = {
  'bad-value': refuse(500, 'a value of set cannot be in CONNECT', CLIENT_IDENTIFIER_NOT_VALID),
  'empty-clientid': refuse(400, 'set leaves no client id', CLIENT_IDENTIFIER_NOT_VALID),
  'password-without-username': refuse(
    403,
    'set gives a password to a client without username',
    BAD_USER_NAME_OR_PASSWORD,
  ),
};

const NOT_ALLOWED = refuse(403, 'client is not allowed', NOT_AUTHORIZED);
const TOO_LONG = refuse(400, 'a text of the client is too long for a pattern', CLIENT_IDENTIFIER_NOT_VALID);

/** What `decide` says; a refusal where a pattern does not read a text of the client. */
function decided<T>(decide: () => T): T | Refusal {
  try {
    return decide();
  } catch (error) {
    if (error instanceof TextTooLong) return TOO_LONG;
    throw error;
  }
}

/** `facts` must have the fields of the CONNECT; the name of a certificate takes the place of the username in them. */
export function judge(
  layout: ConnectLayout,
  rules: Rules,
  facts: Facts,
  counted: Counted,
  limits: Limits,
  nowMs: number,
): Refusal | Passage {
  return decided(() => admit(layout, rules, facts, counted, limits, nowMs) ?? pass(layout, rules, facts));
}

/** The upstream of a client of another protocol, null = none, of which no more is known than where it comes from. */
export function judgeForeign(rules: Rules, facts: Facts): Refusal | { readonly upstream: string | null } {
  return decided(() => (isAllowed(rules, facts) ? { upstream: chooseUpstream(rules, facts) } : NOT_ALLOWED));
}

function admit(
  layout: ConnectLayout,
  rules: Rules,
  facts: Facts,
  counted: Counted,
  limits: Limits,
  nowMs: number,
): Refusal | null {
  const { packet } = layout;
  const { useIdentityAsUsername, limitRate, limitConn } = rules.options;
  // [MQTT-3.1.3-8 of 3.1.1]; 3.1 wants at least one character.
  if (packet.clientId === '' && (packet.version === 3 || (packet.version === 4 && !packet.cleanStart)))
    return refuse(400, 'empty client id', CLIENT_IDENTIFIER_NOT_VALID);
  if (useIdentityAsUsername) {
    if (facts.certCn === null) return refuse(403, 'no client certificate with a name', NOT_AUTHORIZED);
    facts.username = facts.certCn;
  }
  if (!isAllowed(rules, facts)) return NOT_ALLOWED;
  if (!limits.connects.take(limitRate.connectsPerSecond, nowMs))
    return refuse(503, 'too many connects a second', CONNECTION_RATE_EXCEEDED);
  const perId = { perSecond: limitRate.perClientIdPerSecond, burst: limitRate.burst, banMs: limitRate.banMs };
  if (facts.clientId !== '' && !limits.ratesOfIds.take(facts.clientId, perId, nowMs))
    return refuse(503, 'too many connects of this client id', CONNECTION_RATE_EXCEEDED);
  if (!counted.takeClientId(facts.clientId, limitConn.perClientId))
    return refuse(503, 'too many connections of this client id', QUOTA_EXCEEDED);
  if (!counted.takeUsername(facts.username, limitConn.perUsername))
    return refuse(503, 'too many connections of this username', QUOTA_EXCEEDED);
  return null;
}

function pass(layout: ConnectLayout, rules: Rules, facts: Facts): Refusal | Passage {
  const upstream = chooseUpstream(rules, facts);
  if (upstream === null) return refuse(403, 'no route fits', NOT_AUTHORIZED);
  const original = layout.bytes.subarray(0, layout.end);
  let connect = original;
  let clientId: string | null = null;
  const missing = missingOf(rules.set, facts) ?? rules.topics?.missing(facts) ?? null;
  if (missing !== null) return refuse(403, `no ${missing} in a client certificate`, NOT_AUTHORIZED);
  if (rules.set !== null) {
    const identity = rules.options.useIdentityAsUsername ? facts.certCn : null;
    const made = rewriteConnect(layout, rules.set, facts, identity);
    if (typeof made === 'string') return REWRITE_REFUSALS[made];
    connect = made.bytes;
    if (made.clientId !== facts.clientId) clientId = made.clientId;
  }
  const filter = rules.filter === null ? null : new ClientFilter(rules.filter, facts);
  if (filter !== null) {
    if (!filter.sound) return refuse(403, 'client has no prefix of its own', NOT_AUTHORIZED);
    if (layout.packet.will !== null) {
      const made = withFilteredWill(connect, layout, filter);
      if (!Buffer.isBuffer(made)) return made;
      connect = made;
    }
  }
  return { refused: false, upstream, connect, rewritten: connect !== original, clientId, filter };
}

/**
 * What `set` takes from a certificate has to be there: an identity made of nothing would be that of every client
 * without one.
 */
function missingOf(set: Replacements | null, facts: Facts): string | null {
  if (set === null) return null;
  const { clientId, username, password } = set;
  return clientId?.missing(facts) ?? username?.missing(facts) ?? password?.missing(facts) ?? null;
}

/** The same packet with the will where the server has to publish it. */
function withFilteredWill(connect: Buffer, layout: ConnectLayout, filter: ClientFilter): Buffer | Refusal {
  // 3.1 alone allows a user name that is no text; it would not survive being decoded.
  if (layout.usernameStart >= 0 && layout.username === null)
    return refuse(400, 'username is not well-formed UTF-8', SERVER_UNAVAILABLE);
  try {
    const frame = newFrame();
    readFrame(connect, 0, connect.length, frame, connect.length);
    const packet = decodeConnect(connect, frame);
    const will = packet.will === null ? null : filter.will(packet.will);
    if (will === null) return refuse(403, 'will topic is not allowed', NOT_AUTHORIZED);
    return encodeConnect({ ...packet, will });
  } catch (error) {
    if (error instanceof ProtocolError) return refuse(400, error.message, error.reasonCode);
    throw error;
  }
}
