// Fuzz target: the first bytes of a client at the proxy. CONNECT packets, damaged or not, in chunks: what is taken has to decode, and what is
// rewritten has to decode to the same packet with the other fields. ClientHello and packet streams must not throw but ProtocolError.
import { ProtocolError } from '../../src/base/errors.ts';
import { newFrame } from '../../src/codec/codec.ts';
import { ConnectError, decodeConnect, encodeConnect } from '../../src/codec/connect.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { helloName } from '../../src/proxy/clienthello.ts';
import { takeConnect } from '../../src/proxy/facts.ts';
import { ClientFilter, compileFilter } from '../../src/proxy/filter.ts';
import { Inspector } from '../../src/proxy/inspect.ts';
import { readLayout } from '../../src/proxy/layout.ts';
import { Preread } from '../../src/proxy/preread.ts';
import { compileSet, rewriteConnect } from '../../src/proxy/rewrite.ts';
import type { FuzzTarget } from '../harness/fuzz.ts';
import { connectBytes, connectPacket, facts, OPEN_FILTER } from '../harness/proxyparts.ts';
import type { Random } from '../harness/random.ts';

const SET = { clientId: 'new', username: 'u', password: 'p' };

function connect(random: Random): Buffer {
  const version = ([3, 4, 5] as const)[random.below(3)];
  const username = random.below(2) === 0 ? null : 'x'.repeat(random.below(200));
  return connectBytes({
    version,
    clientId: 'c'.repeat(1 + random.below(150)),
    username,
    password: username === null ? null : Buffer.alloc(random.below(40)),
    properties: version === 5 && random.below(2) === 0 ? { sessionExpiryInterval: random.below(1000) } : null,
  });
}

function damaged(bytes: Buffer, random: Random): Buffer {
  const changed = Buffer.from(bytes);
  for (let i = random.below(4); i > 0; i--) changed[random.below(changed.length)] = random.below(256);
  return random.below(4) === 0 ? changed.subarray(0, random.below(changed.length + 1)) : changed;
}

function expected<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

function rewriting(bytes: Buffer): void {
  let layout: ReturnType<typeof readLayout>;
  try {
    layout = readLayout(bytes, bytes.length);
  } catch (error) {
    if (error instanceof ConnectError) return;
    throw error;
  }
  const known = facts();
  takeConnect(known, layout);
  const set = compileSet(SET, {});
  const made = set === null ? 'bad-value' : rewriteConnect(layout, set, known, null);
  if (typeof made === 'string') throw new Error(`${made} for ${bytes.toString('hex')}`);
  const frame = newFrame();
  readFrame(made.bytes, 0, made.bytes.length, frame, made.bytes.length);
  const wanted = connectPacket({ ...layout.packet, clientId: 'new', username: 'u', password: Buffer.from('p') });
  if (frame.end !== made.bytes.length || !encodeConnect(decodeConnect(made.bytes, frame)).equals(encodeConnect(wanted)))
    throw new Error(`${bytes.toString('hex')} became ${made.bytes.toString('hex')}`);
}

export const target: FuzzTarget = {
  once(random) {
    const bytes = damaged(connect(random), random);
    const preread = new Preread(4096);
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + random.below(40);
      const result = preread.push(bytes.subarray(at, at + size));
      if (preread.bytes.length > bytes.length) throw new Error('more bytes than came');
      if (result === 'complete') rewriting(preread.bytes.subarray(0, preread.end));
      if (result !== 'more') break;
      at += size;
    }
    helloName(Buffer.concat([Buffer.from('16030100', 'hex'), bytes]));
    const filter = new ClientFilter(compileFilter({ ...OPEN_FILTER, prefix: 't/' }, {}), facts());
    const cells = { publishDenied: { value: 0 }, subscribeDenied: { value: 0 }, foreign: { value: 0 } };
    const { fromClient, fromServer } = new Inspector(
      filter,
      random.below(2) === 0 ? 4 : 5,
      cells,
      () => {},
      () => {},
    );
    const stream = Buffer.from(Array.from({ length: random.below(120) }, () => random.below(256)));
    expected(() => fromClient.push(stream));
    expected(() => fromServer.push(stream));
  },
};
