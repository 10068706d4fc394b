// What was recorded of one topic: its messages, and a number of them over time. Part of topicdetail.tsx; shows nothing
// where nothing of the topic is recorded.
import { useState } from 'preact/hooks';
import { call, fetchData, query } from '../lib/api.ts';
import { leavesOf } from '../lib/jsonleaves.ts';
import { useLoaded } from '../lib/live.ts';
import { t } from '../lib/words.ts';
import { Choice, SelectField } from '../ui/parts.tsx';
import { Messages, type Recorded, Series } from './recording.tsx';

const SINCE = ['1h', '24h', '7d'] as const;
type Since = (typeof SINCE)[number];

/** The newest recorded message; null where there is none, or no recording. */
async function newestOf(topic: string): Promise<Recorded | null> {
  const { data: topics } = await call<{ data: readonly { newest: number }[] }>(
    'GET',
    `/recording/topics${query({ topic })}`,
  );
  const newest = topics[0]?.newest;
  if (newest === undefined) return null;
  const found = await fetchData<readonly Recorded[]>(`/recording/messages${query({ topic, from: newest, limit: 1 })}`);
  return found[0] ?? null;
}

/** Paths of the numbers in a payload. */
function numbersIn(payload: string | undefined): string[] {
  const leaves = payload === undefined ? null : leavesOf(payload);
  return (leaves ?? []).filter(({ value }) => typeof value === 'number').map(({ path }) => path);
}

export function TopicHistory({ topic }: { readonly topic: string }) {
  const [since, setSince] = useState<Since>('24h');
  const [asked, setAsked] = useState<string | null>(null);
  const newest = useLoaded(() => newestOf(topic), topic).value;
  if (newest === null) return null;
  const numbers = numbersIn(newest.payload);
  const field = numbers.find((path) => path === asked) ?? numbers[0] ?? null;
  const wanted = { topic, from: `-${since}` };
  return (
    <section aria-label={t('Recorded messages')}>
      <h3>{t('Recorded messages')}</h3>
      <div class="bar">
        <Choice label={t('Since')} value={since} onValue={setSince} options={SINCE.map((one) => [one, one])} />
        {field !== null && numbers.length > 1 && (
          <SelectField
            label={t('Field of the JSON')}
            value={field}
            onValue={setAsked}
            options={numbers.map((path) => [path, path])}
          />
        )}
      </div>
      {field !== null && <Series wanted={wanted} field={field} />}
      <Messages wanted={wanted} />
    </section>
  );
}
