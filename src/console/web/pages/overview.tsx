// Overview: what goes in and out now and in the last ten minutes, how the gateway itself is, bridges, and what has just
// happened.

import { useState } from 'preact/hooks';
import { fetchData } from '../lib/api.ts';
import { bytes, clock, count, duration, percent } from '../lib/format.ts';
import { type History, loadHistory, loadMarks, RANGES, type Range, refreshMs } from '../lib/history.ts';
import { bridges, type Happening, happenings, type Stats, series, stats, useLoaded } from '../lib/live.ts';
import { hrefOf } from '../lib/route.ts';
import { useStore } from '../lib/store.ts';
import { directionOf } from '../lib/tracks.ts';
import { t } from '../lib/words.ts';
import { BYTE_STEPS, Chart } from '../ui/chart.tsx';
import { Histogram } from '../ui/histogram.tsx';
import { Badge, Choice, Empty, Failed, Panel } from '../ui/parts.tsx';
import { Certificates } from './certificates.tsx';

function Tile({ label, value, note, tone }: { label: string; value: string; note?: string; tone?: string }) {
  return (
    <div class={`tile ${tone ?? ''}`}>
      <span class="tile-label">{label}</span>
      <span class="tile-value">{value}</span>
      <span class="tile-note">{note ?? ' '}</span>
    </div>
  );
}

function perSecond(value: number | null): string {
  return value === null ? '–' : `${count(value)}/s`;
}

/** What the store says about itself, if anything is kept. */
function storeNote(store: Stats['store']): { value: string; note: string; tone: string } {
  if (store === null || store.enable !== true) {
    return { value: t('off'), note: t('persistence is off'), tone: '' };
  }
  const used = typeof store.bytes === 'number' ? bytes(store.bytes) : t('on');
  if (store.state !== 'ok') return { value: used, note: t('accepts no messages'), tone: 'warn' };
  return { value: used, note: typeof store.free === 'number' ? t('{n} free', { n: bytes(store.free) }) : '', tone: '' };
}

function Tiles({ now }: { readonly now: Stats }) {
  const dropped = series.rate('dropped') ?? 0;
  const kept = storeNote(now.store);
  return (
    <div class="tiles">
      <Tile
        label={t('Messages in')}
        value={perSecond(series.rate('received'))}
        note={t('{n} in total', { n: count(now.received) })}
      />
      <Tile
        label={t('Messages out')}
        value={perSecond(series.rate('sent'))}
        note={t('{n} in total', { n: count(now.sent) })}
      />
      <Tile label={t('Connections')} value={count(now.clients)} note={t('{n} sessions', { n: count(now.sessions) })} />
      <Tile
        label={t('Dropped')}
        value={count(now.dropped)}
        note={perSecond(series.rate('dropped'))}
        tone={dropped > 0 ? 'warn' : ''}
      />
      <Tile
        label={t('Event loop delay p99')}
        value={duration(now.lag_p99 * 1000)}
        note={t('p50 {n}', { n: duration(now.lag_p50 * 1000) })}
        tone={now.lag_p99 > 0.1 ? 'warn' : ''}
      />
      <Tile
        label={t('Latency p99')}
        value={duration(now.latency_p99 * 1000)}
        note={t('p50 {n}', { n: duration(now.latency_p50 * 1000) })}
        tone={now.latency_p99 > 0.1 ? 'warn' : ''}
      />
      <Tile label={t('Memory')} value={bytes(now.memory)} note={t('processor {n}', { n: percent(now.cpu) })} />
      <Tile label={t('Queued')} value={count(now.queued)} note={bytes(now.queued_bytes)} />
      <Tile label={t('Disk')} value={kept.value} note={kept.note} tone={kept.tone} />
    </div>
  );
}

/** How often the marks of the charts are asked for. */
const MARKS_MS = 30_000;
const NO_HISTORY: History = { times: [], values: {} };

/** Where a chart has its values from: what this page has seen, or what the gateway has kept. */
function sourceOf(past: History | null): {
  times: number[];
  rate: (name: string) => (number | null)[];
  gauge: (name: string, factor?: number) => (number | null)[];
} {
  if (past === null)
    return {
      times: series.times(),
      rate: (name) => series.rates(name),
      gauge: (name, factor = 1) => series.gauge(name, factor),
    };
  const values = (name: string, factor = 1): (number | null)[] =>
    (past.values[name] ?? []).map((value) => (value === null ? null : value * factor));
  return { times: past.times, rate: (name) => values(name), gauge: values };
}

