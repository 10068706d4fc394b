// Payloads in another form: base64 text for peers that cannot take bytes, a JSON envelope for those that want topic and
// QoS as well. Called by outgoing.ts (encode) and incoming.ts (decode), only for rules that ask for it. Source:
// docs/nng-bridges.md.
//
//   json | {"topic":"a/b","qos":1,"retain":false,"payload":"text"}; "encoding":"base64" where the payload is no text
import { isUtf8 } from 'node:buffer';
import type { Publication } from '../../mqtt/message.ts';
import type { PayloadForm } from '../bridge.ts';

/** The payload of a publication, without its first `skip` bytes, as it stands in the frame. */
export function encodePayload(form: Exclude<PayloadForm, 'raw'>, publication: Publication, skip = 0): Buffer {
  const payload = Buffer.from(publication.payload().subarray(skip));
  if (form === 'base64') return Buffer.from(payload.toString('base64'), 'latin1');
  const { topic, qos, retain } = publication;
  const body = isUtf8(payload)
    ? { topic, qos, retain, payload: payload.toString() }
    : { topic, qos, retain, payload: payload.toString('base64'), encoding: 'base64' };
  return Buffer.from(JSON.stringify(body));
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function fromBase64(text: string): Buffer | null {
  // The character class is linear, and Buffer alone would skip what it does not know.
  return text.length % 4 === 0 && BASE64.test(text) ? Buffer.from(text, 'base64') : null;
}

/** The payload that stands in bytes[start, end), null when it is not of that form. */
export function decodePayload(
  form: Exclude<PayloadForm, 'raw'>,
  bytes: Uint8Array,
  start: number,
  end: number,
): Buffer | null {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
  if (form === 'base64') return fromBase64(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || !('payload' in value) || typeof value.payload !== 'string')
    return null;
  if ('encoding' in value && value.encoding === 'base64') return fromBase64(value.payload);
  return Buffer.from(value.payload);
}
