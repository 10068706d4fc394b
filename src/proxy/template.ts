// Templates such as "ng-${clientid}": taken apart once, filled in for every client. Used for `set` and hash_key.
// What is filled in is never looked at again, so a client id that reads "${username}" stays what it is.
import { isCertificateVariable } from '../base/tlsvariables.ts';
import { type Facts, variable } from './facts.ts';

const VARIABLE = /\$\{([^}]*)\}/;

export interface Template {
  /** Whether ${clientid} is in it. */
  readonly usesClientId: boolean;
  /** A variable in it that the client's certificate should give and does not; null = none. */
  missing(facts: Facts): string | null;
  fill(facts: Facts): string;
  /** What the variables in it stand for, in their order; those of the environment are not variables. */
  values(facts: Facts): string[];
}

/** `env` is read now: a variable that changes later counts from the next reload on. */
export function compileTemplate(text: string, env: Readonly<Record<string, string | undefined>>): Template {
  // split() with a group gives text, name, text, name ... text.
  const words = text.split(VARIABLE).map((word, i) => {
    const isEnv = i % 2 === 1 && word.startsWith('env.');
    return isEnv ? { literal: true, word: env[word.slice('env.'.length)] ?? '' } : { literal: i % 2 === 0, word };
  });
  const certified = words
    .filter(({ literal, word }) => !literal && (word === 'cert_cn' || isCertificateVariable(word)))
    .map(({ word }) => word);
  return {
    missing: (facts) => certified.find((name) => variable(facts, name) === '') ?? null,
    usesClientId: words.some(({ literal, word }) => !literal && word === 'clientid'),
    values: (facts) => words.filter(({ literal }) => !literal).map(({ word }) => variable(facts, word)),
    fill: (facts) => words.map(({ literal, word }) => (literal ? word : variable(facts, word))).join(''),
  };
}
