// Adding and changing an NNG bridge: its addresses and rules, each rule with its tester; what the gateway refuses is
// shown at the field.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ApiError, call, escaped, textOf } from '../lib/api.ts';
import {
  type BridgeForm,
  bridgeDocument,
  byField,
  DEFAULT_DELIMITER,
  type Direction,
  emptyBridge,
  emptyRule,
  listsOf,
  presetsOf,
  type RuleForm,
  type RuleList,
} from '../lib/bridgedoc.ts';
import { kept } from '../lib/keep.ts';
import type { BridgeType } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Check, IconButton, SelectField, TextField } from '../ui/parts.tsx';
import { tell } from '../ui/toast.tsx';
import { BridgeFrame, type Problems, RuleEditors, TraceField } from './bridgeframe.tsx';
import { ConnectionTest } from './connectiontest.tsx';
import { AnswerFields, RequestRules } from './requestfields.tsx';
import { RuleTester } from './ruletester.tsx';

const RETAIN: Readonly<Record<Direction, readonly (readonly [string, string])[]>> = {
  pub: [
    ['any', 'any'],
    ['live', 'live'],
    ['retained', 'retained'],
  ],
  sub: [
    ['false', 'false'],
    ['true', 'true'],
  ],
};

interface RuleProps {
  readonly list: RuleList;
  readonly rule: RuleForm;
  readonly index: number;
  readonly problems: Problems;
  readonly onRule: (rule: RuleForm) => void;
  readonly onRemove: () => void;
}

function RuleFields({ list, rule, index, problems, onRule, onRemove }: RuleProps) {
  const [testing, setTesting] = useState(false);
  const type: Direction = list === 'forwards' ? 'pub' : 'sub';
  const set = (more: Partial<RuleForm>): void => onRule({ ...rule, ...more });
  const topical = rule.frame !== 'payload';
  const problem = (key: string): string | undefined => problems.get(`${list}/${index}/${key}`);
  const mqtt = (
    <TextField
      label={type === 'pub' ? t('MQTT topic filter') : t('MQTT topic')}
      value={rule.local_topic}
      onValue={(local_topic) => set({ local_topic })}
      problem={problem('local_topic')}
      placeholder={type === 'pub' ? 'sensor/#' : t('same as in the frame')}
      mono
    />
  );
  const nng = (
    <TextField
      label={type === 'pub' ? t('NNG topic') : t('NNG prefix')}
      value={rule.remote_topic}
      onValue={(remote_topic) => set({ remote_topic })}
      problem={problem('remote_topic')}
      placeholder={type === 'pub' ? t('topic of the message') : ''}
      mono
    />
  );
  return (
    <fieldset class="rule">
      <legend>
        {t('Rule {n}', { n: index + 1 })} {list === 'forwards' ? 'MQTT → NNG' : 'NNG → MQTT'}
      </legend>
      <div class="rule-tools">
        <Check label={t('on')} value={rule.enable} onValue={(enable) => set({ enable })} />
        <IconButton icon="trash" label={t('Remove rule {n}', { n: index + 1 })} onClick={onRemove} />
      </div>
      <div class="fields">
        {type === 'pub' ? mqtt : topical && nng}
        {topical && (
          <TextField
            label={t('Delimiter')}
            value={rule.nng_delimiter}
            onValue={(nng_delimiter) => set({ nng_delimiter })}
            problem={problem('nng_delimiter')}
            placeholder={DEFAULT_DELIMITER}
            mono
          />
        )}
        {type === 'pub' ? topical && nng : mqtt}
        <SelectField
          label={t('Frame')}
          value={rule.frame}
          onValue={(frame) => set({ frame })}
          options={[
            ['', t('default')],
            ['topic', t('topic, delimiter, payload')],
            ['payload', t('payload only')],
          ]}
          problem={problem('frame')}
        />
        <SelectField
          label={t('Payload')}
          value={rule.payload}
          onValue={(payload) => set({ payload })}
          options={[
            ['', t('default')],
            ['raw', t('unchanged')],
            ['base64', 'Base64'],
            ['json', type === 'pub' ? t('JSON with topic, qos, retain and payload') : t('JSON, its member payload')],
          ]}
          problem={problem('payload')}
        />
        <TraceField value={rule.trace} onValue={(trace) => set({ trace })} problem={problem('trace')} />
        {type === 'sub' && (rule.local_topic.includes('{json:') || rule.fallback_topic !== '') && (
          <TextField
            label={t('Topic if a field is missing')}
            value={rule.fallback_topic}
            onValue={(fallback_topic) => set({ fallback_topic })}
            problem={problem('fallback_topic')}
            placeholder={t('dropped')}
            mono
          />
        )}
        <SelectField
          label="QoS"
          value={rule.qos}
          onValue={(qos) => set({ qos })}
          options={[
            ['', t('default')],
            ['0', '0'],
            ['1', '1'],
            ['2', '2'],
          ]}
          problem={problem('qos')}
        />
        <SelectField
          label={type === 'pub' ? t('Retained messages') : 'RETAIN'}
          value={rule.retain === '' ? RETAIN[type][0][0] : rule.retain}
          onValue={(retain) => set({ retain })}
          options={RETAIN[type]}
          problem={problem('retain')}
        />
        {type === 'sub' && topical && (
          <SelectField
            label={t('Match')}
            value={rule.match}
            onValue={(match) => set({ match })}
            options={[
              ['prefix', 'prefix'],
              ['level', 'level'],
              ['exact', 'exact'],
            ]}
            problem={problem('match')}
          />
        )}
      </div>
      {problems.has(`${list}/${index}`) && (
        <p class="failed" role="alert">
          {problems.get(`${list}/${index}`)}
        </p>
      )}
      <button type="button" class="link" aria-expanded={testing} onClick={() => setTesting(!testing)}>
        {testing ? t('Hide the test') : t('Test this rule')}
      </button>
      {testing && <RuleTester type={type} rule={rule} />}
    </fieldset>
  );
}

