// bridges.nng.push, pull and pair: what a configuration makes of them, and what it refuses.
import { describe, expect, test } from 'vitest';
import { diffConfig } from '../../src/config/reload.ts';
import { config, load, problems, warnings } from '../harness/configfiles.ts';

const FORWARDS = 'forwards = [ { local_topic = "a/#", qos = 1 } ]';
const SUBSCRIPTION = 'subscription = [ { remote_topic = "r" } ]';
const push = (more = '') =>
  `bridges.nng.push.p { enable = true, push_url = "tcp://127.0.0.1:9900", ${more} ${FORWARDS} }`;
const pull = (more = '') =>
  `bridges.nng.pull.s { enable = true, pull_url = "tcp://127.0.0.1:9901", ${more} ${SUBSCRIPTION} }`;
const pair = (rules = `${FORWARDS}, ${SUBSCRIPTION}`, more = '') =>
  `bridges.nng.pair.d { enable = true, pair_url = "ipc:///tmp/d.ipc", ${more} ${rules} }`;

describe('bridges.nng.push, pull and pair', () => {
  test('have the words of pub and sub, and block by default', () => {
    const { nng } = config(`${push('spool = 64MB,')}\n${pull()}\n${pair(undefined, 'protocol = pair1,')}`).bridges;
    expect(nng.push[0]).toMatchObject({ type: 'push', overflow: 'block', spool: 64 << 20, forwards: [{ qos: 1 }] });
    expect(nng.pull[0]).toMatchObject({
      type: 'pull',
      urls: ['tcp://127.0.0.1:9901'],
      subscription: [{ remoteTopic: 'r' }],
    });
    expect(nng.pair[0]).toMatchObject({ type: 'pair', protocol: 'pair1', overflow: 'block', spool: 0 });
    expect(nng.pair[0].forwards).toHaveLength(1);
    expect(nng.pair[0].subscription).toHaveLength(1);
  });
  test('a pair may go one way only, but not none', () => {
    expect(warnings(pair(FORWARDS, 'overflow = drop_oldest,'))).toEqual([]);
    expect(warnings(pair(SUBSCRIPTION))).toEqual([]);
    expect(warnings(pair(''))).toEqual([
      expect.stringContaining('nothing is sent'),
      expect.stringContaining('nothing is published'),
    ]);
  });
  test('the driver nanomsg has no pair1 and no spool', () => {
    expect(problems(pair(undefined, 'protocol = pair1, driver = nanomsg,'))).toEqual([
      expect.stringContaining('bridges.nng.pair.d.protocol'),
    ]);
    expect(problems(push('spool = 1MB, driver = nanomsg,'))).toEqual([
      expect.stringContaining('bridges.nng.push.p.spool'),
    ]);
  });
  test('a spool that no rule uses is pointed out', () => {
    const idle =
      'bridges.nng.pub.p { enable = true, pub_url = "tcp://127.0.0.1:1", spool = 1MB, forwards = [ { local_topic = "a" } ] }';
    expect(warnings(idle)).toEqual([expect.stringContaining('nothing is kept')]);
  });
  test('are changes of their own at a reload', () => {
    const changes = diffConfig(load(`${push()}\n${pull()}`), load(`${push('send_buffer = 1MB,')}\n${pair()}`));
    expect(changes.map(({ part, name, kind }) => `${part}.${name} ${kind}`)).toEqual([
      'bridges.nng.push.p changed',
      'bridges.nng.pull.s removed',
      'bridges.nng.pair.d added',
    ]);
  });
  test('loops over a pair are found', () => {
    const loop = pair(
      'forwards = [ { local_topic = "x/#" } ], subscription = [ { remote_topic = "x", nng_delimiter = ":" } ]',
    );
    expect(warnings(loop)).toEqual([expect.stringContaining('could come back')]);
  });
});
