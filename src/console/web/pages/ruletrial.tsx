// What a rule would do with one message, or does with the messages of the next seconds. The gateway decides, by the
// code that runs (POST /rules/test); nothing is published.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, call, textOf } from '../lib/api.ts';
import { asText, encodeText, fromBase64, toBase64 } from '../lib/bytes.ts';
import { short } from '../lib/format.ts';
import { sampleTopic } from '../lib/ruledoc.ts';
import type { RuleOutcome } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Badge, Button, Scroll, SelectField, TextField } from '../ui/parts.tsx';

const DELAY_MS = 200;
const LIVE = { seconds: 5, count: 20 };

interface Sample {
  readonly topic: string;
  readonly payload: string;
  readonly qos: string;
}

interface Tried {
  readonly outcome: RuleOutcome | null;
  readonly problem: string | null;
}

interface Seen extends RuleOutcome {
  readonly from: { readonly topic: string; readonly payload_base64: string };
}

/** A name, or the document of a rule that is not active. */
type Subject = string | Readonly<Record<string, unknown>>;

function useOutcome(rule: Subject, sample: Sample): Tried {
  const [tried, setTried] = useState<Tried>({ outcome: null, problem: null });
  const key = JSON.stringify([rule, sample]);
  useEffect(() => {
    let current = true;
    const body = {
      rule,
      topic: sample.topic,
      payload_base64: toBase64(encodeText(sample.payload)),
      qos: Number(sample.qos),
    };
    const timer = setTimeout(() => {
      call<{ data: RuleOutcome }>('POST', '/rules/test', body).then(
        ({ data }) => current && setTried({ outcome: data, problem: null }),
        (error: unknown) => current && setTried({ outcome: null, problem: problemOf(error) }),
      );
    }, DELAY_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key]);
  return tried;
}

function problemOf(error: unknown): string {
  return error instanceof ApiError ? error.message : textOf(error);
}

function shown(base64: string | undefined): string {
  const bytes = fromBase64(base64 ?? '');
  return asText(bytes) ?? t('{n} bytes', { n: bytes.length });
}

function Outcome({ outcome }: { readonly outcome: RuleOutcome }) {
  if (outcome.outcome !== 'passed')
    return (
      <p>
        <Badge
          state={outcome.outcome === 'error' ? 'bad' : 'off'}
          text={outcome.outcome === 'error' ? t('error') : t('filtered')}
        />{' '}
        {outcome.reason}
      </p>
    );
  return (
    <>
      <p>
        <Badge state="good" text={t('sent')} /> <code>{outcome.topic}</code> QoS {outcome.qos}
        {outcome.retain === true && `, ${t('retained')}`}
      </p>
      <pre class="result">{short(shown(outcome.payload_base64), 4000)}</pre>
    </>
  );
}

/** The messages of the next seconds and what the rule makes of each. */
function Live({ rule }: { readonly rule: Subject }) {
  const [state, setState] = useState<{ busy: boolean; seen: readonly Seen[] | null; problem: string | null }>({
    busy: false,
    seen: null,
    problem: null,
  });
  const watch = (): void => {
    setState({ busy: true, seen: null, problem: null });
    call<{ data: readonly Seen[] }>('POST', '/rules/test', { rule, live: LIVE }).then(
      ({ data }) => setState({ busy: false, seen: data, problem: null }),
      (error: unknown) => setState({ busy: false, seen: null, problem: problemOf(error) }),
    );
  };
  return (
    <>
      <Button onClick={watch} disabled={state.busy}>
        {state.busy ? t('Listening …') : t('Test with the messages of the next {n} seconds', { n: LIVE.seconds })}
      </Button>
      {state.problem !== null && (
        <p class="failed" role="alert">
          {state.problem}
        </p>
      )}
      {state.seen?.length === 0 && <p class="note">{t('No message came.')}</p>}
      {state.seen !== null && state.seen.length > 0 && (
        <Scroll label={t('Live messages')} look="table-box">
          <table>
            <thead>
              <tr>
                <th>{t('Message')}</th>
                <th>{t('Result')}</th>
              </tr>
            </thead>
            <tbody>
              {state.seen.map((one, i) => (
                <tr key={i}>
                  <td>
                    <code>{one.from.topic}</code> {short(shown(one.from.payload_base64))}
                  </td>
                  <td>
                    {one.outcome === 'passed' ? (
                      <>
                        <code>{one.topic}</code> {short(shown(one.payload_base64))}
                      </>
                    ) : (
                      <span class={one.outcome === 'error' ? 'warn-text' : 'muted'}>{one.reason}</span>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
}

/** @param from the filters of the rule, one a line */
export function RuleTrial({ rule, from }: { readonly rule: Subject; readonly from: string }) {
  const [sample, setSample] = useState<Sample>({ topic: sampleTopic(from), payload: '{"temp":21.5}', qos: '0' });
  const { outcome, problem } = useOutcome(rule, sample);
  const set = (more: Partial<Sample>): void => setSample({ ...sample, ...more });
  return (
    <div class="tester">
      <div class="fields">
        <TextField label={t('Topic of the message')} value={sample.topic} onValue={(topic) => set({ topic })} mono />
        <SelectField
          label="QoS"
          value={sample.qos}
          onValue={(qos) => set({ qos })}
          options={[
            ['0', '0'],
            ['1', '1'],
            ['2', '2'],
          ]}
        />
        <TextField
          label={t('Payload')}
          value={sample.payload}
          onValue={(payload) => set({ payload })}
          rows={2}
          mono
          wide
        />
      </div>
      <div class="outcome" aria-live="polite">
        {problem !== null && (
          <p class="failed" role="alert">
            {problem}
          </p>
        )}
        {problem === null && outcome !== null && <Outcome outcome={outcome} />}
      </div>
      <Live rule={rule} />
    </div>
  );
}
