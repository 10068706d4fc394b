// One grammar for the URLs of brokers: what it takes is dialled as it says, what it refuses is not dialled.
import { describe, expect, test } from 'vitest';
import { parseBrokerUrl } from '../../src/base/brokerurl.ts';
import { remoteTarget } from '../../src/bridge/mqtt/connect.ts';
import { BROKER_URLS } from '../harness/brokerurls.ts';

const OPTIONS = { tls: null, tcp: { bindInterface: null } };

describe('the URL of a broker', () => {
  test.each([...BROKER_URLS.taken])('%s names a kind, a host and a port, and is dialled there', (url, place) => {
    expect(parseBrokerUrl(url)).toEqual(place);
    const { kind, host, port } = place;
    const where = kind === 'tcp' || kind === 'tls' ? { kind, host, port } : { kind, url, subprotocol: 'mqtt' };
    expect(remoteTarget(url, OPTIONS)).toMatchObject(where);
  });

  test.each([...BROKER_URLS.refused])('%s is refused with a sentence, and not dialled', (url) => {
    expect(parseBrokerUrl(url)).toEqual(expect.any(String));
    expect(remoteTarget(url, OPTIONS)).toBeNull();
  });

  test('of QUIC is known but not dialled', () => {
    expect(parseBrokerUrl('mqtt-quic://h')).toEqual({ kind: 'quic', host: 'h', port: 14567 });
    expect(remoteTarget('mqtt-quic://h', OPTIONS)).toBeNull();
  });

  test('as long as a file may hold is taken apart at once', () => {
    const begun = performance.now();
    for (const url of [
      `mqtt://${'a'.repeat(1 << 20)}`,
      `ws://h/${'/'.repeat(1 << 20)}`,
      `mqtt://[${':'.repeat(1 << 20)}]`,
    ])
      expect(parseBrokerUrl(url)).toEqual(expect.any(String));
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});
