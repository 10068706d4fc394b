// The server's first packet: what is read of it, and the identifier that is put in for a client that has none.
import { describe, expect, it } from 'vitest';
import { encodeConnack } from '../../src/codec/connect.ts';
import { CONNACK } from '../../src/mqtt/packet.ts';
import type { Properties } from '../../src/mqtt/property.ts';
import { ConnackWatch } from '../../src/proxy/connack.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const connack = (reasonCode: number, properties: Properties | null = null): Buffer =>
  encodeConnack(5, { type: CONNACK, sessionPresent: false, reasonCode, properties });

describe('the first packet of a server', () => {
  it('gets an Assigned Client Identifier where the client came without one [MQTT-3.2.2.3.7]', () => {
    const seen = new ConnackWatch(5, 'edge-1').push(hex('20 03 00 00 00 d0 00'));
    expect(seen?.bytes.toString('hex')).toBe('200c00000912000665646765' + '2d31' + 'd000');
  });

  it('keeps the properties that are there behind it', () => {
    const seen = new ConnackWatch(5, 'x').push(connack(0, { serverKeepAlive: 7 }));
    expect(seen?.bytes.toString('hex')).toBe('200a000007' + '12000178' + '130007');
    expect(seen?.serverKeepAlive).toBe(7);
  });

  it('is left alone when it has one, refuses, or the client has an id', () => {
    const assigned = connack(0, { assignedClientIdentifier: 'theirs' });
    expect(new ConnackWatch(5, 'x').push(assigned)?.bytes).toBe(assigned);
    const refusal = connack(0x87);
    expect(new ConnackWatch(5, 'x').push(refusal)).toMatchObject({ bytes: refusal, reasonCode: 0x87 });
    const plain = connack(0);
    expect(new ConnackWatch(5, null).push(plain)?.bytes).toBe(plain);
  });

  it('may come in pieces, after AUTH packets', () => {
    const bytes = Buffer.concat([hex('f0 02 18 00'), connack(0), hex('30 03 00 01 61')]);
    for (let cut = 1; cut < 9; cut++) {
      const watch = new ConnackWatch(5, 'x');
      expect(watch.push(bytes.subarray(0, cut))).toBeNull();
      const seen = watch.push(bytes.subarray(cut));
      expect(seen?.reasonCode).toBe(0);
      expect(seen?.bytes.toString('hex')).toBe('f0021800' + '200700000412000178' + '3003000161');
    }
  });

  it('is passed on as it is when it is none', () => {
    for (const bytes of [Buffer.from('HTTP/1.1 400'), hex('30 03 00 01 61'), hex('20 ff ff ff 7f 00')])
      expect(new ConnackWatch(4, null).push(bytes)).toMatchObject({ bytes, reasonCode: null });
  });

  it('leaves what it holds to whoever asks at the end', () => {
    const watch = new ConnackWatch(4, null);
    expect(watch.push(hex('20 02'))).toBeNull();
    expect(watch.rest()?.toString('hex')).toBe('2002');
  });
});
