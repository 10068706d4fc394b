// Server-sent messages: what is published on topics, live, for the console's message page. Called by routes.ts (GET
// /api/v4/mqtt/messages). A reader costs little whatever the traffic: past a rate, or while it does not read, messages
// are only counted and the number of those left out is told, never hidden. A stream ends by itself, so that rights are
// looked at again.
import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '../base/clock.ts';
import type { LocalClient, LocalReceiver } from '../broker/broker.ts';
import type { Publication } from '../mqtt/message.ts';
import { isShared, isTopicFilter, matches } from '../mqtt/topic.ts';
import { type Answer, fail } from './answer.ts';
import type { ConsoleOptions, Json } from './console.ts';
import { type Call, get, type Route } from './route.ts';
import { payloadFields } from './text.ts';

const MAX_STREAMS = 16;
const MAX_FILTERS = 32;
/** Messages a second that one stream shows: more is no reading matter, and each costs about 10 us. */
const MAX_RATE = 200;
/** Unsent bytes of a stream past which messages are only counted. */
const MAX_UNSENT_BYTES = 512 * 1024;
/** Bytes of a payload that are shown. */
const MAX_PAYLOAD = 16 * 1024;
const TICK_MS = 1000;
/** The page opens the stream anew after this, with the rights that its user has by then. */
const LIFE_MS = 10 * 60_000;
const HEARTBEAT_TICKS = 15;

/**
 * One filter of a stream. A message that an earlier one takes too comes by that one only: it is shown, or counted,
 * once.
 */
class FilterReceiver implements LocalReceiver {
  private readonly stream: MessageStream;
  private readonly earlier: readonly string[];
  private lastTopic = '';
  private lastTaken = false;

  constructor(stream: MessageStream, earlier: readonly string[]) {
    this.stream = stream;
    this.earlier = earlier;
  }

  receive(publication: Publication): void {
    if (this.earlier.length > 0 && this.taken(publication.topic)) return;
    this.stream.receive(publication);
  }

  private taken(topic: string): boolean {
    if (topic !== this.lastTopic) {
      this.lastTopic = topic;
      this.lastTaken = this.earlier.some((filter) => matches(filter, topic));
    }
    return this.lastTaken;
  }
}

/** One open stream: a client of the broker at one end, a response at the other. */
class MessageStream {
  private readonly clock: Clock;
  private readonly response: ServerResponse;
  private readonly client: LocalClient;
  private readonly timers: Timer[] = [];
  private id = 0;
  private inSecond = 0;
  private skipped = 0;
  private ticks = 0;

  constructor(clock: Clock, response: ServerResponse, client: LocalClient) {
    this.clock = clock;
    this.response = response;
    this.client = client;
  }

  start(filters: readonly string[], retained: boolean): void {
    this.response.write('retry: 2000\nevent: open\ndata: {}\n\n');
    this.timers.push(this.clock.every(TICK_MS, () => this.tick()));
    this.timers.push(this.clock.after(LIFE_MS, () => this.response.end()));
    for (const [i, topicFilter] of filters.entries()) {
      const receiver = new FilterReceiver(this, filters.slice(0, i));
      this.client.subscribe({ topicFilter, qos: 0, receiver, retainHandling: retained ? 0 : 2 });
    }
  }

  stop(): void {
    for (const timer of this.timers.splice(0)) timer.cancel();
    this.client.close();
  }

  receive(publication: Publication): void {
    if (this.inSecond >= MAX_RATE || this.response.writableLength > MAX_UNSENT_BYTES) {
      this.skipped++;
      return;
    }
    this.inSecond++;
    const { payloadStart, payloadEnd } = publication;
    const bytes = payloadEnd - payloadStart;
    const shown = publication.buffer.subarray(payloadStart, Math.min(payloadEnd, payloadStart + MAX_PAYLOAD));
    const { origin } = publication;
    const message: Json = {
      time: this.clock.now(),
      topic: publication.topic,
      qos: publication.qos,
      retain: publication.retain,
      from: origin.clientId,
      bridge: origin.bridge,
      content_type: publication.properties?.contentType ?? null,
      bytes,
      ...(bytes > MAX_PAYLOAD ? { cut: true } : {}),
      ...payloadFields(shown, 'payload'),
    };
    this.response.write(`id: ${++this.id}\nevent: message\ndata: ${JSON.stringify(message)}\n\n`);
  }

  private tick(): void {
    this.inSecond = 0;
    if (this.response.writableLength > MAX_UNSENT_BYTES) return;
    if (this.skipped > 0) {
      this.response.write(`event: skipped\ndata: {"count":${this.skipped}}\n\n`);
      this.skipped = 0;
    } else if (++this.ticks % HEARTBEAT_TICKS === 0) this.response.write(':\n\n');
  }
}

/** The filters of a query, or what is wrong with them. */
function readFilters(query: ReadonlyMap<string, string>): string[] | Answer {
  const topic = query.get('topic');
  const topics = query.get('topics');
  const filters = topic === undefined ? [] : [topic];
  if (topics !== undefined) filters.push(...topics.split(',', MAX_FILTERS + 1));
  if (filters.length === 0) return fail('missing', 'the query parameter topic');
  if (filters.length > MAX_FILTERS) return fail('query', `more than ${MAX_FILTERS} topic filters`);
  const wrong = filters.find((filter) => !isTopicFilter(filter) || isShared(filter));
  return wrong === undefined ? filters : fail('query', `${wrong} is no topic filter`);
}

export function messageRoutes({ broker, clock }: ConsoleOptions): Route[] {
  let open = 0;
  const stream = (call: Call): Answer => {
    const filters = readFilters(call.query);
    if ('status' in filters) return filters;
    const retained = call.query.get('retained') ?? 'false';
    if (retained !== 'true' && retained !== 'false') return fail('query', 'retained has to be true or false');
    if (open >= MAX_STREAMS) return fail('readers');
    const { username } = call.caller;
    return {
      status: 200,
      contentType: 'text/event-stream',
      body: '',
      stream: (response) => {
        const client = broker.attach({ clientId: 'tidegate-http', username, kind: 'api', bridge: null, trusted: true });
        const reader = new MessageStream(clock, response, client);
        open++;
        response.on('error', () => {});
        response.once('close', () => {
          open--;
          reader.stop();
        });
        reader.start(filters, retained === 'true');
      },
    };
  };
  return [
    get('/api/v4/mqtt/messages', 'server-sent messages of topic filters, live', stream, 'operator', [
      { name: 'topic', text: 'one topic filter', type: 'string' },
      { name: 'topics', text: `topic filters with commas, at most ${MAX_FILTERS}`, type: 'string' },
      { name: 'retained', text: 'true: the retained messages come first', type: 'boolean' },
    ]),
  ];
}