/** All rules of one list, and the button for another one. */
function RuleFieldset({
  list,
  rules,
  problems,
  onRules,
}: {
  readonly list: RuleList;
  readonly rules: readonly RuleForm[];
  readonly problems: Problems;
  readonly onRules: (rules: readonly RuleForm[]) => void;
}) {
  const words = list === 'forwards' ? t('Add a rule MQTT → NNG') : t('Add a rule NNG → MQTT');
  return (
    <RuleEditors list={list} rules={rules} problems={problems} empty={emptyRule} words={words} onRules={onRules}>
      {(rule, i, onRule, onRemove) => (
        <RuleFields key={i} list={list} rule={rule} index={i} problems={problems} onRule={onRule} onRemove={onRemove} />
      )}
    </RuleEditors>
  );
}

/** What depends on the type of a bridge. */
function pick(form: BridgeForm): Pick<BridgeForm, 'type' | 'forwards' | 'subscription' | 'requests'> {
  const { type, forwards, subscription, requests } = form;
  return { type, forwards, subscription, requests };
}

function problemsOf(error: unknown): Problems {
  if (!(error instanceof ApiError)) return new Map([['', textOf(error)]]);
  const listed = error.problems.length > 0 ? error.problems : [{ pointer: error.pointer, message: error.message }];
  return byField(listed);
}

/**
 * @param form what stands in it at first; null for a new bridge
 * @param direction the field that says what kind of bridge it is
 */
export function NngBridgeForm({
  type,
  form: initial,
  direction,
  onClose,
  onSaved,
}: {
  readonly type: BridgeType;
  readonly form: BridgeForm | null;
  readonly direction: ComponentChildren;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const [typed, setForm] = useState<BridgeForm>(initial ?? emptyBridge(type));
  const form = typed.type === type ? typed : { ...typed, ...pick(emptyBridge(type)) };
  const [problems, setProblems] = useState<Problems>(new Map());
  const [busy, setBusy] = useState(false);
  const set = (more: Partial<BridgeForm>): void => setForm({ ...form, ...more });
  const save = (event: Event): void => {
    event.preventDefault();
    const made = bridgeDocument(form);
    if ('problem' in made) {
      setProblems(byField([made.problem]));
      return;
    }
    setBusy(true);
    const sent =
      initial === null
        ? call('POST', kept('/nng/bridges'), made.document)
        : call('PUT', kept(`/nng/bridges/${escaped(initial.name)}?type=${initial.type}`), made.document);
    sent.then(
      () => {
        tell(initial === null ? t('Bridge {n} added.', { n: form.name }) : t('Bridge {n} changed.', { n: form.name }));
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
    <BridgeFrame
      form={form}
      set={set}
      moreHint={t('send_buffer, overflow, recv_max_size, reconnect_max, clientid, driver, tls etc.')}
      problems={problems}
      busy={busy}
      onSubmit={save}
      onClose={onClose}
    >
      <div class="fields">
        {direction}
        <TextField
          label={t('Name')}
          value={form.name}
          onValue={(name) => set({ name })}
          disabled={initial !== null}
          problem={problems.get('name')}
          mono
        />
        {presetsOf(form.type).length > 0 && (
          <SelectField
            label={t('Preset')}
            value={form.preset}
            onValue={(preset) => set({ preset, mode: preset === '' ? 'listen' : '' })}
            options={[['', t('none')], ...presetsOf(form.type).map((preset) => [preset, preset] as const)]}
            hint={t('Defaults that suit a known peer')}
            problem={problems.get('preset')}
          />
        )}
        <SelectField
          label={t('Mode')}
          value={form.mode}
          onValue={(mode) => set({ mode })}
          options={[
            ...(form.preset === '' ? [] : [['', t('as in the preset')] as const]),
            ['listen', t('listen: peers connect to this gateway')],
            ['dial', t('dial: this gateway connects to a peer')],
          ]}
          problem={problems.get('mode')}
        />
        <TextField
          label={t('Addresses, one per line')}
          value={form.urls}
          onValue={(urls) => set({ urls })}
          problem={problems.get('urls')}
          rows={2}
          placeholder={'tcp://127.0.0.1:9900\nipc:///tmp/bridge.ipc'}
          mono
          wide
        />
      </div>
      {form.type === 'req' && <RequestRules form={form} problems={problems} set={set} />}
      {form.type === 'rep' && <AnswerFields form={form} problems={problems} set={set} />}
      {listsOf(form.type).map((list) => (
        <RuleFieldset
          key={list}
          list={list}
          rules={form[list]}
          problems={problems}
          onRules={(rules) => set({ [list]: rules })}
        />
      ))}
      <ConnectionTest
        tested={{ type, name: form.name.trim(), document: () => bridgeDocument(form) }}
        onProblems={(list) => setProblems(byField(list))}
      />
    </BridgeFrame>
  );
}
