// What surrounds the fields of a bridge, whatever its kind: the list of its rules, its other keys, what went wrong, and
// the buttons. Used by bridgeform.tsx and remoteform.tsx.
import type { ComponentChildren } from 'preact';
import { t } from '../lib/words.ts';
import { KeepCheck } from '../ui/keepcheck.tsx';
import { Button, Check, SelectField, TextField } from '../ui/parts.tsx';

export type Problems = ReadonlyMap<string, string>;

/** What is wrong with a field that is more than one input; nothing where nothing is. */
export function FieldProblem({ problems, field }: { readonly problems: Problems; readonly field: string }) {
  if (!problems.has(field)) return null;
  return (
    <p class="failed" role="alert">
      {problems.get(field)}
    </p>
  );
}

/** What is done with a trace header; "" = the default. */
export function TraceField({
  value,
  onValue,
  problem,
}: {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly problem: string | undefined;
}) {
  return (
    <SelectField
      label={t('Trace header')}
      value={value}
      onValue={onValue}
      options={[
        ['', t('default')],
        ['keep', t('leave unchanged')],
        ['strip', t('remove')],
        ['add', t('add')],
      ]}
      problem={problem}
    />
  );
}

/** All rules of one list, and the button for another one. */
export function RuleEditors<Rule>({
  list,
  rules,
  problems,
  empty,
  words,
  onRules,
  children,
}: {
  readonly list: string;
  readonly rules: readonly Rule[];
  readonly problems: Problems;
  readonly empty: () => Rule;
  /** Of the button that adds a rule. */
  readonly words: string;
  readonly onRules: (rules: readonly Rule[]) => void;
  /** The fields of one rule. */
  readonly children: (
    rule: Rule,
    index: number,
    onRule: (rule: Rule) => void,
    onRemove: () => void,
  ) => ComponentChildren;
}) {
  return (
    <>
      {rules.map((rule, i) =>
        children(
          rule,
          i,
          (next) => onRules(rules.map((old, other) => (other === i ? next : old))),
          () => onRules(rules.filter((_, other) => other !== i)),
        ),
      )}
      <FieldProblem problems={problems} field={list} />
      <Button icon="plus" onClick={() => onRules([...rules, empty()])}>
        {words}
      </Button>
    </>
  );
}

/** Fields that both kinds of bridges have. */
interface Framed {
  readonly more: string;
  readonly enable: boolean;
}

export function BridgeFrame({
  form,
  set,
  moreHint,
  problems,
  busy,
  autocomplete,
  onSubmit,
  onClose,
  children,
}: {
  readonly form: Framed;
  readonly set: (change: Partial<Framed>) => void;
  readonly moreHint: string;
  readonly problems: Problems;
  readonly busy: boolean;
  readonly autocomplete?: 'off';
  readonly onSubmit: (event: Event) => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <form class="bridge-form" onSubmit={onSubmit} noValidate autocomplete={autocomplete}>
      <div class="dialog-body">
        {children}
        <details open={problems.has('more')}>
          <summary>{t('More keys')}</summary>
          <TextField
            label={t('Other keys as JSON')}
            hint={moreHint}
            value={form.more}
            onValue={(more) => set({ more })}
            problem={problems.get('more')}
            rows={6}
            mono
            wide
          />
        </details>
        <FieldProblem problems={problems} field="" />
      </div>
      <footer class="dialog-foot">
        <Check label={t('Enabled')} value={form.enable} onValue={(enable) => set({ enable })} />
        <KeepCheck />
        <span class="spring" />
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button kind="primary" type="submit" disabled={busy}>
          {t('Save')}
        </Button>
      </footer>
    </form>
  );
}
