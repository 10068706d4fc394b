// Bridges: each as a picture of its flow with live rates; add, change, switch, remove; a bench to try rules without
// touching anything.
import { useState } from 'preact/hooks';
import { call, can, escaped, fetchData } from '../lib/api.ts';
import { bridgeForm, type Direction, emptyRule, type RuleForm } from '../lib/bridgedoc.ts';
import { keeping, kept } from '../lib/keep.ts';
import { adoptBridges, bridges as liveBridges, useLoaded } from '../lib/live.ts';
import { remoteForm } from '../lib/remotedoc.ts';
import { useStore } from '../lib/store.ts';
import { directionOf } from '../lib/tracks.ts';
import type { Bridge, BridgeState, Rule } from '../lib/types.ts';
import { answerText, t } from '../lib/words.ts';
import { Flow } from '../ui/flow.tsx';
import { KeepCheck } from '../ui/keepcheck.tsx';
import {
  Badge,
  Button,
  Choice,
  Confirm,
  Empty,
  Failed,
  IconButton,
  Panel,
  SelectField,
  Switch,
  TextField,
} from '../ui/parts.tsx';
import { attempt, tell } from '../ui/toast.tsx';
import { BridgeDialog, type Edited } from './bridgedialog.tsx';
import { ConnectionTest } from './connectiontest.tsx';
import { RuleTester } from './ruletester.tsx';

/** What the stream last said of a bridge, over what was loaded. */
function current(bridge: Bridge, live: readonly BridgeState[] | null): BridgeState {
  const same = ({ kind, type, name }: BridgeState): boolean =>
    kind === bridge.kind && type === bridge.type && name === bridge.name;
  return live?.find(same) ?? bridge;
}

/** The path of a bridge, with what follows it. */
function pathOf({ kind, type, name }: Bridge, verb = ''): string {
  return `/${kind}/bridges/${escaped(name)}${verb}${kind === 'nng' ? `?type=${type ?? ''}` : ''}`;
}

function edited(bridge: Bridge): Edited {
  return bridge.kind === 'nng' ? { kind: 'nng', form: bridgeForm(bridge) } : { kind: 'mqtt', form: remoteForm(bridge) };
}

/** What goes from MQTT to the peers: rules, requests, or the topics that requests may ask for. */
function sendingRules({ forwards, requests, topics }: Bridge): readonly Rule[] {
  if (forwards !== undefined) return forwards;
  if (Array.isArray(requests)) return requests.map((rule: Rule) => ({ ...rule, frame: rule.frame ?? 'payload' }));
  const filters = typeof topics === 'string' ? [topics] : Array.isArray(topics) ? topics : [];
  return filters.map((filter) => ({ local_topic: String(filter), frame: 'payload' }));
}

/** Where a bridge goes or listens, also while it is off. */
function addressesOf(bridge: Bridge): readonly string[] {
  const found: unknown = bridge.kind === 'mqtt' ? bridge.server : bridge[`${bridge.type ?? ''}_url`];
  return (Array.isArray(found) ? found : [found]).filter((one): one is string => typeof one === 'string');
}

interface CardProps {
  readonly bridge: Bridge;
  readonly live: BridgeState;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
  readonly onChanged: () => void;
}

function BridgeCard({ bridge, live, onEdit, onRemove, onChanged }: CardProps) {
  const [testing, setTesting] = useState(false);
  const flip = (on: boolean): void => {
    const done = on ? t('Bridge {n} is on.', { n: bridge.name }) : t('Bridge {n} is off.', { n: bridge.name });
    const target = kept(pathOf(bridge, on ? '/enable' : '/disable'));
    void attempt(() => call('POST', target), done).then(onChanged);
  };
  return (
    <Panel
      title={
        <>
          {bridge.name} <span class="muted">{directionOf(bridge)}</span> <Badge state={live.state} />
        </>
      }
      tools={
        <>
          {can('operator') && (
            <Switch label={t('Bridge {n} on', { n: bridge.name })} value={live.enable} onValue={flip} />
          )}
          {can('admin') && (
            <>
              <Button onClick={() => setTesting(!testing)} aria-expanded={testing}>
                {t('Test connection')}
              </Button>
              <IconButton icon="edit" label={t('Change bridge {n}', { n: bridge.name })} onClick={onEdit} />
              <IconButton icon="trash" label={t('Remove bridge {n}', { n: bridge.name })} onClick={onRemove} />
            </>
          )}
        </>
      }
    >
      {live.last_error !== null && !(live.endpoints ?? []).some((end) => end.lastError !== null) && (
        <p class="failed">{answerText(live.last_error)}</p>
      )}
      {testing && <ConnectionTest tested={{ type: bridge.type ?? 'mqtt', name: bridge.name, document: null }} />}
      <Flow
        addresses={addressesOf(bridge)}
        bridge={live}
        forwards={sendingRules(bridge)}
        subscription={bridge.subscription ?? []}
      />
    </Panel>
  );
}

