// Adding and changing a bridge to a remote broker: where it is, as whom, what is sent and fetched; what the gateway
// refuses is shown at the field.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ApiError, call, escaped, textOf } from '../lib/api.ts';
import { kept } from '../lib/keep.ts';
import {
  durableId,
  emptyRemote,
  emptyRemoteRule,
  problemsByField,
  type RemoteForm,
  type RemoteList,
  type RemoteRule,
  remoteDocument,
} from '../lib/remotedoc.ts';
import { isSecure } from '../lib/tlsdoc.ts';
import { t } from '../lib/words.ts';
import { Check, IconButton, SelectField, TextField } from '../ui/parts.tsx';
import { tell } from '../ui/toast.tsx';
import { BridgeFrame, type Problems, RuleEditors, TraceField } from './bridgeframe.tsx';
import { ConnectionTest } from './connectiontest.tsx';
import { TlsFields } from './tlsfields.tsx';

interface RuleProps {
  readonly list: RemoteList;
  readonly rule: RemoteRule;
  readonly index: number;
  readonly problems: Problems;
  readonly onRule: (rule: RemoteRule) => void;
  readonly onRemove: () => void;
}

function RuleFields({ list, rule, index, problems, onRule, onRemove }: RuleProps) {
  const out = list === 'forwards';
  const fillsFields = (out ? rule.remote_topic : rule.local_topic).includes('{json:') || rule.fallback_topic !== '';
  const set = (more: Partial<RemoteRule>): void => onRule({ ...rule, ...more });
  const problem = (key: string): string | undefined => problems.get(`${list}/${index}/${key}`);
  const local = (
    <TextField
      label={out ? t('Local MQTT topic filter') : t('Local MQTT topic')}
      value={rule.local_topic}
      onValue={(local_topic) => set({ local_topic })}
      problem={problem('local_topic')}
      placeholder={out ? 'up/#' : t('the same topic')}
      mono
    />
  );
  const remote = (
    <TextField
      label={out ? t('Remote MQTT topic') : t('Remote MQTT topic filter')}
      value={rule.remote_topic}
      onValue={(remote_topic) => set({ remote_topic })}
      problem={problem('remote_topic')}
      placeholder={out ? t('the same topic') : 'down/#'}
      mono
    />
  );
  return (
    <fieldset class="rule">
      <legend>
        {t('Rule {n}', { n: index + 1 })} {out ? t('Local → remote') : t('Remote → local')}
      </legend>
      <div class="rule-tools">
        <IconButton icon="trash" label={t('Remove rule {n}', { n: index + 1 })} onClick={onRemove} />
      </div>
      <div class="fields">
        {out ? local : remote}
        {out ? remote : local}
        <SelectField
          label="QoS"
          value={rule.qos}
          onValue={(qos) => set({ qos })}
          options={[...(out ? [['', t('unchanged')] as const] : []), ['0', '0'], ['1', '1'], ['2', '2']]}
          problem={problem('qos')}
        />
        <SelectField
          label="RETAIN"
          value={rule.retain}
          onValue={(retain) => set({ retain })}
          options={[
            ['', t('unchanged')],
            ['false', 'false'],
            ['true', 'true'],
          ]}
          problem={problem('retain')}
        />
        <TraceField value={rule.trace} onValue={(trace) => set({ trace })} problem={problem('trace')} />
        {fillsFields && (
          <TextField
            label={t('Topic if a field is missing')}
            value={rule.fallback_topic}
            onValue={(fallback_topic) => set({ fallback_topic })}
            problem={problem('fallback_topic')}
            placeholder={t('dropped')}
            mono
          />
        )}
      </div>
      {problems.has(`${list}/${index}`) && (
        <p class="failed" role="alert">
          {problems.get(`${list}/${index}`)}
        </p>
      )}
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
  readonly list: RemoteList;
  readonly rules: readonly RemoteRule[];
  readonly problems: Problems;
  readonly onRules: (rules: readonly RemoteRule[]) => void;
}) {
  return (
    <RuleEditors
      list={list}
      rules={rules}
      problems={problems}
      empty={() => emptyRemoteRule(list)}
      words={list === 'forwards' ? t('Add a rule local → remote') : t('Add a rule remote → local')}
      onRules={onRules}
    >
      {(rule, i, onRule, onRemove) => (
        <RuleFields key={i} list={list} rule={rule} index={i} problems={problems} onRule={onRule} onRemove={onRemove} />
      )}
    </RuleEditors>
  );
}

