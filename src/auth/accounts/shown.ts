// Accounts, groups and roles as answers show them: names and rights, never a hash. Called by commands.ts and for the
// REST API. Pure.
import {
  type Account,
  type Group,
  type Json,
  type Role,
  shownRight,
  shownUse,
  trimmed,
  type Use,
} from '../../base/accounts.ts';

export function shownAccount(username: string, account: Account): Json {
  const { clientId: id, isPattern, textName, textDescription, disabled, roles, groups } = account;
  return trimmed({
    username,
    clientid: isPattern ? null : id,
    clientid_pattern: isPattern ? id : null,
    textname: textName,
    textdescription: textDescription,
    disabled: disabled ? true : null,
    roles: roles.map((use) => shownUse('rolename', use)),
    groups: groups.map((use) => shownUse('groupname', use)),
  });
}

export function shownGroup(groupname: string, group: Group, members: readonly Use[]): Json {
  return trimmed({
    groupname,
    textname: group.textName,
    textdescription: group.textDescription,
    clients: members.map((use) => ({ username: use.name })),
    roles: group.roles.map((use) => shownUse('rolename', use)),
  });
}

export function shownRole(rolename: string, role: Role): Json {
  return trimmed({
    rolename,
    textname: role.textName,
    textdescription: role.textDescription,
    acls: role.rights.map(shownRight),
  });
}
