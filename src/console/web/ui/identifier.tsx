// A long name on one line: its beginning and its end stay readable, the middle gives way; whole in the tooltip, and
// copied by a button. Used by pages that list clients. The end is what tells two generated names apart.
import { t } from '../lib/words.ts';
import { IconButton } from './parts.tsx';
import { attempt } from './toast.tsx';

/** Characters of the end that are always shown. */
const TAIL = 8;

/** Shorter names are shown whole. */
const SHORT = 20;

export function Identifier({ text }: { readonly text: string }) {
  const letters = [...text];
  if (letters.length <= SHORT) return <span class="identifier whole">{text}</span>;
  return (
    <span class="identifier" title={text}>
      <span class="head">{letters.slice(0, -TAIL).join('')}</span>
      <span class="tail">{letters.slice(-TAIL).join('')}</span>
    </span>
  );
}

export function CopyButton({ text }: { readonly text: string }) {
  const copy = (): void => void attempt(() => navigator.clipboard.writeText(text), t('Copied.'));
  return <IconButton icon="copy" label={t('Copy')} onClick={copy} />;
}
