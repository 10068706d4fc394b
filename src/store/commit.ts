// From the open log to the disk: closes batches, hands them to the writer thread, releases whoever waits when they are
// committed, and keeps trying when they cannot be. Made by sqlite.ts, which tells it events. States: closed -> opening
// -> running <-> failing, and closing -> closed from both. Must not lose an event: a batch that failed is open again,
// in order, before anything told since.
import type { Timer } from '../base/clock.ts';
import { GatewayError } from '../base/errors.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Hold } from '../mqtt/message.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';
import { compact, isDeletion } from './compact.ts';
import { type Event, GONE, release, STATE, sizeOf } from './event.ts';
import { FrameWriter } from './frame.ts';
import { type Link, openLink } from './link.ts';
import { Batch, OpenLog } from './log.ts';
import { setAside } from './open.ts';
import { type Found, Opening } from './opening.ts';
import type { SqliteOptions } from './options.ts';
import type { FromWriter } from './protocol.ts';
import { StoreStats } from './stats.ts';
import type { Noted } from './time.ts';

/** A batch that nobody waits for closes after this; what may be elided has two such rounds. */
const ROUND_MS = 4;
/** With a batch on its way, the next one closes when it has so many events. */
export const BATCH_EVENTS = 1000;
/** Batches on their way at a time: the second one keeps the writer busy while the first is being confirmed. */
const UNDERWAY = 2;
/** sync = off: commits this often. */
const OFF_MS = 1000;
/** A batch closes early when so much is told. */
const EARLY_BYTES = 8 * 1024 * 1024;
/** Told and not committed; past it the store is behind and takes no new messages. */
const BEHIND_BYTES = 128 * 1024 * 1024;
/** After a failed write: how long until the next attempt, doubling from the first to the last. */
const RETRY_FIRST_MS = 250;
const RETRY_LAST_MS = 4000;
/** How often the store notes that the gateway runs; while there is nothing else to write, every so many of these. */
const NOTE_MS = 60_000;
const IDLE_NOTES = 10;
/** A stop does not wait for a writer that has hung. */
const CLOSE_MS = 15_000;

export class Committer {
  /** Read for every publish: kept up to date instead of computed. */
  accepting = false;
  readonly log = new OpenLog();
  readonly stats: StoreStats;
  private readonly options: SqliteOptions;
  private readonly waits: boolean;
  private readonly complain: Log;
  private state: 'closed' | 'opening' | 'running' | 'failing' | 'closing' = 'closed';
  private link: Link | null = null;
  private serial = 0;
  private readonly posted: Batch[] = [];
  private immediate = false;
  private timer: Timer | null = null;
  private retryTimer: Timer | null = null;
  private retryMs = RETRY_FIRST_MS;
  private compactAt = 0;
  private full = false;
  private pendingBytes = 0;
  private opening: Opening | null = null;
  private noteTimer: Timer | null = null;
  /** The last batch when the time was noted, and how often it was not since. */
  private notedSerial = 0;
  private unnoted = 0;
  private drained: (() => void) | null = null;

  constructor(options: SqliteOptions) {
    this.options = options;
    this.waits = options.sync === 'ack';
    this.stats = new StoreStats(
      options.metrics,
      () => this.posted.length,
      () => this.pendingBytes,
      () => this.state === 'failing',
    );
    this.complain = limitLog(options.log, () => options.clock.mono(), 10_000);
  }

  // ---- start and stop

  /** Opens and reads everything. Throws GatewayError STORE-OPEN. */
  async load(): Promise<Found> {
    if (this.state !== 'closed') throw new GatewayError('GW-STATE', 'the store is open');
    this.state = 'opening';
    let found = await this.open(true);
    if (found === null) {
      const path = setAside(this.options.path, this.options.clock.now());
      this.options.log('error', 'STO-DAMAGED', { path: this.options.path, setAside: path });
      this.stats.damaged.value++;
      found = await this.open(false);
    }
    if (found === null) throw new GatewayError('STORE-OPEN', `${this.options.path} cannot be created anew`);
    // Taking messages is the normal state and no news; not taking them is.
    this.accepting = true;
    this.stats.ok.value = 1;
    if (this.link === null) {
      // No file could be made yet.
      this.state = 'failing';
      this.retryLater();
    } else this.state = 'running';
    this.judge();
    this.noteTimer = this.options.clock.every(NOTE_MS, () => this.note());
    return found;
  }

