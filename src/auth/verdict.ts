// Several verdicts as one: all have to allow, one denial is enough, and where a source cannot say the others may still
// deny. Used by authorizer.ts and absent.ts. Pure.
import type { Verdict } from './auth.ts';

/** A promise of it rejects only where nobody denies and somebody could not say. */
export function allOf(verdicts: readonly Verdict[]): Verdict {
  if (verdicts.includes(false)) return false;
  if (verdicts.every((verdict) => verdict === true)) return true;
  return settled(verdicts);
}

async function settled(verdicts: readonly Verdict[]): Promise<boolean> {
  const known = await Promise.allSettled(verdicts);
  if (known.some((one) => one.status === 'fulfilled' && !one.value)) return false;
  for (const one of known) if (one.status === 'rejected') throw one.reason;
  return true;
}
