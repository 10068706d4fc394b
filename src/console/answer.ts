// What a handler gives back, and the codes of failed calls. Made by the route files, sent by app.ts.
// Numbers below 200 are NanoMQ's (its REST documentation, "code"); every failure carries {code, message, pointer}.
// Nothing here knows HTTP servers.
import type { ServerResponse } from 'node:http';
import type { ChangeResult, Json, JsonObject, Problem } from './console.ts';

interface CodeRow {
  readonly code: number;
  /** The HTTP status it goes with unless a call says otherwise. */
  readonly status: number;
  readonly text: string;
}

/** Every failure an answer can name. Listed in docs/rest-api.md; a test keeps both equal. */
export const CODES = {
  internal: { code: 101, status: 500, text: 'the call failed inside the gateway' },
  section: { code: 101, status: 404, text: 'no such section' },
  unavailable: { code: 101, status: 503, text: 'not possible right now' },
  path: { code: 102, status: 404, text: 'no such path' },
  method: { code: 102, status: 405, text: 'the path does not take this method' },
  credentials: { code: 103, status: 401, text: 'wrong credentials' },
  anonymous: { code: 104, status: 401, text: 'credentials are needed' },
  role: { code: 105, status: 403, text: 'the role of this user does not allow it' },
  origin: { code: 106, status: 403, text: 'a page of another origin may not do this' },
  missing: { code: 108, status: 400, text: 'something that is needed is missing' },
  value: { code: 108, status: 400, text: 'a value is wrong' },
  query: { code: 108, status: 400, text: 'unknown or wrong query parameter' },
  denied: { code: 108, status: 403, text: 'not allowed' },
  json: { code: 109, status: 400, text: 'the body is not valid JSON' },
  rules: { code: 111, status: 200, text: 'this gateway has no rule engine' },
  client: { code: 112, status: 404, text: 'no such client' },
  exists: { code: 113, status: 409, text: 'there is one of this name already' },
  ambiguous: { code: 113, status: 409, text: 'several bridges have this name' },
  bridge: { code: 115, status: 404, text: 'no such bridge' },
  rule: { code: 115, status: 404, text: 'no such rule' },
  token: { code: 116, status: 401, text: 'the token is not valid or has expired' },
  tooLarge: { code: 201, status: 413, text: 'the body is larger than http_server.max_body' },
  tooMany: { code: 202, status: 429, text: 'too many failed logins, try again later' },
  escape: { code: 203, status: 400, text: 'the address is not a well-formed path' },
  topic: { code: 204, status: 404, text: 'no such retained message' },
  user: { code: 207, status: 404, text: 'no such user' },
  message: { code: 204, status: 404, text: 'no such delayed message' },
  replay: { code: 204, status: 404, text: 'no such replay' },
  account: { code: 207, status: 404, text: 'no such user, group or role' },
  accounts: { code: 210, status: 404, text: 'auth.dynamic_security is not configured' },
  past: { code: 211, status: 404, text: 'nothing of the past is kept here' },
  recording: { code: 212, status: 404, text: 'no recording: neither record.path nor persistence.path is set' },
  upstream: { code: 206, status: 404, text: 'no such upstream or server' },
  slow: { code: 208, status: 408, text: 'the body did not come in time' },
  partly: { code: 209, status: 200, text: 'read, but not all of it is in force' },
  readers: { code: 205, status: 503, text: 'too many event streams are open' },
} as const satisfies Record<string, CodeRow>;
export type CodeName = keyof typeof CODES;

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes the response over: status and body above are not used. */
  readonly stream?: (response: ServerResponse, lastEventId: string | null) => void;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

export function json(value: Json, status = 200, headers?: Readonly<Record<string, string>>): Answer {
  return { status, contentType: JSON_TYPE, body: JSON.stringify(value), headers };
}

/** {"code":0,"data":...}, with more top-level members beside them when given. */
export function data(value: Json, more?: JsonObject): Answer {
  return json({ code: 0, data: value, ...more });
}

/** {"code":0}. */
export function done(status = 200): Answer {
  return json({ code: 0 }, status);
}

/**
 * A failed call.
 * @param detail what exactly; follows the text of the code
 * @param pointer JSON pointer (RFC 6901) into the body, "" for the whole
 */
export function fail(
  name: CodeName,
  detail?: string,
  pointer = '',
  headers?: Readonly<Record<string, string>>,
): Answer {
  const row = CODES[name];
  const message = detail === undefined ? row.text : `${row.text}: ${detail}`;
  return json({ code: row.code, message, pointer }, row.status, headers);
}

/** The answer for a document that the schema refuses: the first problem leads, all are listed (at most 20). */
export function refuse(problems: readonly Problem[]): Answer {
  const first = problems[0];
  const row = CODES.value;
  const message = first === undefined ? row.text : `${row.text}: ${first.message}`;
  const listed = problems.slice(0, 20).map(({ pointer, message }) => ({ pointer, message }));
  return json({ code: row.code, message, pointer: first?.pointer ?? '', problems: listed }, row.status);
}

/** The answer for a change to something named: `done` with `status` if it went through. */
export function changed(result: ChangeResult, missing: CodeName, status = 200): Answer {
  if (result.ok) return result.report === undefined ? done(status) : json({ code: 0, data: result.report }, status);
  if (result.why === 'missing') return fail(missing);
  if (result.why === 'exists') return fail('exists');
  if (result.why === 'unavailable') return fail('unavailable', result.message);
  return refuse(result.problems);
}

/** Whether a parsed document is an object, not an array. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
