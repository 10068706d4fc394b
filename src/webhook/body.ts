// The bodies of webhook requests, in NanoMQ's shapes. Called by webhook.ts. Pure.
// Source: NanoMQ's webhook; base62 as EMQX writes it: six bits a character, A-Z a-z 0-8, and 9 before what is left.
import type { BrokerEvent, ClientView } from '../broker/broker.ts';
import type { Publication } from '../mqtt/message.ts';

export type Encoding = 'plain' | 'base64' | 'base62';

/** NanoMQ's word for a client without a user name. */
const NOBODY = 'undefined';

/** Bytes of the longest text that stands in the head of a body; a reason string may be as long as a peer wants it. */
const REASON_CHARS = 512;

function bytes(body: object): Buffer {
  return Buffer.from(JSON.stringify(body));
}

export function connackBody({ version, keepAlive, username, clientId }: ClientView): Buffer {
  return bytes({
    proto_ver: version,
    keepalive: keepAlive,
    conn_ack: 'success',
    username: username ?? NOBODY,
    clientid: clientId,
    action: 'client_connack',
  });
}

export function refusedBody({ clientId, username, reason }: Extract<BrokerEvent, { kind: 'refused' }>): Buffer {
  return bytes({
    conn_ack: reason.slice(0, REASON_CHARS),
    username: username ?? NOBODY,
    clientid: clientId,
    action: 'client_connack',
  });
}

export function disconnectedBody(event: Extract<BrokerEvent, { kind: 'disconnected' }>): Buffer {
  const { client, reason, reasonCode } = event;
  return bytes({
    reason: reasonCode === 0 ? 'normal' : reason.slice(0, REASON_CHARS),
    username: client.username ?? NOBODY,
    clientid: client.clientId,
    action: 'client_disconnected',
  });
}

/** @param nowMs wall-clock milliseconds */
export function publishBody(publication: Publication, encoding: Encoding, nowMs: number): Buffer {
  const { topic, retain, qos, origin } = publication;
  return bytes({
    ts: nowMs,
    topic,
    retain,
    qos,
    action: 'message_publish',
    from_username: origin.username ?? NOBODY,
    from_client_id: origin.clientId,
    payload: encodePayload(publication.payload(), encoding),
  });
}

/** Plain is text: bytes that are no UTF-8 become replacement characters, so binary payloads want base64. */
function encodePayload(payload: Uint8Array, encoding: Encoding): string | null {
  const view = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  if (encoding === 'plain') return view.toString();
  if (view.length === 0) return null;
  return encoding === 'base64' ? view.toString('base64') : base62(view);
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678';

function digit(bits: number): string {
  return bits < DIGITS.length ? DIGITS[bits] : `9${DIGITS[bits - DIGITS.length]}`;
}

/** The last character holds the 2 or 4 bits that are left, not shifted. */
export function base62(payload: Uint8Array): string {
  let text = '';
  let bits = 0;
  let count = 0;
  for (const byte of payload) {
    bits = (bits << 8) | byte;
    count += 8;
    while (count >= 6) {
      count -= 6;
      text += digit((bits >> count) & 63);
    }
    bits &= (1 << count) - 1;
  }
  return count > 0 ? text + digit(bits) : text;
}
