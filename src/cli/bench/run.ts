// One run of the load generator: connects both sides, keeps the window full (or the rate), watches for a stall, gives
// the figures. Called by bench.ts with plain options. Closed loop: nothing is sent beyond the window, so a slow broker
// is measured, not flooded. Throughput counts from the end of the warm-up to the last message received.
import { randomBytes } from 'node:crypto';
import { GatewayError } from '../../base/errors.ts';
import type { LoadEvents, LoadOptions, Publisher, Subscriber } from './load.ts';
import { Latency } from './meter.ts';
import { MqttPublisher } from './mqttpublisher.ts';
import { MqttSubscriber } from './mqttsubscriber.ts';
import { nowUs } from './payload.ts';
import { SpPublisher, SpSubscriber } from './spload.ts';

const CONNECT_MS = 10_000;
const WATCH_MS = 100;
/** Clients that connect at the same time: what a listen backlog takes without loss. */
const CONNECT_AT_ONCE = 100;

export interface LoadResult {
  readonly sent: number;
  /** Copies received by all subscribers together. */
  readonly received: number;
  readonly lost: number;
  readonly disorder: number;
  readonly gaps: number;
  /** Measured time, without warm-up. */
  readonly seconds: number;
  readonly sentPerSecond: number;
  readonly receivedPerSecond: number;
  readonly latencyUs: { readonly p50: number; readonly p99: number; readonly p999: number; readonly max: number };
  /** Share of one core that the load generator itself used. */
  readonly loadCpu: number;
  readonly stalled: boolean;
}

export interface Progress {
  readonly seconds: number;
  readonly sent: number;
  readonly received: number;
}

interface Mark {
  readonly atUs: number;
  readonly sent: number;
  readonly received: number;
  readonly cpu: NodeJS.CpuUsage;
}

export class LoadRun implements LoadEvents {
  private readonly options: LoadOptions;
  private readonly latency = new Latency();
  private readonly publishers: Publisher[] = [];
  private readonly subscribers: Subscriber[] = [];
  private readonly onProgress: ((progress: Progress) => void) | null;
  private running = false;
  private turn = 0;
  private sent = 0;
  private startUs = 0;
  private mark: Mark | null = null;
  private lastSeen = 0;
  private lastMoveUs = 0;
  private timer: NodeJS.Timeout | null = null;
  private watch: NodeJS.Timeout | null = null;
  private settle: { done: (result: LoadResult) => void; fail: (error: Error) => void } | null = null;

  constructor(options: LoadOptions, onProgress: ((progress: Progress) => void) | null) {
    this.options = options;
    this.onProgress = onProgress;
  }

  /** Runs to the end. Rejects with CLI-FAILED when a client is refused or lost. */
  async run(): Promise<LoadResult> {
    const ended = new Promise<LoadResult>((resolve, reject) => {
      this.settle = { done: resolve, fail: reject };
    });
    // Handled below; a client may be lost before that.
    ended.catch(() => {});
    try {
      await Promise.race([this.connect(), ended]);
      this.begin();
      return await ended;
    } finally {
      this.stop();
      await Promise.all(this.subscribers.map((subscriber) => subscriber.forget()));
    }
  }

  progress(): void {
    if (!this.running) return;
    this.pump();
    if (this.finished()) this.end(false);
  }

  failed(why: string): void {
    this.settle?.fail(new GatewayError('CLI-FAILED', why));
    this.stop();
  }

  private async connect(): Promise<void> {
    const { options } = this;
    const name = `bench-${randomBytes(4).toString('hex')}`;
    const { receiveFrom, publishTo } = options;
    const late = setTimeout(() => this.failed(`not connected within ${CONNECT_MS / 1000} s`), CONNECT_MS);
    try {
      await this.inGroups(options.subscribers, (i) => {
        const subscriber =
          receiveFrom === null
            ? new MqttSubscriber(options, i, `${name}-s${i}`, this.latency, this)
            : new SpSubscriber(options, receiveFrom, this.latency, this);
        this.subscribers.push(subscriber);
        return subscriber.ready;
      });
      await this.inGroups(options.publishers, (i) => {
        const publisher =
          publishTo === null
            ? new MqttPublisher(options, i, `${name}-p${i}`, this)
            : new SpPublisher(options, publishTo, i, this);
        this.publishers.push(publisher);
        return publisher.ready;
      });
    } finally {
      clearTimeout(late);
    }
  }

  private async inGroups(count: number, one: (index: number) => Promise<void>): Promise<void> {
    for (let first = 0; first < count; first += CONNECT_AT_ONCE) {
      const group: Promise<void>[] = [];
      for (let i = first; i < Math.min(count, first + CONNECT_AT_ONCE); i++) group.push(one(i));
      await Promise.all(group);
    }
  }

