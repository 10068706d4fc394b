// Keys that rules of NNG bridges and of bridges to remote brokers have alike: filters, QoS, frames, trace headers. Used
// by nng.ts and remote.ts. Data alone.
import { checkTopicFilter, checkTopicName } from '../values.ts';
import { digit, text, word } from './keys.ts';

export function checkRuleFilter(filter: string): string | null {
  if (filter.startsWith('$share/'))
    return 'shared subscriptions are not possible in a bridge: every rule receives every message';
  return checkTopicFilter(filter);
}

export const QOS = (what: string) => digit([0, 1, 2], { default: 0, text: what });
export const DELIMITER = text({
  default: '/',
  strict: true,
  nul: true,
  text: 'Separator between topic and payload, any UTF-8 text; empty = "/". Write a NUL as \\u0000.',
});
export const FRAME = word(['topic', 'payload'], {
  default: 'topic',
  text: 'Content of a frame. topic: topic, delimiter and payload. payload: only the payload, as eKuiper and Neuron use it.',
});
export const TRACE = (where: string) =>
  word(['strip', 'keep', 'add'], {
    default: 'keep',
    text: `Trace header (26 bytes) in front of the payload: strip = remove, keep = leave as it is, add = ${where}.`,
  });

export const FALLBACK = (key: string, what: string) =>
  text({
    default: '',
    text: `Topic used when a {json:} field of ${key} is missing. Empty = the ${what} is dropped and counted.`,
    check: (topic) => (topic === '' ? null : checkTopicName(topic)),
  });
