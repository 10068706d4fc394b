// MQTT users, groups and roles as the REST API has them, and as forms hold them: lists of names as text. Pure; used by
// pages/mqttusers.tsx and its dialogs.

export interface Uses {
  readonly rolename?: string;
  readonly groupname?: string;
  readonly username?: string;
  readonly priority?: number;
}
export interface MqttUser {
  readonly username: string;
  readonly clientid?: string;
  readonly textname?: string;
  readonly disabled?: boolean;
  readonly has_password?: boolean;
  readonly roles?: readonly Uses[];
  readonly groups?: readonly Uses[];
}
export interface MqttGroup {
  readonly groupname: string;
  readonly textname?: string;
  readonly roles?: readonly Uses[];
  readonly clients?: readonly Uses[];
}
export interface Acl {
  readonly acltype: string;
  readonly topic: string;
  readonly priority?: number;
  readonly allow: boolean;
}
export interface MqttRole {
  readonly rolename: string;
  readonly textname?: string;
  readonly acls?: readonly Acl[];
}

export const ACL_TYPES = [
  'publishClientSend',
  'publishClientReceive',
  'subscribePattern',
  'subscribeLiteral',
  'unsubscribePattern',
  'unsubscribeLiteral',
] as const;

export function namesOf(list: readonly Uses[] | undefined): string[] {
  return (list ?? []).map((one) => one.rolename ?? one.groupname ?? one.username ?? '');
}

/** Names of a field, one a line or with commas between. */
export function readNames(text: string): string[] {
  return [...new Set(text.split(/[\n,]/).map((name) => name.trim()))].filter((name) => name !== '');
}

/**
 * The list of a field as the API takes it: a name that was there keeps its priority.
 * @param key rolename, groupname or username
 */
export function usesOf(text: string, key: keyof Uses, before: readonly Uses[] | undefined): Uses[] {
  return readNames(text).map((name) => (before ?? []).find((one) => one[key] === name) ?? { [key]: name });
}
