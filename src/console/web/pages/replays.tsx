// Recorded messages published again: starting a replay of what the recording page looks at, and those that run or have
// ended. Part of recording.tsx.
import { useState } from 'preact/hooks';
import { call, fetchData } from '../lib/api.ts';
import { count, date } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import { t } from '../lib/words.ts';
import { Badge, Button, Empty, Failed, Panel, SelectField, TextField } from '../ui/parts.tsx';
import type { Wanted } from './recording.tsx';

interface ReplayState {
  readonly id: number;
  readonly topic: string;
  readonly prefix: string;
  readonly speed: number;
  readonly state: 'running' | 'finished' | 'stopped' | 'failed';
  readonly published: number;
  readonly refused: number;
  readonly position: number | null;
  readonly last_error: string | null;
}

const LOOK_MS = 2000;
const SPEEDS = ['1', '10', '100', '0'] as const;
type Speed = (typeof SPEEDS)[number];
const TONES = { running: 'connected', finished: 'listening', stopped: 'disabled', failed: 'error' } as const;

function speedText(speed: string): string {
  if (speed === '0') return t('without waiting');
  return speed === '1' ? t('as recorded') : t('{n} times as fast', { n: speed });
}

function ReplayRow({ one, onStop }: { readonly one: ReplayState; readonly onStop: () => void }) {
  return (
    <li>
      <Badge state={TONES[one.state]} text={t(one.state)} />
      <code class="row-name">{`${one.topic} → ${one.prefix}`}</code>
      <span class="muted">{speedText(String(one.speed))}</span>
      <span>{t('{n} published', { n: count(one.published) })}</span>
      {one.refused > 0 && <span class="warn-text">{t('{n} refused', { n: count(one.refused) })}</span>}
      <span class="muted">{one.position === null ? '' : date(one.position)}</span>
      {one.last_error !== null && <span class="warn-text">{one.last_error}</span>}
      {one.state === 'running' && <Button onClick={onStop}>{t('Stop')}</Button>}
    </li>
  );
}

export function Replays({ wanted }: { readonly wanted: Wanted }) {
  const list = useLoaded(() => fetchData<readonly ReplayState[]>('/recording/replays'), 'replays', LOOK_MS);
  const [prefix, setPrefix] = useState('replay/');
  const [speed, setSpeed] = useState<Speed>('1');
  const [error, setError] = useState<unknown>(null);
  const act = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
      setError(null);
    } catch (problem) {
      setError(problem);
    }
    list.reload();
  };
  const start = (): Promise<void> =>
    act(() => call('POST', '/recording/replays', { ...wanted, prefix, speed: Number(speed) }));
  const shown = [...(list.value ?? [])].reverse();
  return (
    <Panel title={t('Publish again')}>
      <div class="bar">
        <TextField
          label={t('Prefix of the topics')}
          hint={t('stands before each recorded topic')}
          value={prefix}
          onValue={setPrefix}
          mono
        />
        <SelectField
          label={t('Speed')}
          value={speed}
          onValue={setSpeed}
          options={SPEEDS.map((one) => [one, speedText(one)])}
        />
        <Button kind="primary" onClick={() => void start()}>
          {t('Publish again')}
        </Button>
      </div>
      <Failed error={error ?? list.error} />
      {shown.length === 0 ? (
        <Empty>{t('No replays yet.')}</Empty>
      ) : (
        <ul class="plain rows">
          {shown.map((one) => (
            <ReplayRow
              key={one.id}
              one={one}
              onStop={() => void act(() => call('DELETE', `/recording/replays/${one.id}`))}
            />
          ))}
        </ul>
      )}
    </Panel>
  );
}
