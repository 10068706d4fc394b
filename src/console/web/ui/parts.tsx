// Small pieces that all pages are made of: buttons, badges, fields, panels, notices. No data of their own.
import type { ButtonHTMLAttributes, ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { textOf } from '../lib/api.ts';
import type { Packing } from '../lib/binary.ts';
import { asText, fromBase64, hexDump, prettyJson } from '../lib/bytes.ts';
import { bytes as sizeText } from '../lib/format.ts';
import { answerText, t } from '../lib/words.ts';
import { Icon } from './icons.tsx';

type Children = { readonly children?: ComponentChildren };

export function Panel({
  title,
  tools,
  children,
  flush = false,
}: Children & { readonly title?: ComponentChildren; readonly tools?: ComponentChildren; readonly flush?: boolean }) {
  return (
    <section class={flush ? 'panel flush' : 'panel'}>
      {(title !== undefined || tools !== undefined) && (
        <header class="panel-head">
          {title !== undefined && <h2>{title}</h2>}
          {tools !== undefined && <div class="tools">{tools}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** Colour by what a state means, and always its word. */
const TONES: Readonly<Record<string, string>> = {
  connected: 'good',
  listening: 'calm',
  starting: 'calm',
  retrying: 'warn',
  error: 'bad',
  disabled: 'off',
  disconnected: 'off',
  up: 'good',
  down: 'off',
  draining: 'warn',
  resting: 'warn',
  unhealthy: 'bad',
  allowed: 'good',
  denied: 'bad',
  debug: 'off',
  info: 'calm',
  warn: 'warn',
  fatal: 'bad',
  good: 'good',
  bad: 'bad',
};

export function Badge({ state, text }: { readonly state: string; readonly text?: string }) {
  return <span class={`badge ${TONES[state] ?? 'calm'}`}>{text ?? t(state)}</span>;
}

export function Button({
  icon,
  kind = '',
  children,
  ...rest
}: Children & { readonly icon?: string; readonly kind?: string } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button type="button" class={`button ${kind}`} {...rest}>
      {icon !== undefined && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}

/** A button that is only a picture: its name is read out and shown as a hint. */
export function IconButton({
  icon,
  label,
  ...rest
}: { readonly icon: string; readonly label: string } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button type="button" class="icon-button" aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  );
}

/** A labelled input; `problem` is shown below it and read out with it. */
export function Field({
  label,
  hint,
  problem,
  wide = false,
  children,
}: {
  readonly label: string;
  readonly hint?: string;
  readonly problem?: string | null;
  readonly wide?: boolean;
  readonly children: (ids: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: 'true' }) => ComponentChildren;
}) {
  const id = useId();
  const wrong = problem !== undefined && problem !== null && problem !== '';
  const told = wrong || hint !== undefined;
  return (
    <div class={`field${wide ? ' wide' : ''}${wrong ? ' wrong' : ''}`}>
      <label for={id}>{label}</label>
      {children({
        id,
        ...(told ? { 'aria-describedby': `${id}-note` } : {}),
        ...(wrong ? { 'aria-invalid': 'true' as const } : {}),
      })}
      {told && (
        <p class={wrong ? 'note problem' : 'note'} id={`${id}-note`}>
          {wrong ? answerText(problem) : hint}
        </p>
      )}
    </div>
  );
}

/** What every input is given; pages keep the value. */
interface InputProps<T> {
  readonly label: string;
  readonly value: T;
  readonly onValue: (value: T) => void;
}

interface ToggleProps extends InputProps<boolean> {
  readonly disabled?: boolean;
}

/** One of a few values, each with its word. */
interface ChoiceProps<T extends string> extends InputProps<T> {
  readonly options: readonly (readonly [T, string])[];
}

interface TextProps extends InputProps<string> {
  readonly hint?: string;
  readonly problem?: string | null;
  readonly wide?: boolean;
  readonly mono?: boolean;
  readonly secret?: boolean;
  readonly rows?: number;
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly disabled?: boolean;
  readonly name?: string;
  readonly autocomplete?: string;
}

export function TextField({ label, value, onValue, hint, problem, wide, mono, rows, secret, ...rest }: TextProps) {
  const read = (event: Event): void => onValue((event.currentTarget as HTMLInputElement | HTMLTextAreaElement).value);
  const common = { class: mono === true ? 'mono' : '', value, onInput: read, spellcheck: false, ...rest };
  return (
    <Field label={label} hint={hint} problem={problem} wide={wide}>
      {(ids) => {
        if (rows !== undefined) return <textarea rows={rows} {...common} {...ids} />;
        return secret === true ? <input type="password" {...common} {...ids} /> : <input {...common} {...ids} />;
      }}
    </Field>
  );
}

export function SelectField<T extends string>({
  label,
  value,
  onValue,
  options,
  hint,
  problem,
  disabled,
}: ChoiceProps<T> & { readonly hint?: string; readonly problem?: string | null; readonly disabled?: boolean }) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(ids) => (
        <select
          value={value}
          disabled={disabled}
          onChange={(event) => onValue((event.currentTarget as HTMLSelectElement).value as T)}
          {...ids}
        >
          {options.map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Check({ label, value, onValue, disabled }: ToggleProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={value}
        disabled={disabled}
        onChange={(event) => onValue((event.currentTarget as HTMLInputElement).checked)}
      />
      <span>{label}</span>
    </label>
  );
}

/** On or off at once, without a form. */
export function Switch({ label, value, onValue, disabled }: ToggleProps) {
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={value}
      aria-label={label}
      title={label}
      disabled={disabled}
      onClick={() => onValue(!value)}
    >
      <span />
    </button>
  );
}

/** A choice between a few things that are all seen. */
export function Choice<T extends string>({ label, value, onValue, options }: ChoiceProps<T>) {
  return (
    <fieldset class="choice" aria-label={label}>
      {options.map(([key, text]) => (
        <button key={key} type="button" aria-pressed={key === value} onClick={() => onValue(key)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}

export function SearchBox({ label, value, onValue }: InputProps<string>) {
  return (
    <div class="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        spellcheck={false}
        onInput={(event) => onValue((event.currentTarget as HTMLInputElement).value)}
      />
    </div>
  );
}

/** A part of the page that scrolls by itself, with the keyboard too. */
export function Scroll({ label, look, children }: Children & { readonly label: string; readonly look: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached without a mouse
    <section class={look} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}

export function Empty({ children }: Children) {
  return <p class="empty">{children}</p>;
}

export function Failed({ error }: { readonly error: unknown }) {
  if (error === null || error === undefined) return null;
  return (
    <p class="failed" role="alert">
      {textOf(error)}
    </p>
  );
}

/** Names and values below each other. */
export function Facts({ rows }: { readonly rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A window above the page. The browser keeps the focus in it and closes it on Escape. */
export function Dialog({
  title,
  onClose,
  wide = false,
  children,
}: Children & { readonly title: string; readonly onClose: () => void; readonly wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog !== null && !dialog.open) dialog.showModal();
  }, []);
  return (
    <dialog ref={element} class={wide ? 'wide' : ''} aria-labelledby={id} onClose={onClose}>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <IconButton icon="close" label={t('Close')} onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}

/** Asks before something that cannot be taken back. */
export function Confirm({
  title,
  action,
  onYes,
  onClose,
  children,
}: Children & {
  readonly title: string;
  readonly action: string;
  readonly onYes: () => Promise<void>;
  readonly onClose: () => void;
}) {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const yes = (): void => {
    setBusy(true);
    onYes().then(onClose, (problem: unknown) => {
      setError(problem);
      setBusy(false);
    });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="dialog-body">{children}</div>
      <Failed error={error} />
      <footer class="dialog-foot">
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button kind="danger" onClick={yes} disabled={busy}>
          {action}
        </Button>
      </footer>
    </Dialog>
  );
}

type Unpack = (bytes: Uint8Array, packing: Packing) => string | null;
type View = 'text' | 'json' | 'hex' | 'base64' | Packing;

/** Bytes as text, JSON, hex, base64, CBOR or MessagePack; begins with what fits them best. */
export function Payload({ base64, total }: { readonly base64: string; readonly total?: number }) {
  const raw = fromBase64(base64);
  const text = asText(raw);
  const json = text === null ? null : prettyJson(text);
  const [chosen, setChosen] = useState<View | null>(null);
  const best: View = text === null ? 'hex' : json !== null && /^\s*[[{]/.test(text) ? 'json' : 'text';
  const view = chosen ?? best;
  const packing = view === 'cbor' || view === 'msgpack' ? view : null;
  // The decoders are loaded when somebody asks for them.
  const [unpack, setUnpack] = useState<Unpack | null>(null);
  useEffect(() => {
    if (packing !== null && unpack === null)
      void import('../lib/binary.ts').then((module) => setUnpack(() => module.unpacked));
  }, [packing, unpack]);
  const views: Readonly<Record<Exclude<View, Packing>, () => string>> = {
    text: () => text ?? t('Not valid UTF-8 text.'),
    json: () => json ?? t('Not valid JSON.'),
    hex: () => hexDump(raw),
    base64: () => base64,
  };
  const shown =
    packing === null
      ? views[view as Exclude<View, Packing>]()
      : unpack === null
        ? '…'
        : (unpack(raw, packing) ?? t('Not valid {n}.', { n: packing === 'cbor' ? 'CBOR' : 'MessagePack' }));
  return (
    <div class="payload">
      <div class="payload-head">
        <Choice
          label={t('Show payload as')}
          value={view}
          onValue={setChosen}
          options={[
            ['text', t('Text')],
            ['json', 'JSON'],
            ['hex', 'Hex'],
            ['base64', 'Base64'],
            ['cbor', 'CBOR'],
            ['msgpack', 'MessagePack'],
          ]}
        />
        <span class="muted">{sizeText(total ?? raw.length)}</span>
      </div>
      <Scroll look="payload-box" label={t('Payload')}>
        <pre>{raw.length === 0 ? t('(empty)') : shown}</pre>
      </Scroll>
      {total !== undefined && total > raw.length && (
        <p class="note">{t('Only the first {n} are shown.', { n: sizeText(raw.length) })}</p>
      )}
    </div>
  );
}
