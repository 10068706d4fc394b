// The session that a client gets: an older connection of its client id ends, the session is found or made, and how long
// it lives is settled. Called by connect.ts for a client that has passed every check. Sends nothing.
import type { Identity } from '../auth/auth.ts';
import type { ConnectPacket } from '../mqtt/packet.ts';
import type { Peer } from './peer.ts';
import { enterScopes } from './quotas.ts';
import type { Registry } from './registry.ts';
import type { Core, SessionLimits } from './session.ts';
import { NEVER, type Session } from './state.ts';

/**
 * Session Expiry Interval in force, in seconds: asked for, capped; before 5.0 a session without clean start has none of
 * its own.
 */
export function sessionExpiry(limits: SessionLimits, packet: ConnectPacket): number {
  const asked = packet.version === 5 ? (packet.properties?.sessionExpiryInterval ?? 0) : packet.cleanStart ? 0 : NEVER;
  return capExpiry(limits, asked);
}

export function capExpiry(limits: SessionLimits, seconds: number): number {
  const most = limits.maxSessionExpiryMs === 0 ? NEVER : Math.floor(limits.maxSessionExpiryMs / 1000);
  return Math.min(seconds, most);
}

/** Keep Alive in force, in seconds; a 5.0 client is told when it differs [MQTT-3.2.2-21]. */
export function keepAliveOf(limits: SessionLimits, packet: ConnectPacket): number {
  const most = limits.maxKeepaliveSeconds;
  if (packet.version < 5 || most === 0 || most >= 65_535) return packet.keepAlive;
  return packet.keepAlive === 0 || packet.keepAlive > most ? most : packet.keepAlive;
}

/** The session a client has been given. */
export interface Opened {
  readonly session: Session;
  /** There was one already and it is continued. */
  readonly present: boolean;
  /** The store was told something that CONNACK has to wait for. */
  readonly waits: boolean;
  /** The store does not know the session yet. */
  readonly fresh: boolean;
}

/**
 * Lets an authenticated client in: ends the connection that has its client id, finds or makes the session and puts the
 * client there.
 */
export function openSession(
  core: Core,
  registry: Registry,
  client: Peer,
  packet: ConnectPacket,
  identity: Identity,
): Opened {
  takeOver(core, registry, client, packet, identity);
  const { session, present, discarded } = registry.open(identity, packet.version, packet.cleanStart);
  if (present) registry.wills.cancel(session);
  enterScopes(core, session);
  session.client = client;
  // The session outlives the connection: it must not hold on to it.
  const { listener } = client;
  session.setAccess(() => listener.access());
  session.since = core.clock.now();
  session.remote = client.connection.remote;
  session.listener = client.listener.name;
  mountAt(core, session, core.policies?.of(identity)?.mount ?? '');
  session.will = packet.will;
  registry.weigh(session);
  session.bridge = packet.bridge;
  session.keepAlive = keepAliveOf(core.limits, packet);
  const stored = session.outbox.durable;
  const told = registry.begin(session, sessionExpiry(core.limits, packet));
  return { session, present, waits: told || discarded, fresh: session.outbox.durable && !stored };
}

/** Another mount point takes other messages: what was found of routes no longer holds. */
function mountAt(core: Core, session: Session, mount: string): void {
  if (session.mount === mount) return;
  session.mount = mount;
  session.moved();
  core.router.invalidate();
}

/** Another connection with the same client id has to go [MQTT-3.1.4-3]. */
function takeOver(core: Core, registry: Registry, client: Peer, packet: ConnectPacket, identity: Identity): void {
  const before = registry.get(identity.clientId);
  if (before === undefined || before.client === null) return;
  core.stats.takeovers++;
  core.log('info', 'SES-TAKEOVER', {
    clientId: identity.clientId,
    remote: client.connection.remote,
    previous: before.client.connection.remote,
  });
  const often = core.contests.note(identity.clientId, core.clock.mono());
  if (often > 0) {
    core.log('warn', 'SES-CONTEST', {
      clientId: identity.clientId,
      remote: client.connection.remote,
      previous: before.client.connection.remote,
      takeovers: often,
    });
  }
  // A session that ends with its connection cannot be continued [MQTT-3.1.2-6 of 3.1.1].
  const continued = !packet.cleanStart && before.expiryInterval > 0;
  before.client.takeOver(continued);
}