  /** Starts a writer and reads everything. Null when the file is damaged and may be set aside. */
  private async open(mayBeDamaged: boolean): Promise<Found | null> {
    this.opening = new Opening();
    const { answer } = this.opening;
    this.start(true);
    try {
      const found = await answer;
      if (found?.steadyMs === null) await this.dropLink();
      if (found !== null) return found;
      await this.dropLink();
      if (mayBeDamaged && this.options.onCorrupt === 'start') return null;
      throw new GatewayError('STORE-OPEN', `${this.options.path} is damaged`);
    } catch (error) {
      await this.dropLink();
      this.state = 'closed';
      throw error;
    } finally {
      this.opening = null;
    }
  }

  private start(load: boolean): void {
    this.link = openLink(this.options, load, {
      onMessage: (message) => this.message(message),
      onDeath: (reason) => this.died(reason),
    });
  }

  private async dropLink(): Promise<void> {
    const link = this.link;
    this.link = null;
    if (link !== null) await link.stop();
  }

  /** Writes what is left and closes, within CLOSE_MS. */
  async close(): Promise<void> {
    if (this.state === 'closed' || this.state === 'closing') return;
    if (this.state === 'opening') {
      this.opening?.fail(new GatewayError('GW-STATE', 'closed while it was opening'));
      return;
    }
    const failing = this.state === 'failing';
    this.state = 'closing';
    this.accepting = false;
    this.timer?.cancel();
    this.retryTimer?.cancel();
    this.noteTimer?.cancel();
    const link = this.link;
    if (link !== null) {
      const drained = new Promise<void>((resolve) => {
        this.drained = resolve;
      });
      const deadline = this.options.clock.after(CLOSE_MS, () => this.drained?.());
      if (failing) link.post({ kind: 'resume' });
      this.drain(link);
      await drained;
      deadline.cancel();
    }
    const lost = this.log.reopen(this.posted);
    this.posted.length = 0;
    for (const hold of lost) hold.unstored(QUOTA_EXCEEDED);
    if (this.log.length > 0) this.options.log('error', 'STO-LOST', { events: this.log.length });
    await this.dropLink();
    this.state = 'closed';
  }

  /** While closing: sends all that is open, then asks the writer to close. */
  private drain(link: Link): void {
    while (this.log.length > 0 && this.post(link, true, Infinity));
    if (this.posted.length === 0) link.post({ kind: 'close', note: this.noted() });
  }

  private noted(): Noted {
    const { clock } = this.options;
    return { steadyMs: clock.steady(), wallMs: clock.now(), boot: clock.boot() };
  }

  /** While there is something to write anyway, every time; else now and then: flash wears. */
  private note(): void {
    const idle = this.serial === this.notedSerial;
    if (idle && ++this.unnoted < IDLE_NOTES) return;
    this.unnoted = 0;
    this.notedSerial = this.serial;
    this.link?.post({ kind: 'note', note: this.noted() });
  }

  // ---- batches

  add(event: Event): void {
    this.log.add(event);
    this.stats.told++;
    if (this.timer === null) this.arm();
  }

  /** Counts bytes that wait; a batch does not wait for its time when they are many. */
  pending(bytes: number): void {
    this.pendingBytes += bytes;
    if (this.pendingBytes <= EARLY_BYTES) return;
    this.log.urgent = true;
    this.hurry();
    if (this.pendingBytes > BEHIND_BYTES) this.judge();
  }

  /** Bytes that need not be written any more. */
  forget(bytes: number): void {
    this.pendingBytes -= bytes;
  }

  get writing(): boolean {
    return this.state === 'running';
  }

  /** Journal.barrier(). */
  barrier(hold: Hold): void {
    this.log.separate();
    if (!this.takesHolds(hold)) return;
    this.log.barrier(hold, this.last);
    if (this.log.urgent) this.hurry();
  }

