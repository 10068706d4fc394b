// What the checks of a topic do with a message: passed, refused, dropped without a word, or tagged. Called by
// publish.ts, wills.ts (wills) and broker/ (clients inside the process), before anything of the message has had an
// effect.
import type { Publication } from '../mqtt/message.ts';
import { PAYLOAD_FORMAT_INVALID, SUCCESS } from '../mqtt/reason.ts';
import type { TopicPlan } from '../policy/policy.ts';

/** The message goes nowhere and nobody is answered that. */
export const DROPPED = -2;

/** SUCCESS, with its tags put on; DROPPED; or the reason code of a refusal. */
export function checkPayload({ checks }: TopicPlan, publication: Publication): number {
  const empty = publication.payloadEnd === publication.payloadStart;
  // An empty retained message forgets one and says nothing itself.
  if (checks === null || (empty && publication.retain)) return SUCCESS;
  const verdict = checks.judge(publication.payload());
  if (verdict.kind === 'refuse') return PAYLOAD_FORMAT_INVALID;
  if (verdict.kind === 'drop') return DROPPED;
  if (verdict.kind === 'tag') {
    const { properties } = publication;
    const tags = verdict.tags.map(([name, value]): [string, string] => [name, value]);
    const userProperties = [...(properties?.userProperties ?? []), ...tags];
    publication.replaceProperties({ ...properties, userProperties });
  }
  return SUCCESS;
}
