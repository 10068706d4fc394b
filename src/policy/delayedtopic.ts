// Topics that say when their message is to be published: $delayed/<seconds>/<topic>. Used by topics.ts. Pure.

const PREFIX = '$delayed/';
/** Ten digits are more than any delay. */
const FORM = /^\$delayed\/(\d{1,10})\/(.+)$/s;

export interface DelayedTopic {
  readonly seconds: number;
  readonly topic: string;
}

/** True for what asks for a delay, well-formed or not. */
export function isDelayed(topic: string): boolean {
  return topic.startsWith(PREFIX);
}

/** null when it is not of this form; a delayed message cannot be delayed again. */
export function parseDelayed(topic: string): DelayedTopic | null {
  const found = FORM.exec(topic);
  if (found === null || isDelayed(found[2])) return null;
  return { seconds: Number(found[1]), topic: found[2] };
}
