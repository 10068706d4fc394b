// The language of the pages. Texts are written in English where they stand; chinese.ts has each of them in Chinese.
// Used by every page as t('Clients').
import { inChinese } from './answers.ts';
import { CHINESE } from './chinese.ts';
import { createStore, remember, remembered } from './store.ts';

export type Language = 'en' | 'zh';

function first(): Language {
  const kept = remembered('language', '');
  if (kept === 'en' || kept === 'zh') return kept;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

export const language = createStore<Language>(first());

export function setLanguage(next: Language): void {
  remember('language', next);
  document.documentElement.lang = next;
  language.set(next);
}

/** The text in the language that is on, {names} filled in. */
export function t(text: string, values: Readonly<Record<string, string | number>> = {}): string {
  const found = language.get() === 'zh' ? (CHINESE[text] ?? text) : text;
  return found.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** What the gateway has answered, in the language that is on. */
export function answerText(text: string): string {
  return language.get() === 'zh' ? inChinese(text) : text;
}
