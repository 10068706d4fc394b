// What a rule would do: with one sample, or with the messages that come for a while. By the code that runs; nothing is
// published. Called by engine.ts.
import type { Clock } from '../base/clock.ts';
import type { Broker } from '../broker/broker.ts';
import type { CompiledRule } from './compiler.ts';
import type { RuleTargets } from './rule.ts';
import type { RuleSample, RuleTrial } from './rules.ts';
import { Transform } from './transform.ts';

/** Payload bytes that a watch keeps in all. */
const MOST_BYTES = 1 << 20;

export interface WatchParts {
  readonly broker: Pick<Broker, 'attach'>;
  readonly clock: Clock;
  readonly targets: Pick<RuleTargets, 'tap'>;
}

/** What comes within `ms`, at most `most` messages, and what the rule makes of each. */
export function watchRule(
  rule: CompiledRule,
  { broker, clock, targets }: WatchParts,
  ms: number,
  most: number,
): Promise<{ sample: RuleSample; result: RuleTrial }[]> {
  const found: { sample: RuleSample; result: RuleTrial }[] = [];
  const client = broker.attach({ clientId: 'rule-watch', username: null, kind: 'api', bridge: null, trusted: true });
  const taps: (() => void)[] = [];
  let bytes = 0;
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel();
      for (const stop of taps.splice(0)) stop();
      client.close();
      resolve(found);
    };
    const timer = clock.after(ms, end);
    const take = (sample: RuleSample): void => {
      if (found.length >= most || bytes > MOST_BYTES) return;
      bytes += sample.payload.length;
      found.push({ sample, result: tryRule(rule, sample, () => clock.now()) });
      // Not from within the publish: this client's subscriptions are being walked.
      if (found.length >= most || bytes > MOST_BYTES) setImmediate(end);
    };
    for (const { filter, bridge } of rule.sources) {
      if (bridge !== null) {
        taps.push(
          targets.tap(bridge, (topic, from, start, stop, qos, retain) =>
            take({
              topic,
              payload: Uint8Array.from(from.subarray(start, stop)),
              qos,
              retain,
              clientId: '',
              username: null,
            }),
          ),
        );
        continue;
      }
      const receiver = {
        receive: (publication: Parameters<Parameters<typeof client.subscribe>[0]['receiver']['receive']>[0]): void => {
          const { topic, qos, retain, origin } = publication;
          const payload = Uint8Array.from(publication.payload());
          take({ topic, payload, qos, retain, clientId: origin.clientId, username: origin.username });
        },
      };
      client.subscribe({ topicFilter: filter, qos: 2, receiver, retainHandling: 2 });
    }
  });
}

export function tryRule(rule: CompiledRule, sample: RuleSample, now: () => number): RuleTrial {
  const { topic, payload, retain } = sample;
  const source = rule.sources.find((one) => one.takes(topic) || one.bridge !== null);
  if (source === undefined) return { outcome: 'filtered', reason: 'the topic matches nothing of from' };
  const transform = new Transform(rule, now);
  const input = { topic, buffer: payload, payloadStart: 0, payloadEnd: payload.length, retain, properties: null };
  const outcome = transform.run(source, input, sample.qos, sample.clientId, sample.username);
  if (outcome === 'filtered') return { outcome, reason: 'where is false' };
  if (outcome !== 'passed') return { outcome: 'error', reason: outcome === 'error' ? transform.error : outcome };
  if (rule.changed !== null && transform.changedValue() === null) return { outcome: 'error', reason: transform.error };
  const { options } = rule;
  return {
    outcome,
    topic: transform.topic,
    payload: Uint8Array.from(transform.bytes.subarray(transform.start, transform.end)),
    qos: options.qos ?? sample.qos,
    retain: options.retain,
  };
}
