// The fields of bridges for requests: rules of a req bridge, topics of a rep bridge. Used by bridgeform.tsx.
import { type BridgeForm, emptyRequest, type RequestForm } from '../lib/bridgedoc.ts';
import { t } from '../lib/words.ts';
import { Check, IconButton, SelectField, TextField } from '../ui/parts.tsx';
import { FieldProblem, type Problems, RuleEditors } from './bridgeframe.tsx';

interface PartProps {
  readonly form: BridgeForm;
  readonly problems: Problems;
  readonly set: (more: Partial<BridgeForm>) => void;
}

function RequestFields({
  rule,
  index,
  problems,
  onRule,
  onRemove,
}: {
  readonly rule: RequestForm;
  readonly index: number;
  readonly problems: Problems;
  readonly onRule: (rule: RequestForm) => void;
  readonly onRemove: () => void;
}) {
  const set = (more: Partial<RequestForm>): void => onRule({ ...rule, ...more });
  const problem = (key: string): string | undefined => problems.get(`requests/${index}/${key}`);
  return (
    <fieldset class="rule">
      <legend>{t('Rule {n}', { n: index + 1 })}</legend>
      <div class="rule-tools">
        <Check label={t('on')} value={rule.enable} onValue={(enable) => set({ enable })} />
        <IconButton icon="trash" label={t('Remove rule {n}', { n: index + 1 })} onClick={onRemove} />
      </div>
      <div class="fields">
        <TextField
          label={t('Topic filter of requests')}
          value={rule.local_topic}
          onValue={(local_topic) => set({ local_topic })}
          problem={problem('local_topic')}
          placeholder="rpc/+/ask"
          mono
        />
        <TextField
          label={t('Topic of replies without Response Topic')}
          value={rule.response_topic}
          onValue={(response_topic) => set({ response_topic })}
          problem={problem('response_topic')}
          placeholder="rpc/{1}/answer"
          mono
        />
        <TextField
          label={t('Time limit')}
          value={rule.timeout}
          onValue={(timeout) => set({ timeout })}
          problem={problem('timeout')}
          placeholder="5s"
          mono
        />
        <SelectField
          label={t('QoS of replies')}
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
      </div>
      <FieldProblem problems={problems} field={`requests/${index}`} />
    </fieldset>
  );
}

/** MQTT clients ask, a local process answers. */
export function RequestRules({ form, problems, set }: PartProps) {
  return (
    <RuleEditors
      list="requests"
      rules={form.requests}
      problems={problems}
      empty={emptyRequest}
      words={t('Add a rule')}
      onRules={(requests) => set({ requests })}
    >
      {(rule, i, onRule, onRemove) => (
        <RequestFields key={i} rule={rule} index={i} problems={problems} onRule={onRule} onRemove={onRemove} />
      )}
    </RuleEditors>
  );
}

/** A local process asks for retained messages, or publishes. */
export function AnswerFields({ form, problems, set }: PartProps) {
  return (
    <div class="fields">
      <TextField
        label={t('Topics that requests may use, one filter per line')}
        value={form.topics}
        onValue={(topics) => set({ topics })}
        problem={problems.get('topics')}
        placeholder="state/#"
        rows={2}
        mono
        wide
      />
      <div class="field check-field">
        <Check label={t('requests may publish')} value={form.publish} onValue={(publish) => set({ publish })} />
      </div>
    </div>
  );
}
