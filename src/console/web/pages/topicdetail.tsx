// One topic of the topic page: how much comes on it, its retained value, who gets it. A topic filter: who subscribes to
// it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, can, escaped, fetchData, query } from '../lib/api.ts';
import { bytes, count, date } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import { Series } from '../lib/rates.ts';
import { hrefOf } from '../lib/route.ts';
import type { TopicNode } from '../lib/topictree.ts';
import type { Meta, Retained, Subscription } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { BYTE_STEPS, Chart } from '../ui/chart.tsx';
import { Button, Confirm, Empty, Facts, Failed, Panel, Payload } from '../ui/parts.tsx';
import { LastValue } from './lastvalue.tsx';
import { TopicHistory } from './topichistory.tsx';

/** Subscribers that are shown. */
const SHOWN = 300;
const SUBSCRIBERS_MS = 10_000;
const VALUE_MS = 3000;
/** Ten minutes of looks every three seconds. */
const SAMPLES = 200;

function perSecond(value: number, format: (value: number) => string): string {
  return `${format(value)}/s`;
}

/** The rates of a topic and what is below it over the time that somebody looks. */
function RateCharts({ node, time }: { readonly node: TopicNode; readonly time: number }) {
  const series = useRef(new Series(SAMPLES));
  const [, drawn] = useState(0);
  useEffect(() => {
    series.current.add({ time, values: { messages: node.messageRate, bytes: node.byteRate } }, []);
    drawn(time);
  }, [time]);
  const times = series.current.times();
  return (
    <>
      <Chart
        label={t('Messages per second')}
        times={times}
        format={count}
        lines={[{ label: t('in'), colour: 'one', values: series.current.gauge('messages') }]}
      />
      <Chart
        label={t('Bytes per second')}
        times={times}
        format={bytes}
        steps={BYTE_STEPS}
        lines={[{ label: t('in'), colour: 'two', values: series.current.gauge('bytes') }]}
      />
    </>
  );
}

function TrafficFacts({ node, time }: { readonly node: TopicNode; readonly time: number }) {
  const { traffic } = node;
  const deep = node.topicsBelow > (traffic === null ? 0 : 1);
  return (
    <>
      {traffic !== null && (
        <Facts
          rows={[
            [t('Messages per second'), perSecond(traffic.messages_rate, count)],
            [t('Bytes per second'), perSecond(traffic.bytes_rate, bytes)],
            [t('Messages in total'), count(traffic.messages)],
            [t('Bytes in total'), bytes(traffic.bytes)],
          ]}
        />
      )}
      {deep && (
        <Facts
          rows={[
            [t('Topics in this branch'), count(node.topicsBelow)],
            [t('Messages per second, in total'), perSecond(node.messageRate, count)],
            [t('Bytes per second, in total'), perSecond(node.byteRate, bytes)],
          ]}
        />
      )}
      <RateCharts key={node.topic} node={node} time={time} />
    </>
  );
}

function Value({ topic, onCleared }: { readonly topic: string; readonly onCleared: () => void }) {
  const [asking, setAsking] = useState(false);
  const loaded = useLoaded(() => fetchData<Retained>(`/retained/${escaped(topic)}`), topic, VALUE_MS);
  const message = loaded.value;
  if (message === null) return loaded.error === null ? null : <Empty>{t('No retained message.')}</Empty>;
  return (
    <>
      <Facts
        rows={[
          [t('From'), message.from_client_id || '–'],
          ['QoS', message.qos],
          [t('Size'), bytes(message.bytes)],
          [t('Expires'), message.expires_at === null ? t('never') : date(message.expires_at)],
        ]}
      />
      {message.payload_base64 !== undefined ? (
        <Payload base64={message.payload_base64} />
      ) : (
        <Empty>{t('The payload is too large to display.')}</Empty>
      )}
      {can('operator') && !topic.startsWith('$') && (
        <Button kind="danger" onClick={() => setAsking(true)}>
          {t('Clear the retained message')}
        </Button>
      )}
      {asking && (
        <Confirm
          title={t('Clear the retained message?')}
          action={t('Clear')}
          onClose={() => setAsking(false)}
          onYes={async () => {
            await call('DELETE', `/retained/${escaped(topic)}`);
            onCleared();
            loaded.reload();
          }}
        >
          <p>
            <code>{topic}</code>
          </p>
        </Confirm>
      )}
    </>
  );
}

/** Who gets a topic, shared subscriptions and wildcards included; of a filter, who subscribes to just that. */
function Subscribers({ topic, wild }: { readonly topic: string; readonly wild: boolean }) {
  const asked = wild ? { topic, limit: SHOWN } : { matches: topic, limit: SHOWN };
  const loaded = useLoaded(
    () => call<{ data: Subscription[]; meta: Meta }>('GET', `/subscriptions${query(asked)}`),
    topic,
    SUBSCRIBERS_MS,
  );
  if (loaded.value === null) return <Failed error={loaded.error} />;
  const { data, meta } = loaded.value;
  if (data.length === 0) return <Empty>{t('No subscribers.')}</Empty>;
  return (
    <>
      <table>
        <thead>
          <tr>
            <th>{t('Client id')}</th>
            <th>{t('Topic filter')}</th>
            <th>QoS</th>
          </tr>
        </thead>
        <tbody>
          {data.map((s) => (
            <tr key={`${s.clientid}/${s.topic}`}>
              <td>
                <a href={hrefOf('clients', s.clientid)}>{s.clientid}</a>
              </td>
              <td>
                <code>{s.topic}</code>
              </td>
              <td>{s.qos}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {meta.count > data.length && <p class="note">{t('and {n} more', { n: count(meta.count - data.length) })}</p>}
    </>
  );
}

/** Where everything stands in one column what was chosen is below the tree: it is brought into sight. */
const ONE_COLUMN = '(max-width: 900px)';

/**
 * @param time when the traffic of `node` was asked for, 0 when it is not known
 * @param recording there is a file of recorded messages
 */
export function TopicDetail({
  topic,
  node,
  time,
  recording,
  onCleared,
}: {
  readonly topic: string;
  readonly node: TopicNode | undefined;
  readonly time: number;
  readonly recording: boolean;
  readonly onCleared: () => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (matchMedia(ONE_COLUMN).matches) place.current?.scrollIntoView({ block: 'start' });
  }, [topic]);
  const wild = topic.includes('+') || topic.includes('#') || topic.startsWith('$share/');
  return (
    <div ref={place}>
      <Panel title={<code>{topic}</code>}>
        {!wild && can('operator') && (
          <>
            <h3>{t('Last message')}</h3>
            <LastValue key={topic} topic={topic} />
          </>
        )}
        {!wild && <h3>{t('Retained message')}</h3>}
        {!wild && node?.retained !== true && <Empty>{t('No retained message.')}</Empty>}
        {node?.retained === true && <Value key={topic} topic={topic} onCleared={onCleared} />}
        {node !== undefined && node.topicsBelow > 0 && <TrafficFacts node={node} time={time} />}
        {!wild && node?.topicsBelow === 0 && time > 0 && <Empty>{t('No messages published on this topic.')}</Empty>}
        {!wild && recording && can('operator') && <TopicHistory key={topic} topic={topic} />}
        <h3>{t('Subscribers')}</h3>
        <Subscribers key={topic} topic={topic} wild={wild} />
      </Panel>
    </div>
  );
}
