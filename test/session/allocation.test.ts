// The hot path allocates nothing for a message: bytes allocated while many are handled, divided by their number, by V8's
// own sampling, what the collector has taken back included. The smallest object has 16 bytes; what one chunk needs (a view
// to write, its callback) is one or two bytes a message here.
import { Session as Inspector } from 'node:inspector/promises';
import { afterEach, expect, it } from 'vitest';
import { newFrame } from '../../src/codec/codec.ts';
import { encodeConnect } from '../../src/codec/connect.ts';
import { readFrame } from '../../src/codec/frame.ts';
import { encodePublish } from '../../src/codec/publish.ts';
import { encodeSubscribe } from '../../src/codec/subscribe.ts';
import {
  CONNECT,
  PUBACK,
  PUBCOMP,
  PUBLISH,
  PUBREC,
  PUBREL,
  type Qos,
  SUBSCRIBE,
  type Version,
} from '../../src/mqtt/packet.ts';
import type { Connection, Intake } from '../../src/transport/transport.ts';
import { openRoom, type Room } from '../broker/room.ts';

let room: Room;
afterEach(() => room.stop());

/** A connection without a network: bytes are given to it, and what is written to it is taken at once. */
class Wire implements Connection {
  readonly kind = 'tcp';
  readonly remote = '';
  readonly remoteAddress = '';
  readonly local = '';
  readonly tls = null;
  readonly queuedBytes = 0;
  /** Sees what was written, if set. */
  onWritten: ((bytes: Uint8Array) => void) | null = null;
  private intake: Intake | null = null;

  fill(intake: Intake): boolean {
    this.intake = intake;
    return true;
  }

  come(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const place = this.intake?.place();
      if (this.intake === null || place === undefined) return;
      const end = Math.min(bytes.length, at + place.length);
      place.set(bytes.subarray(at, end));
      this.intake.take(place, end - at);
      at = end;
    }
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.onWritten?.(bytes);
    done();
  }

  onData(): void {}
  onClose(): void {}
  onEnd(): void {}
  cork(): void {}
  uncork(): void {}
  pause(): void {}
  resume(): void {}
  shutdown(): void {}
  end(): void {}
  destroy(): void {}
}

function connected(clientId: string, version: Version): Wire {
  const wire = new Wire();
  room.accept(wire);
  wire.come(
    encodeConnect({
      type: CONNECT,
      version,
      bridge: false,
      clientId,
      cleanStart: true,
      keepAlive: 0,
      username: null,
      password: null,
      will: null,
      properties: null,
    }),
  );
  return wire;
}

/** Less than an object in four messages. */
const LEAST_BYTES = 4;
const MEASURED = 20;
const TOPICS = 100;
const CHUNK = 2000;

/** A chunk of publishes on topics in turn, with packet ids 1 to CHUNK. */
function chunkOf(version: Version, qos: Qos): Buffer {
  const one = (n: number): Buffer =>
    encodePublish(version, {
      topic: `devices/${n % TOPICS}/state`,
      payload: Buffer.alloc(64, n),
      qos,
      retain: false,
      dup: false,
      packetId: qos === 0 ? 0 : n + 1,
      properties: null,
    });
  return Buffer.concat(Array.from({ length: CHUNK }, (_, n) => one(n)));
}

/** Answers of a receiver, written over and over in one buffer. */
class Answers {
  private readonly bytes = Buffer.alloc(4 * CHUNK * 2);
  private used = 0;
  private readonly frame = newFrame();

  /** Notes what the packets in `bytes` are to be answered with. */
  note(bytes: Uint8Array): void {
    const { frame } = this;
    for (let at = 0; readFrame(bytes, at, bytes.length, frame, Number.POSITIVE_INFINITY) === 1; at = frame.end) {
      const { type, flags, bodyStart } = frame;
      if (type === PUBLISH && flags > 1) {
        const idAt = bodyStart + 2 + ((bytes[bodyStart] << 8) | bytes[bodyStart + 1]);
        this.add((flags & 6) === 2 ? PUBACK : PUBREC, bytes, idAt);
      } else if (type === PUBREL) this.add(PUBCOMP, bytes, bodyStart);
      else if (type === PUBREC) this.add(PUBREL, bytes, bodyStart);
    }
  }

