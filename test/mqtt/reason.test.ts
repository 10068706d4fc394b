// Which reason codes which packet may carry, and return codes before 5.0.
import { describe, expect, it } from 'vitest';
import { AUTH, CONNACK, DISCONNECT, PUBACK, PUBCOMP, PUBREC, PUBREL, SUBACK, UNSUBACK } from '../../src/mqtt/packet.ts';
import * as reason from '../../src/mqtt/reason.ts';

const { isReasonCode, returnCode } = reason;

describe('isReasonCode', () => {
  it.each([CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH])(
    'knows success for packet type %i',
    (type) => expect(isReasonCode(5, type, 0)).toBe(true),
  );
  it('knows 22 codes of CONNACK, 29 of DISCONNECT, 9 of PUBACK and PUBREC, 12 of SUBACK, 7 of UNSUBACK (table 2-6)', () => {
    const count = (type: number): number =>
      Array.from({ length: 256 }, (_, code) => isReasonCode(5, type, code)).filter(Boolean).length;
    expect([CONNACK, DISCONNECT, PUBACK, PUBREC, SUBACK, UNSUBACK, PUBREL, PUBCOMP, AUTH].map(count)).toEqual([
      22, 29, 9, 9, 12, 7, 2, 2, 3,
    ]);
  });
  it('knows every named code in at least one packet', () => {
    const types = [CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH];
    for (const code of Object.values(reason)) {
      if (typeof code === 'number') expect(types.some((type) => isReasonCode(5, type, code))).toBe(true);
    }
  });
  it('knows the return codes of 3.1.1 [MQTT-3.2.2-6] [MQTT-3.9.3-2]', () => {
    expect([0, 1, 2, 3, 4, 5, 6].map((code) => isReasonCode(4, CONNACK, code))).toEqual([
      true,
      true,
      true,
      true,
      true,
      true,
      false,
    ]);
    expect([0, 1, 2, 3, 0x80, 0x87].map((code) => isReasonCode(4, SUBACK, code))).toEqual([
      true,
      true,
      true,
      false,
      true,
      false,
    ]);
  });
});

describe('returnCode', () => {
  it.each([
    [0x00, 0],
    [0x84, 1],
    [0x85, 2],
    [0x88, 3],
    [0x86, 4],
    [0x87, 5],
    [0x97, 3],
  ])('of %i is %i [MQTT-3.2.2-6]', (code, wanted) => expect(returnCode(code)).toBe(wanted));
});
