// Rules: what each takes, asks, builds and where it sends, with its counters; add, change, switch, remove, and try one
// on a sample or on live messages.
import { useState } from 'preact/hooks';
import { call, can, escaped, fetchData } from '../lib/api.ts';
import { count, date } from '../lib/format.ts';
import { keeping, kept } from '../lib/keep.ts';
import { useLoaded } from '../lib/live.ts';
import { draftDocument, draftOf, type RuleDraft } from '../lib/ruledoc.ts';
import { useStore } from '../lib/store.ts';
import type { RuleRow } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { KeepCheck } from '../ui/keepcheck.tsx';
import { Badge, Button, Confirm, Empty, Facts, Failed, IconButton, Panel, Switch } from '../ui/parts.tsx';
import { attempt, tell } from '../ui/toast.tsx';
import { RuleDialog } from './ruleform.tsx';
import { RuleTrial } from './ruletrial.tsx';

const EVERY_MS = 2000;

/** Rules of NanoMQ's rules.repub have no document of their own: their file has it. */
function isForeign(rule: RuleRow): boolean {
  return rule.name.startsWith('repub:');
}

function targetsOf(rule: RuleRow): string {
  const targets = [
    ...(rule.to_nng ? [`nng:${rule.to_nng}`] : rule.to ? [rule.to] : []),
    ...(rule.to_webhook === true ? [t('webhook')] : []),
  ];
  return targets.join(', ');
}

function Counters({ rule }: { readonly rule: RuleRow }) {
  const dropped = Object.entries(rule.dropped).filter(([, value]) => value > 0);
  return (
    <div class="rule-counts">
      <span>
        <b>{count(rule.matched)}</b> {t('received')}
      </span>
      <span>
        <b>{count(rule.passed)}</b> {t('sent')}
      </span>
      {dropped.map(([reason, value]) => (
        <span key={reason} class={reason === 'filtered' || reason === 'unchanged' ? '' : 'warn-text'}>
          <b>{count(value)}</b> {reason}
        </span>
      ))}
    </div>
  );
}

/** What a rule says, without what is left at its default. */
function Saying({ rule }: { readonly rule: RuleRow }) {
  const code = (text: string) => <code>{text}</code>;
  const set = Object.entries(rule.set ?? {});
  const rows: (readonly [string, preact.ComponentChildren])[] = [
    [t('From'), code(draftOf(rule).from.split('\n').join(', '))],
    ...(rule.where ? [[t('Where'), code(rule.where)] as const] : []),
    ...(set.length > 0
      ? [[t('New object'), code(set.map(([key, value]) => `${key} = ${value}`).join('; '))] as const]
      : []),
    ...(rule.changed ? [[t('On change of'), code(rule.changed)] as const] : []),
    [t('To'), code(targetsOf(rule))],
  ];
  return <Facts rows={rows} />;
}

function RuleCard({
  rule,
  onEdit,
  onRemove,
  onChanged,
}: {
  readonly rule: RuleRow;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
  readonly onChanged: () => void;
}) {
  const [testing, setTesting] = useState(false);
  const { name, enable, last_error: error } = rule;
  const flip = (on: boolean): void => {
    const done = on ? t('Rule {n} is on.', { n: name }) : t('Rule {n} is off.', { n: name });
    const document = { ...draftDocument(draftOf(rule)), enable: on };
    void attempt(() => call('PUT', kept(`/rules/${escaped(name)}`), document), done).then(onChanged);
  };
  return (
    <Panel
      title={
        <>
          {name} <Badge state={enable ? 'good' : 'off'} text={enable ? t('on') : t('off')} />
        </>
      }
      tools={
        can('admin') &&
        !isForeign(rule) && (
          <>
            <Switch label={t('Rule {n} on', { n: name })} value={enable} onValue={flip} />
            <IconButton icon="edit" label={t('Change rule {n}', { n: name })} onClick={onEdit} />
            <IconButton icon="trash" label={t('Remove rule {n}', { n: name })} onClick={onRemove} />
          </>
        )
      }
    >
      <Saying rule={rule} />
      <Counters rule={rule} />
      {error !== null && (
        <p class="failed">
          {t('Last error')} ({date(Date.parse(error.at))}, <code>{error.topic}</code>): {error.text}
        </p>
      )}
      {can('operator') && (
        <button type="button" class="link" aria-expanded={testing} onClick={() => setTesting(!testing)}>
          {testing ? t('Hide the test') : t('Test this rule')}
        </button>
      )}
      {testing && <RuleTrial rule={name} from={draftOf(rule).from} />}
    </Panel>
  );
}

/** The rule that is edited; a draft of null is a new one. */
interface Edited {
  readonly draft: RuleDraft | null;
}

export function RulesPage() {
  const list = useLoaded(() => fetchData<readonly RuleRow[]>('/rules'), 'rules', EVERY_MS);
  const [editing, setEditing] = useState<Edited | null>(null);
  const [removing, setRemoving] = useState<RuleRow | null>(null);
  const keep = useStore(keeping);
  return (
    <>
      <div class="bar">
        {can('admin') && (
          <Button kind="primary" icon="plus" onClick={() => setEditing({ draft: null })}>
            {t('Add a rule')}
          </Button>
        )}
        <span class="spring" />
        <KeepCheck />
      </div>
      <Failed error={list.error} />
      {list.value?.length === 0 && (
        <Empty>{t('No rules yet. A rule filters messages, builds new JSON from them and sends it on.')}</Empty>
      )}
      {list.value?.map((rule) => (
        <RuleCard
          key={rule.name}
          rule={rule}
          onEdit={() => setEditing({ draft: draftOf(rule) })}
          onRemove={() => setRemoving(rule)}
          onChanged={list.reload}
        />
      ))}
      {editing !== null && (
        <RuleDialog
          draft={editing.draft}
          taken={(list.value ?? []).map(({ name }) => name)}
          onClose={() => setEditing(null)}
          onSaved={list.reload}
        />
      )}
      {removing !== null && (
        <Confirm
          title={t('Remove rule {n}?', { n: removing.name })}
          action={t('Remove')}
          onClose={() => setRemoving(null)}
          onYes={async () => {
            await call('DELETE', kept(`/rules/${escaped(removing.name)}`));
            tell(t('Rule {n} removed.', { n: removing.name }));
            list.reload();
          }}
        >
          <p>
            {keep === true
              ? t('Messages that it holds back are sent first.')
              : t('If the rule is in the configuration file, it returns with the next restart.')}
          </p>
        </Confirm>
      )}
    </>
  );
}
