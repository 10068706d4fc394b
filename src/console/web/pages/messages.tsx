// Messages: what is published on topic filters, live, with payloads as text, JSON, hex, CBOR or MessagePack, and as a
// file. Publishing: publish.tsx.
import { useEffect, useRef, useState } from 'preact/hooks';
import { can } from '../lib/api.ts';
import { asText, fromBase64 } from '../lib/bytes.ts';
import { bytes, clock, count, short } from '../lib/format.ts';
import { type Link, Stream } from '../lib/live.ts';
import { isTopicFilter } from '../lib/topicfilter.ts';
import type { LiveMessage } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Badge, Button, Check, Empty, Facts, IconButton, Panel, Payload, Scroll, TextField } from '../ui/parts.tsx';
import { Publish } from './publish.tsx';

/** Messages that are kept on the page. */
const KEPT = 500;
/** The list is drawn at most this often, however many messages come. */
const DRAW_MS = 150;
/** Filters of one stream. */
const FILTERS = 32;

/** Why a filter cannot be added to these, null when it can. */
function refusal(filter: string, filters: readonly string[]): string | null {
  if (!isTopicFilter(filter)) return t('Not a valid topic filter.');
  if (filter.startsWith('$share/'))
    return t('A shared subscription would take messages away from its members. Subscribe to the filter itself.');
  if (filters.length >= FILTERS) return t('At most {n} topic filters at the same time.', { n: FILTERS });
  if (filter.includes(',') && filters.some((one) => one.includes(',')))
    return t('Only one topic filter with a comma at the same time.');
  return null;
}

/** The query for these filters: commas part them, so one that holds a comma goes by itself. */
function askedFor(filters: readonly string[]): string {
  const alone = filters.find((one) => one.includes(','));
  const others = filters.filter((one) => one !== alone);
  const parts = alone === undefined ? [] : [`topic=${encodeURIComponent(alone)}`];
  if (others.length > 0) parts.push(`topics=${others.map(encodeURIComponent).join(',')}`);
  return parts.join('&');
}

interface Shown extends LiveMessage {
  readonly id: number;
}

/** Collects what a stream brings and draws it now and then. */
function useMessages(
  filters: readonly string[],
  retained: boolean,
  paused: boolean,
  still: { readonly current: boolean },
) {
  const [list, setList] = useState<readonly Shown[]>([]);
  const [skipped, setSkipped] = useState(0);
  const [link, setLink] = useState<Link>('connecting');
  const waiting = useRef<Shown[]>([]);
  const next = useRef(0);
  const halted = useRef(paused);
  halted.current = paused;
  const key = JSON.stringify([filters, retained]);
  useEffect(() => {
    if (filters.length === 0) return;
    const stream = new Stream(
      `/api/v4/mqtt/messages?${askedFor(filters)}&retained=${retained}`,
      {
        message: (message: LiveMessage) => {
          if (!halted.current) waiting.current.push({ ...message, id: next.current++ });
          if (waiting.current.length > KEPT) waiting.current.shift();
        },
        skipped: (told: { count: number }) => setSkipped((n) => n + told.count),
      } as Readonly<Record<string, (data: never) => void>>,
      setLink,
    ).start();
    const timer = setInterval(() => {
      // A list that moves under the pointer cannot be clicked: it waits, what comes meanwhile is drawn afterwards.
      if (still.current) return;
      const fresh = waiting.current.splice(0).reverse();
      if (fresh.length > 0) setList((old) => [...fresh, ...old].slice(0, KEPT));
    }, DRAW_MS);
    return () => {
      clearInterval(timer);
      stream.stop();
    };
  }, [key]);
  const clear = (): void => {
    waiting.current = [];
    setList([]);
    setSkipped(0);
  };
  return { list, skipped, link, clear };
}

const COLUMNS = [
  'time',
  'topic',
  'qos',
  'retain',
  'from',
  'bridge',
  'content_type',
  'bytes',
  'payload',
  'payload_base64',
];

