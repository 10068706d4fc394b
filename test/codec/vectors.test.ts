// Every packet vector, decoded and encoded: test/vectors/mqtt/*.json (one row a packet, expectation from the specification).
import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../src/base/errors.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { ConnectError, encodeRefusal } from '../../src/codec/connect.ts';
import { readFrame } from '../../src/codec/frame.ts';
import {
  type AnyPacket,
  bytes,
  decodeAny,
  encodeAny,
  expected,
  type FrameVector,
  loadVectors,
  type PacketVector,
  packetFiles,
  shown,
} from '../harness/packets.ts';
import { caught } from '../harness/thrown.ts';

const tags = (vector: { clause: string[] }): string => vector.clause.map((one) => `[${one}]`).join(' ');

for (const file of packetFiles()) {
  describe(file, () => {
    for (const vector of loadVectors<PacketVector>(file)) {
      const title = `${vector.name} ${tags(vector)}`;
      if (vector.error === undefined) it(`${title} is decoded and encoded`, () => holds(vector));
      else it(`${title} is refused`, () => refuses(vector));
    }
  });
}

function holds(vector: PacketVector): void {
  const wire = bytes(vector.hex);
  // The packet lies between other bytes, as it does in a chunk.
  const chunk = Buffer.concat([Buffer.alloc(3, 0xff), wire, Buffer.alloc(70, 0xff)]);
  const packet: AnyPacket = decodeAny(vector.version, chunk, vector.from, 3, 3 + wire.length);
  expect(shown(packet)).toEqual(expected(vector));
  expect(encodeAny(vector.version, packet).toString('hex')).toBe(bytes(vector.encodes ?? vector.hex).toString('hex'));
}

function refuses(vector: PacketVector): void {
  const wire = bytes(vector.hex);
  const chunk = Buffer.concat([wire, Buffer.alloc(70_000, 0x61)]);
  const error = caught(() => decodeAny(vector.version, chunk, vector.from, 0, wire.length));
  expect(error).toBeInstanceOf(ProtocolError);
  expect((error as ProtocolError).reasonCode).toBe(vector.error);
  if (vector.answer === undefined) return;
  expect(error).toBeInstanceOf(ConnectError);
  const answer = encodeRefusal(error as ConnectError);
  expect(answer === null ? null : answer.toString('hex')).toBe(
    vector.answer === null ? null : bytes(vector.answer).toString('hex'),
  );
}

describe('frame.json', () => {
  for (const vector of loadVectors<FrameVector>('frame.json')) {
    it(`${vector.name} ${tags(vector)}`, () => {
      const buffer = bytes(vector.hex);
      const frame = newFrame();
      const read = (): number => readFrame(buffer, 0, buffer.length, frame, vector.maxBytes ?? 2 ** 31);
      if (vector.error !== undefined) {
        expect(caught(read)).toMatchObject({ name: 'ProtocolError', reasonCode: vector.error });
        return;
      }
      const whole = read();
      if (vector.incomplete !== undefined) {
        expect([whole, frame.end]).toEqual([0, vector.incomplete]);
        return;
      }
      expect(frame.end - frame.bodyStart).toBe(vector.remaining);
      expect(whole).toBe(vector.remaining === 0 ? 1 : 0);
    });
  }
});
