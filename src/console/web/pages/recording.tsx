// Recording: what is recorded, messages of the past by topic filter and time, a field of them as a chart, all of them as
// a file. Publishing them again: replays.tsx.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, call, can, fetchData, query } from '../lib/api.ts';
import { bytes, count, date, duration, short } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import { t } from '../lib/words.ts';
import { Chart } from '../ui/chart.tsx';
import { Button, Choice, Empty, Facts, Failed, Panel, Payload, TextField } from '../ui/parts.tsx';
import { Replays } from './replays.tsx';

interface Status {
  readonly topics: readonly string[];
  readonly keep_ms: number;
  readonly max_size: number;
  readonly missed: number;
  readonly last_error: string | null;
  readonly bytes: number | null;
  readonly messages: number | null;
  readonly topics_recorded: number | null;
  readonly oldest: number | null;
  readonly newest: number | null;
}

export interface Recorded {
  readonly time: number;
  readonly topic: string;
  readonly qos: number;
  readonly retain: boolean;
  readonly from: string | null;
  readonly bytes: number;
  readonly payload?: string;
  readonly payload_base64: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

interface Line {
  readonly topic: string;
  readonly points: readonly {
    readonly time: number;
    readonly min: number;
    readonly max: number;
    readonly mean: number;
  }[];
  readonly cut: boolean;
}

const SINCE = ['10m', '1h', '24h', '7d'] as const;
type Since = (typeof SINCE)[number];
const STATUS_MS = 5000;
const PAGE = 50;
const POINTS = 200;
const PATIENCE_MS = 300;
const COLOURS = ['one', 'two', 'three'];

/** Filter and time that the page looks at. */
export interface Wanted {
  readonly topic: string;
  readonly from: string;
}

function StatusFacts({ now }: { readonly now: Status }) {
  const limit = now.max_size === 0 ? t('no limit') : bytes(now.max_size);
  return (
    <>
      {now.last_error !== null && (
        <p class="failed" role="alert">
          {now.last_error}
        </p>
      )}
      <Facts
        rows={[
          [t('Recorded topics'), now.topics.length === 0 ? t('none now') : now.topics.join('  ')],
          [t('Messages'), now.messages === null ? '–' : count(now.messages)],
          [t('Size'), now.bytes === null ? '–' : t('{n} of {m}', { n: bytes(now.bytes), m: limit })],
          [t('Kept for'), now.keep_ms === 0 ? t('no limit') : duration(now.keep_ms)],
          [t('Oldest'), now.oldest === null ? '–' : date(now.oldest)],
          [t('Not recorded'), now.missed === 0 ? t('none') : <b class="warn-text">{count(now.missed)}</b>],
        ]}
      />
    </>
  );
}

export function Messages({ wanted }: { readonly wanted: Wanted }) {
  const [rows, setRows] = useState<readonly Recorded[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [open, setOpen] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const load = async (after: string | null, current: () => boolean): Promise<void> => {
    try {
      const asked = query({ ...wanted, limit: PAGE, after: after ?? undefined });
      const page = await call<{ data: readonly Recorded[]; meta: { next: string | null } }>(
        'GET',
        `/recording/messages${asked}`,
      );
      if (!current()) return;
      setRows((now) => [...(after === null ? [] : now), ...page.data]);
      setNext(page.meta.next);
      setError(null);
    } catch (problem) {
      if (current()) setError(problem);
    }
  };
  useEffect(() => {
    let current = true;
    setOpen(null);
    const timer = setTimeout(() => void load(null, () => current), PATIENCE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [wanted.topic, wanted.from]);
  return (
    <>
      <Failed error={error} />
      {rows.length === 0 && error === null && <Empty>{t('No messages in this time.')}</Empty>}
      <ol class="plain recorded">
        {rows.map((row, i) => (
          <li key={`${row.time}/${i}`}>
            <button
              type="button"
              class="row-button"
              aria-expanded={open === i}
              onClick={() => setOpen(open === i ? null : i)}
            >
              <time>{date(row.time)}</time>
              <code class="row-name">{row.topic}</code>
              <span class="muted">{bytes(row.bytes)}</span>
              <span class="happening-text">{short(row.payload ?? row.payload_base64, 80)}</span>
            </button>
            {open === i && (
              <div class="recorded-one">
                <Facts
                  rows={[
                    [t('From'), row.from ?? '–'],
                    ['QoS', row.qos],
                    [t('Retained'), row.retain ? t('yes') : t('no')],
                    ...Object.entries(row.properties).map(([name, value]) => [name, short(value, 200)] as const),
                  ]}
                />
                <Payload base64={row.payload_base64} />
              </div>
            )}
          </li>
        ))}
      </ol>
      {next !== null && <Button onClick={() => void load(next, () => true)}>{t('Older messages')}</Button>}
    </>
  );
}

/** The first topics of a filter, drawn over one another: each point at its own time. */
export function Series({ wanted, field }: { readonly wanted: Wanted; readonly field: string }) {
  const asked = query({ ...wanted, field, points: POINTS });
  const lines = useLoaded(() => fetchData<readonly Line[]>(`/recording/series${asked}`), asked);
  const found = (lines.value ?? []).filter(({ points }) => points.length > 0).slice(0, COLOURS.length);
  if (found.length === 0)
    return lines.value === null ? <Failed error={lines.error} /> : <Empty>{t('No numbers found.')}</Empty>;
  const times = [...new Set(found.flatMap(({ points }) => points.map(({ time }) => time)))].sort((a, b) => a - b);
  const drawn = found.map(({ topic, points }, i) => {
    const means = new Map(points.map(({ time, mean }) => [time, mean]));
    return { label: topic, colour: COLOURS[i], values: times.map((time) => means.get(time) ?? null) };
  });
  return (
    <>
      <Chart
        key={asked}
        label={field === '' ? t('Payload') : field}
        times={times.map((time) => time / 1000)}
        format={(value) => (Math.abs(value) >= 10_000 ? count(value) : String(Number(value.toPrecision(4))))}
        lines={drawn}
        height={200}
        spans
      />
      {found.some(({ cut }) => cut) && <p class="warn-text">{t('There are more messages than are drawn here.')}</p>}
    </>
  );
}

function Nothing() {
  return (
    <Panel title={t('Nothing is recorded')}>
      <p>{t('Set record.topics in the configuration, and persistence.path or record.path:')}</p>
      <pre>
        {
          'persistence { path = "/var/lib/tidegate/tidegate.db" }\nrecord { topics = ["plant/#"], keep = 7d, max_size = 1GB }'
        }
      </pre>
    </Panel>
  );
}

export function RecordingPage() {
  const status = useLoaded(() => fetchData<Status>('/recording'), 'recording', STATUS_MS);
  const [topic, setTopic] = useState('#');
  const [since, setSince] = useState<Since>('1h');
  const [field, setField] = useState('');
  const [drawn, setDrawn] = useState<string | null>(null);
  if (status.error instanceof ApiError && status.error.status === 404) return <Nothing />;
  const now = status.value;
  if (now === null)
    return status.error === null ? <Empty>{t('Waiting for data.')}</Empty> : <Failed error={status.error} />;
  const wanted = { topic: topic === '' ? '#' : topic, from: `-${since}` };
  const file = (format: string): string => `/api/v4/recording/export${query({ ...wanted, format })}`;
  return (
    <>
      <Panel title={t('Recording')}>
        <StatusFacts now={now} />
      </Panel>
      {!can('operator') ? (
        <Empty>{t('Recorded messages can be seen by operators.')}</Empty>
      ) : (
        <>
          <div class="bar">
            <TextField label={t('Topic filter')} value={topic} onValue={setTopic} mono />
            <Choice label={t('Since')} value={since} onValue={setSince} options={SINCE.map((one) => [one, one])} />
            <a class="button" href={file('jsonl')} download>
              JSON
            </a>
            <a class="button" href={file('csv')} download>
              CSV
            </a>
          </div>
          <Panel title={t('As a chart')}>
            <div class="bar">
              <TextField
                label={t('Field of the JSON')}
                hint={t('such as data.temperature; empty: the payload is a number')}
                value={field}
                onValue={setField}
                mono
              />
              <Button onClick={() => setDrawn(field)}>{t('Draw')}</Button>
            </div>
            {drawn !== null && <Series wanted={wanted} field={drawn} />}
          </Panel>
          <Panel title={t('Recorded messages')}>
            <Messages wanted={wanted} />
          </Panel>
          <Replays wanted={wanted} />
        </>
      )}
    </>
  );
}