  /** Journal.gather(). */
  gather(on: boolean): void {
    this.log.gather(on);
  }

  /** Journal.barrierAll(). */
  barrierAll(hold: Hold): void {
    if (!this.takesHolds(hold)) return;
    this.log.everything(hold, this.last);
    if (this.log.urgent) this.hurry();
  }

  private takesHolds(hold: Hold): boolean {
    if (!this.waits) return false;
    if (this.state === 'running') return true;
    hold.add();
    hold.unstored(QUOTA_EXCEEDED);
    return false;
  }

  /** The batch sent last, if it is still on its way. */
  private get last(): Batch | null {
    return this.posted.length > 0 ? this.posted[this.posted.length - 1] : null;
  }

  /** Closes at the end of this turn, when everything that was read with it has been told. */
  private hurry(): void {
    if (this.immediate) return;
    this.immediate = true;
    setImmediate(() => {
      this.immediate = false;
      this.turn();
    });
  }

  private turn(): void {
    const link = this.link;
    if (this.state !== 'running' || link === null || !this.log.urgent) return;
    const underway = this.posted.length;
    if (underway === 0 || (underway < UNDERWAY && this.log.length >= BATCH_EVENTS)) this.post(link, false, Infinity);
  }

  private arm(): void {
    if (this.state === 'closed' || this.state === 'closing') return;
    const { sync, intervalMs, clock } = this.options;
    const periodMs = sync === 'ack' ? ROUND_MS : sync === 'interval' ? intervalMs : OFF_MS;
    this.timer = clock.after(periodMs, () => this.roundOver());
  }

  private roundOver(): void {
    this.timer = null;
    this.log.round++;
    const link = this.link;
    if (this.state === 'running' && link !== null && this.posted.length < UNDERWAY)
      this.post(link, !this.waits, Infinity);
    if (this.state === 'failing' && this.log.length > this.compactAt) this.compactLog();
    if (this.log.length > 0) this.arm();
  }

  /** Sends what is due. False when nothing was. */
  private post(link: Link, all: boolean, limit: number): boolean {
    const batch = new Batch(++this.serial);
    const frame = new FrameWriter(link.frame());
    if (!this.log.take(frame, batch, all, limit)) {
      // Everything was elided: whoever waited for the batch waits for what is on its way, or for nothing.
      const { last } = this;
      for (const hold of batch.holds) {
        if (last === null) hold.done(0);
        else last.holds.push(hold);
      }
      return false;
    }
    batch.postedMs = this.options.clock.mono();
    this.posted.push(batch);
    this.stats.batch(batch.events.length, frame.at);
    link.post({ kind: 'batch', serial: batch.serial, buffer: frame.buffer, bytes: frame.at });
    return true;
  }

  // ---- what the writer answers

  private message(message: FromWriter): void {
    switch (message.kind) {
      case 'pack':
        this.opening?.add(message.pack);
        return;
      case 'loaded':
        this.opening?.loaded(message.steadyMs);
        return;
      case 'unwritten':
        this.complain('error', 'STO-FAILED', { reason: message.text });
        return;
      case 'opened':
        this.options.log('info', 'STO-OPEN', { path: this.options.path, driver: message.driver });
        if (this.state === 'failing') this.retry();
        return;
      case 'refused':
        this.refused(message.text, message.damaged, message.full);
        return;
      case 'done':
        this.stats.committed(message.applyMs, message.commitMs);
        this.stats.space = message.space;
        this.full = message.space.full;
        this.committed(message.serial);
        return;
      case 'failed':
        this.failed(message.code, message.text);
        return;
      case 'space':
        this.stats.space = message.space;
        this.full = message.space.full;
        this.judge();
        return;
      case 'closed':
        this.drained?.();
    }
  }

