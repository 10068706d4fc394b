// Requests, surveys and buses of the native driver: bytes on the wire, many requests at once, peers that go away; and the same with libnng.
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Answer, Protocol, SpOptions, SpSocket } from '../../src/sp/sp.ts';
import { NngPeers } from '../harness/nngpeer.ts';
import { frameHex, RawSp } from '../harness/rawsp.ts';
import { SP_DEFAULTS, sendText, testDriver, Watch } from '../harness/spsockets.ts';

const driver = testDriver();
const peers = new NngPeers();
let sockets: SpSocket[] = [];

interface Side {
  readonly socket: SpSocket;
  readonly watch: Watch;
  readonly url: string;
}
async function listening(protocol: Protocol, options: Partial<SpOptions> = {}): Promise<Side> {
  const socket = open(protocol, options);
  const watch = new Watch(socket);
  socket.listen('tcp://127.0.0.1:0');
  return { socket, watch, url: await watch.state('tcp://127.0.0.1:0', 'listening') };
}
function open(protocol: Protocol, options: Partial<SpOptions> = {}): SpSocket {
  const socket = driver.open(protocol, { ...SP_DEFAULTS, ...options });
  sockets.push(socket);
  return socket;
}
async function dialing(protocol: Protocol, url: string, options: Partial<SpOptions> = {}): Promise<Omit<Side, 'url'>> {
  const socket = open(protocol, options);
  const watch = new Watch(socket);
  socket.dial(url);
  await watch.until(() => watch.count('pipe-up') > 0);
  return { socket, watch };
}
function ask(socket: SpSocket, text: string, timeoutMs = 0): Promise<{ replies: string[]; how: string }> {
  return new Promise((resolve) => {
    const replies: string[] = [];
    const cancel = socket.request?.(Buffer.from(text), timeoutMs, {
      reply: (bytes, start, end) => replies.push(Buffer.from(bytes.subarray(start, end)).toString()),
      ended: (how) => resolve({ replies, how }),
    });
    if (cancel === null) resolve({ replies, how: 'refused' });
  });
}
function echoing(socket: SpSocket, prefix = ''): void {
  socket.onRequest?.((bytes, start, end, answer) => {
    answer(Buffer.concat([Buffer.from(prefix), bytes.subarray(start, end)]));
  });
}

afterEach(async () => {
  await Promise.all(sockets.map((socket) => socket.stop(200)));
  await peers.clear();
  sockets = [];
});
afterAll(() => peers.remove());

describe('req0 and rep0', () => {
  test('a request is its number with the high bit set, then the body; the answer carries the number back', async () => {
    const req = await listening('req0');
    const peer = new RawSp(Number(req.url.split(':').at(-1)));
    peer.write('0053500000310000');
    await req.watch.until(() => req.watch.count('pipe-up') === 1);
    expect(await peer.take(8)).toBe('0053500000300000');
    const answered = ask(req.socket, 'hi');
    const frame = Buffer.from(await peer.take(14), 'hex');
    expect(frame.subarray(0, 8).toString('hex')).toBe('0000000000000006');
    expect(frame[8] & 0x80).toBe(0x80);
    expect(frame.subarray(12).toString()).toBe('hi');
    const number = frame.subarray(8, 12).toString('latin1');
    // An answer to what nobody asked comes first and is nothing.
    peer.write(frameHex('\x80\x00\x00\x01no'));
    peer.write(frameHex(`${number}yes`));
    expect(await answered).toEqual({ replies: ['yes'], how: 'answered' });
    peer.socket.destroy();
  });
  test('an answer goes back with all words of its way', async () => {
    const rep = await listening('rep0');
    echoing(rep.socket);
    const peer = new RawSp(Number(rep.url.split(':').at(-1)));
    peer.write('0053500000300000');
    await peer.take(8);
    const way = '\x00\x00\x00\x05\x01\x02\x03\x04\x80\x00\x00\x07';
    peer.write(frameHex(`${way}body`));
    expect(await peer.take(24)).toBe(frameHex(`${way}body`));
    peer.socket.destroy();
  });
  test('a request that has come too far is dropped, one without a number closes its peer', async () => {
    const rep = await listening('rep0');
    echoing(rep.socket);
    const peer = new RawSp(Number(rep.url.split(':').at(-1)));
    peer.write('0053500000300000');
    await peer.take(8);
    peer.write(frameHex(`${'\x00\x00\x00\x05'.repeat(9)}\x80\x00\x00\x07far`));
    peer.write(frameHex('\x80\x00\x00\x08near'));
    expect(
      Buffer.from(await peer.take(16), 'hex')
        .subarray(12)
        .toString(),
    ).toBe('near');
    peer.write(frameHex('\x00\x00'));
    await peer.closed();
    expect(rep.watch.refused()).toEqual(['bad-frame']);
    expect(rep.socket.stats.dropped).toBe(1);
  });
  test('a thousand requests are under way at once, answered in any order', async () => {
    const rep = await listening('rep0');
    const waiting: [string, Answer][] = [];
    const { socket } = await dialing('req0', rep.url);
    const all = Promise.all(Array.from({ length: 1000 }, (_, i) => ask(socket, String(i))));
    await new Promise<void>((resolve) => {
      rep.socket.onRequest?.((bytes, start, end, answer) => {
        waiting.push([Buffer.from(bytes.subarray(start, end)).toString(), answer]);
        if (waiting.length === 1000) resolve();
      });
    });
    for (const [text, answer] of waiting.reverse()) {
      expect(answer(Buffer.from(`re:${text}`))).toBe(true);
      expect(answer(Buffer.from('again'))).toBe(false);
    }
    expect((await all).map(({ replies }) => replies)).toEqual(Array.from({ length: 1000 }, (_, i) => [`re:${i}`]));
  });
  test('a request without an answer ends by its time limit', async () => {
    const rep = await listening('rep0');
    rep.socket.onRequest?.(() => {});
    const { socket } = await dialing('req0', rep.url);
    expect(await ask(socket, 'x', 30)).toEqual({ replies: [], how: 'timeout' });
  });
  test('a request whose peer goes away is asked again of the next one', async () => {
    const silent = await listening('rep0');
    const seen = new Promise<void>((resolve) => silent.socket.onRequest?.(() => resolve()));
    const { socket } = await dialing('req0', silent.url);
    const answered = ask(socket, 'work');
    await seen;
    const other = await listening('rep0');
    echoing(other.socket, 'done:');
    socket.dial(other.url);
    await silent.socket.stop(100);
    expect(await answered).toEqual({ replies: ['done:work'], how: 'answered' });
  });
  test('a request waits for a peer that is not there yet', async () => {
    const req = await listening('req0');
    const answered = ask(req.socket, 'early');
    const { socket } = await dialing('rep0', req.url);
    echoing(socket);
    expect((await answered).replies).toEqual(['early']);
  });
  test('requests without an answer hold no more than send_buffer', async () => {
    const req = await listening('req0', { sendBuffer: 100 });
    const first = ask(req.socket, 'x'.repeat(90));
    expect((await ask(req.socket, 'more of it')).how).toBe('refused');
    expect(req.socket.stats.dropped).toBe(1);
    await req.socket.stop(10);
    expect((await first).how).toBe('stopped');
  });
  test('send and onMessage are a plain request and answer', async () => {
    const rep = await listening('rep0');
    const { socket, watch } = await dialing('req0', rep.url);
    sendText(socket, 'given up');
    sendText(socket, 'ping');
    await rep.watch.until(() => rep.watch.bodies.includes('ping'));
    sendText(rep.socket, 'pong');
    await watch.until(() => watch.bodies.length === 1);
    expect(watch.bodies).toEqual(['pong']);
  });
});

