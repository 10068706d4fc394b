// Log: the last lines and those that come, by level and text. The stream ends with the page.
import { useEffect, useState } from 'preact/hooks';
import { fetchData } from '../lib/api.ts';
import { clock, short } from '../lib/format.ts';
import { Stream } from '../lib/live.ts';
import type { LogLine } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Badge, Choice, Empty, IconButton, Scroll, SearchBox } from '../ui/parts.tsx';

const KEPT = 2000;
const DRAWN = 500;
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

type Level = 'all' | 'info' | 'warn' | 'error';

function rank(level: string): number {
  return Math.max(0, LEVELS.indexOf(level));
}

function fieldsText(fields: LogLine['fields']): string {
  return Object.entries(fields)
    .map(([key, value]) => `${key}=${short(value, 200)}`)
    .join('  ');
}

export function LogPage() {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [level, setLevel] = useState<Level>('all');
  const [search, setSearch] = useState('');
  const [held, setHeld] = useState<readonly LogLine[] | null>(null);
  useEffect(() => {
    fetchData<readonly LogLine[]>('/log?limit=500').then(
      (past) => setLines((now) => [...now, ...[...past].reverse()].slice(0, KEPT)),
      () => {},
    );
    const stream = new Stream('/api/v4/events?kinds=log', {
      log: (line: LogLine) => setLines((now) => [line, ...now].slice(0, KEPT)),
    } as Readonly<Record<string, (data: never) => void>>).start();
    return () => stream.stop();
  }, []);
  const least = level === 'all' ? 0 : rank(level);
  const part = search.toLowerCase();
  const fits = (line: LogLine): boolean =>
    rank(line.level) >= least &&
    (part === '' || `${line.msgid} ${line.text} ${fieldsText(line.fields)}`.toLowerCase().includes(part));
  const found = (held ?? lines).filter(fits).slice(0, DRAWN);
  return (
    <>
      <div class="bar">
        <SearchBox label={t('Text, id or field')} value={search} onValue={setSearch} />
        <Choice
          label={t('Level')}
          value={level}
          onValue={setLevel}
          options={[
            ['all', t('all')],
            ['info', t('info')],
            ['warn', t('warn')],
            ['error', t('error')],
          ]}
        />
        <IconButton
          icon={held === null ? 'pause' : 'play'}
          label={held === null ? t('Pause') : t('Resume')}
          onClick={() => setHeld(held === null ? lines : null)}
        />
        {held !== null && (
          <span class="warn-text">{t('Paused: {n} new lines', { n: lines.length - held.length })}</span>
        )}
      </div>
      <Scroll look="panel flush log-box" label={t('Log')}>
        {found.length === 0 && <Empty>{t('No log lines.')}</Empty>}
        <ol class="plain log-lines">
          {found.map((line, i) => (
            <li key={`${line.time}/${line.msgid}/${found.length - i}`} class={`log-line ${line.level}`}>
              <time>{clock(line.time, true)}</time>
              <Badge state={line.level} />
              <code class="log-id">{line.msgid}</code>
              {/* As in the file, so that it can be searched for. */}
              <span class="log-text" lang="en">
                {line.text}
              </span>
              <code class="log-fields">{fieldsText(line.fields)}</code>
            </li>
          ))}
        </ol>
      </Scroll>
    </>
  );
}
