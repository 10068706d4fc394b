// Publishes recorded messages again, below a prefix, in their own time or faster. Called by gateway/archive.ts for the
// REST API; each runs by itself until its last message, stop() or the end of the gateway. Messages are read page by
// page, so a long recording costs no memory.
import type { Clock, Timer } from '../base/clock.ts';
import type { Broker, LocalClient } from '../broker/broker.ts';
import type { Qos } from '../mqtt/packet.ts';
import type { Properties } from '../mqtt/property.ts';
import { isTopicName } from '../mqtt/topic.ts';
import type { Archive, MessageQuery, MessageRow } from './archive.ts';

const PAGE_ROWS = 500;
/** Messages published without a break, so that others get their turn. */
const BURST = 100;

export interface ReplayRequest {
  readonly filter: string;
  readonly from: number;
  readonly to: number;
  /** Stands before each topic, as it is. */
  readonly prefix: string;
  /** 1 = as recorded, 10 = ten times as fast; 0 = without waiting. */
  readonly speed: number;
  readonly retain: boolean;
}

export interface ReplayView extends ReplayRequest {
  readonly id: number;
  readonly state: 'running' | 'finished' | 'stopped' | 'failed';
  readonly published: number;
  /** Not published: the topic was too long or the broker refused it. */
  readonly refused: number;
  /** Time of the last message published; null before the first. */
  readonly position: number | null;
  readonly error: string | null;
}

export class Replay {
  private readonly id: number;
  private readonly request: ReplayRequest;
  private readonly archive: Archive;
  private readonly clock: Clock;
  private readonly client: LocalClient;
  private state: ReplayView['state'] = 'running';
  private published = 0;
  private refused = 0;
  private position: number | null = null;
  private error: string | null = null;
  private timer: Timer | null = null;
  private wake: (() => void) | null = null;
  /** Recorded time and time here, of the first message. */
  private firstMs = 0;
  private startedMs = 0;

  constructor(id: number, request: ReplayRequest, username: string, parts: ReplayParts) {
    this.id = id;
    this.request = request;
    this.archive = parts.archive;
    this.clock = parts.clock;
    const options = { clientId: 'tidegate-replay', username, kind: 'api', bridge: null, trusted: true } as const;
    this.client = parts.broker.attach(options);
  }

  view(): ReplayView {
    const { id, state, published, refused, position, error } = this;
    return { ...this.request, id, state, published, refused, position, error };
  }

  get running(): boolean {
    return this.state === 'running';
  }

  stop(): void {
    if (this.state !== 'running') return;
    this.state = 'stopped';
    this.timer?.cancel();
    this.wake?.();
  }

  /** Resolves when it has ended; never rejects. */
  async run(): Promise<void> {
    const { filter, from, to } = this.request;
    try {
      let after: string | null = null;
      do {
        const query: MessageQuery = { filter, from, to, limit: PAGE_ROWS, newestFirst: false, after };
        const page: { rows: MessageRow[]; next: string | null } = await this.archive.ask('messages', query);
        await this.play(page.rows);
        after = page.next;
      } while (after !== null && this.state === 'running');
      if (this.state === 'running') this.state = 'finished';
    } catch (error) {
      if (this.state === 'running') this.state = 'failed';
      this.error = (error as Error).message;
    } finally {
      this.client.close();
    }
  }

  private async play(rows: readonly MessageRow[]): Promise<void> {
    let burst = 0;
    for (const row of rows) {
      await this.due(row.time);
      if (this.state !== 'running') return;
      this.publish(row);
      if (++burst % BURST === 0) await new Promise<void>((resume) => setImmediate(resume));
    }
  }

  /** Waits for the moment of a message. */
  private async due(time: number): Promise<void> {
    const { speed } = this.request;
    if (this.position === null) {
      this.firstMs = time;
      this.startedMs = this.clock.mono();
    }
    if (speed === 0) return;
    const waitMs = (time - this.firstMs) / speed - (this.clock.mono() - this.startedMs);
    if (waitMs < 1) return;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      this.timer = this.clock.after(waitMs, resolve);
    });
    this.wake = null;
  }

  private publish(row: MessageRow): void {
    const topic = this.request.prefix + row.topic;
    const { payload, qos } = row;
    this.position = row.time;
    if (!isTopicName(topic)) {
      this.refused++;
      return;
    }
    const retain = row.retain && this.request.retain;
    const outcome = this.client.publish(topic, payload, 0, payload.length, qos as Qos, retain, propertiesOf(row.extra));
    if (outcome === 'accepted' || outcome === 'no-subscribers') this.published++;
    else this.refused++;
  }
}

export interface ReplayParts {
  readonly archive: Archive;
  readonly broker: Pick<Broker, 'attach'>;
  readonly clock: Clock;
}

/** As the recorder has written them; what is of another shape is left out. */
export function propertiesOf(extra: string): Properties | null {
  const found = JSON.parse(extra) as Record<string, unknown>;
  const properties: Properties = {};
  const { content_type: contentType, response_topic: responseTopic, user_properties: user } = found;
  if (typeof contentType === 'string') properties.contentType = contentType;
  if (typeof responseTopic === 'string') properties.responseTopic = responseTopic;
  if (found.payload_format_indicator === 1) properties.payloadFormatIndicator = 1;
  if (typeof found.correlation_data === 'string')
    properties.correlationData = Buffer.from(found.correlation_data, 'base64');
  if (Array.isArray(user)) properties.userProperties = user as [string, string][];
  return Object.keys(properties).length === 0 ? null : properties;
}
