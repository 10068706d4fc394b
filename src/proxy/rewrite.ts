// A CONNECT with other values for client id, user name and password, everything else byte for byte as it came. Called
// by verdict.ts where `set` says so. Length and flags are made anew, the order of the fields is the specification's.
// Source: MQTT 5.0 section 3.1.3, 3.1.1 section 3.1.3.
//
//   fixed header (Remaining Length in its shortest form) | name, level, flags', keep alive, properties
//     | id' | will | user name' | password'
import { TEXT_MAX_BYTES } from '../codec/text.ts';
import { CONNECT } from '../mqtt/packet.ts';
import { varintBytes, writeVarint } from '../mqtt/varint.ts';
import type { Facts } from './facts.ts';
import type { ConnectLayout } from './layout.ts';
import type { SetOptions } from './proxy.ts';
import { compileTemplate, type Template } from './template.ts';

/** undefined = leave the field, null = remove it. */
export interface Replacements {
  readonly clientId: Template | null | undefined;
  readonly username: Template | null | undefined;
  readonly password: Template | null | undefined;
}

export function compileSet(set: SetOptions, env: Readonly<Record<string, string | undefined>>): Replacements | null {
  if (set.clientId === undefined && set.username === undefined && set.password === undefined) return null;
  const compile = (text: string | null | undefined): Template | null | undefined =>
    typeof text === 'string' ? compileTemplate(text, env) : text;
  return { clientId: compile(set.clientId), username: compile(set.username), password: compile(set.password) };
}

/**
 * Why a CONNECT cannot be rewritten: a value that no field can hold, an id that must not be empty, a password without
 * user name.
 */
export type RewriteFailure = 'bad-value' | 'empty-clientid' | 'password-without-username';

export interface Rewritten {
  /** The packet alone. */
  readonly bytes: Buffer;
  readonly clientId: string;
}

const USERNAME_FLAG = 0x80;
const PASSWORD_FLAG = 0x40;
const REMAINING_MAX = 268_435_455;

/** The new bytes of one field: a range of the old packet, a new value, or nothing. */
type Field = Uint8Array | null;

export function rewriteConnect(
  layout: ConnectLayout,
  set: Replacements,
  facts: Facts,
  identity: string | null,
): Rewritten | RewriteFailure {
  const { bytes, packet } = layout;
  const { version } = packet;
  const id = newClientId(layout, set, facts);
  const username =
    set.username === undefined && identity !== null
      ? Buffer.from(identity)
      : newField(set.username, facts, oldField(bytes, layout.usernameStart, layout.usernameEnd));
  let password = newField(set.password, facts, oldField(bytes, layout.passwordStart, layout.passwordEnd));
  if (version < 5 && username === null && password !== null) {
    // A password that is put in needs a name to go with it; one that came with a name that is taken away goes with it.
    // [MQTT-3.1.2-22 of 3.1.1]
    if (set.password !== undefined) return 'password-without-username';
    password = null;
  }
  for (const field of [id, username, password]) if (field !== null && field.length > TEXT_MAX_BYTES) return 'bad-value';
  // [MQTT-1.5.4-2]
  if (holdsNul(id) || (username !== null && set.username !== undefined && holdsNul(username))) return 'bad-value';
  // [MQTT-3.1.3-7 of 3.1.1]
  if (id.length === 0 && (version === 3 || (version === 4 && !packet.cleanStart))) return 'empty-clientid';
  const made = assemble(layout, id, username, password);
  return made === null ? 'bad-value' : { bytes: made, clientId: Buffer.from(id).toString() };
}

function newClientId(layout: ConnectLayout, set: Replacements, facts: Facts): Uint8Array {
  const old = layout.bytes.subarray(layout.idStart, layout.idEnd);
  if (set.clientId === undefined) return old;
  if (set.clientId === null) return Buffer.alloc(0);
  // All clients without an id would share the one that the template makes of nothing.
  if (old.length === 0 && set.clientId.usesClientId) return old;
  return Buffer.from(set.clientId.fill(facts));
}

function oldField(bytes: Buffer, start: number, end: number): Field {
  return start < 0 ? null : bytes.subarray(start, end);
}

function newField(template: Template | null | undefined, facts: Facts, old: Field): Field {
  if (template === undefined) return old;
  return template === null ? null : Buffer.from(template.fill(facts));
}

function holdsNul(bytes: Uint8Array): boolean {
  return bytes.includes(0);
}

function assemble(layout: ConnectLayout, id: Uint8Array, username: Field, password: Field): Buffer | null {
  const { bytes, bodyStart, flagsAt, idStart, idEnd, willEnd } = layout;
  const headEnd = idStart - 2;
  let remaining = headEnd - bodyStart + 2 + id.length + (willEnd - idEnd);
  if (username !== null) remaining += 2 + username.length;
  if (password !== null) remaining += 2 + password.length;
  if (remaining > REMAINING_MAX) return null;
  const out = Buffer.allocUnsafe(1 + varintBytes(remaining) + remaining);
  // 3.1 clients may set the low bits; they have no meaning anywhere.
  out[0] = layout.packet.version === 3 ? bytes[0] : CONNECT << 4;
  let at = writeVarint(out, 1, remaining);
  const newFlagsAt = at + flagsAt - bodyStart;
  at += bytes.copy(out, at, bodyStart, headEnd);
  const flags = bytes[flagsAt] & ~(USERNAME_FLAG | PASSWORD_FLAG);
  out[newFlagsAt] = flags | (username === null ? 0 : USERNAME_FLAG) | (password === null ? 0 : PASSWORD_FLAG);
  at = writeField(out, at, id);
  at += bytes.copy(out, at, idEnd, willEnd);
  if (username !== null) at = writeField(out, at, username);
  if (password !== null) writeField(out, at, password);
  return out;
}

function writeField(out: Buffer, at: number, value: Uint8Array): number {
  out.writeUInt16BE(value.length, at);
  out.set(value, at + 2);
  return at + 2 + value.length;
}
