// The last message of a topic while somebody looks: its payload, which values of its JSON have changed, and one number
// of it over time. Part of topicdetail.tsx; nothing is kept by the gateway for it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { asText, fromBase64 } from '../lib/bytes.ts';
import { bytes, clock } from '../lib/format.ts';
import { type Leaf, leavesOf } from '../lib/jsonleaves.ts';
import { Stream } from '../lib/live.ts';
import type { LiveMessage } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Chart } from '../ui/chart.tsx';
import { Empty, Facts, Payload, Scroll } from '../ui/parts.tsx';

/** Messages whose numbers are drawn. */
const DRAWN = 300;
const DRAW_MS = 200;

interface Seen {
  readonly time: number;
  readonly leaves: readonly Leaf[];
}

function useTopic(topic: string): { readonly last: LiveMessage | null; readonly seen: readonly Seen[] } {
  const [last, setLast] = useState<LiveMessage | null>(null);
  const seen = useRef<Seen[]>([]);
  useEffect(() => {
    let newest: LiveMessage | null = null;
    const stream = new Stream(`/api/v4/mqtt/messages?topic=${encodeURIComponent(topic)}&retained=true`, {
      message: (message: LiveMessage) => {
        newest = message;
        const text = asText(fromBase64(message.payload_base64));
        const leaves = text === null ? null : leavesOf(text);
        if (leaves !== null) seen.current.push({ time: message.time, leaves });
        if (seen.current.length > DRAWN) seen.current.shift();
      },
    } as Readonly<Record<string, (data: never) => void>>).start();
    const timer = setInterval(() => newest !== null && setLast(newest), DRAW_MS);
    return () => {
      clearInterval(timer);
      stream.stop();
    };
  }, [topic]);
  return { last, seen: seen.current };
}

function Values({
  seen,
  chosen,
  onChoose,
}: {
  readonly seen: readonly Seen[];
  readonly chosen: string | null;
  readonly onChoose: (path: string) => void;
}) {
  const now = seen.at(-1)?.leaves ?? [];
  const before = new Map((seen.at(-2)?.leaves ?? now).map(({ path, value }) => [path, value]));
  return (
    <Scroll look="values-box" label={t('Values')}>
      <table>
        <tbody>
          {now.map(({ path, value }) => (
            <tr key={path} class={before.get(path) === value ? '' : 'changed'}>
              <td>
                {typeof value === 'number' ? (
                  <button type="button" class="link" aria-pressed={chosen === path} onClick={() => onChoose(path)}>
                    <code>{path === '' ? t('Payload') : path}</code>
                  </button>
                ) : (
                  <code>{path === '' ? t('Payload') : path}</code>
                )}
              </td>
              <td>{String(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

export function LastValue({ topic }: { readonly topic: string }) {
  const { last, seen } = useTopic(topic);
  const [asked, setAsked] = useState<string | null>(null);
  if (last === null) return <Empty>{t('No message since this topic was opened.')}</Empty>;
  const numbers = (seen.at(-1)?.leaves ?? []).filter(({ value }) => typeof value === 'number');
  const chosen = numbers.find(({ path }) => path === asked)?.path ?? numbers[0]?.path ?? null;
  const points = seen.map(({ time, leaves }) => {
    const value = leaves.find(({ path }) => path === chosen)?.value;
    return { time: time / 1000, value: typeof value === 'number' ? value : null };
  });
  return (
    <>
      <Facts
        rows={[
          [t('Received at'), clock(last.time, true)],
          [t('From'), last.from],
          ['QoS', `${last.qos}${last.retain ? ' RETAIN' : ''}`],
          [t('Size'), bytes(last.bytes)],
        ]}
      />
      <Payload base64={last.payload_base64} total={last.bytes} />
      {(seen.at(-1)?.leaves.length ?? 0) > 0 && <Values seen={seen} chosen={chosen} onChoose={setAsked} />}
      {chosen !== null && points.length > 1 && (
        <Chart
          key={chosen}
          label={chosen === '' ? t('Payload') : chosen}
          times={points.map(({ time }) => time)}
          format={(value) => String(Number(value.toPrecision(5)))}
          lines={[{ label: t('value'), colour: 'one', values: points.map(({ value }) => value) }]}
          spans
        />
      )}
    </>
  );
}