  private begin(): void {
    this.running = true;
    this.startUs = nowUs();
    this.lastMoveUs = this.startUs;
    if (this.options.warmupSeconds === 0) this.setMark();
    this.watch = setInterval(() => this.look(), WATCH_MS);
    if (this.options.rate > 0) this.timer = setInterval(() => this.pump(), 1);
    this.pump();
  }

  private stop(): void {
    this.running = false;
    if (this.timer !== null) clearInterval(this.timer);
    if (this.watch !== null) clearInterval(this.watch);
    for (const publisher of this.publishers) publisher.close();
    for (const subscriber of this.subscribers) subscriber.close();
  }

  private received(): number {
    let received = 0;
    for (const subscriber of this.subscribers) received += subscriber.meter.received;
    return received;
  }

  private slowest(): number {
    let slowest = Number.POSITIVE_INFINITY;
    for (const subscriber of this.subscribers) slowest = Math.min(slowest, subscriber.meter.received);
    return slowest;
  }

  /** Messages that may be out now, counted from the start. */
  private allowed(timeUs: number): number {
    const { count, seconds, rate, window, subscribers } = this.options;
    const elapsed = (timeUs - this.startUs) / 1e6;
    if (count === 0 && elapsed >= seconds) return 0;
    let allowed = count === 0 ? Number.POSITIVE_INFINITY : count;
    if (rate > 0) allowed = Math.min(allowed, Math.floor(elapsed * rate));
    return subscribers === 0 ? allowed : Math.min(allowed, this.slowest() + window);
  }

  /** Lets each publisher in turn send one block until window, rate or blocks are used up. */
  private pump(): void {
    const { publishers } = this;
    const wholeBlocks = this.options.rate === 0;
    const timeUs = nowUs();
    const allowed = this.allowed(timeUs);
    const left = this.options.count === 0 ? Number.POSITIVE_INFINITY : this.options.count;
    let busy = 0;
    while (busy < publishers.length && this.sent < allowed) {
      const publisher = publishers[this.turn];
      this.turn = (this.turn + 1) % publishers.length;
      const count = Math.min(publisher.blockCount, allowed - this.sent);
      // A part of a block waits for more room, unless it is what a rate has due or the very end.
      const small = wholeBlocks && count < publisher.blockCount && this.sent + count < left;
      if (small || !publisher.free()) {
        busy++;
        continue;
      }
      busy = 0;
      publisher.send(count, timeUs);
      this.sent += count;
    }
  }

  private sendingOver(): boolean {
    const { count, seconds } = this.options;
    return count > 0 ? this.sent >= count : nowUs() - this.startUs >= seconds * 1e6;
  }

  private finished(): boolean {
    if (!this.sendingOver()) return false;
    if (this.subscribers.length > 0 && this.slowest() < this.sent) return false;
    for (const publisher of this.publishers) if (publisher.acknowledged < publisher.sent) return false;
    return true;
  }

  /** Ten times a second: the warm-up's end, the progress line, a stall. */
  private look(): void {
    const timeUs = nowUs();
    const received = this.received();
    if (this.mark === null && timeUs - this.startUs >= this.options.warmupSeconds * 1e6) this.setMark();
    this.onProgress?.({ seconds: (timeUs - this.startUs) / 1e6, sent: this.sent, received });
    let seen = received + this.sent;
    for (const publisher of this.publishers) seen += publisher.acknowledged;
    if (seen !== this.lastSeen) {
      this.lastSeen = seen;
      this.lastMoveUs = timeUs;
    } else if (timeUs - this.lastMoveUs > this.options.stallMs * 1000) {
      this.end(true);
      return;
    }
    this.progress();
  }

  private setMark(): void {
    this.latency.clear();
    this.mark = { atUs: nowUs(), sent: this.sent, received: this.received(), cpu: process.cpuUsage() };
  }

  private end(stalled: boolean): void {
    if (this.mark === null) this.setMark();
    const mark = this.mark;
    if (!this.running || mark === null) return;
    this.running = false;
    const endUs = stalled ? this.lastMoveUs : nowUs();
    const seconds = Math.max(1e-6, (endUs - mark.atUs) / 1e6);
    const cpu = process.cpuUsage(mark.cpu);
    const received = this.received();
    let disorder = 0;
    let gaps = 0;
    for (const { meter } of this.subscribers) {
      disorder += meter.disorder;
      gaps += meter.gaps;
    }
    this.settle?.done({
      sent: this.sent,
      received,
      lost: this.sent * this.subscribers.length - received,
      disorder,
      gaps,
      seconds,
      sentPerSecond: (this.sent - mark.sent) / seconds,
      receivedPerSecond: (received - mark.received) / seconds,
      latencyUs: {
        p50: this.latency.quantileUs(0.5),
        p99: this.latency.quantileUs(0.99),
        p999: this.latency.quantileUs(0.999),
        max: this.latency.maxUs,
      },
      loadCpu: (cpu.user + cpu.system) / 1e6 / seconds,
      stalled,
    });
  }
}
