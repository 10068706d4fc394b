// What the gateway says, in Chinese: whole sentences from the dictionary, and sentences with names or figures in them
// by pattern. Called by words.ts for every answer of the REST API that is shown. Pure. What nobody has translated stays
// as it is: a wrong translation would be worse.

import { CHINESE } from './chinese.ts';
import { ANSWERS } from './chineseanswers.ts';

interface Pattern {
  readonly found: RegExp;
  readonly chinese: string;
}

/** "{a} to {b} expected" as an expression with a group for each gap. */
function patternOf(english: string, chinese: string): Pattern {
  const gaps: string[] = [];
  const escaped = english.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{(\w+)\}/g, (_, name: string) => {
    gaps.push(name);
    // A gap never spans two parts of an answer.
    return `(?<${name}>(?:(?!: ).){1,500}?)`;
  });
  return { found: new RegExp(`^${escaped}$`, 's'), chinese };
}

function compile(): readonly Pattern[] {
  return Object.entries(ANSWERS)
    .filter(([english]) => english.includes('{'))
    .map(([english, chinese]) => patternOf(english, chinese));
}

/** Longest text that is looked at: sentences are shorter. */
const MAX_TEXT = 600;
/** A detail stands behind the text of its code. */
const PARTS = /: | \(|, /;

/** The sentence in the language that is on. @param patterns compiled once by the caller's module */
function translate(text: string, patterns: readonly Pattern[]): string | null {
  if (Object.hasOwn(ANSWERS, text)) return ANSWERS[text];
  if (Object.hasOwn(CHINESE, text)) return CHINESE[text];
  for (const { found, chinese } of patterns) {
    const groups = found.exec(text)?.groups;
    if (groups !== undefined) return chinese.replace(/\{(\w+)\}/g, (_, name: string) => groups[name] ?? '');
  }
  return null;
}

/** The sentence in Chinese, as far as it is known. */
export function inChinese(text: string): string {
  if (text.length > MAX_TEXT) return text;
  const patterns = compile();
  const whole = translate(text, patterns);
  if (whole !== null) return whole;
  // "a value is wrong: qos: 0 to 2 expected": code, key, sentence.
  const colon = text.search(PARTS);
  if (!text.includes(': ') || colon < 0) return text;
  const parts = text.split(': ');
  return parts.map((part) => translate(part, patterns) ?? part).join('：');
}
