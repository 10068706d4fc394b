// Whether bridges may publish what they bring in, told before the first message is denied. Called by `tidegate check`.
// Looks at the global ACL file and acl.rules only; a bridge's user is BRIDGE_USERS. What depends on the message is not
// judged.
import { type AclFile, loadAclFile } from '../auth/aclfile.ts';
import type { Identity } from '../auth/auth.ts';
import { Rules } from '../auth/rules.ts';
import { WRITE } from '../auth/ruletree.ts';
import type { Config } from '../config/config.ts';
import { nngBridges } from '../config/nngbridges.ts';
import type { Position, Problem } from '../config/problem.ts';
import { isTopicName } from '../mqtt/topic.ts';

/** The user names under which bridges publish (bridge/nng/bridge.ts, bridge/mqtt/bridge.ts). */
export const BRIDGE_USERS = { nng: 'nngproxy_bridge', mqtt: 'mqtt_bridge' } as const;

interface Inbound {
  readonly key: string;
  readonly at: Position;
  readonly username: string;
  readonly clientId: string;
  /** Topics that are known as they stand. */
  readonly topics: readonly string[];
}

/**
 * A warning for each bridge that brings messages in and may publish none of them, or not on a topic that its rules
 * name.
 */
export async function bridgeRights(config: Config): Promise<Problem[]> {
  const { aclFile, acl, noMatch } = config.auth;
  const file = aclFile === null ? null : await loadAclFile(aclFile).catch(() => null);
  const rules = acl === null ? null : new Rules({ rules: acl, noMatch });
  if (file === null && rules === null) return [];
  return inbound(config).flatMap((bridge) => {
    const { username, clientId, key, at, topics } = bridge;
    const who: Identity = { username, clientId, remoteAddress: '', listener: '', claims: null, internal: true };
    const denied = topics.find((topic) => !mayPublish(who, topic, file, rules));
    if (denied === undefined && (file === null || file.grantsWriting(who))) return [];
    const what = denied === undefined ? 'anything' : `"${denied}"`;
    return [{ at, key, message: `its messages will be denied: user ${username} may not publish ${what}` }];
  });
}

function mayPublish(who: Identity, topic: string, file: AclFile | null, rules: Rules | null): boolean {
  if (file !== null && !file.allows(who, topic, WRITE)) return false;
  return rules === null || rules.allows(who, 'publish', topic);
}

function inbound({ bridges }: Config): Inbound[] {
  const nng = nngBridges(bridges.nng).flatMap((bridge) => {
    const rules = 'subscription' in bridge ? bridge.subscription : [];
    if (!bridge.enable || rules.length === 0) return [];
    const key = `bridges.nng.${bridge.type}.${bridge.name}`;
    const topics = rules.map(({ localTopic }) => localTopic).filter(isPlain);
    const clientId = bridge.clientId ?? '';
    return [{ key, at: bridge.source, username: BRIDGE_USERS.nng, clientId, topics }];
  });
  const mqtt = bridges.mqtt.flatMap((bridge) => {
    if (!bridge.enable || bridge.subscription.length === 0) return [];
    const topics = bridge.subscription.map(({ localTopic }) => localTopic).filter(isPlain);
    const key = `bridges.mqtt.${bridge.name}`;
    return [{ key, at: bridge.source, username: BRIDGE_USERS.mqtt, clientId: bridge.clientId ?? '', topics }];
  });
  return [...nng, ...mqtt];
}

/** A topic as it stands: nothing is put in, and it is not that of the message. */
function isPlain(topic: string | null): topic is string {
  return topic !== null && topic !== '' && isTopicName(topic) && !/[{}$]/.test(topic);
}
