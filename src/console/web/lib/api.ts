// Calls of the REST API, and who is logged in. Used by every page. The cookie is the browser's; the token that changes
// have to send is kept here. A call without a valid session ends in the login page, whichever page made it.

import { createStore } from './store.ts';
import type { Problem } from './types.ts';
import { answerText } from './words.ts';

export type Role = 'viewer' | 'operator' | 'admin';
const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];

export interface Me {
  readonly username: string;
  readonly role: Role;
  readonly via: 'open' | 'basic' | 'jwt' | 'session' | 'socket';
  readonly csrf: string | null;
}

/** A call that was refused, with what the answer says about it. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: number;
  readonly pointer: string;
  readonly problems: readonly Problem[];

  constructor(status: number, code: number, message: string, pointer: string, problems: readonly Problem[]) {
    super(message);
    this.status = status;
    this.code = code;
    this.pointer = pointer;
    this.problems = problems;
  }
}

/** undefined: not known yet; null: nobody is logged in. */
export const me = createStore<Me | null | undefined>(undefined);
/** Whether the user has logged out himself: nothing of his pages stays then. */
export const left = createStore(false);
/** Whether the last call reached the gateway. */
export const reachable = createStore(true);

export function can(needed: Role): boolean {
  const role = me.get()?.role;
  return role !== undefined && ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

interface Failure {
  readonly code?: number;
  readonly message?: string;
  readonly pointer?: string;
  readonly problems?: readonly Problem[];
}

async function send(method: string, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = { 'x-requested-with': 'tidegate' };
  const csrf = me.get()?.csrf;
  if (csrf !== null && csrf !== undefined && method !== 'GET') headers['x-csrf-token'] = csrf;
  if (body !== undefined) headers['content-type'] = 'application/json';
  try {
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
    });
    reachable.set(true);
    return response;
  } catch {
    reachable.set(false);
    throw new ApiError(0, 0, 'unreachable', '', []);
  }
}

/** One call below /api/v4; throws ApiError. */
export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await send(method, `/api/v4${path}`, body);
  let answer: unknown;
  try {
    answer = await response.json();
  } catch {
    throw new ApiError(response.status, 0, `HTTP ${response.status}`, '', []);
  }
  if (response.ok) return answer as T;
  const { code = 0, message = `HTTP ${response.status}`, pointer = '', problems = [] } = answer as Failure;
  if (response.status === 401 && path !== '/login' && me.get() !== undefined) me.set(null);
  throw new ApiError(response.status, code, message, pointer, problems);
}

/** The `data` of a GET. */
export async function fetchData<T>(path: string): Promise<T> {
  return (await call<{ data: T }>('GET', path)).data;
}

/** Finds out who is logged in. */
export async function whoAmI(): Promise<void> {
  try {
    me.set(await fetchData<Me>('/me'));
  } catch (error) {
    me.set(null);
    if (error instanceof ApiError && error.status !== 401) throw error;
  }
}

export async function login(credentials: Readonly<Record<string, string>>): Promise<void> {
  const { data } = await call<{ data: Omit<Me, 'via'> }>('POST', '/login', credentials);
  left.set(false);
  me.set({ ...data, via: 'session' });
}

export async function logout(): Promise<void> {
  try {
    await call('POST', '/logout');
  } finally {
    left.set(true);
    me.set(null);
  }
}

/** A value in a path or query. */
export function escaped(text: string): string {
  return encodeURIComponent(text);
}

/** "?a=1&b=x" of what is not empty. */
export function query(values: Readonly<Record<string, string | number | undefined>>): string {
  const parts = Object.entries(values)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => `${name}=${escaped(String(value))}`);
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** What went wrong, in the language of the page. */
export function textOf(error: unknown): string {
  return answerText(error instanceof Error ? error.message : String(error));
}
