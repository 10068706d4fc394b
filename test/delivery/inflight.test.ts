// Packet Identifiers in flight: never 0, never twice, in order at resume.
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/delivery/entry.ts';
import { FREE, Inflight, SENT_QOS1, SENT_QOS2, type SlotState } from '../../src/delivery/inflight.ts';
import { Random } from '../harness/random.ts';

function seeded(seed: number): () => number {
  const random = new Random(seed);
  return () => random.next() / 2 ** 32;
}

describe('packet identifiers in flight', () => {
  it('are never 0, never given twice and free again after their acknowledgement [MQTT-2.2.1-3]', () => {
    const random = seeded(1);
    const inflight = new Inflight();
    const open: [number, SlotState][] = [];
    const taken = new Set<number>();
    const wrong: number[] = [];
    for (let i = 0; i < 200_000; i++) {
      if (open.length < 1000 && (open.length === 0 || random() < 0.55)) {
        const state = random() < 0.5 ? SENT_QOS1 : SENT_QOS2;
        const packetId = inflight.take(state, null);
        if (packetId < 1 || packetId > 65_535 || taken.has(packetId)) wrong.push(packetId);
        taken.add(packetId);
        open.push([packetId, state]);
      } else {
        const [[packetId, state]] = open.splice(Math.floor(random() * Math.min(open.length, 20)), 1);
        if (inflight.state(packetId) !== state) wrong.push(packetId);
        inflight.free(packetId);
        taken.delete(packetId);
        if (inflight.state(packetId) !== FREE) wrong.push(packetId);
      }
      if (inflight.count !== open.length) wrong.push(-i);
    }
    expect(wrong).toEqual([]);
  });

  it('pass over one that is never acknowledged, without growing for it', () => {
    const inflight = new Inflight();
    const stuck = inflight.take(SENT_QOS1, null);
    for (let i = 0; i < 300_000; i++) {
      const packetId = inflight.take(SENT_QOS1, null);
      if (packetId === stuck) throw new Error('given twice');
      inflight.free(packetId);
    }
    expect(inflight.state(stuck)).toBe(SENT_QOS1);
    expect(inflight.count).toBe(1);
  });

  it('can all be taken at once', () => {
    const inflight = new Inflight();
    const all = new Set<number>();
    for (let i = 0; i < 65_534; i++) all.add(inflight.take(SENT_QOS1, null));
    expect(all.size).toBe(65_534);
  });

  it('of a restored session all stay in flight, whatever identifiers follow', () => {
    for (let first = 1; first <= 600; first++) {
      const inflight = new Inflight();
      const entry = { sequence: 1 } as Entry;
      inflight.restore(first, SENT_QOS2, entry);
      const taken = [first];
      for (let i = 0; i < 100; i++) taken.push(inflight.take(SENT_QOS1, { sequence: i + 2 } as Entry));
      const lost = taken.filter((packetId) => inflight.state(packetId) === FREE || inflight.entry(packetId) === null);
      expect(lost, `after ${first}`).toEqual([]);
      expect(inflight.kept().length).toBe(taken.length);
    }
  });
});
