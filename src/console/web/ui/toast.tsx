// Short notices at the edge of the page: what was done, what failed. Read out politely; failures stay until they are
// closed.
import { textOf } from '../lib/api.ts';
import { createStore, useStore } from '../lib/store.ts';
import { t } from '../lib/words.ts';
import { IconButton } from './parts.tsx';

interface Notice {
  readonly id: number;
  readonly text: string;
  readonly bad: boolean;
}

const notices = createStore<readonly Notice[]>([]);
const SHOWN_MS = 4000;

function close(id: number): void {
  notices.set(notices.get().filter((notice) => notice.id !== id));
}

export function tell(text: string, bad = false): void {
  const id = (notices.get().at(-1)?.id ?? 0) + 1;
  notices.set([...notices.get().slice(-3), { id, text, bad }]);
  if (!bad) setTimeout(() => close(id), SHOWN_MS);
}

/** Does something and tells how it went. */
export async function attempt(work: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work();
    tell(done);
    return true;
  } catch (error) {
    tell(textOf(error), true);
    return false;
  }
}

export function Notices() {
  const shown = useStore(notices);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.map(({ id, text, bad }) => (
        <div key={id} class={bad ? 'notice bad' : 'notice'}>
          <span>{text}</span>
          <IconButton icon="close" label={t('Close')} onClick={() => close(id)} />
        </div>
      ))}
    </div>
  );
}
