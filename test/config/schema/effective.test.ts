// Names and units of the effective configuration come from the schema's rows alone.
import { expect, test } from 'vitest';
import { block, ignored, list, named, optional, pairs } from '../../../src/config/schema/blocks.ts';
import { effective } from '../../../src/config/schema/effective.ts';
import { digit, duration, flag, int, seconds, text } from '../../../src/config/schema/keys.ts';
import { DEFAULTS, Sink } from '../../../src/config/sink.ts';
import { blockNode } from '../../../src/config/text/node.ts';

const PLAIN = { unknown: 'error', text: 'A block.' } as const;
const RULE = block({ local_topic: text({ default: 't', text: 'A topic.' }) }, PLAIN);
const KEY = block(
  {
    clientid: text({ default: 'c', text: 'A name.' }),
    retry_qos_0: flag({ default: true, text: 'A flag.' }),
    proto_ver: digit([3, 4, 5], { default: 4, text: 'A version.' }),
    reconnect_max: duration({ default: '30s', text: 'A pause.' }),
    session_expiry_interval: seconds({ default: 7, text: 'A time on the wire.' }),
    max_queue_len: int({ default: 3, text: 'A count.' }),
    quic_0rtt: ignored('no effect'),
    user_property: pairs({ text: 'Names.' }),
    tls: optional({ key_password: text({ default: '', text: 'A password.' }) }, PLAIN),
    rules: list(RULE, { text: 'Rules.', default: [{ local_topic: 'a' }] }),
    more_rules: named(RULE, { text: 'Rules.', example: 'name' }),
  },
  PLAIN,
);

test('a block becomes its effective form: names of code, times with their unit, nothing that is ignored', () => {
  const sink = new Sink();
  const value = KEY.read(blockNode(DEFAULTS), '', sink);
  expect(sink.problems).toEqual([]);
  expect(value === undefined ? null : effective(KEY, value)).toEqual({
    clientId: 'c',
    retryQos0: true,
    protoVer: 4,
    reconnectMaxMs: 30_000,
    sessionExpiryIntervalSeconds: 7,
    maxQueueLen: 3,
    userProperty: [],
    tls: null,
    rules: [{ localTopic: 'a' }],
    moreRules: new Map(),
  });
});
