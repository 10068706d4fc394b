// Properties of the whole codec: what is encoded is decoded again, and no bytes make a decoder throw anything but ProtocolError
// or look behind the packet.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProtocolError } from '../../src/base/errors.ts';
import { newFrame, type Sender } from '../../src/codec/codec.ts';
import { readFrame } from '../../src/codec/frame.ts';
import type { Version } from '../../src/mqtt/packet.ts';
import { varintBytes, writeVarint } from '../../src/mqtt/varint.ts';
import { clientPacket, serverPacket } from '../harness/arbitrary.ts';
import { outcome } from '../harness/outcome.ts';
import { decodeAny, encodeAny, shown } from '../harness/packets.ts';

const VERSIONS: Version[] = [3, 4, 5];
const SENDERS: Sender[] = ['client', 'server'];

describe.each(VERSIONS)('packets of version %i', (version) => {
  it.each(SENDERS)('from a %s are decoded to what was encoded', (from) => {
    const packets = from === 'client' ? clientPacket(version) : serverPacket(version);
    fc.assert(
      fc.property(packets, (packet) => {
        const wire = encodeAny(version, packet);
        const chunk = Buffer.concat([Buffer.alloc(5, 0xff), wire, Buffer.alloc(70, 0xff)]);
        expect(shown(decodeAny(version, chunk, from, 5, 5 + wire.length))).toEqual(shown(packet));
      }),
      { numRuns: 1500 },
    );
  });

  it.each(SENDERS)('from a %s stay what they are when the chunk is overwritten', (from) => {
    const packets = from === 'client' ? clientPacket(version) : serverPacket(version);
    fc.assert(
      fc.property(packets, (packet) => {
        const wire = encodeAny(version, packet);
        const decoded = decodeAny(version, wire, from);
        wire.fill(0xee);
        expect(shown(decoded)).toEqual(shown(packet));
      }),
      { numRuns: 300 },
    );
  });

  it.each(SENDERS)('from a %s cut anywhere are refused or another packet, never a crash', (from) => {
    const packets = from === 'client' ? clientPacket(version) : serverPacket(version);
    fc.assert(
      fc.property(packets, fc.nat(), (packet, cut) => {
        const wire = encodeAny(version, packet);
        const body = wire.subarray(bodyStart(wire));
        const short = withLength(wire[0], body.subarray(0, cut % (body.length + 1)));
        outcome(version, short, from, 300);
      }),
      { numRuns: 1000 },
    );
  });

  it.each(SENDERS)('from a %s with changed bytes are refused or another packet, never a crash', (from) => {
    const packets = from === 'client' ? clientPacket(version) : serverPacket(version);
    const change = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(packets, fc.array(change, { minLength: 1, maxLength: 4 }), (packet, changes) => {
        const wire = encodeAny(version, packet);
        const body = Buffer.from(wire.subarray(bodyStart(wire)));
        for (const [at, byte] of changes) if (body.length > 0) body[at % body.length] = byte;
        const first = changes[0][0] % 5 === 0 ? changes[0][1] : wire[0];
        outcome(version, withLength(first, body), from, 300);
      }),
      { numRuns: 2000 },
    );
  });

  it('made of random bytes are refused or decoded, never a crash', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 60 }), (first, body) => {
        outcome(version, withLength(first, Buffer.from(body)), 'client', 300);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('readFrame', () => {
  it('finds the same packet however many of its bytes are there', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 40_000 }), (first, length) => {
        const packet = withLength(first, Buffer.alloc(length));
        const frame = newFrame();
        for (const end of [0, 1, 2, 3, 4, packet.length - 1]) {
          if (end < packet.length) expect(readFrame(packet, 0, end, frame, 1e6)).toBe(0);
        }
        expect(readFrame(packet, 0, packet.length, frame, 1e6)).toBe(1);
        expect([frame.type, frame.flags, frame.end]).toEqual([first >> 4, first & 15, packet.length]);
      }),
      { numRuns: 300 },
    );
  });

  it('throws nothing but ProtocolError, whatever it reads', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 8 }), fc.nat(300), (some, limit) => {
        try {
          readFrame(Buffer.from(some), 0, some.length, newFrame(), limit);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });
});

describe('writeVarint', () => {
  it.each([0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455])(
    'writes %i in its shortest form [MQTT-1.5.5-1]',
    (value) => {
      const buffer = Buffer.alloc(6, 0xee);
      const end = writeVarint(buffer, 0, value);
      expect(end).toBe(varintBytes(value));
      let back = 0;
      for (let i = end - 1; i >= 0; i--) back = back * 128 + (buffer[i] & 127);
      expect(back).toBe(value);
      expect(buffer[end - 1] === 0 && end > 1).toBe(false);
      expect(buffer[end]).toBe(0xee);
    },
  );
});

/** Offset of the variable header; plain on purpose, it stands against the code under test. */
function bodyStart(packet: Buffer): number {
  let at = 1;
  while (packet[at] > 127) at++;
  return at + 1;
}

function withLength(first: number, body: Buffer): Buffer {
  const header = [first];
  let left = body.length;
  do {
    header.push((left & 127) | (left > 127 ? 128 : 0));
    left >>= 7;
  } while (left > 0);
  return Buffer.concat([Buffer.from(header), body]);
}
