// Stored messages that a session is owed: one search for each subscription, however often it is made anew.
import { expect, test } from 'vitest';
import { Backlogs } from '../../src/delivery/backlogs.ts';
import type { Backlog, Target } from '../../src/delivery/delivery.ts';
import type { Message } from '../../src/mqtt/message.ts';
import { message } from '../harness/journal.ts';

function backlogOf(filter: string, topics: readonly string[]): Backlog {
  const left = topics.map((topic) => message(topic));
  return { filter, target: {} as Target, next: () => left.shift() ?? null };
}

function place(): { backlogs: Backlogs; weight: () => number; sent: string[]; send: (most: number) => void } {
  let weight = 0;
  const sent: string[] = [];
  const backlogs = new Backlogs(
    (go) => go(),
    () => {},
    (bytes) => {
      weight += bytes;
    },
  );
  const send = (most: number): void => {
    const end = sent.length + most;
    backlogs.send(
      () => sent.length < end,
      ({ topic }: Message) => sent.push(topic),
    );
  };
  return { backlogs, weight: () => weight, sent, send };
}

test('a filter that is subscribed again and again, and never read, keeps one search', () => {
  const { backlogs, weight } = place();
  backlogs.add(backlogOf('#', ['a']));
  const one = weight();
  for (let i = 0; i < 1000; i++) backlogs.add(backlogOf('#', ['a']));
  expect(weight()).toBe(one);
  backlogs.add(backlogOf('b', ['b']));
  expect(weight()).toBe(2 * one);
});

test('a filter that is subscribed again is owed all of its messages again, behind those of other filters', () => {
  const { backlogs, weight, sent, send } = place();
  backlogs.add(backlogOf('a/#', ['a/1', 'a/2']));
  backlogs.add(backlogOf('b/#', ['b/1']));
  send(1);
  backlogs.add(backlogOf('a/#', ['a/1', 'a/2']));
  send(10);
  expect(sent).toEqual(['a/1', 'b/1', 'a/1', 'a/2']);
  expect([backlogs.empty, weight()]).toEqual([true, 0]);
});

test('a filter that is unsubscribed is owed nothing, those behind it go on', () => {
  const { backlogs, weight, sent, send } = place();
  backlogs.add({ filter: 'a', target: {} as Target, next: () => new Promise(() => {}) });
  backlogs.add(backlogOf('b', ['b']));
  send(10);
  expect(sent).toEqual([]);
  backlogs.drop('a');
  send(10);
  expect(sent).toEqual(['b']);
  expect(weight()).toBe(0);
});
