// Test connection: what the gateway finds on its way to the other side of a bridge, step by step. Used in the forms of
// bridges and on their cards. The form gets the steps that fail and shows each at its field.
import { useEffect, useState } from 'preact/hooks';
import { call } from '../lib/api.ts';
import { date } from '../lib/format.ts';
import type { Problem } from '../lib/types.ts';
import { answerText, t } from '../lib/words.ts';
import { Badge, Button, Failed, TextField } from '../ui/parts.tsx';

interface Certificate {
  readonly subject: string;
  readonly issuer: string;
  readonly names: readonly string[];
  readonly valid_from: number;
  readonly valid_to: number;
}
interface Step {
  readonly step: string;
  readonly outcome: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly about?: string;
  readonly text: string;
  readonly ms?: number;
  readonly pointer?: string;
  readonly certificate?: Certificate;
}

const TONES = { ok: 'good', warning: 'warn', failed: 'bad', skipped: 'disabled' } as const;

/** What each step is called; read by t() below. */
function stepName(step: string): string {
  switch (step) {
    case 'resolve':
      return t('Name');
    case 'connect':
      return t('Connection');
    case 'tls':
      return 'TLS';
    case 'mqtt':
      return t('Login');
    case 'subscribe':
      return t('Subscribe');
    case 'publish':
      return t('Publish');
    case 'listen':
      return t('Listen');
    default:
      return t('Protocol');
  }
}

function CertificateFacts({ certificate }: { readonly certificate: Certificate }) {
  return (
    <span class="muted small">
      {certificate.subject}
      {certificate.names.length > 0 && ` · ${certificate.names.join(', ')}`}
      {` · ${t('issued by {n}', { n: certificate.issuer })}`}
      {` · ${t('valid until {n}', { n: date(certificate.valid_to) })}`}
    </span>
  );
}

export function Steps({ steps }: { readonly steps: readonly Step[] }) {
  return (
    <ol class="plain steps" aria-label={t('Result of the test')}>
      {steps.map((step, i) => (
        <li key={i}>
          <Badge state={TONES[step.outcome]} text={t(step.outcome)} />
          <b>{stepName(step.step)}</b>
          <span class="step-text">
            {step.about !== undefined && <code>{step.about}</code>} {step.about !== step.text && answerText(step.text)}
            {step.certificate !== undefined && <CertificateFacts certificate={step.certificate} />}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** What is tested: a document, or a bridge that is there as it is. */
export interface Tested {
  readonly type: string;
  readonly name: string;
  /** Makes the document now; null: the bridge as it is. */
  readonly document: (() => { document: Record<string, unknown> } | { problem: Problem }) | null;
}

/** @param onProblems gets what is wrong, with pointers into the document */
export function ConnectionTest({
  tested,
  onProblems,
}: {
  readonly tested: Tested;
  readonly onProblems?: (problems: readonly Problem[]) => void;
}) {
  const [steps, setSteps] = useState<readonly Step[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const [topic, setTopic] = useState('');
  const run = (): void => {
    const made = tested.document?.() ?? null;
    if (made !== null && 'problem' in made) {
      onProblems?.([made.problem]);
      return;
    }
    setBusy(true);
    setError(null);
    const body = {
      type: tested.type,
      ...(tested.name === '' ? {} : { name: tested.name }),
      document: made === null ? null : made.document,
      ...(topic.trim() === '' ? {} : { publish_to: topic.trim() }),
    };
    call<{ data: readonly Step[] }>('POST', '/test_connection', body).then(
      ({ data }) => {
        setSteps(data);
        setBusy(false);
        const failed = data.filter(({ outcome, pointer }) => outcome === 'failed' && pointer !== undefined);
        onProblems?.(failed.map(({ pointer = '', text }) => ({ pointer, message: text })));
      },
      (problem: unknown) => {
        setSteps(null);
        setBusy(false);
        setError(problem);
      },
    );
  };
  // On a card the button that opens it has asked for the test.
  useEffect(() => {
    if (tested.document === null) run();
  }, []);
  return (
    <div class="connection-test">
      <div class="line">
        <Button onClick={run} disabled={busy}>
          {busy ? t('Testing …') : t('Test connection')}
        </Button>
        {tested.type === 'mqtt' && (
          <TextField
            label={t('Test message to topic')}
            value={topic}
            onValue={setTopic}
            placeholder={t('empty = none is sent')}
            mono
          />
        )}
      </div>
      <Failed error={error} />
      <div aria-live="polite">{steps !== null && <Steps steps={steps} />}</div>
    </div>
  );
}
