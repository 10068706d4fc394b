// What NNG bridge rules mean, pure: which bytes a message becomes (MQTT to NNG), which topic and payload a frame
// becomes (NNG to MQTT). Called by outgoing.ts, out.ts and in.ts for every message, and by gateway/ for the tester.
// Knows no sockets and no broker. Sources: docs/nng-bridges.md; the truth tables in test/vectors/sp-forward.json and
// sp-extract.json hold every line of it.
//
//   frame = topic part + delimiter + payload, or the payload alone
import { isUtf8 } from 'node:buffer';
import { copyBytes } from '../../base/writer.ts';
import { capturesOf, fillTemplate, parseTemplate, type Template, wildcardCount } from '../../mqtt/template.ts';
import { isTopicName } from '../../mqtt/topic.ts';
import type { Compat, ForwardOptions, SubscriptionOptions } from '../bridge.ts';

/** Topics remembered for each rule; past it the memory starts again. */
const CACHED_HEADS = 1024;
/** Longer topics are not kept: many of 64 KB each would fill memory. */
const LONG_CHARACTERS = 256;
const NO_BYTES = new Uint8Array(0);

/** The part in front of the payload for one forward rule: made once for each topic. */
export class ForwardHead {
  private readonly filter: string;
  private readonly delimiter: string;
  private readonly template: Template | null;
  private readonly fixed: Uint8Array | null;
  private readonly captures: number;
  private readonly known = new Map<string, Uint8Array>();
  private lastTopic = '';
  private last: Uint8Array = NO_BYTES;

  constructor(rule: Pick<ForwardOptions, 'localTopic' | 'remoteTopic' | 'nngDelimiter'>, compat: Compat) {
    this.filter = rule.localTopic;
    this.delimiter = rule.nngDelimiter;
    this.captures = compat === 'documented' ? wildcardCount(rule.localTopic) : 0;
    const template = parseTemplate(rule.remoteTopic, this.captures, compat === 'documented' ? ['topic'] : []);
    this.template = rule.remoteTopic === '' ? null : template;
    this.fixed = rule.remoteTopic !== '' && template.plain ? Buffer.from(rule.remoteTopic + rule.nngDelimiter) : null;
  }

  /** Topic part and delimiter for a message on `topic`. The result is shared: do not change it. */
  of(topic: string): Uint8Array {
    if (this.fixed !== null) return this.fixed;
    if (topic === this.lastTopic) return this.last;
    let head = this.known.get(topic);
    if (head === undefined) {
      head = Buffer.from(this.topicPart(topic) + this.delimiter);
      if (this.known.size >= CACHED_HEADS) this.known.clear();
      if (topic.length <= LONG_CHARACTERS) this.known.set(topic, head);
    }
    this.lastTopic = topic;
    this.last = head;
    return head;
  }

  private topicPart(topic: string): string {
    if (this.template === null) return topic;
    return fillTemplate(this.template, topic, '', this.captures > 0 ? capturesOf(this.filter, topic) : []);
  }
}

/**
 * What extract() found. match: `rule`, `topic`, `payloadStart` hold. fallback: the whole body goes to the topic `nng`
 * (0.25.5). unmatched: no rule. invalid-topic: a rule, but its topic is no Topic Name. empty-payload: a rule, but
 * nothing to send (0.25.5).
 */
export type Extraction = 'match' | 'fallback' | 'unmatched' | 'invalid-topic' | 'empty-payload';

/** Where 0.25.5 sends what begins like a rule and fits none. */
export const FALLBACK_TOPIC = 'nng';

interface CompiledRule {
  readonly index: number;
  readonly options: SubscriptionOptions;
  /** remote_topic without one trailing delimiter. */
  readonly prefix: Uint8Array;
  readonly delimiter: Uint8Array;
  /** The delimiter has to follow the prefix at once. */
  readonly direct: boolean;
  /** What every body begins with that the rule can match. */
  readonly needs: Uint8Array;
  /** An empty remote_topic with the delimiter "/": every body, whole. */
  readonly whole: boolean;
  readonly match: SubscriptionOptions['match'];
  readonly template: Template;
}

