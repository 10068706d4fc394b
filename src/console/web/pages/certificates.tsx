// The alarm of certificates on the overview: those that have expired, expire within 30 days or cannot be read; nothing
// where all are well.
import { fetchData } from '../lib/api.ts';
import { date } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import { answerText, t } from '../lib/words.ts';
import { Badge } from '../ui/parts.tsx';

interface Certificate {
  readonly key: string;
  readonly file: string;
  readonly subject?: string;
  readonly valid_to?: number;
  readonly error?: string;
}

const DAY_MS = 86_400_000;
const SOON_MS = 30 * DAY_MS;
const LOOK_MS = 600_000;

function Alarm({ certificate, nowMs }: { readonly certificate: Certificate; readonly nowMs: number }) {
  const { key, file, subject, valid_to: end, error } = certificate;
  const over = error !== undefined || (end !== undefined && end <= nowMs);
  return (
    <li>
      <Badge state={over ? 'bad' : 'warn'} text={t('certificate')} />
      <span>
        <code>{key}</code> {subject ?? file}
        {error !== undefined && `: ${answerText(error)}`}
        {end !== undefined && over && ` · ${t('expired on {n}', { n: date(end) })}`}
        {end !== undefined &&
          !over &&
          ` · ${t('expires in {n} days, on {date}', { n: Math.floor((end - nowMs) / DAY_MS), date: date(end) })}`}
      </span>
    </li>
  );
}

export function Certificates() {
  const list = useLoaded(() => fetchData<readonly Certificate[]>('/certificates'), 'certificates', LOOK_MS);
  const nowMs = Date.now();
  const bad = (list.value ?? []).filter(
    ({ error, valid_to: end }) => error !== undefined || (end !== undefined && end - nowMs < SOON_MS),
  );
  if (bad.length === 0) return null;
  return (
    <ul class="plain alarms" aria-label={t('Alarms')}>
      {bad.map((one) => (
        <Alarm key={one.key} certificate={one} nowMs={nowMs} />
      ))}
    </ul>
  );
}
