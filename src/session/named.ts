// The topic of each PUBLISH of one connection: by its bytes or its alias, with the verdict of this client's rights.
// Made by publish.ts, which asks it for every packet. A topic that has been seen costs a comparison of bytes; verdicts
// are this client's own and are forgotten when rights change. Topic rules: MQTT 5.0 sections 3.3.2.1, 3.3.2.3.4 and
// 4.7.
import type { Access, Identity } from '../auth/auth.ts';
import { ProtocolError } from '../base/errors.ts';
import { BUFFER_BYTES, textBytes } from '../base/ledger.ts';
import type { PublishScan } from '../codec/publish.ts';
import { readText } from '../codec/text.ts';
import { PROTOCOL_ERROR, QUOTA_EXCEEDED, TOPIC_NAME_INVALID } from '../mqtt/reason.ts';
import { exceedsLevels, isTopicName } from '../mqtt/topic.ts';
import type { Policies } from '../policy/policy.ts';
import type { KnownTopic, Route } from '../router/router.ts';
import type { Core } from './session.ts';
import { type Special, Specials } from './special.ts';
import { TopicVerdicts, UNKNOWN } from './verdicts.ts';
import { LONG_CHARACTERS, namesLimit } from './weight.ts';

export class NamedTopics {
  /**
   * The topic of the packet at hand, and whether this client may publish to it; valid when resolve() has returned true.
   */
  topic: KnownTopic | null = null;
  allowed = false;
  /** False when the verdict is for this packet alone. */
  lasting = false;
  /**
   * Where the configuration makes something else of a publish on this topic; `allowed` is then false, so that it takes
   * no path of an ordinary one. Valid while `allowed` is false.
   */
  special: Special | null = null;
  /** Set when resolve() has returned false: the promise of the verdict that is missing. */
  waiting: Promise<boolean> | null = null;
  private readonly core: Core;
  private readonly identity: Identity;
  private readonly access: () => Access;
  private readonly five: boolean;
  private readonly verdicts: TopicVerdicts;
  /** Bytes in the ledger for long topics and aliases. */
  private bytes = 0;
  /** Those of a long topic that was the last one. */
  private longHeld = 0;
  /** Of the authorizer, when the verdicts were given. */
  private version = -1;
  private lookedTurn = -1;
  private policies: Policies | null = null;
  /** null: no topic of this client is special. */
  private specials: Specials | null = null;
  private readonly aliases: (KnownTopic | undefined)[] = [];
  /** An answer that came while nothing was read holds for the packet that waited for it, whatever has changed since. */
  private answered: { readonly name: string; readonly allowed: boolean } | null = null;

  constructor(core: Core, identity: Identity, access: () => Access, five: boolean) {
    this.core = core;
    this.identity = identity;
    this.access = access;
    this.five = five;
    this.verdicts = new TopicVerdicts(core.ledger);
  }

  /**
   * The topic of the scanned PUBLISH; `alias` 0 = none. False when a verdict has to be waited for. Throws
   * ProtocolError.
   */
  resolve(buffer: Buffer, scan: PublishScan, alias: number): boolean {
    if (this.core.turn.number !== this.lookedTurn) this.look();
    const topic = this.name(buffer, scan, alias);
    const known = this.verdicts.get(topic.serial);
    this.lasting = true;
    let goesBy = topic;
    if (known === 1) this.allowed = true;
    else {
      const found = this.judge(topic, scan, known);
      if (found === null) return false;
      goesBy = found;
    }
    this.answered = null;
    if (goesBy !== this.topic) {
      this.hold(longBytes(goesBy) - this.longHeld);
      this.longHeld = longBytes(goesBy);
      this.topic = goesBy;
    }
    if (alias > 0 && this.aliases[alias] !== topic) this.assign(alias, topic);
    return true;
  }

  /** The topic in buffer[start, end) of the packet behind `before`, if it is known and allowed without any question. */
  next(buffer: Buffer, start: number, end: number, before: KnownTopic): KnownTopic | null {
    const topic = this.core.router.known.find(buffer, start, end, before);
    if (topic === null || this.verdicts.get(topic.serial) !== 1) return null;
    const most = this.core.limits.maxTopicLevels;
    return most > 0 && topic.levels > most ? null : topic;
  }

  /** Whether the route of a topic is at hand. */
  hasRoute({ route }: KnownTopic): boolean {
    return route !== null && route.version === this.core.router.version;
  }

  /** The route of a topic as subscriptions are now. */
  route(topic: KnownTopic): Route {
    const { router } = this.core;
    let { route } = topic;
    if (route === null || route.version !== router.version) {
      route = router.route(topic.name);
      topic.route = route;
    }
    return route;
  }

  /** The connection has gone. */
  close(): void {
    this.verdicts.close();
    this.specials?.clear();
    this.hold(-this.bytes);
  }

  // ---- inside

  /** Rights and policies change between turns only. */
  private look(): void {
    this.lookedTurn = this.core.turn.number;
    const { version } = this.access().authorizer;
    const { policies } = this.core;
    if (version === this.version && policies === this.policies) return;
    this.verdicts.clear();
    this.version = version;
    this.specials?.clear();
    if (policies === this.policies) return;
    this.policies = policies;
    const policy = policies?.of(this.identity) ?? null;
    this.specials = policy === null ? null : new Specials(this.core, policy);
  }

