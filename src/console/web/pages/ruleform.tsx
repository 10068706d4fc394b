// Adding and changing a rule: what it takes, its expressions, where the result goes, and a test of what stands in the
// form; what the gateway refuses is shown at the field. Used by rules.tsx.
import { useState } from 'preact/hooks';
import { ApiError, call, escaped, textOf } from '../lib/api.ts';
import { kept } from '../lib/keep.ts';
import { draftDocument, emptyDraft, type RuleDraft, ruleProblems, type SetRow } from '../lib/ruledoc.ts';
import { t } from '../lib/words.ts';
import { KeepCheck } from '../ui/keepcheck.tsx';
import { Button, Check, Dialog, IconButton, SelectField, TextField } from '../ui/parts.tsx';
import { tell } from '../ui/toast.tsx';
import { FieldProblem, type Problems } from './bridgeframe.tsx';
import { RuleTrial } from './ruletrial.tsx';

interface PartProps {
  readonly draft: RuleDraft;
  readonly problems: Problems;
  readonly set: (more: Partial<RuleDraft>) => void;
}

/** Keys of the new object with their expressions. */
function SetFields({ draft, problems, set }: PartProps) {
  const change = (index: number, more: Partial<SetRow>): void =>
    set({ set: draft.set.map((row, i) => (i === index ? { ...row, ...more } : row)) });
  return (
    <fieldset class="rule">
      <legend>{t('New JSON object')}</legend>
      <p class="note">
        {draft.set.length === 0
          ? t('None: the payload is sent unchanged.')
          : t('Each key with a CEL expression. The key * copies all fields of an object.')}
      </p>
      {draft.set.map((row, i) => (
        <div key={i} class="fields set-row">
          <TextField label={t('Key {n}', { n: i + 1 })} value={row.key} onValue={(key) => change(i, { key })} mono />
          <TextField
            label={t('Expression {n}', { n: i + 1 })}
            value={row.expression}
            onValue={(expression) => change(i, { expression })}
            problem={problems.get(`set/${row.key}`)}
            placeholder="payload.temp"
            mono
          />
          <IconButton
            icon="trash"
            label={t('Remove key {n}', { n: i + 1 })}
            onClick={() => set({ set: draft.set.filter((_, other) => other !== i) })}
          />
        </div>
      ))}
      <FieldProblem problems={problems} field="set" />
      <Button icon="plus" onClick={() => set({ set: [...draft.set, { key: '', expression: '' }] })}>
        {t('Add a key')}
      </Button>
    </fieldset>
  );
}

function SourceFields({ draft, problems, set }: PartProps) {
  return (
    <>
      <TextField
        label={t('From: topic filters, one per line')}
        value={draft.from}
        onValue={(from) => set({ from })}
        problem={problems.get('from')}
        hint={t('nng:<bridge> = messages received by that NNG bridge')}
        placeholder="sensor/+/data"
        rows={2}
        mono
        wide
      />
      <TextField
        label={t('Where (CEL)')}
        value={draft.where}
        onValue={(where) => set({ where })}
        problem={problems.get('where')}
        hint={t('Empty = every message. topic, payload, qos, retain, clientId, username, properties, now')}
        placeholder="payload.temp > 20"
        mono
        wide
      />
    </>
  );
}

function TargetFields({ draft, problems, set }: PartProps) {
  return (
    <div class="fields">
      <TextField
        label={t('To: topic')}
        value={draft.to}
        onValue={(to) => set({ to })}
        problem={problems.get('to')}
        hint={'{1} {topic} {json:a.b}'}
        placeholder="alarm/{1}"
        mono
      />
      {(draft.to.includes('{json:') || draft.fallback_topic !== '') && (
        <TextField
          label={t('Topic if a field is missing')}
          value={draft.fallback_topic}
          onValue={(fallback_topic) => set({ fallback_topic })}
          problem={problems.get('fallback_topic')}
          placeholder={t('dropped')}
          mono
        />
      )}
      <TextField
        label={t('To: NNG bridge')}
        value={draft.to_nng}
        onValue={(to_nng) => set({ to_nng })}
        problem={problems.get('to_nng')}
        placeholder={t('none')}
        mono
      />
      <SelectField
        label="QoS"
        value={draft.qos}
        onValue={(qos) => set({ qos })}
        options={[
          ['', t('unchanged')],
          ['0', '0'],
          ['1', '1'],
          ['2', '2'],
        ]}
        problem={problems.get('qos')}
      />
      <div class="field check-field">
        <Check label="RETAIN" value={draft.retain} onValue={(retain) => set({ retain })} />
        <Check label={t('to the webhook')} value={draft.to_webhook} onValue={(to_webhook) => set({ to_webhook })} />
      </div>
    </div>
  );
}