  private refused(text: string, damaged: boolean, full: boolean): void {
    if (this.opening === null) {
      // A writer that was to take the place of another.
      this.complain('error', 'STO-FAILED', { reason: text });
      void this.dropLink().then(() => this.retryLater());
      return;
    }
    if (full) {
      this.complain('error', 'STO-FAILED', { reason: text });
      this.opening.nothing();
      return;
    }
    if (damaged && this.options.onCorrupt === 'start') this.opening.damaged();
    else this.opening.fail(new GatewayError('STORE-OPEN', damaged ? `${text}, and on_corrupt is stop` : text));
  }

  private committed(serial: number): void {
    const batch = this.posted[0];
    if (batch === undefined || batch.serial !== serial) return;
    this.posted.shift();
    batch.underway = false;
    this.stats.latency(this.options.clock.mono() - batch.postedMs);
    for (const event of batch.events) {
      event.place = GONE;
      this.pendingBytes -= sizeOf(event);
      // The event stays in the list of its session for a while; what it told need not.
      event.body = null;
      if (event.kind === STATE && event.slot?.states.get(event.sequence) === event)
        event.slot.states.delete(event.sequence);
    }
    if (this.state === 'failing') this.recovering();
    this.judge();
    for (const event of batch.events) release(event);
    for (const hold of batch.holds) hold.done(0);
    if (this.state === 'closing' && this.link !== null) this.drain(this.link);
    else this.turn();
  }

  // ---- when it cannot write

  private failed(code: number, text: string): void {
    if (this.posted.length === 0) return;
    this.stats.failed.value++;
    this.complain('error', 'STO-FAILED', { code, reason: text });
    this.takeBack();
  }

  private died(reason: string): void {
    this.link = null;
    if (this.opening !== null) {
      this.opening.fail(new GatewayError('STORE-OPEN', `the writer thread failed: ${reason}`));
      return;
    }
    this.complain('error', 'STO-FAILED', { reason: `the writer thread failed: ${reason}` });
    this.takeBack();
  }

  /** What was on its way is open again, before anything told since; who waited for it is told that it is not kept. */
  private takeBack(): void {
    const holds = this.log.reopen(this.posted);
    this.posted.length = 0;
    if (this.state === 'closing') this.drained?.();
    else {
      this.state = 'failing';
      this.compactLog();
      this.retryLater();
    }
    this.judge();
    for (const hold of holds) hold.unstored(QUOTA_EXCEEDED);
  }

  private compactLog(): void {
    this.log.rearrange(compact);
    this.pendingBytes = this.log.sum(sizeOf);
    this.compactAt = Math.max(1000, this.log.length * 2);
  }

  private retryLater(): void {
    this.retryTimer?.cancel();
    this.retryTimer = this.options.clock.after(this.retryMs, () => this.retry());
    this.retryMs = Math.min(RETRY_LAST_MS, this.retryMs * 2);
  }

  /** Tries again: first what makes room, then the rest in pieces. */
  private retry(): void {
    if (this.state !== 'failing' || this.posted.length > 0) return;
    const link = this.link;
    if (link === null) {
      this.start(false);
      return;
    }
    this.compactLog();
    link.post({ kind: 'resume' });
    const freeing = this.log.count(isDeletion);
    if (!this.post(link, true, freeing > 0 ? freeing : BATCH_EVENTS)) this.recovered();
  }

  /** A batch went through while failing: the next piece, or the end of the trouble. */
  private recovering(): void {
    const link = this.link;
    if (link === null) return;
    if (!this.post(link, true, BATCH_EVENTS)) this.recovered();
  }

  private recovered(): void {
    this.state = 'running';
    this.retryMs = RETRY_FIRST_MS;
    this.judge();
  }

  /** Whether new messages may come. */
  private judge(): void {
    if (this.state === 'opening') return;
    const accepting = this.state === 'running' && !this.full && this.pendingBytes <= BEHIND_BYTES;
    if (accepting === this.accepting) return;
    this.accepting = accepting;
    this.stats.ok.value = accepting ? 1 : 0;
    if (this.state !== 'running') return;
    if (accepting) this.options.log('info', 'STO-ROOM', {});
    else this.complain('error', 'STO-FULL', { usedBytes: this.stats.usedBytes, maxBytes: this.options.maxSize });
  }
}