interface CachedTopic {
  readonly rule: CompiledRule;
  readonly bytes: Uint8Array;
  /** null: no Topic Name. */
  readonly topic: string | null;
  /**
   * The body's beginning up to the payload, where every longer body that begins so is matched by this rule; else null.
   */
  readonly head: Uint8Array | null;
}

/** Power of two; topics that share a slot take turns. */
const TOPIC_SLOTS = 4096;
/** Power of two: topics with the same hash, in the lower bits, have so many slots together. */
const TOPIC_WAYS = 4;

/**
 * Takes frames apart by a bridge's subscription rules. The fields of a result are valid until the next call. Allocates
 * only for topics that it has not seen lately: the frame before is compared first, then a table by the bytes of the
 * topic.
 */
export class Extractor {
  /** Index of the rule in the configuration, -1 for the fallback. */
  index = -1;
  rule: SubscriptionOptions | null = null;
  /** Where the message is to be published; "" where the template reads the payload (incoming.ts). */
  topic = '';
  payloadStart = 0;
  /**
   * Of a rule whose topic is filled from the payload: the template, and what the frame gives for {topic} and {suffix};
   * else null.
   */
  template: Template | null = null;
  extracted = '';
  suffix = '';
  private readonly compat: Compat;
  /** In the order of precedence. */
  private readonly rules: CompiledRule[];
  /** The same, by the first byte of the body that they can match. */
  private readonly byFirst: CompiledRule[][] = [];
  private readonly topics: (CachedTopic | undefined)[] = new Array(TOPIC_SLOTS).fill(undefined);
  /** Of the slots of a topic, the one that a new topic takes. */
  private nextWay = 0;
  /** The last match whose head alone decides: bodies that begin with these bytes match the same way. */
  private lastHead: Uint8Array = NO_BYTES;
  private lastRule: CompiledRule | null = null;
  private lastTopic = '';

  constructor(rules: readonly SubscriptionOptions[], compat: Compat) {
    this.compat = compat;
    const compiled = rules
      .map((options, index) => compile(options, index, compat))
      .filter((rule) => rule.options.enable);
    this.rules = compat === 'documented' ? compiled.sort(precedence) : compiled;
    for (let first = 0; first < 256; first++)
      this.byFirst.push(this.rules.filter((rule) => rule.prefix.length === 0 || rule.prefix[0] === first));
  }

  /**
   * Takes body = bytes[start, end) apart. O(rules with the same first byte) for a new topic, O(topic) for a known one.
   */
  extract(bytes: Uint8Array, start: number, end: number): Extraction {
    if (end <= start) return 'unmatched';
    const head = this.lastHead;
    if (this.lastRule !== null && end - start > head.length && startsWith(bytes, start, head)) {
      this.take(this.lastRule, this.lastTopic, start + head.length);
      return 'match';
    }
    const rules = this.byFirst[bytes[start]];
    for (let i = 0; i < rules.length; i++) {
      const rule = rules[i];
      const delimiterAt = delimiterOf(rule, bytes, start, end);
      if (delimiterAt < 0) continue;
      const payloadStart = rule.whole ? start : delimiterAt + rule.delimiter.length;
      if (payloadStart >= end && this.compat !== 'documented') {
        if (this.compat === '0.25.6') continue;
        this.take(rule, '', payloadStart);
        return 'empty-payload';
      }
      return this.publishTo(rule, bytes, start, delimiterAt, payloadStart);
    }
    return this.compat === '0.25.5' ? this.leftOver(bytes, start, end) : 'unmatched';
  }

  /**
   * How many of the `count` bodies of one length, `stride` bytes apart, beginning with the one at `start` that
   * extract() has just matched, are matched in the same way. At least 1.
   */
  alike(bytes: Uint8Array, start: number, stride: number, count: number): number {
    const head = this.lastHead;
    if (this.payloadStart !== start + head.length || !startsWith(bytes, start, head)) return 1;
    let same = 1;
    for (let at = start + stride; same < count && startsWith(bytes, at, head); at += stride) same++;
    return same;
  }

