// Local processes ask (type rep): a request over SP (req0) gets retained values, or publishes and hears what became of
// it. Used by bridge.ts. What may be asked for and published is bounded by the bridge's `topics`; publishes pass the
// ACL as the bridge's client as well. Source: docs/local-analytics.md.
//
//   a/b                                            the payload of the retained message, as it is
//   {"topic":"a/+"}                                {"messages":[{"topic","payload"|"payload_base64","qos"}]}
//   {"topic":"a/b","payload":...,"qos","retain"}   {"ok":true}            an error: {"error":"..."}
import { isUtf8 } from 'node:buffer';
import { parseJson, writeJson } from '../../base/json.ts';
import type { LocalClient } from '../../broker/broker.ts';
import type { Message } from '../../mqtt/message.ts';
import type { Qos } from '../../mqtt/packet.ts';
import { isTopicFilter, isTopicName, matches } from '../../mqtt/topic.ts';
import type { Answer, SpSocket } from '../../sp/sp.ts';
import type { RepBridgeOptions, RuleView } from '../bridge.ts';
import { DROPS, RuleCounters } from '../counters.ts';
import type { BridgeParts } from './link.ts';

/** Bounds of one answer. */
const MOST_MESSAGES = 1000;
const MOST_BYTES = 1 << 20;

export class NngAnswer {
  private options: RepBridgeOptions;
  private readonly parts: BridgeParts;
  private readonly counters: RuleCounters;
  private client: LocalClient | null = null;

  constructor(options: RepBridgeOptions, parts: BridgeParts) {
    this.options = options;
    this.parts = parts;
    this.counters = new RuleCounters(parts.metrics, options.name, options.type, '0', DROPS.answer);
  }

  start(client: LocalClient): void {
    this.client = client;
  }

  attach(socket: SpSocket): void {
    socket.onRequest?.((bytes, start, end, answer) => this.request(bytes.subarray(start, end), answer));
  }

  change(options: RepBridgeOptions): void {
    this.options = options;
  }

  stop(): void {
    this.client = null;
  }

  views(): RuleView[] {
    return [this.counters.view(0)];
  }

  describe(): string[] {
    const { topics, publish } = this.options;
    return [`requests for ${topics.join(', ')}${publish ? ', publishing' : ''}`];
  }

  private request(body: Uint8Array, answer: Answer): void {
    this.counters.matched.value++;
    if (!isUtf8(body)) {
      this.refuse(answer, 'the request is no UTF-8 text');
      return;
    }
    const text = Buffer.from(body).toString();
    if (!text.trimStart().startsWith('{')) {
      this.value(text, answer);
      return;
    }
    const asked = parseJson(text);
    const fields = typeof asked === 'object' && asked !== null ? (asked as Readonly<Record<string, unknown>>) : {};
    const { topic } = fields;
    if (typeof topic !== 'string') this.refuse(answer, 'topic, a text, is required');
    else if (Object.hasOwn(fields, 'payload')) this.publish(topic, fields, answer);
    else this.list(topic, answer);
  }

  /** The payload of one retained message. */
  private value(topic: string, answer: Answer): void {
    if (!isTopicName(topic)) {
      this.refuse(answer, 'the request is neither a topic nor a JSON object');
      return;
    }
    for (const message of this.kept(topic)) {
      if (message.topic === topic) {
        this.give(answer, message.payload);
        return;
      }
    }
    this.refuse(answer, 'not found');
  }

  private list(filter: string, answer: Answer): void {
    if (!isTopicFilter(filter) || filter.startsWith('$share/')) {
      this.refuse(answer, 'topic is not a topic filter');
      return;
    }
    const rows: string[] = [];
    let bytes = 0;
    let more = false;
    for (const message of this.kept(filter)) {
      if (rows.length >= MOST_MESSAGES || bytes > MOST_BYTES) {
        more = true;
        break;
      }
      rows.push(shown(message));
      bytes += message.payload.length;
    }
    this.give(answer, Buffer.from(`{"messages":[${rows.join(',')}]${more ? ',"more":true' : ''}}`));
  }

  private publish(topic: string, fields: Readonly<Record<string, unknown>>, answer: Answer): void {
    const { client } = this;
    const { payload, qos = 0, retain = false } = fields;
    if (!this.options.publish) this.refuse(answer, 'publishing is not allowed');
    else if (!isTopicName(topic) || !this.allows(topic)) this.refuse(answer, 'the topic is not allowed');
    else if ((qos !== 0 && qos !== 1 && qos !== 2) || typeof retain !== 'boolean')
      this.refuse(answer, 'qos has to be 0, 1 or 2, retain true or false');
    else if (client !== null) this.send(client, topic, payload, qos, retain, answer);
  }

  private send(client: LocalClient, topic: string, payload: unknown, qos: Qos, retain: boolean, answer: Answer): void {
    const bytes = Buffer.from(typeof payload === 'string' ? payload : writeJson(payload));
    const outcome = client.publish(topic, bytes, 0, bytes.length, qos, retain);
    if (outcome !== 'accepted' && outcome !== 'no-subscribers') {
      this.refuse(answer, outcome);
      return;
    }
    const settled = (reasonCode: number): void => {
      if (reasonCode >= 0x80) this.refuse(answer, 'the message could not be kept');
      else this.give(answer, Buffer.from('{"ok":true}'));
    };
    const hold = qos > 0 ? client.lastHold() : null;
    if (hold === null) settled(0);
    else hold.whenDone(settled);
  }

  /** Retained messages that match, have not expired and may be asked for. */
  private *kept(filter: string): Generator<Message> {
    const now = this.parts.clock.now();
    for (const message of this.parts.retained?.(filter) ?? [])
      if ((message.expiresAt === 0 || message.expiresAt > now) && this.allows(message.topic)) yield message;
  }

  private allows(topic: string): boolean {
    return this.options.topics.some((filter) => matches(filter, topic));
  }

  private give(answer: Answer, body: Uint8Array): void {
    const { turn } = this.parts;
    turn.enter();
    if (answer(body)) {
      this.counters.forwarded.value++;
      this.counters.bytes.value += body.length;
    } else this.counters.drop('no-peer');
    turn.leave();
  }

  private refuse(answer: Answer, error: string): void {
    this.counters.drop('refused');
    answer(Buffer.from(JSON.stringify({ error })));
  }
}

function shown({ topic, payload, qos }: Message): string {
  const text = isUtf8(payload);
  const body = JSON.stringify(Buffer.from(payload).toString(text ? 'utf8' : 'base64'));
  return `{"topic":${JSON.stringify(topic)},"${text ? 'payload' : 'payload_base64'}":${body},"qos":${qos}}`;
}
