// The choice whether changes are kept; nothing where they cannot be.
import { useEffect } from 'preact/hooks';
import { can } from '../lib/api.ts';
import { findKeeping, keeping } from '../lib/keep.ts';
import { useStore } from '../lib/store.ts';
import { t } from '../lib/words.ts';
import { Check } from './parts.tsx';

export function KeepCheck() {
  const value = useStore(keeping);
  useEffect(() => {
    // A gateway that does not answer is told by the page itself.
    findKeeping().catch(() => {});
  }, []);
  if (value === null || !can('admin')) return null;
  return <Check label={t('Keep changes after a restart')} value={value} onValue={(on) => keeping.set(on)} />;
}