  private publishTo(
    rule: CompiledRule,
    bytes: Uint8Array,
    start: number,
    delimiterAt: number,
    payloadStart: number,
  ): Extraction {
    if (rule.template.json) {
      this.take(rule, '', payloadStart);
      return this.leaveOpen(rule, bytes, start, rule.whole ? start : delimiterAt);
    }
    const known = this.topicOf(rule, bytes, start, rule.whole ? start : delimiterAt, payloadStart);
    const { topic, head } = known;
    this.take(rule, topic ?? '', payloadStart);
    if (topic === null) return 'invalid-topic';
    if (head !== null) {
      this.lastHead = head;
      this.lastRule = rule;
      this.lastTopic = topic;
    }
    return 'match';
  }

  /** The topic needs fields of the payload: what the frame says of it is told. */
  private leaveOpen(rule: CompiledRule, bytes: Uint8Array, start: number, end: number): Extraction {
    const topic = Buffer.from(bytes.subarray(start, end));
    if (!isUtf8(topic)) return 'invalid-topic';
    this.lastRule = null;
    this.template = rule.template;
    this.extracted = topic.toString();
    this.suffix = topic.toString('utf8', Math.min(rule.prefix.length, topic.length));
    return 'match';
  }

  private take(rule: CompiledRule, topic: string, payloadStart: number): void {
    this.index = rule.index;
    this.rule = rule.options;
    this.template = null;
    this.topic = topic;
    this.payloadStart = payloadStart;
  }

  /**
   * 0.25.5: a body that begins with some remote_topic and fits no rule goes out whole, unless it is that topic and
   * nothing else.
   */
  private leftOver(bytes: Uint8Array, start: number, end: number): Extraction {
    let begins = false;
    for (const rule of this.rules) {
      if (rule.prefix.length === 0 || end - start < rule.prefix.length || !startsWith(bytes, start, rule.prefix))
        continue;
      if (end - start === rule.prefix.length) return 'unmatched';
      begins = true;
    }
    if (!begins) return 'unmatched';
    this.index = -1;
    this.rule = null;
    this.topic = FALLBACK_TOPIC;
    this.payloadStart = start;
    return 'fallback';
  }

  /**
   * Whether every longer body that begins with this head is matched by this rule: no rule before it could want more
   * bytes.
   */
  private decides(rule: CompiledRule, bytes: Uint8Array, start: number, headEnd: number): boolean {
    const head = bytes.subarray(start, headEnd);
    for (const other of this.rules) {
      if (other === rule) return true;
      if (startsWith(head, 0, other.needs.subarray(0, head.length))) return false;
    }
    return true;
  }

  /** Where the message goes. From the table when these bytes were seen. */
  private topicOf(
    rule: CompiledRule,
    bytes: Uint8Array,
    start: number,
    end: number,
    payloadStart: number,
  ): CachedTopic {
    let hash = rule.index;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
    const slot = (hash ^ (hash >>> 15)) & (TOPIC_SLOTS - TOPIC_WAYS);
    for (let i = slot; i < slot + TOPIC_WAYS; i++) {
      const known = this.topics[i];
      if (known === undefined || known.rule !== rule || known.bytes.length !== end - start) continue;
      if (startsWith(bytes, start, known.bytes)) return known;
    }
    const copy = Uint8Array.from(bytes.subarray(start, end));
    const topic = makeTopic(rule, copy);
    const keeps = topic !== null && this.decides(rule, bytes, start, payloadStart);
    const head = keeps ? Uint8Array.from(bytes.subarray(start, payloadStart)) : null;
    const made = { rule, bytes: copy, topic, head };
    this.nextWay = (this.nextWay + 1) % TOPIC_WAYS;
    this.topics[slot + this.nextWay] = made;
    return made;
  }
}

