// mosquitto's ACL file: grammar, evaluation, wildcards, patterns; the table of verdicts.
import { describe, expect, it } from 'vitest';
import { AclFile } from '../../src/auth/aclfile.ts';
import { READ, WRITE } from '../../src/auth/ruletree.ts';
import { fileOf } from './support.ts';

function acl(text: string): AclFile {
  return new AclFile(fileOf(text.replaceAll(';', '\n'), '/x/acl'));
}

/** client id, user name (- for none), R or W, topic, A or D. */
type Row = [clientId: string, username: string, operation: 'R' | 'W', topic: string, verdict: 'A' | 'D'];
const MIXED = 'topic read a/r;topic write a/w;topic readwrite a/rw;topic a/d;user u1;topic read b/r';
const DENIES = 'user u1;topic readwrite a/#;topic deny a/secret/#;topic readwrite a/secret/ok';
const BOTH = 'user u1;topic deny p/u1/no;pattern readwrite p/%u/#;pattern deny p/%u/bad';
const AGAIN = 'user u1;topic read x;user u2;topic read y;user u1;topic write z';
const WILD = 'user a+b;topic write ok/1;pattern readwrite dev/%c/#';
const WILD2 = `${WILD};pattern readwrite usr/%u/#`;
const DOLLAR = 'topic readwrite #;user s;topic readwrite $other/#';
const LEVELS = 'user u;topic write a/+/c;topic write d/#;topic write e/+;topic write f/+/#';
const TABLE: [string, Row[]][] = [
  [
    MIXED,
    [
      ['c', '-', 'W', 'a/r', 'D'],
      ['c', '-', 'R', 'a/r', 'A'],
      ['c', '-', 'W', 'a/w', 'A'],
      ['c', '-', 'R', 'a/w', 'D'],
      ['c', '-', 'W', 'a/rw', 'A'],
      ['c', '-', 'R', 'a/d', 'A'],
      ['c', '-', 'W', 'a/d', 'A'],
      ['c', 'u1', 'W', 'a/rw', 'D'],
      ['c', 'u1', 'R', 'b/r', 'A'],
      ['c', 'u2', 'W', 'a/rw', 'D'],
      ['c', '-', 'R', 'b/r', 'D'],
    ],
  ],
  [
    DENIES,
    [
      ['c', 'u1', 'W', 'a/x', 'A'],
      ['c', 'u1', 'W', 'a/secret', 'D'],
      ['c', 'u1', 'W', 'a/secret/ok', 'D'],
      ['c', 'u1', 'R', 'a/secret/ok', 'D'],
    ],
  ],
  [
    'user u1;topic readwrite a/#;pattern deny a/%u',
    [
      ['c', 'u1', 'W', 'a/u1', 'A'],
      ['c', 'u2', 'W', 'a/u2', 'D'],
    ],
  ],
  [
    BOTH,
    [
      ['c', 'u1', 'W', 'p/u1/no', 'D'],
      ['c', 'u1', 'W', 'p/u1/yes', 'A'],
      ['c', 'u1', 'W', 'p/u1/bad', 'D'],
      ['c', 'u2', 'W', 'p/u2/no', 'A'],
    ],
  ],
  [
    AGAIN,
    [
      ['c', 'u1', 'W', 'z', 'A'],
      ['c', 'u1', 'R', 'x', 'A'],
      ['c', 'u2', 'W', 'z', 'D'],
    ],
  ],
  [
    'pattern readwrite dev/%c/#',
    [
      ['cid1', '-', 'W', 'dev/cid1/a', 'A'],
      ['cid1', '-', 'W', 'dev/cid1', 'A'],
      ['cid1', '-', 'W', 'dev/cid2/a', 'D'],
    ],
  ],
  [
    'pattern read usr/%u/in;pattern write both/%u/%c',
    [
      ['cid1', '-', 'R', 'usr//in', 'D'],
      ['cid1', 'bob', 'R', 'usr/bob/in', 'A'],
      ['cid1', 'bob', 'W', 'both/bob/cid1', 'A'],
      ['cid1', '-', 'W', 'both/%u/cid1', 'D'],
    ],
  ],
  [
    'pattern readwrite pre-%c-post/x;pattern readwrite %c%u/x',
    [
      ['AB', 'bob', 'W', 'pre-AB-post/x', 'D'],
      ['AB', 'bob', 'W', 'pre-%c-post/x', 'A'],
      ['AB', 'bob', 'W', 'ABbob/x', 'D'],
    ],
  ],
  [
    WILD,
    [
      ['c', 'a+b', 'W', 'ok/1', 'A'],
      ['c', 'a+b', 'W', 'dev/c/x', 'D'],
    ],
  ],
  [
    WILD2,
    [
      ['id+', 'bob', 'W', 'usr/bob/x', 'D'],
      ['+', '-', 'W', 'dev/x/x', 'D'],
      ['a/b', '-', 'W', 'dev/a/b/x', 'D'],
      ['id', 'bob', 'W', 'usr/bob/x', 'A'],
    ],
  ],
  [
    'topic readwrite t/#',
    [
      ['#', '-', 'W', 't/1', 'A'],
      ['#', '-', 'W', 'u/1', 'D'],
    ],
  ],
  [
    DOLLAR,
    [
      ['c', 's', 'W', '$other/x', 'A'],
      ['c', '-', 'W', '$other/x', 'D'],
      ['c', '-', 'W', 'other/x', 'A'],
    ],
  ],
  [
    'user u;topic readwrite +/a;topic readwrite $x/+',
    [
      ['c', 'u', 'W', 'q/a', 'A'],
      ['c', 'u', 'W', '$x/a', 'A'],
      ['c', 'u', 'W', '$y/a', 'D'],
      ['c', 'u', 'W', '/a', 'A'],
      ['c', 'u', 'W', 'a', 'D'],
    ],
  ],
  [
    LEVELS,
    [
      ['c', 'u', 'W', 'a//c', 'A'],
      ['c', 'u', 'W', 'a/b/b/c', 'D'],
      ['c', 'u', 'W', 'd', 'A'],
      ['c', 'u', 'W', 'd/', 'A'],
      ['c', 'u', 'W', 'e', 'D'],
      ['c', 'u', 'W', 'e/', 'A'],
      ['c', 'u', 'W', 'f/x', 'A'],
      ['c', 'u', 'W', 'f', 'D'],
      ['c', 'u', 'W', 'f/x/y/z', 'A'],
      ['c', 'u', 'W', 'E/x', 'D'],
    ],
  ],
  [
    'user  sp user ;topic readwrite   with space/x  ',
    [
      ['c', 'sp user', 'W', 'with space/x', 'A'],
      ['c', 'sp', 'W', 'with space/x', 'D'],
    ],
  ],
  [
    'pattern read glob/#',
    [
      ['c', '-', 'R', 'glob/a', 'A'],
      ['c', 'bob', 'R', 'glob/a', 'A'],
      ['c', 'bob', 'W', 'glob/a', 'D'],
    ],
  ],
  [
    'user Bob;topic write a',
    [
      ['c', 'bob', 'W', 'a', 'D'],
      ['c', 'Bob', 'W', 'a', 'A'],
    ],
  ],
  ['', [['c', '-', 'W', 'a', 'D']]],
  [
    '# c ;;topic write anon/1\r;\r;#;user g\r;topic read;  topic write lead/1;topic write tail/1 and more;topic readwrite my topic/x\t ;pattern write all/%c;topic write g/%u',
    [
      ['c', '-', 'W', 'anon/1', 'A'],
      ['c', 'g', 'W', 'read', 'A'],
      ['c', 'g', 'R', 'read', 'A'],
      ['c', 'g', 'W', 'lead/1', 'A'],
      ['c', 'g', 'W', 'tail/1 and more', 'A'],
      ['c', 'g', 'W', 'my topic/x', 'A'],
      ['c', 'h', 'W', 'all/c', 'A'],
      ['c', 'g', 'W', 'g/%u', 'A'],
      ['c', 'g', 'W', 'g/g', 'D'],
    ],
  ],
  ['topic write\ta', [['c', '-', 'R', 'write\ta', 'A']]],
];

