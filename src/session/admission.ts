// A client on its way in: runs the steps of connect.ts, waits where one has to, and answers a refusal. Made by
// client.ts when a CONNECT has come, dropped when the client is in. While it waits only AUTH and DISCONNECT may come.
// Sources: MQTT 5.0 sections 3.1.4 and 4.12, 3.1.1 section 3.1.4.
import type { Credentials, Identity } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import type { ListenerContext } from '../broker/broker.ts';
import type { Frame } from '../codec/codec.ts';
import { decodePacket } from '../codec/packet.ts';
import { AUTH, type ConnectPacket, DISCONNECT } from '../mqtt/packet.ts';
import { PROTOCOL_ERROR } from '../mqtt/reason.ts';
import type { Refusal } from './checks.ts';
import { encodeRefused } from './connack.ts';
import { BY_AUTH, CONNECT_STEPS, type Outcome } from './connect.ts';
import { EnhancedAuthentication, takeAuth } from './enhanced.ts';
import type { Opened } from './opening.ts';
import type { Arriving } from './peer.ts';
import type { Registry } from './registry.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';

const NOTHING = Buffer.alloc(0);

export class Admission {
  readonly core: Core;
  readonly registry: Registry;
  readonly client: Arriving;
  readonly listener: ListenerContext;
  readonly packet: ConnectPacket;
  /** Bytes that a packet to this client may have [MQTT-3.1.2-24]. */
  readonly maximumPacketSize: number;
  /** The client id that a client without one has been given. */
  assignedClientId: string | null = null;
  /** Set where the client authenticates with AUTH packets. */
  enhanced: EnhancedAuthentication | null = null;
  /** For CONNACK. */
  authenticationData: Uint8Array | null = null;
  connack: Buffer = NOTHING;
  private known: Identity | null = null;
  private opening: Opened | null = null;
  /** The step that comes next. */
  private next = 0;

  constructor(core: Core, registry: Registry, client: Arriving, packet: ConnectPacket) {
    this.core = core;
    this.registry = registry;
    this.client = client;
    this.listener = client.listener;
    this.packet = packet;
    this.maximumPacketSize = packet.properties?.maximumPacketSize ?? Number.POSITIVE_INFINITY;
  }

  /** Who the client is. Throws before it is authenticated. */
  get identity(): Identity {
    if (this.known === null) throw new Error('the client is not authenticated');
    return this.known;
  }

  set identity(identity: Identity) {
    this.known = identity;
  }

  /** The session it gets. Throws before there is one. */
  get opened(): Opened {
    if (this.opening === null) throw new Error('the session is not open');
    return this.opening;
  }

  set opened(opened: Opened) {
    this.opening = opened;
  }

  /** The session it has already got, though its CONNACK has not left; null = none. */
  get session(): Session | null {
    return this.opening?.session ?? null;
  }

  /** Takes the steps from the next one on, until one refuses or has to wait. */
  run(): void {
    while (this.next < CONNECT_STEPS.length) {
      const outcome = CONNECT_STEPS[this.next++](this);
      if (outcome === null) continue;
      if (outcome instanceof Promise) this.client.suspend(outcome, (refusal) => this.decided(refusal));
      else if (outcome !== BY_AUTH) this.refuse(outcome);
      return;
    }
    this.client.opened(this.opened, this.connack);
  }

  /** A packet has come before the CONNECT is answered. Throws ProtocolError. */
  early(buffer: Buffer, frame: Frame): void {
    const { version } = this.packet;
    if (frame.type === DISCONNECT) {
      decodePacket(version, buffer, frame);
      this.log({ reason: 'disconnected while authenticating' });
      this.client.turnedAway();
      return;
    }
    if (frame.type !== AUTH)
      throw new ProtocolError(PROTOCOL_ERROR, 'only AUTH may follow a CONNECT that is not answered'); // [MQTT-3.1.2-30]
    takeAuth(this.enhanced, version, buffer, frame, null);
  }

  /** Begins the exchange of AUTH packets; the steps go on when it has let the client in. */
  exchangeAuth(method: string, credentials: Credentials): void {
    this.enhanced = new EnhancedAuthentication(method, this.client);
    this.enhanced.connect(credentials, this.packet.properties?.authenticationData ?? null, (result) => {
      if ('reasonCode' in result) {
        this.refuse(result);
        return;
      }
      this.known = result.identity;
      this.authenticationData = result.data;
      this.run();
    });
  }

  /** A new session could not be stored: there is none, and its will counts for nothing. */
  takeBack(): void {
    const { session } = this.opened;
    this.opening = null;
    if (session.client !== this.client) return;
    session.client = null;
    session.will = null;
    this.registry.end(session, 'not stored');
  }

  private decided(refusal: Outcome): void {
    if (refusal === null) this.run();
    else this.refuse(refusal);
  }

  private refuse(refusal: Refusal): void {
    const { core, packet, client } = this;
    if (refusal.silent !== true) client.send(encodeRefused(packet.version, refusal));
    const { clientId, username } = packet;
    const { why: reason, reasonCode } = refusal;
    this.log({ clientId, username, reason, reasonCode });
    core.emit({ kind: 'refused', clientId, username, remote: client.connection.remote, reason, reasonCode });
    client.turnedAway();
  }

  private log(fields: Record<string, unknown>): void {
    this.core.stats.refused++;
    const remote = this.client.connection.remote;
    this.core.log('info', 'CON-REFUSED', { ...fields, remote, listener: this.listener.name });
  }
}