/** What the bench begins with. */
const SAMPLES: Readonly<Record<Direction, RuleForm>> = {
  pub: { ...emptyRule(), local_topic: 'sensor/#', remote_topic: 'sensors' },
  sub: { ...emptyRule(), remote_topic: 'result' },
};

/** A rule that belongs to no bridge, to try things with. */
function Bench() {
  const [type, setType] = useState<Direction>('pub');
  const [rule, setRule] = useState<RuleForm>(SAMPLES.pub);
  const set = (more: Partial<RuleForm>): void => setRule({ ...rule, ...more });
  return (
    <Panel title={t('Test a rule')}>
      <p class="note">{t('Shows the frame made from a message, or how a frame is split. Nothing is sent.')}</p>
      <Choice
        label={t('Direction')}
        value={type}
        onValue={(next) => {
          setType(next);
          setRule(next === type ? rule : SAMPLES[next]);
        }}
        options={[
          ['pub', 'MQTT → NNG'],
          ['sub', 'NNG → MQTT'],
        ]}
      />
      <div class="fields">
        <TextField
          label={type === 'pub' ? t('MQTT topic filter') : t('MQTT topic')}
          value={rule.local_topic}
          onValue={(local_topic) => set({ local_topic })}
          mono
        />
        <TextField
          label={type === 'pub' ? t('NNG topic') : t('NNG prefix')}
          value={rule.remote_topic}
          onValue={(remote_topic) => set({ remote_topic })}
          mono
        />
        <TextField
          label={t('Delimiter')}
          value={rule.nng_delimiter}
          onValue={(nng_delimiter) => set({ nng_delimiter })}
          mono
        />
        {type === 'sub' && (
          <SelectField
            label={t('Match')}
            value={rule.match}
            onValue={(match) => set({ match })}
            options={[
              ['prefix', 'prefix'],
              ['level', 'level'],
              ['exact', 'exact'],
            ]}
          />
        )}
      </div>
      <RuleTester key={type} type={type} rule={rule} />
    </Panel>
  );
}

/** Bridges of one kind, and what they are doing, where the stream has not told it yet. */
async function load(kind: Bridge['kind']): Promise<readonly Bridge[]> {
  const rows = await fetchData<readonly Bridge[]>(`/${kind}/bridges`);
  const list = rows.map((bridge) => ({ ...bridge, kind, type: kind === 'nng' ? bridge.type : null }));
  adoptBridges(kind, list);
  return list;
}

export function BridgesPage() {
  const live = useStore(liveBridges);
  const list = useLoaded(() => load('nng'), 'bridges', 10_000);
  const remote = useLoaded(() => load('mqtt'), 'remote', 10_000);
  const [editing, setEditing] = useState<Edited | null>(null);
  const [removing, setRemoving] = useState<Bridge | null>(null);
  const keep = useStore(keeping);
  const [bench, setBench] = useState(false);
  const all = [...(list.value ?? []), ...(remote.value ?? [])];
  const reload = (): void => {
    list.reload();
    remote.reload();
  };
  return (
    <>
      <div class="bar">
        {can('admin') && (
          <Button kind="primary" icon="plus" onClick={() => setEditing({ kind: 'nng', form: null })}>
            {t('Add a bridge')}
          </Button>
        )}
        <Button onClick={() => setBench(!bench)} aria-expanded={bench}>
          {t('Test a rule')}
        </Button>
        <span class="spring" />
        <KeepCheck />
      </div>
      <Failed error={list.error ?? remote.error} />
      {bench && <Bench />}
      {list.value?.length === 0 && remote.value?.length === 0 && (
        <Empty>{t('No bridges yet. A bridge forwards MQTT messages to NNG peers, or NNG frames to MQTT.')}</Empty>
      )}
      {all.map((bridge) => (
        <BridgeCard
          key={`${bridge.kind}/${bridge.type ?? ''}/${bridge.name}`}
          bridge={bridge}
          live={current(bridge, live)}
          onEdit={() => setEditing(edited(bridge))}
          onRemove={() => setRemoving(bridge)}
          onChanged={reload}
        />
      ))}
      {editing !== null && <BridgeDialog edited={editing} onClose={() => setEditing(null)} onSaved={reload} />}
      {removing !== null && (
        <Confirm
          title={t('Remove bridge {n}?', { n: removing.name })}
          action={t('Remove')}
          onClose={() => setRemoving(null)}
          onYes={async () => {
            const { data } = await call<{ data?: { note?: string } }>('DELETE', kept(pathOf(removing)));
            if (data?.note !== undefined)
              tell(t('{n} is defined in other files, so it is kept but disabled.', { n: removing.name }));
            reload();
          }}
        >
          <p>
            {keep === true
              ? t('Its connections are closed. A bridge defined in the configuration file stays there, disabled.')
              : t(
                  'Its connections are closed. If the bridge is in the configuration file, it returns with the next restart.',
                )}
          </p>
        </Confirm>
      )}
    </>
  );
}
