// The keys of one request of dynamic security, read one by one: what is not of its type is refused, in mosquitto's
// words. Called by commands.ts for each command. Pure.
import { type Account, type Json, objectOf, priorityOf, type Right, readRight, type Use } from '../../base/accounts.ts';
import { refuse } from './draft.ts';

/** A hash in the place of a request's password, made by accounts.ts. */
export type Hashed = NonNullable<Account['hash']>;

export function name(request: Json, key: 'username' | 'groupname' | 'rolename'): string {
  const value = request[key];
  return typeof value === 'string' && value !== '' ? value : refuse(`Invalid/missing ${key}`);
}

function optionalText(request: Json, key: string, error: string): string | undefined {
  const value = request[key];
  if (value === undefined) return undefined;
  return typeof value === 'string' && value.length <= 4096 ? value : refuse(`Invalid/missing ${error}`);
}

export function priority(request: Json): number {
  return priorityOf(request, -1) ?? refuse('Invalid/missing priority');
}

export function described(request: Json): Partial<Pick<Account, 'textName' | 'textDescription'>> {
  const textName = optionalText(request, 'textname', 'textname');
  const textDescription = optionalText(request, 'textdescription', 'textdescription');
  return {
    ...(textName === undefined ? {} : { textName: textName || null }),
    ...(textDescription === undefined ? {} : { textDescription: textDescription || null }),
  };
}

export function uses(request: Json, list: string, key: 'username' | 'groupname' | 'rolename'): Use[] | undefined {
  const value = request[list];
  if (value === undefined) return undefined;
  const wrong = `'${list}' not an array or missing/invalid ${key}`;
  if (!Array.isArray(value)) refuse(wrong);
  return (value as unknown[]).map((entry) => {
    const one = objectOf(entry);
    const named = one?.[key];
    if (one === null || typeof named !== 'string') refuse(wrong);
    return { name: named, priority: priority(one) };
  });
}

export function rights(request: Json): Right[] | undefined {
  const { acls } = request;
  if (acls === undefined) return undefined;
  if (!Array.isArray(acls)) refuse('Invalid/missing acls');
  return (acls as unknown[]).map((entry) => {
    const right = readRight(objectOf(entry) ?? {});
    return typeof right === 'string' ? refuse(right) : right;
  });
}

/** Empty = no longer bound to one. */
export function clientId(request: Json, error: string): Partial<Account> {
  const pattern = optionalText(request, 'clientid_pattern', 'client id pattern');
  if (pattern) return { clientId: pattern, isPattern: true };
  const id = optionalText(request, 'clientid', error) ?? pattern;
  return id === undefined ? {} : { clientId: id === '' ? null : id, isPattern: false };
}

function password({ password: given }: Json, hash: Hashed | null): Partial<Account> {
  if (given !== undefined && typeof given !== 'string') refuse('Invalid/missing password');
  return hash === null ? {} : { hash };
}

export function accountOf(request: Json, hash: Hashed | null): Partial<Account> {
  const groups = uses(request, 'groups', 'groupname');
  const roles = uses(request, 'roles', 'rolename');
  return {
    ...password(request, hash),
    ...clientId(request, 'client id'),
    ...described(request),
    ...(roles === undefined ? {} : { roles }),
    ...(groups === undefined ? {} : { groups }),
  };
}
