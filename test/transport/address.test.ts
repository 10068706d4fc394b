// Addresses as people write them in configurations and URLs.
import { describe, expect, it } from 'vitest';
import { formatHostPort, parseHostPort, plainAddress } from '../../src/transport/address.ts';

describe('parseHostPort', () => {
  it.each([
    ['localhost:1883', { host: 'localhost', port: 1883, path: null }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0, path: null }],
    ['[::1]:1883', { host: '::1', port: 1883, path: null }],
    ['[::]:65535', { host: '::', port: 65535, path: null }],
    ['*:1883', { host: '*', port: 1883, path: null }],
    ['gate_1.example.org:8083/mqtt', { host: 'gate_1.example.org', port: 8083, path: '/mqtt' }],
    ['[::1]:8083/a/b:c', { host: '::1', port: 8083, path: '/a/b:c' }],
    ['127.0.0.1:8083/', { host: '127.0.0.1', port: 8083, path: '/' }],
  ])('reads %s', (text, expected) => {
    expect(parseHostPort(text)).toEqual(expected);
  });

  it.each([
    '',
    'localhost',
    ':1883',
    '1883',
    'localhost:',
    'localhost:65536',
    'localhost:-1',
    'localhost:1e3',
    'localhost: 1',
    '::1:1883',
    '[::1]',
    '[::1',
    '[127.0.0.1]:1',
    '[nonsense]:1',
    'a b:1',
    'host/path:1',
    '-:1',
    `${'a'.repeat(254)}:1`,
  ])('refuses %j', (text) => {
    expect(parseHostPort(text)).toBeNull();
  });

  it('takes back what formatHostPort writes', () => {
    for (const host of ['::1', '127.0.0.1', 'name', '*'])
      expect(parseHostPort(formatHostPort(host, 7))).toEqual({ host, port: 7, path: null });
  });
});

describe('plainAddress', () => {
  it('shows the IPv4 address inside an IPv4-mapped one', () => {
    expect(plainAddress('::ffff:10.0.0.1')).toBe('10.0.0.1');
    expect(plainAddress('::1')).toBe('::1');
    expect(plainAddress('::ffff:1')).toBe('::ffff:1');
    expect(plainAddress(undefined)).toBe('');
  });
});
