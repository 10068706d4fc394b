// From a CONNECT to a client that is let in, or is not: limits, who it is (authentication, enhanced or not), room,
// session, commit, CONNACK. One per connection, made by client.ts, which does what is decided here; the single steps
// are in connect.ts, AUTH is in enhanced.ts. Nothing of a client that is not let in has any effect. Sources: MQTT 5.0
// sections 3.1.4 and 4.12, 3.1.1 section 3.1.4.
import type { AuthResult, Credentials, Identity } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import type { ListenerContext } from '../broker/broker.ts';
import { Hold } from '../mqtt/message.ts';
import type { AuthPacket, ConnectPacket } from '../mqtt/packet.ts';
import { PROTOCOL_ERROR } from '../mqtt/reason.ts';
import type { Connection } from '../transport/transport.ts';
import {
  type Admitted,
  assignClientId,
  checkClientId,
  checkLimits,
  checkOwner,
  checkPrefix,
  checkRoom,
  credentialsOf,
  encodeAccepted,
  encodeRefused,
  mostQos,
  notStored,
  type Refusal,
} from './connect.ts';
import { EnhancedAuthentication } from './enhanced.ts';
import type { Registry } from './registry.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

/** A client whose Maximum Packet Size is below this gets no reason strings: they might not fit [MQTT-3.4.2-2]. */
const ROOMY_BYTES = 256;

/** What admission asks of its client. */
export interface Arriving {
  /** Who is to authenticate again; null while nobody is in. */
  identityAgain(): Identity | null;
  /** The CONNECT waits for an answer: only AUTH and DISCONNECT may come [MQTT-3.1.2-30]. */
  waits(): void;
  /** The connection has ended. */
  gone(): boolean;
  /** Reads nothing more until `promise` has settled. */
  suspend<T>(promise: Promise<T>, then: (value: T) => void): void;
  send(packet: Buffer): void;
  /** Takes the place of an older connection and the session. */
  admit(packet: ConnectPacket, identity: Identity): Admitted;
  /** Sends the CONNACK and serves the client from here on. */
  opened(packet: ConnectPacket, session: Session, connack: Buffer): void;
  /** Is not in any more: there is no session and no will. */
  takenBack(session: Session): void;
  /** Ends the connection of a client whose session, if it has one already, keeps no will. */
  refused(why: string): void;
  /** Ends the connection; what there is to tell has been told. */
  ended(): void;
}

export class Admission {
  /** Bytes that a packet to this client may have [MQTT-3.1.2-24]. */
  maximumPacketSize = Number.POSITIVE_INFINITY;
  /** The client takes reason strings outside CONNACK and DISCONNECT. */
  reasonStrings = false;
  private readonly core: Core;
  private readonly registry: Registry;
  private readonly connection: Connection;
  private readonly listener: ListenerContext;
  private readonly client: Arriving;
  private enhanced: EnhancedAuthentication | null = null;
  /** The client id that a client without one has been given. */
  private assigned: string | null = null;

  constructor(core: Core, registry: Registry, connection: Connection, listener: ListenerContext, client: Arriving) {
    this.core = core;
    this.registry = registry;
    this.connection = connection;
    this.listener = listener;
    this.client = client;
  }

  /** The first packet has come. */
  connect(packet: ConnectPacket): void {
    const { rules } = this.listener;
    const refusal = checkLimits(this.core.limits, packet, rules);
    if (refusal !== null) {
      this.refuse(packet, refusal);
      return;
    }
    if (packet.clientId === '') {
      this.assigned = assignClientId(rules?.assignedPrefix);
      packet.clientId = this.assigned;
    }
    const stranger = checkPrefix(this.core.limits, packet.clientId);
    if (stranger !== null) {
      this.refuse(packet, stranger);
      return;
    }
    this.maximumPacketSize = packet.properties?.maximumPacketSize ?? Number.POSITIVE_INFINITY;
    const roomy = this.maximumPacketSize >= ROOMY_BYTES;
    this.reasonStrings = packet.version === 5 && packet.properties?.requestProblemInformation !== false && roomy;
    const { connection, listener } = this;
    const credentials = credentialsOf(packet, connection.remoteAddress, listener.name, connection.tls, () =>
      this.client.gone(),
    );
    const method = packet.properties?.authenticationMethod;
    if (method !== undefined) {
      this.client.waits();
      this.enhanced = this.enhancedBy(method);
      this.enhanced.connect(packet, credentials);
      return;
    }
    const result = listener.access().authenticator.authenticate(credentials);
    if (result instanceof Promise) {
      this.client.waits();
      this.client.suspend(result, (known) => this.authenticated(packet, known));
    } else this.authenticated(packet, result);
  }