function problemsOf(error: unknown): Problems {
  if (!(error instanceof ApiError)) return new Map([['', textOf(error)]]);
  const listed = error.problems.length > 0 ? error.problems : [{ pointer: error.pointer, message: error.message }];
  return problemsByField(listed);
}

/** Where the broker is, and as whom the gateway comes. */
function Connection({
  form,
  isNew,
  problems,
  set,
}: {
  readonly form: RemoteForm;
  readonly isNew: boolean;
  readonly problems: Problems;
  readonly set: (more: Partial<RemoteForm>) => void;
}) {
  return (
    <>
      <TextField
        label={t('Name')}
        value={form.name}
        onValue={(name) => set({ name })}
        disabled={!isNew}
        problem={problems.get('name')}
        mono
      />
      <TextField
        label={t('Server')}
        value={form.server}
        onValue={(server) => set({ server })}
        problem={problems.get('server')}
        placeholder="tls+mqtt-tcp://broker.example.org:8883"
        hint={t('tls+mqtt-tcp://host:8883 over TLS, mqtt-tcp://host:1883 without')}
        mono
      />
      <SelectField
        label={t('MQTT version')}
        value={form.proto_ver}
        onValue={(proto_ver) => set({ proto_ver })}
        options={[
          ['3', '3.1'],
          ['4', '3.1.1'],
          ['5', '5.0'],
        ]}
        problem={problems.get('proto_ver')}
      />
      <TextField
        label={t('Client id')}
        value={form.clientid}
        onValue={(clientid) => set({ clientid })}
        problem={problems.get('clientid')}
        placeholder={form.durable ? durableId(form) : t('random')}
        mono
      />
      <TextField
        label={t('User')}
        value={form.username}
        onValue={(username) => set({ username })}
        problem={problems.get('username')}
        autocomplete="off"
        mono
      />
      <TextField
        label={t('Password')}
        value={form.password}
        onValue={(password) => set({ password })}
        problem={problems.get('password')}
        hint={form.hasPassword ? t('empty = unchanged') : undefined}
        autocomplete="new-password"
        secret
        mono
      />
      <TextField
        label={t('Keep alive')}
        value={form.keepalive}
        onValue={(keepalive) => set({ keepalive })}
        problem={problems.get('keepalive')}
        mono
      />
      <div class="field check-field">
        <Check label={t('Durable session')} value={form.durable} onValue={(durable) => set({ durable })} />
      </div>
      {form.durable && form.proto_ver === '5' && (
        <TextField
          label={t('Kept by the broker, seconds')}
          value={form.expiry}
          onValue={(expiry) => set({ expiry })}
          problem={problems.get('expiry')}
          mono
        />
      )}
    </>
  );
}

/**
 * @param form what stands in it at first; null for a new bridge
 * @param direction the field that says what kind of bridge it is
 */
export function RemoteBridgeForm({
  form: initial,
  direction,
  onClose,
  onSaved,
}: {
  readonly form: RemoteForm | null;
  readonly direction: ComponentChildren;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const [form, setForm] = useState<RemoteForm>(initial ?? emptyRemote());
  const [problems, setProblems] = useState<Problems>(new Map());
  const [busy, setBusy] = useState(false);
  const set = (more: Partial<RemoteForm>): void => setForm({ ...form, ...more });
  const save = (event: Event): void => {
    event.preventDefault();
    const made = remoteDocument(form);
    if ('problem' in made) {
      setProblems(problemsByField([made.problem]));
      return;
    }
    setBusy(true);
    const sent =
      initial === null
        ? call('POST', kept('/mqtt/bridges'), made.document)
        : call('PUT', kept(`/mqtt/bridges/${escaped(initial.name)}`), made.document);
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
      moreHint={t('ssl, will, conn_properties, max_send_queue_len, retry_qos_0, hybrid_servers etc.')}
      problems={problems}
      busy={busy}
      autocomplete="off"
      onSubmit={save}
      onClose={onClose}
    >
      <div class="fields">
        {direction}
        <Connection form={form} isNew={initial === null} problems={problems} set={set} />
      </div>
      {isSecure(form.server) && (
        <TlsFields tls={form.tls} set={(more) => set({ tls: { ...form.tls, ...more } })} problems={problems} />
      )}
      {(['forwards', 'subscription'] as const).map((list) => (
        <RuleFieldset
          key={list}
          list={list}
          rules={form[list]}
          problems={problems}
          onRules={(rules) => set({ [list]: rules })}
        />
      ))}
      <ConnectionTest
        tested={{ type: 'mqtt', name: form.name.trim(), document: () => remoteDocument(form) }}
        onProblems={(list) => setProblems(problemsByField(list))}
      />
    </BridgeFrame>
  );
}
