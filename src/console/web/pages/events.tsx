// Events: what happened before, over restarts: starts, changes and by whom, bridges, alarms, clients in sums; by kind
// and text, page by page, and as a file.
import { useEffect, useState } from 'preact/hooks';
import { query } from '../lib/api.ts';
import { date, short } from '../lib/format.ts';
import { loadEvents, type PastEvent } from '../lib/history.ts';
import { t } from '../lib/words.ts';
import { Badge, Button, Choice, Empty, Failed, Scroll, SearchBox, SelectField } from '../ui/parts.tsx';

const KINDS = ['all', 'gateway', 'configuration', 'bridge', 'alarm', 'login', 'clients'] as const;
type Kind = (typeof KINDS)[number];
const SINCE = ['1h', '24h', '7d', '30d'] as const;
type Since = (typeof SINCE)[number];
const PAGE = 100;
/** While somebody types. */
const PATIENCE_MS = 250;

function fieldsText(fields: PastEvent['fields']): string {
  return Object.entries(fields)
    .filter(([key]) => key !== 'id')
    .map(([key, value]) => `${key}=${short(value, 120)}`)
    .join('  ');
}

export function EventsPage() {
  const [kind, setKind] = useState<Kind>('all');
  const [since, setSince] = useState<Since>('24h');
  const [search, setSearch] = useState('');
  const [rows, setRows] = useState<readonly PastEvent[] | null>(null);
  const [next, setNext] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const asked = { from: `-${since}`, kinds: kind === 'all' ? undefined : kind, search };
  const load = async (before: number, current: () => boolean): Promise<void> => {
    try {
      const page = await loadEvents({ ...asked, before: before || undefined, limit: PAGE });
      if (!current()) return;
      setRows((now) => [...(before === 0 ? [] : (now ?? [])), ...page.data]);
      setNext(page.meta.next);
      setError(null);
    } catch (problem) {
      if (current()) setError(problem);
    }
  };
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => void load(0, () => current), search === '' ? 0 : PATIENCE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [kind, since, search]);
  const file = (format: string): string => `/api/v4/happenings${query({ ...asked, format })}`;
  return (
    <>
      <div class="bar">
        <SearchBox label={t('Text or field')} value={search} onValue={setSearch} />
        <SelectField label={t('Kind')} value={kind} onValue={setKind} options={KINDS.map((one) => [one, t(one)])} />
        <Choice label={t('Since')} value={since} onValue={setSince} options={SINCE.map((one) => [one, one])} />
        <a class="button" href={file('jsonl')} download>
          JSON
        </a>
        <a class="button" href={file('csv')} download>
          CSV
        </a>
      </div>
      <Failed error={error} />
      <Scroll look="panel flush log-box" label={t('Events')}>
        {rows !== null && rows.length === 0 && <Empty>{t('No events in this time.')}</Empty>}
        <ol class="plain log-lines">
          {(rows ?? []).map((row) => (
            <li key={row.id} class={`log-line event ${row.level}`}>
              <time>{date(row.time)}</time>
              <Badge state={row.level} text={t(row.kind)} />
              {/* As in the log, so that it can be searched for. */}
              <span class="log-text" lang="en">
                {row.text}
              </span>
              <code class="log-fields">{fieldsText(row.fields)}</code>
            </li>
          ))}
        </ol>
      </Scroll>
      {next !== null && <Button onClick={() => void load(next, () => true)}>{t('Older events')}</Button>}
    </>
  );
}
