// UTF-8 strings and binary data on the wire (MQTT 5.0 sections 1.5.2, 1.5.4, 1.5.6): every way to be malformed.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { binaryBytes, isText, readText, textBytes, writeBinary, writeText, writeUint16 } from '../../src/codec/text.ts';
import { caught } from '../harness/thrown.ts';

/** The string alone in the middle of other bytes. */
function read(bytes: Uint8Array): string {
  const chunk = Buffer.concat([Buffer.from([0xff]), bytes, Buffer.from([0x80, 0xff])]);
  return readText(chunk, 1, 1 + bytes.length);
}

describe('readText', () => {
  it('reads any well-formed text back [MQTT-1.5.4-1]', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        if (!text.includes('\0')) expect(read(Buffer.from(text))).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  it('agrees with the strict decoder of the platform on any bytes [MQTT-1.5.4-1] [MQTT-1.5.4-2]', () => {
    const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc.array(fc.constantFrom(0x41, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xf0, 0x9f, 0), { maxLength: 80 }),
    );
    fc.assert(
      fc.property(bytes, (some) => {
        const data = Uint8Array.from(some);
        let wanted: string | null = null;
        try {
          wanted = strict.decode(data);
        } catch {}
        if (wanted === null || wanted.includes('\0'))
          expect(caught(() => read(data))).toMatchObject({ reasonCode: 0x81 });
        else expect(read(data)).toBe(wanted);
      }),
      { numRuns: 3000 },
    );
  });

  it.each([63, 64, 65, 128])(
    'finds U+0000 and ill-formed bytes in %i bytes, wherever they are [MQTT-1.5.4-2]',
    (length) => {
      for (const byte of [0, 0x80, 0xff]) {
        for (const at of [0, 1, length >> 1, length - 1]) {
          const data = Buffer.alloc(length, 0x61);
          data[at] = byte;
          expect(caught(() => read(data))).toMatchObject({ reasonCode: 0x81 });
        }
      }
    },
  );

  it('keeps U+FEFF, first or not [MQTT-1.5.4-3]', () =>
    expect(read(Buffer.from('\ufeffa\ufeff'))).toBe('\ufeffa\ufeff'));
  it('reads nothing as the empty string', () => expect(read(Buffer.alloc(0))).toBe(''));
  it('is not misled by the bytes behind the string', () => {
    const chunk = Buffer.from([0x61, 0xe2, 0x82, 0xac]);
    expect(caught(() => readText(chunk, 0, 3))).toMatchObject({ reasonCode: 0x81 });
    expect(isText(chunk, 0, 3)).toBe(false);
    expect(isText(chunk, 0, 4)).toBe(true);
  });
});

describe('writeText', () => {
  it('writes length and UTF-8, as many bytes as textBytes says', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), (text) => {
        if (text.includes('\0')) return;
        const buffer = Buffer.alloc(textBytes(text) + 1, 0xee);
        expect(writeText(buffer, 0, text)).toBe(textBytes(text));
        expect(buffer[buffer.length - 1]).toBe(0xee);
        expect(buffer.readUInt16BE(0)).toBe(Buffer.byteLength(text));
        expect(buffer.toString('utf8', 2, buffer.length - 1)).toBe(text);
      }),
    );
  });
  it('refuses U+0000 [MQTT-1.5.4-2]', () => {
    expect(caught(() => writeText(Buffer.alloc(9), 0, 'a\0'))).toMatchObject({ reasonCode: 0x81 });
  });
  it('refuses more than 65,535 bytes', () => {
    expect(textBytes('x'.repeat(65_535))).toBe(65_537);
    expect(caught(() => textBytes('x'.repeat(65_536)))).toMatchObject({ reasonCode: 0x81 });
  });
});

describe('writeBinary', () => {
  it('writes length and data', () => {
    const buffer = Buffer.alloc(6, 0xee);
    expect(writeBinary(buffer, 1, Uint8Array.of(0, 255))).toBe(5);
    expect(buffer.toString('hex')).toBe('ee000200ffee');
  });
  it('refuses more than 65,535 bytes', () => {
    expect(caught(() => binaryBytes(new Uint8Array(65_536)))).toMatchObject({ reasonCode: 0x81 });
  });
});

describe('writeUint16', () => {
  it('writes the high byte first', () => {
    const buffer = Buffer.alloc(2);
    writeUint16(buffer, 0, 0x1234);
    expect(buffer.toString('hex')).toBe('1234');
  });
});
