// A route: method, path, who may call it, what it takes, what it does. The one list of them (routes.ts) feeds the
// server (app.ts), the description (openapi.ts) and its tests. Handlers are plain functions of a Call and know nothing
// of HTTP.
import type { IncomingHttpHeaders } from 'node:http';
import type { Answer } from './answer.ts';
import type { Json, Role } from './console.ts';

/** Who calls. `open`: no credentials are configured and the server is bound to loopback. */
export interface Caller {
  readonly username: string;
  readonly role: Role;
  readonly via: 'open' | 'basic' | 'jwt' | 'session' | 'socket';
  /** Of a token: how long it still holds, in milliseconds. */
  readonly lifeMs?: number;
}

/** What is known of a request before anything of its body is read. */
export interface Asking {
  readonly headers: IncomingHttpHeaders;
  /** Address without port. */
  readonly remote: string;
  /** It came over TLS. */
  readonly secure: boolean;
  /** It came over the control socket: from the gateway's user or root. */
  readonly local?: boolean;
}

export interface Call {
  /** Path parameters, decoded. */
  readonly params: ReadonlyMap<string, string>;
  /** Only keys that the route lists. */
  readonly query: ReadonlyMap<string, string>;
  /** The parsed body; null when there is none. */
  readonly body: Json;
  readonly caller: Caller;
  readonly asking: Asking;
}

export interface QueryParameter {
  readonly name: string;
  readonly text: string;
  readonly type: 'string' | 'integer' | 'boolean';
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As OpenAPI writes it: /api/v4/clients/{id}. */
  readonly path: string;
  /** The least role that may call it; public: no credentials are asked for. */
  readonly role: Role | 'public';
  readonly text: string;
  readonly query: readonly QueryParameter[];
  /** none: a body is not read; optional: an empty one is null; json: it must be JSON. */
  readonly body: 'none' | 'optional' | 'json';
  /** Not in the audit log although it is no GET: it changes nothing, or it has an entry of its own. */
  readonly quiet?: boolean;
  handle(call: Call): Answer | Promise<Answer>;
}

/** A GET that takes no body. */
export function get(
  path: string,
  text: string,
  handle: Route['handle'],
  role: Route['role'] = 'viewer',
  query: readonly QueryParameter[] = [],
): Route {
  return { method: 'GET', path, role, text, query, body: 'none', handle };
}

/** A call that changes something. */
export function write(
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  text: string,
  body: Route['body'],
  role: Role,
  handle: Route['handle'],
  query: readonly QueryParameter[] = [],
): Route {
  return { method, path, role, text, query, body, handle };
}

/** A path parameter; the router has it or the route does not match. */
export function param(call: Call, name: string): string {
  return call.params.get(name) ?? '';
}