describe('ACL file', () => {
  for (const [text, rows] of TABLE) {
    it.each(rows)(`"${text}": %s,%s %s %s is %s`, (clientId, name, operation, topic, verdict) => {
      const subject = { clientId, username: name === '-' ? null : name };
      const bit = operation === 'R' ? READ : WRITE;
      const file = acl(text);
      expect(file.allows(subject, topic, bit)).toBe(verdict === 'A');
      expect(file.explain(subject, topic, bit).allowed).toBe(verdict === 'A');
    });
  }

  it.each([
    'topic read/write sensor/#',
    'topic READ a',
    'topics read a',
    'topic',
    'user',
    'user  \t',
    'topic write a/#/b',
    'topic write a+',
    'topic write a # note',
    ' # comment',
    'topic my topic',
    'pattern',
    'allow a',
    'topic write #x',
    `topic ${'a/'.repeat(201)}`,
    '\ttopic read a',
  ])('refuses the line "%s" and tells where it is', (line) => {
    expect(() => acl(`user x;topic read ok;${line};topic write z`)).toThrow(/\/x\/acl:3: /);
  });

  it('warns of patterns that do not what they seem to', () => {
    const file = acl('pattern read a/#;pattern write pre-%c/x;pattern write ok/%c');
    expect(file.warnings).toHaveLength(2);
    expect(file.warnings[0]).toMatch(/^\/x\/acl:1: /);
    expect(file.warnings[1]).toMatch(/^\/x\/acl:2: /);
  });

  it('tells the line that decides', () => {
    const file = acl('topic read q;user u;topic readwrite a/#;topic deny a/x;pattern write p/%c');
    const u = { clientId: 'c', username: 'u' };
    expect(file.explain(u, 'a/x', WRITE).rule).toBe('/x/acl:4: topic deny a/x');
    expect(file.explain(u, 'a/y', READ).rule).toBe('/x/acl:3: topic readwrite a/#');
    expect(file.explain(u, 'p/c', WRITE).rule).toBe('/x/acl:5: pattern write p/%c');
    expect(file.explain(u, 'q', READ).rule).toBe('/x/acl: no rule grants it');
  });

  it.each([
    ['#', true],
    ['a/#', true],
    ['a/secret/#', false],
    ['a/secret', false],
    ['a/secret/+', false],
    ['a/+/x', true],
    ['$share/g/a/b', true],
    ['$share/g/a/secret/b', false],
    ['w/1', false],
    ['p/c/+', true],
    ['p/d/+', false],
    ['$SYS/#', false],
  ])('says whether the filter %s could ever deliver: %s', (filter, reaches) => {
    const file = acl(
      'user u;topic read a/#;topic deny a/secret/#;topic write w/1;pattern read p/%c/#;pattern deny p/%c/no',
    );
    expect(file.reaches({ clientId: 'c', username: 'u' }, filter)).toBe(reaches);
  });
});
