// Configuration: every value that holds now beside its default, with its text; changes are collected, checked and
// applied together.
import { useMemo, useState } from 'preact/hooks';
import { ApiError, call, can, fetchData, textOf } from '../lib/api.ts';
import { bytes, duration } from '../lib/format.ts';
import { keeping, kept } from '../lib/keep.ts';
import { useLoaded } from '../lib/live.ts';
import { KeyBook, type KeyInfo, type Setting, settings } from '../lib/settings.ts';
import { useStore } from '../lib/store.ts';
import { answerText, language, t } from '../lib/words.ts';
import { KeepCheck } from '../ui/keepcheck.tsx';
import { Button, Check, Empty, Failed, IconButton, Panel, SearchBox } from '../ui/parts.tsx';
import { attempt, tell } from '../ui/toast.tsx';

type Staged = ReadonlyMap<string, string>;

function written(value: unknown, info: KeyInfo | null): string {
  if (value === null || value === undefined) return t('not set');
  if (typeof value === 'number' && info?.type === 'size') return value === 0 ? '0' : bytes(value);
  if (typeof value === 'number' && info?.type === 'duration') return duration(value);
  return typeof value === 'string' ? (value === '' ? '""' : value) : JSON.stringify(value);
}

/** What the edit field begins with: as one would write it in the file. */
function editable(value: unknown, info: KeyInfo | null): string {
  if (value === null || value === undefined || info?.secret === true) return '';
  if (typeof value === 'number' && info?.type === 'duration')
    return value % 1000 === 0 ? `${value / 1000}s` : `${value}ms`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Only single values can be set; lists and blocks are changed in the file, bridges on their page. */
function canSet({ value, info }: Setting): boolean {
  return info !== null && (value === null || typeof value !== 'object');
}

/** Too much for one line. */
function isLarge(value: unknown): boolean {
  return typeof value === 'object' && value !== null && JSON.stringify(value).length > 60;
}

interface RowProps {
  readonly setting: Setting;
  readonly staged: string | undefined;
  readonly onStage: (value: string | null) => void;
}

function Row({ setting, staged, onStage }: RowProps) {
  const { path, info, value, differs } = setting;
  const [editing, setEditing] = useState(false);
  const edit = (): void => {
    onStage(editable(value, info));
    setEditing(true);
  };
  return (
    <li class={`setting${differs ? ' differs' : ''}${staged === undefined ? '' : ' staged'}`}>
      <div class="setting-head">
        <code class="setting-key">{path}</code>
        {differs && <span class="mini">{t('set')}</span>}
        {info?.restart === true && <span class="mini warn">{t('requires a restart')}</span>}
        <span class="spring" />
        {staged === undefined ? (
          <>
            {!isLarge(value) && <code class="setting-value">{written(value, info)}</code>}
            {can('admin') && canSet(setting) && (
              <IconButton icon="edit" label={t('Change {n}', { n: path })} onClick={edit} />
            )}
          </>
        ) : (
          <>
            <input
              class="mono"
              aria-label={path}
              value={staged}
              autofocus={editing}
              spellcheck={false}
              onInput={(event) => onStage((event.currentTarget as HTMLInputElement).value)}
            />
            <IconButton icon="close" label={t('Undo the change of {n}', { n: path })} onClick={() => onStage(null)} />
          </>
        )}
      </div>
      {isLarge(value) && <pre class="setting-block">{JSON.stringify(value, null, 2)}</pre>}
      {info !== null && (
        <p class="note">
          {info.text}{' '}
          <span class="muted">
            ({typeWords(info.type)}
            {info.unit !== null && info.unit !== 'bytes' ? `, ${info.unit}` : ''}
            {differs && 'default' in info ? ` · ${t('default: {n}', { n: written(info.default, info) })}` : ''})
          </span>
        </p>
      )}
    </li>
  );
}

interface Outcome {
  readonly good: boolean;
  readonly text: string;
}

function StagedBar({ staged, onDone, onDrop }: { staged: Staged; onDone: () => void; onDrop: () => void }) {
  const keep = useStore(keeping) === true;
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const send = (check: boolean): void => {
    const body = { values: Object.fromEntries(staged), ...(check ? { check: true } : {}) };
    call('POST', check ? '/config' : kept('/config'), body).then(
      () => {
        setOutcome(check ? { good: true, text: t('These values are valid.') } : null);
        if (!check) {
          tell(keep ? t('Applied and saved.') : t('Applied until the next restart.'));
          onDone();
        }
      },
      (error: unknown) => {
        const listed = error instanceof ApiError ? error.problems.map(({ message }) => message) : [];
        setOutcome({ good: false, text: listed.length > 0 ? listed.map(answerText).join('\n') : textOf(error) });
      },
    );
  };
  return (
    <section class="panel staged-bar" aria-label={t('Changes')}>
      <div class="line">
        <b>{staged.size === 1 ? t('1 change') : t('{n} changes', { n: staged.size })}</b>
        {!keep && <span class="muted">{t('They last until the next restart.')}</span>}
        <KeepCheck />
        <span class="spring" />
        <Button onClick={onDrop}>{t('Discard')}</Button>
        <Button onClick={() => send(true)}>{t('Validate')}</Button>
        <Button kind="primary" onClick={() => send(false)}>
          {t('Apply')}
        </Button>
      </div>
      {outcome !== null && (
        <p class={outcome.good ? 'good-text' : 'failed'} role="alert">
          {outcome.text}
        </p>
      )}
    </section>
  );
}

/** All keys, with their texts in the language of the page. */
async function loadKeys(): Promise<readonly KeyInfo[]> {
  const rows = await fetchData<readonly KeyInfo[]>('/config/keys');
  if (language.get() !== 'zh') return rows;
  const { KEY_TEXTS } = await import('../lib/chinesekeys.ts');
  return rows.map((row) => ({ ...row, text: KEY_TEXTS[row.text] ?? row.text }));
}

/** What may be written, in words: "list of text", "a | b". */
function typeWords(type: string): string {
  const [, item] = /^list of (.+)$/.exec(type) ?? [];
  return item === undefined ? t(type) : t('list of {n}', { n: t(item) });
}

export function ConfigurationPage() {
  const config = useLoaded(() => fetchData<Readonly<Record<string, unknown>>>('/config'), 'config');
  const keys = useLoaded(loadKeys, 'keys');
  const [search, setSearch] = useState('');
  const [only, setOnly] = useState(true);
  const [staged, setStaged] = useState<Staged>(new Map());
  const all = useMemo(
    () => (config.value === null || keys.value === null ? [] : settings(config.value, new KeyBook(keys.value))),
    [config.value, keys.value],
  );
  const part = search.toLowerCase();
  const found = all.filter(
    ({ path, info, differs }) =>
      (!only || differs || staged.has(path)) &&
      (path.toLowerCase().includes(part) || (info?.text.toLowerCase().includes(part) ?? false)),
  );
  const sections = [...new Set(found.map(({ section }) => section))];
  const stage = (path: string, value: string | null): void => {
    const next = new Map(staged);
    if (value === null) next.delete(path);
    else next.set(path, value);
    setStaged(next);
  };
  const reread = (): void => {
    void attempt(() => call('POST', '/reload'), t('Configuration file reloaded.')).then(config.reload);
  };
  return (
    <>
      <div class="bar">
        <SearchBox label={t('Key or text')} value={search} onValue={setSearch} />
        <Check label={t('Only changed from default')} value={only} onValue={setOnly} />
        <span class="spring" />
        {can('admin') && (
          <Button icon="refresh" onClick={reread}>
            {t('Reload the file')}
          </Button>
        )}
      </div>
      <Failed error={config.error ?? keys.error} />
      {staged.size > 0 && (
        <StagedBar
          staged={staged}
          onDrop={() => setStaged(new Map())}
          onDone={() => {
            setStaged(new Map());
            config.reload();
          }}
        />
      )}
      {config.value !== null && found.length === 0 && (
        <Empty>{only && part === '' ? t('All keys have their default values.') : t('No matching keys.')}</Empty>
      )}
      {sections.map((section) => (
        <Panel key={section} title={<code>{section}</code>}>
          <ul class="plain settings">
            {found
              .filter((setting) => setting.section === section)
              .map((setting) => (
                <Row
                  key={setting.path}
                  setting={setting}
                  staged={staged.get(setting.path)}
                  onStage={(value) => stage(setting.path, value)}
                />
              ))}
          </ul>
        </Panel>
      ))}
    </>
  );
}
