// The enhanced authentication of one client (MQTT 5.0 section 4.12): an exchange of AUTH packets at CONNECT, and again
// whenever an open client asks for it. Made by admission.ts, which decides what its outcome means; served.ts keeps it
// for later exchanges. Methods are those of auth/.
import type { Access, Credentials, EnhancedExchange, EnhancedStep, Identity } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import type { Frame } from '../codec/codec.ts';
import { decodePacket } from '../codec/packet.ts';
import { encodeAuth } from '../codec/session.ts';
import { AUTH, type AuthPacket, type Version } from '../mqtt/packet.ts';
import {
  BAD_AUTHENTICATION_METHOD,
  CONTINUE_AUTHENTICATION,
  MALFORMED_PACKET,
  PROTOCOL_ERROR,
  RE_AUTHENTICATE,
  SUCCESS,
} from '../mqtt/reason.ts';
import type { Refusal } from './checks.ts';

/** What the exchange asks of its connection. */
export interface Authenticating {
  readonly listener: { access(): Access };
  suspend<T>(promise: Promise<T>, then: (value: T) => void): void;
  send(packet: Buffer): void;
}

/** Who has authenticated, and the data for its CONNACK. */
export interface Authenticated {
  readonly identity: Identity;
  readonly data: Uint8Array | null;
}

interface Exchange {
  readonly steps: EnhancedExchange;
  readonly credentials: Credentials;
  /** Called with the outcome at CONNECT; null = an open client authenticates again. */
  readonly done: ((outcome: Authenticated | Refusal) => void) | null;
}

export class EnhancedAuthentication {
  /** The Authentication Method of the CONNECT. */
  readonly method: string;
  private readonly client: Authenticating;
  private exchange: Exchange | null = null;

  constructor(method: string, client: Authenticating) {
    this.method = method;
    this.client = client;
  }

  /** A CONNECT has come with `data`; `done` is called once, perhaps at once. */
  connect(credentials: Credentials, data: Uint8Array | null, done: (outcome: Authenticated | Refusal) => void): void {
    const steps = this.begin(credentials);
    if ('reasonCode' in steps) {
      done(steps);
      return;
    }
    this.exchange = { steps, credentials, done };
    this.step(data);
  }

  /**
   * An AUTH has come. Throws ProtocolError.
   * @param again credentials of a client that is in; null while it is not
   */
  auth(packet: AuthPacket, again: Credentials | null): void {
    if (packet.properties?.authenticationMethod === undefined) {
      throw new ProtocolError(PROTOCOL_ERROR, 'AUTH without an Authentication Method'); // section 3.15.2.2.2
    }
    if (packet.properties.authenticationMethod !== this.method) {
      throw new ProtocolError(BAD_AUTHENTICATION_METHOD, 'AUTH with another method than CONNECT'); // [MQTT-4.12.0-5]
    }
    if (packet.reasonCode === RE_AUTHENTICATE && again !== null) {
      const steps = this.begin(again);
      if ('reasonCode' in steps) throw new ProtocolError(steps.reasonCode, steps.why);
      this.exchange = { steps, credentials: again, done: null };
    } else if (this.exchange === null || packet.reasonCode !== CONTINUE_AUTHENTICATION) {
      throw new ProtocolError(PROTOCOL_ERROR, 'AUTH without an exchange'); // [MQTT-4.12.1-1]
    }
    this.step(packet.properties?.authenticationData ?? null);
  }

  // ---- inside

  private begin(credentials: Credentials): EnhancedExchange | Refusal {
    const known = this.client.listener.access().enhanced.find((method) => method.name === this.method);
    // [MQTT-4.12.0-1]
    if (known === undefined) return { reasonCode: BAD_AUTHENTICATION_METHOD, why: 'unknown authentication method' };
    return known.begin(credentials);
  }

  private step(data: Uint8Array | null): void {
    const exchange = this.exchange;
    if (exchange === null) return;
    const result = exchange.steps.step(data);
    if (result instanceof Promise) this.client.suspend(result, (step) => this.stepped(exchange, step));
    else this.stepped(exchange, result);
  }

  private stepped(exchange: Exchange, step: EnhancedStep): void {
    if (step.kind === 'continue') {
      this.answer(CONTINUE_AUTHENTICATION, step.data);
      return;
    }
    this.exchange = null;
    const { done, credentials } = exchange;
    if (step.kind === 'refuse') {
      const refusal = { reasonCode: step.reasonCode, why: step.why };
      if (done === null) throw new ProtocolError(refusal.reasonCode, refusal.why);
      done(refusal);
    } else if (done === null) this.answer(SUCCESS, step.data);
    else
      done({ identity: identityOf(credentials, step.username, this.client.listener.access().realm), data: step.data });
  }

  private answer(reasonCode: number, data: Uint8Array | null): void {
    const { method } = this;
    const properties =
      data === null ? { authenticationMethod: method } : { authenticationMethod: method, authenticationData: data };
    this.client.send(encodeAuth({ type: AUTH, reasonCode, properties }));
  }
}

/** Hands an AUTH packet to the client's exchange. Throws ProtocolError where AUTH may not come. */
export function takeAuth(
  enhanced: EnhancedAuthentication | null,
  version: Version,
  buffer: Buffer,
  frame: Frame,
  again: Credentials | null,
): void {
  if (version < 5) throw new ProtocolError(MALFORMED_PACKET, 'packet type 15 before MQTT 5.0');
  const packet = decodePacket(version, buffer, frame) as AuthPacket;
  if (enhanced === null) throw new ProtocolError(PROTOCOL_ERROR, 'AUTH without an Authentication Method in CONNECT'); // [MQTT-4.12.0-7]
  enhanced.auth(packet, again);
}

/** Who has authenticated: the methods know local users only. */
function identityOf(credentials: Credentials, username: string, realm: string): Identity {
  return {
    clientId: credentials.clientId,
    username,
    remoteAddress: credentials.remoteAddress,
    listener: credentials.listener,
    realm,
    via: 'users',
    claims: null,
    internal: false,
  };
}
