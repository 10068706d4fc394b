// A distribution of times as bars; what each comes to is said in words too. Used by the overview.
import { type Bar, barsOf } from '../lib/bars.ts';
import { count, duration, percent } from '../lib/format.ts';
import { t } from '../lib/words.ts';
import { Empty } from './parts.tsx';

function wordsOf({ bound, over, count: held, share }: Bar): string {
  const values = { n: duration(bound * 1000), m: `${count(held)} (${percent(share)})` };
  return over ? t('over {n}: {m}', values) : t('up to {n}: {m}', values);
}

/** @param bounds in seconds */
export function Histogram({
  label,
  note,
  bounds,
  counts,
}: {
  readonly label: string;
  readonly note: string;
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}) {
  const bars = barsOf(bounds, counts);
  const highest = Math.max(...bars.map(({ share }) => share));
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{label}</span>
        <span class="legend">{note}</span>
      </figcaption>
      {bars.length === 0 ? (
        <Empty>{t('No measurements in the last minute.')}</Empty>
      ) : (
        <ul class="bars">
          {bars.map((bar) => (
            <li key={`${bar.bound}${bar.over}`} title={wordsOf(bar)}>
              <span class="bar-share" aria-hidden="true">
                {bar.share >= 0.005 ? `${Math.round(bar.share * 100)}%` : ''}
              </span>
              <span class="bar-room" aria-hidden="true">
                <span style={{ height: `${(bar.share / highest) * 100}%` }} />
              </span>
              <span class="bar-bound" aria-hidden="true">
                {`${bar.over ? '>' : ''}${duration(bar.bound * 1000)}`.replace(' ', '')}
              </span>
              <span class="hidden">{wordsOf(bar)}</span>
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}
