// Bounds on sessions, subscriptions and retained messages: what is above them is refused, counted and told; what is below goes on.
import { afterEach, describe, expect, it } from 'vitest';
import { CONNACK, PUBACK } from '../../src/mqtt/packet.ts';
import { openRoom, type Room, type RoomLimits } from '../broker/room.ts';

const rooms: Room[] = [];
afterEach(async () => {
  for (const room of rooms.splice(0)) await room.stop();
});

async function room(limits: RoomLimits): Promise<Room> {
  const made = await openRoom({ limits });
  rooms.push(made);
  return made;
}

const KEEP = { cleanStart: false, expiry: 3600 } as const;
const told = (r: Room) => r.log.filter((line) => line.id === 'SES-LIMIT').map((line) => line.fields?.limit);

describe('max_sessions', () => {
  it.each([
    [4, 3],
    [5, 0x97],
  ] as const)('refuses one more in version %i with code %i; who has a session comes back', async (version, code) => {
    const r = await room({ maxSessions: 2 });
    await (await r.client('kept', KEEP)).drop();
    await r.client('here');
    for (const clientId of ['more', 'even-more']) {
      const refused = r.open(version);
      refused.connect(clientId, { cleanStart: true });
      expect((await refused.packet(CONNACK)).reasonCode).toBe(code);
      expect(await refused.next()).toBeNull();
    }
    expect(r.metric('limited_total', { limit: 'sessions' })).toBe(2);
    expect(told(r)).toEqual(['sessions']);
    expect((await r.client('kept', KEEP)).present).toBe(true);
    await r.client('here');
    expect(r.metric('sessions')).toBe(2);
  });

  it('has room again when a session has ended', async () => {
    const r = await room({ maxSessions: 1 });
    await (await r.client('a')).drop();
    await r.client('b');
    expect(r.metric('sessions')).toBe(1);
  });
});

describe('max_subscriptions', () => {
  it.each([
    [3, 0x80],
    [4, 0x80],
    [5, 0x97],
  ] as const)('refuses one more in version %i with code %i; a known filter is granted', async (version, code) => {
    const r = await room({ maxSubscriptions: 2 });
    const client = await r.client('c', { version, cleanStart: true });
    expect(await client.subscribe('a', 1)).toBe(1);
    expect(await client.subscribe('$share/g/b', 1)).toBe(1);
    expect(await client.subscribe('c', 1)).toBe(code);
    expect(await client.subscribe('a', 0)).toBe(0);
    const other = await r.client('other');
    expect(await other.subscribe('c', 1)).toBe(1);
    expect(told(r)).toEqual(['subscriptions']);
    expect(r.metric('limited_total', { limit: 'subscriptions' })).toBe(1);
  });

  it('of all sessions together are bounded by max_total_subscriptions', async () => {
    const r = await room({ maxTotalSubscriptions: 2 });
    const [a, b] = [await r.client('a'), await r.client('b')];
    expect(await a.subscribe('x', 1)).toBe(1);
    expect(await b.subscribe('x', 1)).toBe(1);
    expect(await b.subscribe('y', 1)).toBe(0x97);
    await a.drop();
    expect(await b.subscribe('y', 1)).toBe(1);
  });
});

describe('bounds of retained messages', () => {
  it('refuse one more by number, take a new value of a known topic, and have room when one has gone', async () => {
    const r = await room({ retained: { messages: 2, bytes: 0 } });
    const p = await r.client('p');
    for (const topic of ['a', 'b']) expect(await p.published(topic, 'x', 1, { retain: true })).toBeLessThan(0x80);
    expect(await p.published('c', 'x', 1, { retain: true })).toBe(0x97);
    expect(await p.published('c', 'x', 2, { retain: true })).toBe(0x97);
    expect(await p.published('a', 'y', 1, { retain: true })).toBeLessThan(0x80);
    expect(r.metric('retained_messages')).toBe(2);
    expect(r.metric('limited_total', { limit: 'retained' })).toBe(2);
    expect(told(r)).toEqual(['retained']);
    await p.published('b', '', 1, { retain: true });
    expect(await p.published('c', 'x', 1, { retain: true })).toBeLessThan(0x80);
  });

  it('refuse what would take more memory than max_retained_bytes', async () => {
    const r = await room({ retained: { messages: 0, bytes: 3000 } });
    const p = await r.client('p');
    expect(await p.published('a', Buffer.alloc(1000), 1, { retain: true })).toBeLessThan(0x80);
    expect(await p.published('b', Buffer.alloc(2000), 1, { retain: true })).toBe(0x97);
    expect(await p.published('a', Buffer.alloc(4000), 1, { retain: true })).toBe(0x97);
    expect(await p.published('a', Buffer.alloc(2000), 1, { retain: true })).toBeLessThan(0x80);
    expect(r.metric('retained_bytes')).toBeLessThan(3000);
  });

  it('let subscribers have a message that is not kept; at QoS 0 no value stays rather than an old one', async () => {
    const r = await room({ retained: { messages: 0, bytes: 2000 } });
    const reader = await r.client('reader');
    await reader.subscribe('#');
    const p = await r.client('p');
    await p.published('a', 'old', 1, { retain: true });
    p.publish('a', Buffer.alloc(3000, 'n'), 0, { retain: true });
    expect((await p.messages()).length).toBe(0);
    expect((await reader.messages()).map((m) => m.payload.length)).toEqual([3, 3000]);
    expect(r.metric('retained_messages')).toBe(0);
  });

  it('close a 3.1.1 publisher instead of a PUBACK that would be a lie', async () => {
    const r = await room({ retained: { messages: 1, bytes: 0 } });
    const p = await r.client('p', { version: 4, cleanStart: true });
    await p.published('a', 'x', 1, { retain: true });
    p.publish('b', 'x', 1, { retain: true });
    expect((await p.untilClosed()).filter((packet) => packet.type === PUBACK)).toEqual([]);
  });

  it('hold for values that bridges and the API bring, not for those of the gateway itself', async () => {
    const r = await room({ retained: { messages: 1, bytes: 0 } });
    const options = { kind: 'api', clientId: 'api', username: null, bridge: null, trusted: true } as const;
    const local = r.broker.attach(options);
    const bytes = Buffer.from('x');
    local.publish('a', bytes, 0, 1, 1, true);
    local.publish('b', bytes, 0, 1, 1, true);
    const code = await new Promise((resolve) => local.lastHold()?.whenDone(resolve));
    expect(code).toBe(0x97);
    expect(r.metric('retained_messages')).toBe(1);
  });
});