function PaceFields({ draft, problems, set }: PartProps) {
  const open = ['changed', 'by', 'throttle', 'payload'].some((field) => problems.has(field));
  const used = draft.changed !== '' || draft.by !== '' || draft.throttle !== '' || draft.payload !== 'auto';
  return (
    <details open={open || used}>
      <summary>{t('Only changes, rate, payload type')}</summary>
      <div class="fields">
        <TextField
          label={t('Only when this changes (CEL)')}
          value={draft.changed}
          onValue={(changed) => set({ changed })}
          problem={problems.get('changed')}
          placeholder="payload.temp"
          mono
        />
        <TextField
          label={t('by at least')}
          value={draft.by}
          onValue={(by) => set({ by })}
          problem={problems.get('by')}
          placeholder="0"
          mono
        />
        <TextField
          label={t('At most one message per topic in')}
          value={draft.throttle}
          onValue={(throttle) => set({ throttle })}
          problem={problems.get('throttle')}
          placeholder="10s"
          mono
        />
        <SelectField
          label={t('Payload type in expressions')}
          value={draft.payload}
          onValue={(payload) => set({ payload })}
          options={[
            ['auto', t('JSON, else text, else bytes')],
            ['json', 'JSON'],
            ['text', t('Text')],
            ['bytes', t('bytes')],
          ]}
          problem={problems.get('payload')}
        />
      </div>
    </details>
  );
}

function problemsOf(error: unknown): Problems {
  if (!(error instanceof ApiError)) return new Map([['', textOf(error)]]);
  return ruleProblems(
    error.problems.length > 0 ? error.problems : [{ pointer: error.pointer, message: error.message }],
  );
}

/**
 * @param draft what stands in it at first; null for a new rule
 * @param taken names that a new rule cannot have
 */
export function RuleDialog({
  draft: initial,
  taken,
  onClose,
  onSaved,
}: {
  readonly draft: RuleDraft | null;
  readonly taken: readonly string[];
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const isNew = initial === null;
  const [draft, setDraft] = useState<RuleDraft>(initial ?? emptyDraft());
  const [problems, setProblems] = useState<Problems>(new Map());
  const [busy, setBusy] = useState(false);
  const [testing, setTesting] = useState(false);
  const set = (more: Partial<RuleDraft>): void => {
    setDraft({ ...draft, ...more });
    // What was said of a field holds until the field is changed.
    setProblems(new Map([...problems].filter(([field]) => !Object.keys(more).includes(field))));
  };
  const part = { draft, problems, set };
  const save = (event: Event): void => {
    event.preventDefault();
    const name = draft.name.trim();
    const wrong =
      name === '' ? t('A name is required.') : isNew && taken.includes(name) ? t('This name is taken.') : '';
    if (wrong !== '') {
      setProblems(new Map([['name', wrong]]));
      return;
    }
    setBusy(true);
    call('PUT', kept(`/rules/${escaped(name)}`), draftDocument(draft)).then(
      () => {
        tell(isNew ? t('Rule {n} added.', { n: name }) : t('Rule {n} changed.', { n: name }));
        onSaved();
        onClose();
      },
      (error: unknown) => {
        setProblems(problemsOf(error));
        setBusy(false);
      },
    );
  };
  return (
    <Dialog title={isNew ? t('Add a rule') : t('Rule {n}', { n: draft.name })} onClose={onClose} wide>
      <form class="bridge-form" onSubmit={save} noValidate autocomplete="off">
        <div class="dialog-body">
          <div class="fields">
            <TextField
              label={t('Name')}
              value={draft.name}
              onValue={(name) => set({ name })}
              disabled={!isNew}
              problem={problems.get('name')}
              mono
            />
            <SourceFields {...part} />
          </div>
          <SetFields {...part} />
          <TargetFields {...part} />
          <PaceFields {...part} />
          <FieldProblem problems={problems} field="" />
          <button type="button" class="link" aria-expanded={testing} onClick={() => setTesting(!testing)}>
            {testing ? t('Hide the test') : t('Test this rule')}
          </button>
          {testing && <RuleTrial rule={draftDocument(draft)} from={draft.from} />}
        </div>
        <footer class="dialog-foot">
          <Check label={t('Enabled')} value={draft.enable} onValue={(enable) => set({ enable })} />
          <KeepCheck />
          <span class="spring" />
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button kind="primary" type="submit" disabled={busy}>
            {t('Save')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