  /**
   * The topic that a publish on `topic` goes by, where that is not plainly allowed: sets `allowed`, or `special`. null
   * when a verdict has to be waited for.
   */
  private judge(topic: KnownTopic, scan: PublishScan, known: number): KnownTopic | null {
    const special = this.specials?.of(topic) ?? null;
    this.special = special;
    if (special === null) {
      if (known !== UNKNOWN) this.allowed = known === 1;
      else if (!this.ask(topic, scan, null)) return null;
      return topic;
    }
    if (special.allowed !== null) special.may = special.allowed;
    // What can go nowhere is refused whatever its rights are.
    else if (special.plan.refusal === 0 && !this.ask(special.topic, scan, special)) return null;
    this.allowed = false;
    // The packet goes on under another topic, or is looked at: its bytes are not passed on as they are.
    scan.topicEnd = scan.topicStart;
    return special.topic;
  }

  private assign(alias: number, topic: KnownTopic): void {
    const before = this.aliases[alias];
    this.hold(topicBytes(topic) - (before === undefined ? 0 : topicBytes(before)));
    this.aliases[alias] = topic; // [MQTT-3.3.2-12]
  }

  /** Counts what the connection remembers. Throws ProtocolError when all connections together hold too much. */
  private hold(bytes: number): void {
    if (bytes === 0) return;
    const { ledger, limits } = this.core;
    const limit = bytes > 0 ? namesLimit(limits) : 0;
    if (limit > 0 && (ledger.of('names') + bytes > limit || ledger.isFull(bytes)))
      throw new ProtocolError(QUOTA_EXCEEDED, 'no memory for one more topic alias or long topic');
    this.bytes += bytes;
    ledger.add('names', bytes);
  }

  private name(buffer: Buffer, scan: PublishScan, alias: number): KnownTopic {
    const { topicStart, topicEnd } = scan;
    if (topicEnd === topicStart) {
      const known = alias > 0 ? this.aliases[alias] : undefined;
      // A topic of length zero without a known alias [MQTT-3.3.2-8]; before 5.0 there is none at all.
      if (known === undefined)
        throw new ProtocolError(this.five ? PROTOCOL_ERROR : TOPIC_NAME_INVALID, 'PUBLISH without topic');
      return known;
    }
    const { router, limits } = this.core;
    const most = limits.maxTopicLevels;
    const last = this.topic;
    const known =
      last !== null && equal(last, buffer, topicStart, topicEnd)
        ? last
        : router.known.find(buffer, topicStart, topicEnd, last);
    if (known !== null && (most === 0 || known.levels <= most)) return known;
    const text = readText(buffer, topicStart, topicEnd);
    if (!isTopicName(text)) throw new ProtocolError(TOPIC_NAME_INVALID, 'topic name with wildcard'); // [MQTT-3.3.2-2]
    if (most > 0 && exceedsLevels(text, most))
      throw new ProtocolError(TOPIC_NAME_INVALID, `topic of more than ${most} levels`);
    return router.known.add(text, buffer, topicStart, topicEnd);
  }

  /**
   * False when the answer comes later. @param special what remembers the verdict in the place of this client's table
   */
  private ask(topic: KnownTopic, scan: PublishScan, special: Special | null): boolean {
    const { answered } = this;
    if (answered?.name === topic.name) {
      this.settle(answered.allowed, special);
      this.lasting = false;
      return true;
    }
    const { authorizer } = this.access();
    const verdict = authorizer.publish(this.identity, topic.name, scan.qos, scan.retain);
    const lasting = authorizer.everyPublish !== true;
    if (typeof verdict === 'boolean') {
      if (lasting) this.remember(topic, special, verdict);
      this.lasting = lasting;
      this.settle(verdict, special);
      return true;
    }
    const { version } = this;
    this.waiting = verdict.then((allowed) => {
      // Where rights have changed meanwhile the packet that waited has its answer, and the next one asks again.
      if (lasting && this.access().authorizer.version === version) this.remember(topic, special, allowed);
      else this.answered = { name: topic.name, allowed };
      return allowed;
    });
    return false;
  }

  private remember({ serial }: KnownTopic, special: Special | null, allowed: boolean): void {
    if (special === null) this.verdicts.set(serial, allowed);
    else special.allowed = allowed;
  }

  /** The verdict for the packet at hand. */
  private settle(allowed: boolean, special: Special | null): void {
    if (special === null) this.allowed = allowed;
    else special.may = allowed;
  }
}

function equal(topic: KnownTopic, buffer: Uint8Array, start: number, end: number): boolean {
  const { utf8 } = topic;
  const bytes = end - start;
  if (utf8.length !== bytes) return false;
  for (let i = bytes - 1; i >= 0; i--) if (utf8[i] !== buffer[start + i]) return false;
  return true;
}

function topicBytes({ name, utf8 }: KnownTopic): number {
  return textBytes(name) + utf8.length + 2 * BUFFER_BYTES;
}

/** Short topics are part of a connection's weight. */
function longBytes(topic: KnownTopic): number {
  return topic.name.length > LONG_CHARACTERS ? topicBytes(topic) : 0;
}
