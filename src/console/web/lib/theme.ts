// Light, dark, or what the system says. Used by main.tsx and the switch in the head of the page.
import { createStore, remember, remembered } from './store.ts';

export type Theme = 'auto' | 'light' | 'dark';

function first(): Theme {
  const kept = remembered('theme', 'auto');
  return kept === 'light' || kept === 'dark' ? kept : 'auto';
}

export const theme = createStore<Theme>(first());

const system = matchMedia('(prefers-color-scheme: dark)');
/** Whether what is seen is dark; charts are drawn anew when it changes. */
export const dark = createStore(false);

function apply(): void {
  const chosen = theme.get();
  if (chosen === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  dark.set(chosen === 'dark' || (chosen === 'auto' && system.matches));
}

/** Sets what was chosen before, and follows the system from now on. */
export function startTheme(): void {
  system.addEventListener('change', apply);
  theme.watch(apply);
  apply();
}

export function setTheme(next: Theme): void {
  remember('theme', next);
  theme.set(next);
}
