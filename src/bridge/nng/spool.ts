// What NNG bridges keep for peers that are not there: frames in memory, and in the journal where one survives the
// process. Spools (one for a gateway) knows what was left from before and outlives workers; a Spool is one bridge's.
// Used by backlog.ts. A frame is forgotten when the transport of a peer has it; a crash before that sends it again, and
// loses nothing. Bytes come back from a file that may be damaged: what cannot be read is counted and dropped.
//
//   byte 0      format, 1
//   bytes 1-2   rule (position in `forwards`), for counting
//   bytes 3-6   bytes of the payload, for counting
//   rest        the frame's body
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { Fifo } from '../../base/queue.ts';
import { copyBytes } from '../../base/writer.ts';
import type { Restored, SpoolEntry } from '../../store/store.ts';
import type { NngBridgeOptions } from '../bridge.ts';
import { Keeping, type SpoolJournal } from '../keeping.ts';

const FORMAT = 1;
const HEAD_BYTES = 7;
/** What an object and its places in queues cost, so that a bound in bytes bounds small frames too. */
const FRAME_COST = 150;

const NO_FRAME = Buffer.alloc(0);

/** One frame that is kept. */
export interface SpooledFrame {
  readonly sequence: number;
  readonly frame: Buffer;
  readonly payloadBytes: number;
  /** Position in `forwards`. */
  readonly rule: number;
  done: boolean;
}

/** Memory that a frame of so many bytes stands for. */
export function spoolCost(frameBytes: number): number {
  return frameBytes + FRAME_COST;
}

function decode({ sequence, bytes: stored }: SpoolEntry): SpooledFrame | null {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  if (bytes.length < HEAD_BYTES || bytes[0] !== FORMAT) return null;
  const frame = bytes.subarray(HEAD_BYTES);
  const payloadBytes = Math.min(bytes.readUInt32BE(3), frame.length);
  return { sequence, frame, payloadBytes, rule: bytes.readUInt16BE(1), done: false };
}

/** The frames of one bridge, oldest first. */
export class Spool {
  /** Memory of all frames that are not done. */
  bytes = 0;
  damaged = 0;
  private readonly keeping: Keeping;
  private readonly frames = new Fifo<SpooledFrame>();

  /** @param journal null = memory only */
  constructor(name: string, journal: SpoolJournal | null, clock: Clock, restored: readonly SpoolEntry[]) {
    this.keeping = new Keeping(name, journal, clock, restored);
    for (const entry of restored) {
      const frame = decode(entry);
      if (frame !== null) {
        this.add(frame);
        continue;
      }
      this.damaged++;
      this.frames.push({ sequence: entry.sequence, frame: NO_FRAME, payloadBytes: 0, rule: 0, done: true });
    }
    this.trim();
  }

  /** Whether a frame that was put survives the process, so that an acknowledgement has to wait for the commit. */
  get durable(): boolean {
    return this.keeping.durable;
  }

  /** False while the store takes nothing: disk full, max_size reached. */
  get accepting(): boolean {
    return this.keeping.accepting;
  }

  /** All frames that are not done, oldest first. */
  *pending(): Iterable<SpooledFrame> {
    for (const frame of this.frames) if (!frame.done) yield frame;
  }

  /** Keeps head + body[start, end), copied. The caller has looked at `bytes` and `accepting`. */
  put(rule: number, head: Uint8Array, body: Uint8Array, start: number, end: number): SpooledFrame {
    const payloadBytes = end - start;
    const bytes = Buffer.allocUnsafeSlow(HEAD_BYTES + head.length + payloadBytes);
    bytes[0] = FORMAT;
    bytes.writeUInt16BE(Math.min(rule, 0xffff), 1);
    bytes.writeUInt32BE(payloadBytes, 3);
    copyBytes(head, 0, bytes, HEAD_BYTES, head.length);
    copyBytes(body, start, bytes, HEAD_BYTES + head.length, payloadBytes);
    const sequence = this.keeping.put(bytes);
    const frame = { sequence, frame: bytes.subarray(HEAD_BYTES), payloadBytes, rule, done: false };
    this.add(frame);
    return frame;
  }

  /** A peer has it, or it was dropped. The journal forgets what is done as far as everything before it is done too. */
  done(frame: SpooledFrame): void {
    if (frame.done) return;
    frame.done = true;
    this.bytes -= spoolCost(frame.frame.length);
    this.trim();
  }

  private trim(): void {
    let last = -1;
    for (let first = this.frames.peek(); first?.done === true; first = this.frames.peek()) {
      this.frames.shift();
      last = first.sequence;
    }
    if (last >= 0) this.keeping.forget(last);
  }

  /** The bridge is no more. */
  clear(): void {
    this.frames.clear();
    this.bytes = 0;
    this.keeping.clear();
  }

  private add(frame: SpooledFrame): void {
    this.frames.push(frame);
    this.bytes += spoolCost(frame.frame.length);
  }
}

/** Of a bridge, in the journal. */
function spoolName({ type, name }: Pick<NngBridgeOptions, 'type' | 'name'>): string {
  return `nng:${type}:${name}`;
}

export class Spools {
  private readonly journal: SpoolJournal | null;
  private readonly clock: Clock;
  private readonly log: Log;
  private readonly restored: Map<string, readonly SpoolEntry[]>;
  private readonly open = new Map<string, Spool>();

  /** @param bridges all that are configured, enabled or not: what is left for others is dropped */
  constructor(
    journal: SpoolJournal | null,
    clock: Clock,
    log: Log,
    restored: Restored['spools'],
    bridges: readonly Pick<NngBridgeOptions, 'type' | 'name'>[],
  ) {
    this.journal = journal;
    this.clock = clock;
    this.log = log;
    this.restored = new Map([...restored].filter(([name]) => name.startsWith('nng:')));
    const known = new Set(bridges.map(spoolName));
    for (const [name, entries] of this.restored) {
      const kept = known.has(name);
      log(kept ? 'info' : 'warn', 'NNG-SPOOL', { bridge: name.slice(4), frames: entries.length, kept });
      if (kept) continue;
      this.restored.delete(name);
      journal?.spoolDelete(name, Number.POSITIVE_INFINITY);
    }
  }

  /** The spool of a bridge; the same one for every worker that the bridge has. */
  of(bridge: Pick<NngBridgeOptions, 'type' | 'name'>): Spool {
    const name = spoolName(bridge);
    let spool = this.open.get(name);
    if (spool === undefined) {
      spool = new Spool(name, this.journal, this.clock, this.restored.get(name) ?? []);
      this.restored.delete(name);
      this.open.set(name, spool);
      if (spool.damaged > 0) this.log('error', 'NNG-SPOOL', { bridge: name.slice(4), damaged: spool.damaged });
    }
    return spool;
  }

  /** The bridge has been removed: what waits for it is dropped. */
  forget(bridge: Pick<NngBridgeOptions, 'type' | 'name'>): void {
    this.of(bridge).clear();
    this.open.delete(spoolName(bridge));
  }
}
