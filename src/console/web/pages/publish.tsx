// Publishing a message through the API, with all properties of MQTT 5 that a publisher may send, and templates that the
// browser keeps. Part of messages.tsx.
import { useState } from 'preact/hooks';
import { call } from '../lib/api.ts';
import { encodeText, fromBase64, fromHex, toBase64 } from '../lib/bytes.ts';
import { dropTemplate, keepTemplate, type Template, templates } from '../lib/templates.ts';
import { readUserProperties } from '../lib/userproperties.ts';
import { t } from '../lib/words.ts';
import { Button, Check, Panel, SelectField, TextField } from '../ui/parts.tsx';
import { attempt } from '../ui/toast.tsx';

const EMPTY = {
  topic: '',
  payload: '',
  form: 'text',
  qos: '0',
  retain: '',
  contentType: '',
  responseTopic: '',
  correlation: '',
  expiry: '',
  isText: '',
  user: '',
};
type Fields = typeof EMPTY;

function decoded({ form, payload }: Fields): Uint8Array | null {
  if (form === 'text') return encodeText(payload);
  if (form === 'hex') return fromHex(payload);
  try {
    return fromBase64(payload.trim());
  } catch {
    return null;
  }
}

interface Problems {
  readonly payload?: string;
  readonly expiry?: string;
  readonly user?: string;
}

/** The body of the call, or what is wrong with which field. */
function bodyOf(fields: Fields): { readonly body: Record<string, unknown> } | { readonly problems: Problems } {
  const raw = decoded(fields);
  if (raw === null)
    return { problems: { payload: fields.form === 'hex' ? t('Not valid hex.') : t('Not valid Base64.') } };
  if (!/^\d{0,10}$/.test(fields.expiry)) return { problems: { expiry: t('A number of seconds.') } };
  const user = readUserProperties(fields.user);
  if (user === null) return { problems: { user: t('One per line, as name: value; each name once.') } };
  const properties = {
    ...(fields.contentType === '' ? {} : { content_type: fields.contentType }),
    ...(fields.responseTopic === '' ? {} : { response_topic: fields.responseTopic }),
    ...(fields.correlation === '' ? {} : { correlation_data: fields.correlation }),
    ...(fields.expiry === '' ? {} : { message_expiry_interval: Number(fields.expiry) }),
    ...(fields.isText === '' ? {} : { payload_format_indicator: 1 }),
    ...(Object.keys(user).length === 0 ? {} : { user_properties: user }),
  };
  const { topic, qos, retain } = fields;
  const message = { topic, payload: toBase64(raw), decoding: 'base64', qos: Number(qos), retain: retain !== '' };
  return { body: Object.keys(properties).length === 0 ? message : { ...message, properties } };
}

/** Only fields of the form: a template may be older than it. */
function filled(template: Template): Fields {
  const fields = { ...EMPTY };
  for (const name of Object.keys(EMPTY) as (keyof Fields)[]) fields[name] = template[name] ?? EMPTY[name];
  return fields;
}

function Templates({ fields, onFields }: { readonly fields: Fields; readonly onFields: (fields: Fields) => void }) {
  const [all, setAll] = useState(templates());
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState('');
  const choose = (wanted: string): void => {
    setChosen(wanted);
    const template = all.get(wanted);
    if (template !== undefined) onFields(filled(template));
  };
  return (
    <details>
      <summary>{t('Templates')}</summary>
      <div class="fields">
        <SelectField
          label={t('Template')}
          value={chosen}
          onValue={choose}
          options={[['', '–'], ...[...all.keys()].map((one) => [one, one] as const)]}
        />
        <TextField label={t('Save as')} value={name} onValue={setName} />
      </div>
      <div class="line">
        <Button
          disabled={name.trim() === ''}
          onClick={() => {
            keepTemplate(name.trim(), fields);
            setAll(templates());
            setChosen(name.trim());
          }}
        >
          {t('Save template')}
        </Button>
        <Button
          disabled={chosen === ''}
          onClick={() => {
            dropTemplate(chosen);
            setAll(templates());
            setChosen('');
          }}
        >
          {t('Delete template')}
        </Button>
      </div>
    </details>
  );
}

export function Publish() {
  const [fields, setFields] = useState<Fields>(EMPTY);
  const [problems, setProblems] = useState<Problems>({});
  const on = (name: keyof Fields) => (value: string) => setFields({ ...fields, [name]: value });
  const flag = (name: keyof Fields) => (value: boolean) => setFields({ ...fields, [name]: value ? '1' : '' });
  const submit = (event: Event): void => {
    event.preventDefault();
    const made = bodyOf(fields);
    setProblems('problems' in made ? made.problems : {});
    if ('body' in made)
      void attempt(() => call('POST', '/mqtt/publish', made.body), t('Published to {n}.', { n: fields.topic }));
  };
  return (
    <Panel title={t('Publish')}>
      <form onSubmit={submit}>
        <div class="fields">
          <TextField label={t('Topic')} value={fields.topic} onValue={on('topic')} mono required wide />
          <TextField
            label={t('Payload')}
            value={fields.payload}
            onValue={on('payload')}
            problem={problems.payload}
            rows={5}
            mono
            wide
          />
          <SelectField
            label={t('Payload format')}
            value={fields.form}
            onValue={on('form')}
            options={[
              ['text', t('Text')],
              ['hex', 'Hex'],
              ['base64', 'Base64'],
            ]}
          />
          <SelectField
            label="QoS"
            value={fields.qos}
            onValue={on('qos')}
            options={[
              ['0', '0'],
              ['1', '1'],
              ['2', '2'],
            ]}
          />
        </div>
        <details>
          <summary>{t('Properties')}</summary>
          <div class="fields">
            <TextField label={t('Content type')} value={fields.contentType} onValue={on('contentType')} mono />
            <TextField label={t('Response topic')} value={fields.responseTopic} onValue={on('responseTopic')} mono />
            <TextField label={t('Correlation data')} value={fields.correlation} onValue={on('correlation')} mono />
            <TextField
              label={t('Expires after (seconds)')}
              value={fields.expiry}
              onValue={on('expiry')}
              problem={problems.expiry}
              mono
            />
            <TextField
              label={t('User properties')}
              hint={t('One per line, as name: value; each name once.')}
              value={fields.user}
              onValue={on('user')}
              problem={problems.user}
              rows={3}
              mono
              wide
            />
            <Check label={t('The payload is UTF-8 text')} value={fields.isText !== ''} onValue={flag('isText')} />
          </div>
        </details>
        <Templates fields={fields} onFields={setFields} />
        <div class="line">
          <Check label="RETAIN" value={fields.retain !== ''} onValue={flag('retain')} />
          <span class="spring" />
          <Button kind="primary" type="submit">
            {t('Publish')}
          </Button>
        </div>
      </form>
    </Panel>
  );
}
