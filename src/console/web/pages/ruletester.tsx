// What a rule would do with one message or frame, byte by byte. The gateway decides (POST /nng/test); nothing is sent
// to anybody.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, call, textOf } from '../lib/api.ts';
import { DEFAULT_DELIMITER, type Direction, type RuleForm, ruleDocument } from '../lib/bridgedoc.ts';
import { asText, encodeText, fromBase64, fromHex, toBase64 } from '../lib/bytes.ts';
import { cut, cutPayload } from '../lib/frame.ts';
import { t } from '../lib/words.ts';
import { FrameBytes } from '../ui/framebytes.tsx';
import { Badge, Check, Choice, TextField } from '../ui/parts.tsx';

interface Outcome {
  readonly matched: boolean;
  readonly reason?: string;
  readonly frame_base64?: string;
  readonly traceparent?: string;
  readonly topic?: string;
  readonly qos?: number;
  readonly retain?: boolean;
  readonly payload_base64?: string;
}
interface Tried {
  readonly outcome: Outcome | null;
  readonly problem: { readonly pointer: string; readonly message: string } | null;
}

interface Trial {
  readonly topic: string;
  readonly input: string;
  readonly retain: boolean;
  readonly form: 'text' | 'hex';
}

function inputBytes(trial: Trial): Uint8Array | null {
  return trial.form === 'hex' ? fromHex(trial.input) : encodeText(trial.input);
}

function bodyOf(type: Direction, rule: RuleForm, trial: Trial, bytes: Uint8Array): Record<string, unknown> {
  const document = { type, rule: ruleDocument(type, rule) };
  if (type === 'sub') return { ...document, frame_base64: toBase64(bytes) };
  return { ...document, topic: trial.topic, payload_base64: toBase64(bytes), retain: trial.retain };
}

const DELAY_MS = 200;

/** The outcome for what stands in the form now, a moment after the last key. */
function useOutcome(type: Direction, rule: RuleForm, trial: Trial): Tried {
  const [tried, setTried] = useState<Tried>({ outcome: null, problem: null });
  const key = JSON.stringify([type, rule, trial]);
  useEffect(() => {
    const bytes = inputBytes(trial);
    if (bytes === null) {
      setTried({ outcome: null, problem: { pointer: '/input', message: t('Not valid hex.') } });
      return;
    }
    let current = true;
    const timer = setTimeout(() => {
      call<{ data: Outcome }>('POST', '/nng/test', bodyOf(type, rule, trial, bytes)).then(
        ({ data }) => current && setTried({ outcome: data, problem: null }),
        (error: unknown) => {
          const pointer = error instanceof ApiError ? error.pointer : '';
          if (current) setTried({ outcome: null, problem: { pointer, message: textOf(error) } });
        },
      );
    }, DELAY_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key]);
  return tried;
}

/** The delimiter that an empty field stands for. */
function inForce(rule: RuleForm): string {
  return rule.nng_delimiter || DEFAULT_DELIMITER;
}

function PubResult({ outcome, trial, rule }: { outcome: Outcome; trial: Trial; rule: RuleForm }) {
  const frame = fromBase64(outcome.frame_base64 ?? '');
  const input = inputBytes(trial) ?? new Uint8Array(0);
  const segments = rule.frame === 'payload' ? cutPayload(frame) : cut(frame, input, encodeText(inForce(rule)));
  return (
    <>
      <p>
        <Badge state="good" text={t('matches')} />{' '}
        {t('NNG subscribers receive this frame ({n} bytes):', { n: frame.length })}
      </p>
      <FrameBytes frame={frame} segments={segments} />
    </>
  );
}

function SubResult({ outcome, trial, rule }: { outcome: Outcome; trial: Trial; rule: RuleForm }) {
  const frame = inputBytes(trial) ?? new Uint8Array(0);
  const payload = fromBase64(outcome.payload_base64 ?? '');
  const segments = rule.frame === 'payload' ? cutPayload(frame) : cut(frame, payload, encodeText(inForce(rule)));
  return (
    <>
      <p>
        <Badge state="good" text={t('matches')} /> {t('The frame is split as follows:')}
      </p>
      <FrameBytes frame={frame} segments={segments} />
      <p>{t('and published as')}</p>
      <dl class="facts">
        <div>
          <dt>{t('Topic')}</dt>
          <dd>
            <code>{outcome.topic}</code>
          </dd>
        </div>
        <div>
          <dt>{t('Payload')}</dt>
          <dd>
            <code>{asText(payload) ?? t('{n} bytes', { n: payload.length })}</code>
          </dd>
        </div>
        <div>
          <dt>QoS</dt>
          <dd>
            {outcome.qos}
            {outcome.retain === true && `, ${t('retained')}`}
          </dd>
        </div>
        {outcome.traceparent !== undefined && (
          <div>
            <dt>traceparent</dt>
            <dd>
              <code>{outcome.traceparent}</code>
            </dd>
          </div>
        )}
      </dl>
    </>
  );
}

function Result({ tried, type, rule, trial }: { tried: Tried; type: Direction; rule: RuleForm; trial: Trial }) {
  const { outcome, problem } = tried;
  if (problem !== null && problem.pointer !== '/input') {
    return (
      <p class="failed" role="alert">
        {problem.message.replace(/^.*(?:forwards|subscription)\[0\]\.?/, '')}
      </p>
    );
  }
  if (outcome === null) return <p class="muted">…</p>;
  if (!outcome.matched) {
    return (
      <p>
        <Badge state="off" text={t('no match')} /> {outcome.reason}
      </p>
    );
  }
  return type === 'pub' ? (
    <PubResult outcome={outcome} trial={trial} rule={rule} />
  ) : (
    <SubResult outcome={outcome} trial={trial} rule={rule} />
  );
}

/** A topic that the rule's filter takes, to begin with. */
function sampleTopic(filter: string): string {
  return filter.replaceAll('+', 'a').replace(/#$/, 'a') || 'a/b';
}

/** A frame that the rule takes, to begin with. */
function sampleFrame(rule: RuleForm): string {
  return rule.frame === 'payload' ? '{"temp":21.5}' : `${rule.remote_topic || 'a/b'}${inForce(rule)}21.5`;
}

export function RuleTester({ type, rule }: { readonly type: Direction; readonly rule: RuleForm }) {
  const [trial, setTrial] = useState<Trial>({
    topic: sampleTopic(rule.local_topic),
    input: type === 'pub' ? '21.5' : sampleFrame(rule),
    retain: false,
    form: 'text',
  });
  const tried = useOutcome(type, rule, trial);
  const set = (more: Partial<Trial>): void => setTrial({ ...trial, ...more });
  return (
    <div class="tester">
      <div class="fields">
        {type === 'pub' && (
          <TextField label={t('Topic of the message')} value={trial.topic} onValue={(topic) => set({ topic })} mono />
        )}
        <TextField
          label={type === 'pub' ? t('Payload') : t('Frame from NNG')}
          value={trial.input}
          onValue={(input) => set({ input })}
          problem={tried.problem?.pointer === '/input' ? tried.problem.message : null}
          mono
          wide={type === 'sub'}
        />
      </div>
      <div class="line">
        <Choice
          label={t('Input format')}
          value={trial.form}
          onValue={(form) => set({ form })}
          options={[
            ['text', t('Text')],
            ['hex', 'Hex'],
          ]}
        />
        {type === 'pub' && <Check label="RETAIN" value={trial.retain} onValue={(retain) => set({ retain })} />}
      </div>
      <div class="outcome" aria-live="polite">
        <Result tried={tried} type={type} rule={rule} trial={trial} />
      </div>
    </div>
  );
}