  /** What was noted, to be given to the wire. */
  take(): Uint8Array | null {
    if (this.used === 0) return null;
    const bytes = this.bytes.subarray(0, this.used);
    this.used = 0;
    return bytes;
  }

  private add(
    type: typeof PUBACK | typeof PUBREC | typeof PUBREL | typeof PUBCOMP,
    bytes: Uint8Array,
    idAt: number,
  ): void {
    // Without the codec: what is allocated here is not the gateway's.
    this.bytes[this.used] = (type << 4) | (type === PUBREL ? 2 : 0);
    this.bytes[this.used + 1] = 2;
    this.bytes[this.used + 2] = bytes[idAt];
    this.bytes[this.used + 3] = bytes[idAt + 1];
    this.used += 4;
  }
}

/** Bytes that `run` allocates in src/, and by which functions. */
async function allocated(run: () => void): Promise<{ bytes: number; by: string[] }> {
  const inspector = new Inspector();
  inspector.connect();
  await inspector.post('HeapProfiler.startSampling', {
    samplingInterval: 128,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  run();
  const { profile } = await inspector.post('HeapProfiler.stopSampling');
  inspector.disconnect();
  const found = new Map<string, number>();
  let bytes = 0;
  const walk = (node: typeof profile.head): void => {
    const { functionName, url, lineNumber } = node.callFrame;
    if (url.includes('/src/') && node.selfSize > 0) {
      bytes += node.selfSize;
      const name = `${functionName} ${url.split('/').at(-1)}:${lineNumber}`;
      found.set(name, (found.get(name) ?? 0) + node.selfSize);
    }
    for (const child of node.children) walk(child);
  };
  walk(profile.head);
  const by = [...found].sort((a, b) => b[1] - a[1]).map(([name, size]) => `${size} ${name}`);
  return { bytes, by: by.slice(0, 12) };
}

it.each([
  [4, 0, 1],
  [4, 0, 20],
  [5, 0, 1],
  [4, 1, 1],
  [5, 1, 1],
  [4, 2, 1],
] as const)('version %i, QoS %i, %i receivers: no object for a message', async (version, qos, receivers) => {
  room = await openRoom({ limits: { maxAwaitingRel: 2 * CHUNK, outbox: { inflight: 2 * CHUNK } } });
  const publisher = connected('p', version);
  const readers: { wire: Wire; answers: Answers }[] = [{ wire: publisher, answers: new Answers() }];
  for (let n = 0; n < receivers; n++) {
    const wire = connected(`s${n}`, version);
    const request = { topicFilter: '#', qos, noLocal: false, retainAsPublished: false, retainHandling: 0 } as const;
    wire.come(encodeSubscribe(version, { type: SUBSCRIBE, packetId: 1, subscriptions: [request], properties: null }));
    readers.push({ wire, answers: new Answers() });
  }
  for (const { wire, answers } of readers) if (qos > 0) wire.onWritten = (bytes) => answers.note(bytes);
  const chunk = chunkOf(version, qos);
  const rounds = (count: number): void => {
    for (let n = 0; n < count; n++) {
      publisher.come(chunk);
      for (let more = true; more; ) {
        more = false;
        for (const { wire, answers } of readers) {
          const bytes = answers.take();
          if (bytes === null) continue;
          wire.come(bytes);
          more = true;
        }
      }
    }
  };
  rounds(100);
  const { bytes, by } = await allocated(() => rounds(MEASURED));
  expect(room.metric('publish_received_total')).toBe((100 + MEASURED) * CHUNK);
  expect(room.metric('publish_sent_total')).toBe((100 + MEASURED) * CHUNK * receivers);
  const each = bytes / (MEASURED * CHUNK * receivers);
  expect({ each, by: each < LEAST_BYTES ? [] : by }).toEqual({ each, by: [] });
});
