// The window in which a bridge is added or changed: an NNG bridge (bridgeform.tsx) or one to a remote broker
// (remoteform.tsx).
import { useEffect, useRef, useState } from 'preact/hooks';
import type { BridgeForm } from '../lib/bridgedoc.ts';
import type { RemoteForm } from '../lib/remotedoc.ts';
import type { BridgeType } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Dialog, SelectField } from '../ui/parts.tsx';
import { NngBridgeForm } from './bridgeform.tsx';
import { RemoteBridgeForm } from './remoteform.tsx';

/** What is edited; `form` is null for a new bridge. */
export type Edited =
  | { readonly kind: 'nng'; readonly form: BridgeForm | null }
  | { readonly kind: 'mqtt'; readonly form: RemoteForm | null };

type Kind = BridgeType | 'mqtt';

/** What a bridge may be; NNG ones in the words of SP. */
const KINDS: readonly (readonly [Kind, string])[] = [
  ['pub', 'MQTT → NNG (pub)'],
  ['sub', 'NNG → MQTT (sub)'],
  ['push', 'MQTT → NNG (push)'],
  ['pull', 'NNG → MQTT (pull)'],
  ['pair', 'MQTT ↔ NNG (pair)'],
  ['req', 'MQTT → NNG → MQTT (req)'],
  ['rep', 'NNG → MQTT → NNG (rep)'],
  ['mqtt', 'MQTT ↔ MQTT'],
];

export function BridgeDialog({
  edited,
  onClose,
  onSaved,
}: {
  readonly edited: Edited;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}) {
  const isNew = edited.form === null;
  const [kind, setKind] = useState<Kind>(edited.kind === 'mqtt' ? 'mqtt' : (edited.form?.type ?? 'pub'));
  const [turned, setTurned] = useState(0);
  const body = useRef<HTMLDivElement>(null);
  const remote = kind === 'mqtt';
  // Another form takes the place: the keyboard stays where it was.
  useEffect(() => {
    if (turned > 0) body.current?.querySelector('select')?.focus();
  }, [turned, remote]);
  const field = (
    <SelectField
      label={t('Direction')}
      value={kind}
      onValue={(next) => {
        setKind(next);
        setTurned(turned + 1);
      }}
      options={KINDS}
      disabled={!isNew}
    />
  );
  const common = { direction: field, onClose, onSaved };
  return (
    <Dialog title={isNew ? t('Add a bridge') : t('Bridge {n}', { n: edited.form?.name ?? '' })} onClose={onClose} wide>
      <div ref={body} class="dialog-form">
        {kind === 'mqtt' ? (
          <RemoteBridgeForm form={edited.kind === 'mqtt' ? edited.form : null} {...common} />
        ) : (
          <NngBridgeForm type={kind} form={edited.kind === 'nng' ? edited.form : null} {...common} />
        )}
      </div>
    </Dialog>
  );
}
