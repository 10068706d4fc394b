// NanoMQ's rule SQL: src/config/text/rulesql.ts. The statements of its documentation, and what is refused by name.
import { describe, expect, test } from 'vitest';
import { readSql } from '../../src/config/text/rulesql.ts';

describe('rule SQL', () => {
  test.each([
    [
      `SELECT payload.x.y as y, payload.z as z FROM "#" WHERE y > 10 and z != 'str'`,
      ['#'],
      'payload["x"]["y"] > 10 && payload["z"] != "str"',
      [
        ['y', 'payload["x"]["y"]'],
        ['z', 'payload["z"]'],
      ],
    ],
    [
      'SELECT topic, payload FROM "abc"',
      ['abc'],
      '',
      [
        ['topic', 'topic'],
        ['payload', 'payload'],
      ],
    ],
    [
      'SELECT * FROM "abc";',
      ['abc'],
      '',
      [
        ['qos', 'qos'],
        ['topic', 'topic'],
        ['clientid', 'clientId'],
        ['username', 'username'],
        ['timestamp', 'millis(now)'],
        ['payload', 'payload'],
      ],
    ],
    [
      `select payload.values.temp from 'n/+', "m/#" where (qos = 1 or clientid = "dev") and payload.on = true`,
      ['n/+', 'm/#'],
      '((qos == 1 || clientId == "dev")) && payload["on"] == true',
      [['temp', 'payload["values"]["temp"]']],
    ],
    ['SELECT payload.x FROM "a" WHERE payload.x <> -1.5', ['a'], 'payload["x"] != -1.5', [['x', 'payload["x"]']]],
  ])('%s', (sql, from, where, set) => {
    expect(readSql(sql)).toEqual({ from, where, set });
  });

  test.each([
    ['SELECT id FROM "a"', 'id is not supported: packet identifiers mean nothing behind the broker'],
    ['SELECT password FROM "a"', 'password is not supported: passwords never leave the gateway'],
    ['SELECT payload FROM a', 'a where a topic filter in quotes was expected'],
    ['SELECT payload FROM "a" GROUP BY topic', 'GROUP is not supported'],
    ['SELECT payload FROM "a" WHERE topic LIKE "x"', 'LIKE is not supported'],
    ['SELECT max(payload.x) FROM "a"', 'max is no field: qos, topic, clientid, username, timestamp, payload'],
    ['SELECT nothing FROM "a"', 'nothing is no field: qos, topic, clientid, username, timestamp, payload'],
    ['SELECT __proto__ FROM "a"', '__proto__ is no field: qos, topic, clientid, username, timestamp, payload'],
    ['SELECT topic.x FROM "a"', 'topic has no fields of its own'],
    ['SELECT topic FROM "a" WHERE', 'a field is missing at the end'],
    ['SELECT topic FROM "a" WHERE topic = qos', 'a comparison is with a number or a text in quotes, not with qos'],
    ['SELECT topic', 'FROM is missing'],
    ['DELETE FROM "a"', 'DELETE is not supported'],
    ['SELECT topic FROM "a" WHERE (topic = "x"', 'a closing bracket is missing'],
    ['SELECT t%pic FROM "a"', 'not understood: %pic FROM "a"'],
    ['x'.repeat(5000), 'longer than 4096 characters'],
  ])('%s is refused', (sql, why) => {
    expect(readSql(sql)).toBe(why);
  });
});
