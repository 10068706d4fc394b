// Bridges: each as a picture of its flow with live rates; add, change, switch, remove; a bench to try rules without touching anything.
import { useState } from 'preact/hooks';
import { call, can, escaped, fetchData } from '../lib/api.ts';
import { type BridgeForm, bridgeForm, type Direction, emptyRule, type RuleForm } from '../lib/bridgedoc.ts';
import { keeping, kept } from '../lib/keep.ts';
import { adoptBridges, bridges as liveBridges, useLoaded } from '../lib/live.ts';
import { useStore } from '../lib/store.ts';
import { directionOf } from '../lib/tracks.ts';
import type { Bridge, BridgeState, RemoteBridge } from '../lib/types.ts';
import { t } from '../lib/words.ts';
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
import { BridgeDialog } from './bridgeform.tsx';
import { RuleTester } from './ruletester.tsx';

/** What the stream last said of a bridge, over what was loaded. */
function current(bridge: Bridge, live: readonly BridgeState[] | null): BridgeState {
  const found = live?.find(({ kind, type, name }) => kind === 'nng' && type === bridge.type && name === bridge.name);
  return found ?? { ...bridge, kind: 'nng' };
}

/** The same of a bridge to a remote broker. */
function currentRemote(bridge: RemoteBridge, live: readonly BridgeState[] | null): BridgeState {
  const { name, enable, state, last_error, status } = bridge;
  const found = live?.find((one) => one.kind === 'mqtt' && one.name === name);
  return found ?? { ...status, kind: 'mqtt', type: null, name, enable, state, last_error };
}

interface CardProps {
  readonly bridge: Bridge;
  readonly live: BridgeState;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
  readonly onChanged: () => void;
}

function BridgeCard({ bridge, live, onEdit, onRemove, onChanged }: CardProps) {
  const path = `/nng/bridges/${escaped(bridge.name)}`;
  const flip = (on: boolean): void => {
    const done = on ? t('Bridge {n} is on.', { n: bridge.name }) : t('Bridge {n} is off.', { n: bridge.name });
    const target = kept(`${path}/${on ? 'enable' : 'disable'}?type=${bridge.type ?? ''}`);
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
              <IconButton icon="edit" label={t('Change bridge {n}', { n: bridge.name })} onClick={onEdit} />
              <IconButton icon="trash" label={t('Remove bridge {n}', { n: bridge.name })} onClick={onRemove} />
            </>
          )}
        </>
      }
    >
      {live.last_error !== null && !(live.endpoints ?? []).some((end) => end.lastError !== null) && (
        <p class="failed">{live.last_error}</p>
      )}
      <Flow bridge={live} forwards={bridge.forwards ?? []} subscription={bridge.subscription ?? []} />
    </Panel>
  );
}

function RemoteCard({
  bridge,
  live,
  onChanged,
}: {
  readonly bridge: RemoteBridge;
  readonly live: BridgeState;
  readonly onChanged: () => void;
}) {
  const flip = (on: boolean): void => {
    const done = on ? t('Bridge {n} is on.', { n: bridge.name }) : t('Bridge {n} is off.', { n: bridge.name });
    const body = { data: { bridge_switch: on } };
    void attempt(() => call('POST', kept(`/bridges/switch/${escaped(bridge.name)}`), body), done).then(onChanged);
  };
  return (
    <Panel
      title={
        <>
          {bridge.name} <span class="muted">{directionOf(live)}</span> <Badge state={live.state} />
        </>
      }
      tools={
        can('operator') && <Switch label={t('Bridge {n} on', { n: bridge.name })} value={live.enable} onValue={flip} />
      }
    >
      <Flow bridge={live} forwards={bridge.forwards ?? []} subscription={bridge.subscription ?? []} />
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
    <Panel title={t('Try a rule')}>
      <p class="note">{t('Shows how a message becomes a frame, or how a frame is cut. Nothing is sent.')}</p>
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

async function loadBridges(): Promise<readonly Bridge[]> {
  const list = await fetchData<readonly Bridge[]>('/nng/bridges');
  adoptBridges(
    'nng',
    list.map((bridge) => ({ ...bridge, kind: 'nng' })),
  );
  return list;
}

async function loadRemote(): Promise<readonly RemoteBridge[]> {
  const { bridge } = await fetchData<{ bridge: { nodes: readonly RemoteBridge[] } }>('/bridges');
  adoptBridges(
    'mqtt',
    bridge.nodes.map((node) => currentRemote(node, null)),
  );
  return bridge.nodes;
}

export function BridgesPage() {
  const live = useStore(liveBridges);
  const list = useLoaded(loadBridges, 'bridges', 10_000);
  const remote = useLoaded(loadRemote, 'remote', 10_000);
  const [editing, setEditing] = useState<{ form: BridgeForm | null } | null>(null);
  const [removing, setRemoving] = useState<Bridge | null>(null);
  const keep = useStore(keeping);
  const [bench, setBench] = useState(false);
  return (
    <>
      <div class="bar">
        {can('admin') && (
          <Button kind="primary" icon="plus" onClick={() => setEditing({ form: null })}>
            {t('Add a bridge')}
          </Button>
        )}
        <Button onClick={() => setBench(!bench)} aria-expanded={bench}>
          {t('Try a rule')}
        </Button>
        <span class="spring" />
        <KeepCheck />
      </div>
      <Failed error={list.error} />
      {bench && <Bench />}
      {list.value?.length === 0 && remote.value?.length === 0 && (
        <Empty>
          {t('There are no bridges yet. A bridge carries MQTT messages to NNG peers, or NNG frames to MQTT.')}
        </Empty>
      )}
      {list.value?.map((bridge) => (
        <BridgeCard
          key={`${bridge.type ?? ''}/${bridge.name}`}
          bridge={bridge}
          live={current(bridge, live)}
          onEdit={() => setEditing({ form: bridgeForm(bridge) })}
          onRemove={() => setRemoving(bridge)}
          onChanged={list.reload}
        />
      ))}
      {remote.value?.map((bridge) => (
        <RemoteCard key={bridge.name} bridge={bridge} live={currentRemote(bridge, live)} onChanged={remote.reload} />
      ))}
      {editing !== null && <BridgeDialog form={editing.form} onClose={() => setEditing(null)} onSaved={list.reload} />}
      {removing !== null && (
        <Confirm
          title={t('Remove bridge {n}?', { n: removing.name })}
          action={t('Remove')}
          onClose={() => setRemoving(null)}
          onYes={async () => {
            const target = `/nng/bridges/${escaped(removing.name)}?type=${removing.type ?? ''}`;
            const { data } = await call<{ data?: { note?: string } }>('DELETE', kept(target));
            if (data?.note !== undefined) tell(t('Other files define {n}: it is kept disabled.', { n: removing.name }));
            list.reload();
          }}
        >
          <p>
            {keep === true
              ? t('Its peers are disconnected. A bridge that the configuration file defines is kept disabled.')
              : t('Its peers are disconnected. What is in the configuration file comes back with the next start.')}
          </p>
        </Confirm>
      )}
    </>
  );
}
