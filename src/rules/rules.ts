// SEAM of rules/: rules that filter, change and route messages inside the gateway. Built by gateway/ when rules are
// configured.
//   expression.ts  CEL: compiled once, bounded          compiler.ts  options of a rule -> what runs, with every problem
//   transform.ts   one message through one rule, pure: running and trying are the same
//   rule.ts        one rule that runs                    engine.ts    all of them: checked, applied, tried
//   pace.ts        on change only, at most every N s     chain.ts     the rules a message has been through: no loops
//   metrics.ts     what is counted
//
// Map (made by `make docs`):
//   chain.ts       Which rules a message has been through
//   compiler.ts    Rule options into what runs: expressions compiled
//   engine.ts      Rules on the broker: each one subscribes to its filters, so topics without rules never meet it
//   expression.ts  Expressions of rules in CEL (Common Expression Language): compiled once, evaluated for each message
//   fields.ts      Reads the fields of a JSON object that a rule asks for, and checks the rest
//   metrics.ts     Metrics of rules: one table
//   pace.ts        How often a rule may speak about a topic: only when a value has changed
//   rule.ts        One rule that runs: a receiver of the broker for each of its filters, its counters
//   transform.ts   One message through one rule: payload read, `where` asked, the new object built, the topic filled
//   trial.ts       What a rule would do: with one sample, or with the messages that come for a while
import type { Qos } from '../mqtt/packet.ts';

/** One rule; the configuration's RuleConfig fits. */
export interface RuleOptions {
  readonly name: string;
  readonly enable: boolean;
  /** Topic Filters, or "nng:<bridge>" for what comes in through that bridge. */
  readonly from: readonly string[];
  /** CEL; "" = every message. */
  readonly where: string;
  /** Keys of the new JSON object with their expressions, in order; "*" spreads an object. None: the payload stays. */
  readonly set: readonly (readonly [string, string])[];
  /** What the payload is read as. auto: JSON where it is JSON, else text where it is UTF-8, else bytes. */
  readonly payload: 'auto' | 'json' | 'text' | 'bytes';
  /** Template of the topic; "" = the message's own. */
  readonly to: string;
  /** Where a field of `to` is missing; "" = the message is dropped and counted. */
  readonly fallbackTopic: string;
  /** Name of a sending NNG bridge that gets the message in the place of the broker, or "". */
  readonly toNng: string;
  /** Whether the webhook gets it too, as on_message_publish. */
  readonly toWebhook: boolean;
  /** null: that of the message. */
  readonly qos: Qos | null;
  readonly retain: boolean;
  /** CEL; "" = off. Only messages whose value differs from the last one of their topic by `by` or more. */
  readonly changed: string;
  readonly by: number;
  /** At most one message per topic in this time, the last one is kept; 0 = off. */
  readonly throttleMs: number;
  /** NanoMQ's SQL: a field that is missing leaves out its key, a comparison that cannot be made is false. */
  readonly lenient: boolean;
}

/** What a rule has done since it was made. */
export interface RuleStatus {
  readonly name: string;
  readonly enabled: boolean;
  readonly from: readonly string[];
  readonly to: string;
  readonly matched: number;
  readonly passed: number;
  readonly dropped: Readonly<Record<string, number>>;
  readonly lastError: { readonly atMs: number; readonly topic: string; readonly text: string } | null;
}

/** A message to try a rule on. */
export interface RuleSample {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: Qos;
  readonly retain: boolean;
  readonly clientId: string;
  readonly username: string | null;
}

/** What a rule makes of a sample, or why nothing. */
export type RuleTrial =
  | {
      readonly outcome: 'passed';
      readonly topic: string;
      readonly payload: Uint8Array;
      readonly qos: Qos;
      readonly retain: boolean;
    }
  | { readonly outcome: 'filtered' | 'error'; readonly reason: string };
