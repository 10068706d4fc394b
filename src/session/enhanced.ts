// The enhanced authentication of one client (MQTT 5.0 section 4.12): an exchange of AUTH packets at CONNECT, and again
// whenever an open client asks for it. Made by admission.ts, which decides what being let in or refused means. Methods
// are those of auth/.
import type { Access, Credentials, EnhancedExchange, EnhancedStep, Identity } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import { encodeAuth } from '../codec/session.ts';
import { AUTH, type AuthPacket, type ConnectPacket } from '../mqtt/packet.ts';
import {
  BAD_AUTHENTICATION_METHOD,
  CONTINUE_AUTHENTICATION,
  PROTOCOL_ERROR,
  RE_AUTHENTICATE,
  SUCCESS,
} from '../mqtt/reason.ts';
import { identityOf, type Refusal } from './connect.ts';

/** What the exchange asks of its client. */
export interface Authenticating {
  access(): Access;
  /** Credentials for authenticating again; null while the client is not in. */
  credentialsAgain(): Credentials | null;
  suspend<T>(promise: Promise<T>, then: (value: T) => void): void;
  send(packet: Buffer): void;
  /** `data` goes into CONNACK. */
  accepted(packet: ConnectPacket, identity: Identity, data: Uint8Array | null): void;
  refused(packet: ConnectPacket, refusal: Refusal): void;
}

interface Exchange {
  readonly steps: EnhancedExchange;
  /** Set while the CONNECT is not answered. */
  readonly packet: ConnectPacket | null;
  readonly credentials: Credentials;
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

  /** The CONNECT has come. */
  connect(packet: ConnectPacket, credentials: Credentials): void {
    const steps = this.begin(credentials);
    if ('reasonCode' in steps) {
      this.client.refused(packet, steps);
      return;
    }
    this.exchange = { steps, packet, credentials };
    this.step(packet.properties?.authenticationData ?? null);
  }

  /** An AUTH has come. Throws ProtocolError. */
  auth(packet: AuthPacket): void {
    if (packet.properties?.authenticationMethod === undefined) {
      throw new ProtocolError(PROTOCOL_ERROR, 'AUTH without an Authentication Method'); // section 3.15.2.2.2
    }
    if (packet.properties.authenticationMethod !== this.method) {
      throw new ProtocolError(BAD_AUTHENTICATION_METHOD, 'AUTH with another method than CONNECT'); // [MQTT-4.12.0-5]
    }
    const credentials = packet.reasonCode === RE_AUTHENTICATE ? this.client.credentialsAgain() : null;
    if (credentials !== null) {
      const steps = this.begin(credentials);
      if ('reasonCode' in steps) throw new ProtocolError(steps.reasonCode, steps.why);
      this.exchange = { steps, packet: null, credentials };
    } else if (this.exchange === null || packet.reasonCode !== CONTINUE_AUTHENTICATION) {
      throw new ProtocolError(PROTOCOL_ERROR, 'AUTH without an exchange'); // [MQTT-4.12.1-1]
    }
    this.step(packet.properties?.authenticationData ?? null);
  }

  // ---- inside

  private begin(credentials: Credentials): EnhancedExchange | Refusal {
    const known = this.client.access().enhanced.find((method) => method.name === this.method);
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
    const { packet, credentials } = exchange;
    if (step.kind === 'refuse') {
      if (packet === null) throw new ProtocolError(step.reasonCode, step.why);
      this.client.refused(packet, { reasonCode: step.reasonCode, why: step.why });
    } else if (packet !== null) {
      const identity = identityOf(credentials, step.username, this.client.access().realm);
      this.client.accepted(packet, identity, step.data);
    } else this.answer(SUCCESS, step.data);
  }

  private answer(reasonCode: number, data: Uint8Array | null): void {
    const { method } = this;
    const properties =
      data === null ? { authenticationMethod: method } : { authenticationMethod: method, authenticationData: data };
    this.client.send(encodeAuth({ type: AUTH, reasonCode, properties }));
  }
}