  /** An AUTH has come, before or after the client was let in. Throws ProtocolError. */
  auth(packet: AuthPacket): void {
    if (this.enhanced === null) {
      throw new ProtocolError(PROTOCOL_ERROR, 'AUTH without an Authentication Method in CONNECT'); // [MQTT-4.12.0-7]
    }
    this.enhanced.auth(packet);
  }

  private enhancedBy(method: string): EnhancedAuthentication {
    const { client, listener } = this;
    return new EnhancedAuthentication(method, {
      access: () => listener.access(),
      credentialsAgain: () => this.credentialsAgain(),
      suspend: (promise, then) => client.suspend(promise, then),
      send: (packet) => client.send(packet),
      accepted: (packet, identity, data) => this.open(packet, identity, data),
      refused: (packet, refusal) => this.refuse(packet, refusal),
    });
  }

  /** For authenticating again: a password is not asked for. */
  private credentialsAgain(): Credentials | null {
    const identity = this.client.identityAgain();
    if (identity === null) return null;
    const { connection, listener } = this;
    return {
      clientId: identity.clientId,
      username: identity.username,
      password: null,
      remoteAddress: connection.remoteAddress,
      listener: listener.name,
      tls: connection.tls,
      version: 5,
    };
  }

  private authenticated(packet: ConnectPacket, result: AuthResult): void {
    if (result.accepted) this.open(packet, result.identity, null);
    else this.refuse(packet, { reasonCode: result.reasonCode, why: result.why });
  }

  private refuse(packet: ConnectPacket, refusal: Refusal): void {
    const { core } = this;
    core.stats.refused++;
    const answer = encodeRefused(packet.version, refusal);
    if (answer !== null) this.client.send(answer);
    const fields = {
      clientId: packet.clientId,
      username: packet.username,
      remote: this.connection.remote,
      reason: refusal.why,
    };
    core.log('info', 'CON-REFUSED', { ...fields, listener: this.listener.name, reasonCode: refusal.reasonCode });
    core.emit({ kind: 'refused', ...fields, reasonCode: refusal.reasonCode });
    this.client.ended();
  }

  private open(packet: ConnectPacket, known: Identity, authData: Uint8Array | null): void {
    const { core, client, listener } = this;
    const identity = checkClientId(known, listener.rules);
    if ('reasonCode' in identity) {
      this.refuse(packet, identity);
      return;
    }
    if (identity !== known) {
      // A 5.0 client is told only when it came without a client id.
      if (this.assigned !== null) this.assigned = identity.clientId;
      packet.clientId = identity.clientId;
    }
    const refusal = checkOwner(core, this.registry, identity) ?? checkRoom(core, this.registry, packet, identity);
    if (refusal !== null) {
      this.refuse(packet, refusal);
      return;
    }
    const { session, present, waits, fresh } = client.admit(packet, identity);
    const connack = encodeAccepted(core, {
      packet,
      maxQos: mostQos(core.limits, listener.rules),
      assignedClientId: this.assigned,
      sessionPresent: present,
      expiryInterval: session.expiryInterval,
      keepAlive: session.keepAlive,
      authenticationMethod: this.enhanced?.method ?? null,
      authenticationData: authData,
    });
    if (connack.length > this.maximumPacketSize) {
      client.refused('the CONNACK is larger than the client takes'); // [MQTT-3.1.2-24]
      return;
    }
    if (!waits) {
      client.opened(packet, session, connack);
      return;
    }
    // A stored session, its will or the end of an older one are acknowledged by CONNACK: it leaves after the commit.
    client.waits();
    const hold = new Hold();
    core.journal.barrierAll(hold);
    client.suspend(new Promise<number>((resolve) => hold.whenDone(resolve)), (code) => {
      // A session that is stored already goes on: what is new of it is told, and written when the disk takes it.
      if (code >= 0x80 && fresh) this.takeBack(packet, session);
      else client.opened(packet, session, connack);
    });
  }

  /** A new session could not be stored: there is none, and its will counts for nothing. */
  private takeBack(packet: ConnectPacket, session: Session): void {
    this.client.takenBack(session);
    if (session.client === null) {
      session.will = null;
      this.registry.end(session, 'not stored');
    }
    this.refuse(packet, notStored(this.core, session.clientId));
  }
}