describe('surveyor0 and respondent0', () => {
  test('a survey collects what every respondent says until its time is over', async () => {
    const surveyor = await listening('surveyor0');
    for (const name of ['a:', 'b:']) echoing((await dialing('respondent0', surveyor.url)).socket, name);
    await surveyor.watch.until(() => surveyor.watch.count('pipe-up') === 2);
    const before = systemClock.mono();
    const { replies, how } = await ask(surveyor.socket, 'who', 200);
    expect(replies.sort()).toEqual(['a:who', 'b:who']);
    expect(how).toBe('timeout');
    expect(systemClock.mono() - before).toBeGreaterThanOrEqual(190);
  });
});

describe('bus0', () => {
  test('a message reaches every other one and is not passed on', async () => {
    const hub = await listening('bus0');
    const [a, b] = [await dialing('bus0', hub.url), await dialing('bus0', hub.url)];
    await hub.watch.until(() => hub.watch.count('pipe-up') === 2);
    sendText(a.socket, 'from a');
    await hub.watch.until(() => hub.watch.bodies.length === 1);
    sendText(hub.socket, 'from the hub');
    await Promise.all([a, b].map(({ watch }) => watch.until(() => watch.bodies.length > 0)));
    expect([a.watch.bodies, b.watch.bodies]).toEqual([['from the hub'], ['from the hub']]);
  });
});

const withLibrary = describe.skipIf(peers.missing !== null);
withLibrary(`against libnng${peers.missing === null ? '' : ` (${peers.missing})`}`, () => {
  test('its rep0 answers our requests, ours answers its', async () => {
    const req = await listening('req0');
    peers.start('rep0', 'dial', req.url, '--echo');
    expect((await ask(req.socket, 'to libnng')).replies).toEqual(['to libnng']);
    const rep = await listening('rep0');
    echoing(rep.socket, 're:');
    const asker = peers.start('req0', 'dial', rep.url);
    asker.send('from libnng');
    await asker.line('ok re:from libnng');
  });
  test('its respondents answer our surveys, ours answer its', async () => {
    const surveyor = await listening('surveyor0');
    peers.start('respondent0', 'dial', surveyor.url, '--echo');
    peers.start('respondent0', 'dial', surveyor.url, '--echo');
    await surveyor.watch.until(() => surveyor.watch.count('pipe-up') === 2);
    expect((await ask(surveyor.socket, 'all', 500)).replies).toEqual(['all', 'all']);
    const respondent = await listening('respondent0');
    echoing(respondent.socket, 'here:');
    const asker = peers.start('surveyor0', 'dial', respondent.url);
    await asker.line('up');
    asker.send('q');
    await asker.line('ok here:q');
  });
  test('a bus takes its messages and gives it ours', async () => {
    const bus = await listening('bus0');
    const peer = peers.start('bus0', 'dial', bus.url);
    await peer.line('up');
    peer.send('from libnng');
    await bus.watch.until(() => bus.watch.bodies.length === 1);
    sendText(bus.socket, 'to libnng');
    await peer.line('ok to libnng');
    expect(bus.watch.bodies).toEqual(['from libnng']);
  });
});