/** As RFC 4180 has it; what a spreadsheet would take for a formula is led by an apostrophe. */
function csvField(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Gives the messages of the page as a file, oldest first. */
function save(list: readonly Shown[], format: 'jsonl' | 'csv'): void {
  const rows = [...list].reverse().map(({ id: _, ...message }) => message as Readonly<Record<string, unknown>>);
  const text =
    format === 'jsonl'
      ? rows.map((row) => `${JSON.stringify(row)}\n`).join('')
      : [COLUMNS, ...rows.map((row) => COLUMNS.map((name) => row[name]))]
          .map((fields) => `${fields.map(csvField).join(',')}\r\n`)
          .join('');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: format === 'csv' ? 'text/csv' : 'application/x-ndjson' }));
  link.download = `messages.${format}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function previewOf(message: LiveMessage): string {
  if (message.bytes === 0) return t('(empty)');
  const text = message.payload ?? asText(fromBase64(message.payload_base64));
  return text === null || text === undefined ? `${message.bytes} B` : short(text, 100);
}

function Live() {
  const [filter, setFilter] = useState('#');
  const [filters, setFilters] = useState<readonly string[]>([]);
  const [retained, setRetained] = useState(false);
  const [paused, setPaused] = useState(false);
  const [chosen, setChosen] = useState<Shown | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const still = useRef(false);
  const { list, skipped, link, clear } = useMessages(filters, retained, paused, still);
  const add = (event: Event): void => {
    event.preventDefault();
    const wanted = filter.trim();
    const why = filters.includes(wanted) ? null : refusal(wanted, filters);
    setProblem(why);
    if (why === null && !filters.includes(wanted)) setFilters([...filters, wanted]);
  };
  const tone = link === 'open' ? 'good' : link === 'lost' ? 'bad' : 'calm';
  return (
    <Panel
      title={t('Live')}
      tools={
        filters.length > 0 && (
          <>
            <Badge
              state={tone}
              text={link === 'open' ? t('Live') : link === 'lost' ? t('Disconnected') : t('Connecting')}
            />
            <IconButton
              icon={paused ? 'play' : 'pause'}
              label={paused ? t('Resume') : t('Pause')}
              onClick={() => setPaused(!paused)}
            />
            <Button onClick={() => save(list, 'jsonl')}>JSON</Button>
            <Button onClick={() => save(list, 'csv')}>CSV</Button>
            <IconButton icon="trash" label={t('Clear the list')} onClick={clear} />
          </>
        )
      }
    >
      <form class="line subscribe" onSubmit={add}>
        <TextField label={t('Topic filter')} value={filter} onValue={setFilter} problem={problem} mono />
        <Check label={t('with retained messages')} value={retained} onValue={setRetained} />
        <Button type="submit" kind="primary">
          {t('Subscribe')}
        </Button>
      </form>
      {filters.length > 0 && (
        <ul class="plain line">
          {filters.map((one) => (
            <li key={one} class="chip">
              <code>{one}</code>
              <IconButton
                icon="close"
                label={t('Unsubscribe from {n}', { n: one })}
                onClick={() => setFilters(filters.filter((other) => other !== one))}
              />
            </li>
          ))}
        </ul>
      )}
      {skipped > 0 && <p class="warn-text">{t('{n} messages arrived too fast to be shown.', { n: count(skipped) })}</p>}
      {filters.length === 0 ? (
        <Empty>{t('Subscribe to a topic filter to see messages live.')}</Empty>
      ) : (
        <Scroll look="live-list" label={t('Messages')}>
          {list.length === 0 && <Empty>{t('No messages yet.')}</Empty>}
          <ul
            class="plain"
            onPointerEnter={() => {
              still.current = true;
            }}
            onPointerLeave={() => {
              still.current = false;
            }}
          >
            {list.map((message) => (
              <li key={message.id}>
                <button
                  type="button"
                  class="message"
                  aria-pressed={chosen?.id === message.id}
                  onClick={() => setChosen(chosen?.id === message.id ? null : message)}
                >
                  <time>{clock(message.time, true)}</time>
                  <code class="message-topic">{message.topic}</code>
                  <span class="muted">
                    q{message.qos}
                    {message.retain ? ' R' : ''}
                  </span>
                  <span class="message-payload">{previewOf(message)}</span>
                </button>
                {chosen?.id === message.id && (
                  <div class="message-detail">
                    <Facts
                      rows={[
                        [t('From'), message.from],
                        [t('Bridge'), message.bridge ?? '–'],
                        [t('Size'), bytes(message.bytes)],
                        [t('Content type'), message.content_type ?? '–'],
                      ]}
                    />
                    <Payload base64={message.payload_base64} total={message.bytes} />
                  </div>
                )}
              </li>
            ))}
          </ul>
        </Scroll>
      )}
    </Panel>
  );
}

export function MessagesPage() {
  if (!can('operator')) {
    return <Empty>{t('Reading and publishing messages requires the role operator.')}</Empty>;
  }
  return (
    <div class="pair wide-right">
      <Publish />
      <Live />
    </div>
  );
}