function Charts({ now }: { readonly now: Stats | null }) {
  const [range, setRange] = useState<Range>('live');
  const past = useLoaded(
    () => (range === 'live' ? Promise.resolve(null) : loadHistory(range)),
    range,
    refreshMs(range),
  );
  const marks = useLoaded(() => loadMarks(range), `marks ${range}`, MARKS_MS).value ?? [];
  // While a range is being loaded there is nothing to draw.
  const shown = range === 'live' ? null : (past.value ?? NO_HISTORY);
  const { times, rate, gauge } = sourceOf(shown);
  return (
    <>
      <div class="bar">
        <Choice
          label={t('Range of the charts')}
          value={range}
          onValue={setRange}
          options={RANGES.map((one) => [one, one === 'live' ? t('10 min') : one])}
        />
        <Failed error={past.error} />
      </div>
      <div class="charts" key={range}>
        <Panel>
          <Chart
            label={t('Messages per second')}
            times={times}
            marks={marks}
            format={count}
            lines={[
              { label: t('in'), colour: 'one', values: rate('received') },
              { label: t('out'), colour: 'two', values: rate('sent') },
            ]}
          />
        </Panel>
        <Panel>
          <Chart
            label={t('Bytes per second')}
            times={times}
            marks={marks}
            format={bytes}
            steps={BYTE_STEPS}
            lines={[
              { label: t('in'), colour: 'one', values: rate('received_bytes') },
              { label: t('out'), colour: 'two', values: rate('sent_bytes') },
            ]}
          />
        </Panel>
        <Panel>
          <Chart
            label={t('Connections')}
            times={times}
            marks={marks}
            format={count}
            lines={[
              { label: t('connected'), colour: 'one', values: gauge('clients') },
              { label: t('sessions'), colour: 'three', values: gauge('sessions') },
            ]}
          />
        </Panel>
        <Panel>
          <Chart
            label={t('Event loop delay')}
            times={times}
            marks={marks}
            format={duration}
            lines={[
              { label: 'p99', colour: 'two', values: gauge('lag_p99', 1000) },
              { label: 'p50', colour: 'one', values: gauge('lag_p50', 1000) },
            ]}
          />
        </Panel>
        <Panel>
          <Chart
            label={t('Gateway latency')}
            times={times}
            marks={marks}
            format={duration}
            lines={[
              { label: 'p99', colour: 'two', values: gauge('latency_p99', 1000) },
              { label: 'p50', colour: 'one', values: gauge('latency_p50', 1000) },
            ]}
          />
        </Panel>
        {now !== null && (
          <Panel>
            <Histogram
              label={t('Gateway latency, distribution')}
              note={t('every 64th input of the last one to two minutes')}
              {...now.latency}
            />
          </Panel>
        )}
        <Panel>
          <Chart
            label={t('Memory')}
            times={times}
            marks={marks}
            format={bytes}
            steps={BYTE_STEPS}
            lines={[{ label: t('resident'), colour: 'one', values: gauge('memory') }]}
          />
        </Panel>
        <Panel>
          <Chart
            label={t('Processor')}
            times={times}
            marks={marks}
            format={(value) => `${value.toFixed(0)} %`}
            lines={[{ label: t('one core = 100 %'), colour: 'three', values: gauge('cpu', 100) }]}
          />
        </Panel>
      </div>
    </>
  );
}

function BridgeStates() {
  const list = useStore(bridges);
  if (list === null) return <Empty>{t('Waiting for data.')}</Empty>;
  if (list.length === 0) return <Empty>{t('No bridges yet.')}</Empty>;
  return (
    <ul class="plain rows">
      {list.map((bridge) => (
        <li key={`${bridge.kind}/${bridge.type ?? ''}/${bridge.name}`}>
          <a href={hrefOf('bridges')} class="row-name">
            {bridge.name}
          </a>
          <span class="muted">{directionOf(bridge)}</span>
          <Badge state={bridge.state} />
        </li>
      ))}
    </ul>
  );
}

function wordsOf(event: Happening): string {
  const who = String(event.client_id ?? event.name ?? '');
  const why = String(event.reason ?? '').replaceAll('-', ' ');
  if (event.event === 'bridge') return `${who}: ${t(String(event.state ?? ''))}`;
  if (event.event === 'dropped') return `${who} ${why} ×${String(event.count ?? '')}`;
  return why === '' ? `${who} ${String(event.remote ?? '')}` : `${who} · ${why}`;
}

const EVENT_TONES: Readonly<Record<string, string>> = {
  connected: 'good',
  disconnected: 'off',
  refused: 'bad',
  dropped: 'warn',
  bridge: 'calm',
};

function Happenings() {
  const list = useStore(happenings);
  if (list.length === 0) return <Empty>{t('No events since this page was opened.')}</Empty>;
  return (
    <ol class="plain happenings">
      {list.map((event, i) => (
        <li key={`${event.time}-${list.length - i}`}>
          <time>{clock(event.time)}</time>
          <span class={`badge ${EVENT_TONES[event.event] ?? ''}`}>{t(event.event)}</span>
          <span class="happening-text">{wordsOf(event)}</span>
        </li>
      ))}
    </ol>
  );
}

interface Broker {
  readonly version: string;
}
interface Node {
  readonly name: string;
  readonly node_version: string;
  readonly ready: boolean;
}

export function OverviewPage() {
  const now = useStore(stats);
  const node = useLoaded(() => fetchData<readonly (Broker & Node)[]>('/nodes'), 'node');
  const about = node.value?.[0];
  return (
    <>
      <p class="sub">
        {about !== undefined && (
          <>
            <b>{about.name}</b> · Tidegate {about.version} · Node.js {about.node_version}
          </>
        )}
        {now !== null && ` · ${t('up {n}', { n: duration(now.uptime_ms) })}`}
      </p>
      <Certificates />
      <Panel title={t('Bridges')}>
        <BridgeStates />
      </Panel>
      {now === null ? <Empty>{t('Waiting for data.')}</Empty> : <Tiles now={now} />}
      <Charts now={now} />
      <div class="pair">
        <Panel title={t('Recent events')}>
          <Happenings />
        </Panel>
      </div>
    </>
  );
}
