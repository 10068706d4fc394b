// CONNECT as an array of named steps: read CONNECT_STEPS from top to bottom. Run by admission.ts for the first packet
// of a connection. A step gives null (go on), a refusal, a promise of one of both, or BY_AUTH when AUTH packets
// have the word. Nothing of a client that is not let in has any effect: authentication comes before takeover, the will
// counts after CONNACK 0. Sources: MQTT 5.0 sections 3.1.4 and 4.12, 3.1.1 section 3.1.4.
import { randomBytes } from 'node:crypto';
import type { AuthResult, Credentials } from '../auth/auth.ts';
import { Hold } from '../mqtt/message.ts';
import type { ConnectPacket } from '../mqtt/packet.ts';
import { NOT_AUTHORIZED, PACKET_TOO_LARGE } from '../mqtt/reason.ts';
import type { Connection } from '../transport/transport.ts';
import type { Admission } from './admission.ts';
import {
  checkLimits,
  checkOwner,
  checkPlace,
  checkPrefix,
  checkRoom,
  mostQos,
  notStored,
  type Refusal,
} from './checks.ts';
import { encodeAccepted } from './connack.ts';
import { openSession } from './opening.ts';
import { checkSessions, takeTurn } from './quotas.ts';

/** The client's AUTH packets decide: admission goes on when they have. */
export const BY_AUTH = 'by AUTH packets';

export type Outcome = Refusal | null;
export type Step = (admission: Admission) => Outcome | Promise<Outcome> | typeof BY_AUTH;

export const CONNECT_STEPS: readonly Step[] = [
  keepLimits,
  assignClientId,
  matchPrefix,
  takeTurnByPlace,
  authenticate,
  nameByUsername,
  takeTurnByName,
  fitMountPoint,
  ownClientId,
  findRoom,
  // From here on an older connection of the client id has ended.
  open,
  encodeAnswer,
  store,
];

/** Limits on client id and will, which need nobody else. */
function keepLimits({ core, packet, listener }: Admission): Outcome {
  return checkLimits(core.limits, packet, listener.rules);
}

/** A client that has no client id gets one: a prefix and 16 unguessable characters [MQTT-3.1.3-6]. */
function assignClientId(admission: Admission): null {
  const { packet, listener } = admission;
  if (packet.clientId !== '') return null;
  const prefix = listener.rules?.autoClientIdPrefix ?? 'auto-';
  admission.assignedClientId = prefix + randomBytes(12).toString('base64url');
  packet.clientId = admission.assignedClientId;
  return null;
}

/** Before anybody is authenticated, as in mosquitto. */
function matchPrefix({ core, packet }: Admission): Outcome {
  return checkPrefix(core.limits, packet.clientId);
}

/** Within the connects a second of its address and listener: before a password costs anything. */
function takeTurnByPlace({ core, packet, listener, client }: Admission): ReturnType<Step> {
  if (core.quotas === null) return null;
  const { clientId, username } = packet;
  const whose = { clientId, username, listener: listener.name, remoteAddress: client.connection.remoteAddress };
  return takeTurn(core, core.quotas.ofPlace(whose, core.clock.mono()));
}

/** Within those of its client id and user, once it is known who it is. */
function takeTurnByName({ core, identity }: Admission): ReturnType<Step> {
  return core.quotas === null ? null : takeTurn(core, core.quotas.ofName(identity, core.clock.mono()));
}

/** Who it is: by username and password or certificate, or by an exchange of AUTH packets. */
function authenticate(admission: Admission): ReturnType<Step> {
  const { packet, listener, client } = admission;
  const credentials = credentialsOf(packet, client.connection, listener.name, () => client.isClosed());
  const method = packet.properties?.authenticationMethod;
  if (method !== undefined) {
    admission.exchangeAuth(method, credentials);
    return BY_AUTH;
  }
  const result = listener.access().authenticator.authenticate(credentials);
  return result instanceof Promise ? result.then((known) => judge(admission, known)) : judge(admission, result);
}

function judge(admission: Admission, result: AuthResult): Outcome {
  if (!result.accepted) return { reasonCode: result.reasonCode, why: result.why };
  admission.identity = result.identity;
  return null;
}

/** The listener may make the username the client id. */
function nameByUsername(admission: Admission): Outcome {
  const { identity, packet, listener } = admission;
  if (listener.rules?.useUsernameAsClientId !== true) return null;
  const clientId = identity.username ?? '';
  if (clientId === '') return { reasonCode: NOT_AUTHORIZED, why: 'no username for a client id' };
  admission.identity = { ...identity, clientId };
  // A 5.0 client is told only when it came without a client id.
  if (admission.assignedClientId !== null) admission.assignedClientId = clientId;
  packet.clientId = clientId;
  return null;
}

/** Its names may be part of all its topics. */
function fitMountPoint({ core, identity }: Admission): Outcome {
  return checkPlace(core, identity);
}

function ownClientId({ core, registry, identity }: Admission): Outcome {
  return checkOwner(core, registry, identity);
}

function findRoom({ core, registry, packet, identity }: Admission): Outcome {
  const known = registry.get(identity.clientId);
  return checkSessions(core, known, identity) ?? checkRoom(core, registry, packet, identity);
}

/** An older connection ends, the session is found or made [MQTT-3.1.4-3]. */
function open(admission: Admission): null {
  const { core, registry, client, packet, identity } = admission;
  admission.opened = openSession(core, registry, client, packet, identity);
  return null;
}

function encodeAnswer(admission: Admission): Outcome {
  const { core, packet, listener, opened } = admission;
  admission.connack = encodeAccepted(core, {
    packet,
    maxQos: mostQos(core.limits, listener.rules),
    assignedClientId: admission.assignedClientId,
    sessionPresent: opened.present,
    expiryInterval: opened.session.expiryInterval,
    keepAlive: opened.session.keepAlive,
    authenticationMethod: admission.enhanced?.method ?? null,
    authenticationData: admission.authenticationData,
  });
  if (admission.connack.length <= admission.maximumPacketSize) return null;
  const why = 'the CONNACK is larger than the client takes'; // [MQTT-3.1.2-24]
  return { reasonCode: PACKET_TOO_LARGE, why, silent: true };
}

/** CONNACK acknowledges a stored session, its will, or the end of an older one: it leaves after the commit. */
function store(admission: Admission): null | Promise<Outcome> {
  const { core, opened } = admission;
  if (!opened.waits) return null;
  const hold = new Hold();
  core.journal.barrierAll(hold);
  return new Promise<number>((resolve) => hold.whenDone(resolve)).then((code) => {
    // A session that was stored before goes on: what is new of it is written when the disk takes it.
    if (code < 0x80 || !opened.fresh) return null;
    admission.takeBack();
    return notStored(core, opened.session.clientId);
  });
}

/** @param gone whether the connection has ended: nobody needs the answer any more */
export function credentialsOf(
  packet: ConnectPacket,
  connection: Connection,
  listener: string,
  gone: () => boolean,
): Credentials {
  const { clientId, username, password, version } = packet;
  const { remoteAddress, tls } = connection;
  return { clientId, username, password, remoteAddress, listener, tls, version, gone };
}