function compile(options: SubscriptionOptions, index: number, compat: Compat): CompiledRule {
  // The payload alone is what an empty remote_topic with the delimiter "/" is: every body, whole.
  const alone = options.frame === 'payload';
  const remoteTopic = alone ? '' : options.remoteTopic;
  const nngDelimiter = alone ? '/' : options.nngDelimiter;
  const trimmed = remoteTopic.endsWith(nngDelimiter) ? remoteTopic.slice(0, -nngDelimiter.length) : remoteTopic;
  const documented = compat === 'documented';
  const match = documented && nngDelimiter !== '/' ? options.match : 'prefix';
  // 0.25.6 gives remote_topic where local_topic is empty, which is what a direct match extracts.
  const direct = !alone && (compat === '0.25.6' || match === 'exact' || (nngDelimiter === '/' && trimmed !== ''));
  return {
    index,
    options: compat === '0.25.6' && trimmed === '' && !alone ? { ...options, enable: false } : options,
    prefix: Buffer.from(trimmed),
    delimiter: Buffer.from(nngDelimiter),
    direct,
    needs: Buffer.from(direct ? trimmed + nngDelimiter : trimmed),
    whole: nngDelimiter === '/' && trimmed === '',
    match,
    template: parseTemplate(options.localTopic, 0, documented ? ['topic', 'suffix', 'json'] : ['json']),
  };
}

/**
 * The longest remote_topic first, on equal ones the delimiter that stands first in every body both match ("/"), then
 * file order.
 */
function precedence(a: CompiledRule, b: CompiledRule): number {
  const slash = (rule: CompiledRule): number => (rule.direct && rule.options.nngDelimiter === '/' ? 0 : 1);
  return b.prefix.length - a.prefix.length || slash(a) - slash(b) || a.index - b.index;
}

/** Offset of the delimiter by which `rule` takes the body apart, -1 when it does not match. */
function delimiterOf(rule: CompiledRule, bytes: Uint8Array, start: number, end: number): number {
  const { needs } = rule;
  if (end - start < needs.length || !startsWith(bytes, start, needs)) return -1;
  const from = start + rule.prefix.length;
  if (rule.whole || rule.direct) return from;
  const at = find(bytes, from, end, rule.delimiter);
  if (at > from && rule.match === 'level' && bytes[from] !== SLASH) return -1;
  return at;
}

const SLASH = 0x2f;

function find(bytes: Uint8Array, from: number, end: number, wanted: Uint8Array): number {
  const first = wanted[0];
  const last = end - wanted.length;
  for (let at = from; at <= last; at++) if (bytes[at] === first && startsWith(bytes, at, wanted)) return at;
  return -1;
}

/** The caller has checked that there are enough bytes, or compares against nothing beyond the end. */
function startsWith(bytes: Uint8Array, at: number, prefix: Uint8Array): boolean {
  for (let i = 0; i < prefix.length; i++) if (bytes[at + i] !== prefix[i]) return false;
  return true;
}

function makeTopic(rule: CompiledRule, extracted: Uint8Array): string | null {
  const { localTopic } = rule.options;
  if (localTopic !== '' && rule.template.plain) return isTopicName(localTopic) ? localTopic : null;
  if (!isUtf8(extracted)) return null;
  const topic = Buffer.from(extracted).toString();
  const suffix = Buffer.from(extracted.subarray(rule.prefix.length)).toString();
  const result = localTopic === '' ? topic : fillTemplate(rule.template, topic, suffix, []);
  return isTopicName(result) ? result : null;
}

/** Head and payload[start, end) in one buffer: for whoever needs the frame as a value. */
export function joinFrame(head: Uint8Array, payload: Uint8Array, start: number, end: number): Buffer {
  const frame = Buffer.allocUnsafe(head.length + end - start);
  copyBytes(head, 0, frame, 0, head.length);
  copyBytes(payload, start, frame, head.length, end - start);
  return frame;
}
