// Whether changes made here are written to tidegate.d, so that they hold after a restart. One choice for all pages, on
// where the gateway can keep changes and the user may.
import { can, fetchData } from './api.ts';
import { createStore } from './store.ts';

/** null: not known yet, or not possible here. */
export const keeping = createStore<boolean | null>(null);

/** Asks the gateway once after each login. */
export async function findKeeping(): Promise<void> {
  if (keeping.get() !== null || !can('admin')) return;
  const { file } = await fetchData<{ readonly file: string | null }>('/config/kept');
  if (keeping.get() === null && file !== null) keeping.set(true);
}

/** The path of a call that changes something, with what was chosen. */
export function kept(path: string): string {
  if (keeping.get() !== true || !can('admin')) return path;
  return `${path}${path.includes('?') ? '&' : '?'}keep=true`;
}
