// A frame byte by byte, each in the colour of its part. Used by the rule tester.
import { asText, hexByte, visible } from '../lib/bytes.ts';
import { partAt, type Segment } from '../lib/frame.ts';
import { t } from '../lib/words.ts';

/** Cells drawn; a frame may have megabytes. */
const SHOWN = 512;
const NAMES = {
  topic: 'topic',
  delimiter: 'delimiter',
  trace: 'trace header',
  payload: 'payload',
  frame: 'frame',
} as const;

function wordOf(bytes: Uint8Array): string {
  const text = asText(bytes);
  return text === null ? [...bytes.subarray(0, 24)].map(hexByte).join(' ') : JSON.stringify(text);
}

export function FrameBytes({ frame, segments }: { readonly frame: Uint8Array; readonly segments: readonly Segment[] }) {
  const shown = [...frame.subarray(0, SHOWN)];
  return (
    <div class="frame">
      <dl class="frame-parts">
        {segments.map(({ part, start, end }) => (
          <div key={part}>
            <dt class={`part-${part}`}>{t(NAMES[part])}</dt>
            <dd>
              <code>{wordOf(frame.subarray(start, end))}</code>
              <span class="muted">
                {start}–{end - 1}
              </span>
            </dd>
          </div>
        ))}
      </dl>
      <div class="cells" aria-hidden="true">
        {shown.map((byte, at) => (
          <span key={at} class={`cell part-${partAt(segments, at)}`}>
            <b>{visible(byte)}</b>
            <i>{hexByte(byte)}</i>
          </span>
        ))}
        {frame.length > SHOWN && <span class="muted">+{frame.length - SHOWN}</span>}
      </div>
    </div>
  );
}
