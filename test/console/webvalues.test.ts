// Payloads as the pages take them apart: values of JSON by their paths, CBOR and MessagePack, User Properties of a form.
import { expect, test } from 'vitest';
import { unpacked } from '../../src/console/web/lib/binary.ts';
import { leavesOf } from '../../src/console/web/lib/jsonleaves.ts';
import { readUserProperties } from '../../src/console/web/lib/userproperties.ts';

test('values of JSON are found by their paths, bounded in number and depth', () => {
  expect(leavesOf('{"a":{"b":[1,true]},"c":"x","d":null}')).toEqual([
    { path: 'a.b.0', value: 1 },
    { path: 'a.b.1', value: true },
    { path: 'c', value: 'x' },
    { path: 'd', value: null },
  ]);
  expect(leavesOf('21.5')).toEqual([{ path: '', value: 21.5 }]);
  expect(leavesOf('not json')).toBeNull();
  expect(leavesOf(JSON.stringify(Array.from({ length: 1000 }, (_, i) => i)))).toHaveLength(100);
  expect(leavesOf(`${'['.repeat(200)}1${']'.repeat(200)}`)).toEqual([]);
});

test('CBOR and MessagePack are shown as JSON; bytes and big numbers as text; what is neither is told', () => {
  const cbor = Uint8Array.from(Buffer.from('a2616101616281f5', 'hex'));
  expect(JSON.parse(unpacked(cbor, 'cbor') ?? '')).toEqual({ a: 1, b: [true] });
  const packed = Uint8Array.from(Buffer.from('82a16101a162c40201ff', 'hex'));
  expect(JSON.parse(unpacked(packed, 'msgpack') ?? '')).toEqual({ a: 1, b: '0x01ff' });
  expect(unpacked(Uint8Array.from([0xff, 0xff]), 'cbor')).toBeNull();
  expect(unpacked(Uint8Array.from([0xc1]), 'msgpack')).toBeNull();
  expect(unpacked(Uint8Array.from([0x01, 0x01]), 'cbor')).toBeNull();
});

test('User Properties are one on a line; a line without a colon and a name that comes twice are refused', () => {
  expect(readUserProperties('unit: C\n\nwhere:hall 1:2 ')).toEqual({ unit: 'C', where: 'hall 1:2' });
  expect(readUserProperties('unit')).toBeNull();
  expect(readUserProperties('a: 1\na: 2')).toBeNull();
  expect(Object.keys(readUserProperties('__proto__: x') ?? {})).toEqual(['__proto__']);
});
