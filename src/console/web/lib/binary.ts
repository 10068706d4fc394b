// Payloads that are CBOR or MessagePack, as JSON text. Loaded by the payload view when somebody asks for it. What is not
// of the format, or goes on behind its value, gives null.
import { decode as decodeMessagePack } from '@msgpack/msgpack';
import { decode as decodeCbor } from 'cborg';

export type Packing = 'cbor' | 'msgpack';

/** JSON has no bytes, no big numbers and no dates: they are written as text that says what they are. */
function asJson(value: unknown): string | null {
  const text = JSON.stringify(
    value,
    (_key, one: unknown) => {
      if (typeof one === 'bigint') return one.toString();
      if (one instanceof Uint8Array) return `0x${[...one].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
      if (one instanceof Map)
        return Object.fromEntries([...one].map(([key, inner]) => [String(key), inner as unknown]));
      return one;
    },
    2,
  );
  return text === undefined ? null : text;
}

export function unpacked(bytes: Uint8Array, packing: Packing): string | null {
  try {
    return asJson(packing === 'cbor' ? decodeCbor(bytes, { useMaps: true }) : decodeMessagePack(bytes));
  } catch {
    return null;
  }
}
