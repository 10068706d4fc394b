// The picture of a bridge: what it takes from MQTT, its rules, and the other side (NNG peers or a remote broker), with
// live rates.
import type { ComponentChildren } from 'preact';
import { DEFAULT_DELIMITER } from '../lib/bridgedoc.ts';
import { count } from '../lib/format.ts';
import { flows } from '../lib/live.ts';
import { trackKey, tracksOf, type Way } from '../lib/tracks.ts';
import type { BridgeState, Rule } from '../lib/types.ts';
import { answerText, t } from '../lib/words.ts';

interface ArrowProps {
  readonly rate: number | null;
  readonly back?: boolean;
  readonly both?: boolean;
}

function Arrow({ rate, back = false, both = false }: ArrowProps) {
  const moving = rate !== null && rate > 0;
  return (
    <div class={`arrow${moving ? ' moving' : ''}${back ? ' back' : ''}${both ? ' both' : ''}`} aria-hidden="true">
      <i />
    </div>
  );
}

function Node({ kind, label, children }: { kind: string; label: string; children: ComponentChildren }) {
  return (
    <div class={`flow-node ${kind}`}>
      <span class="flow-label">{label}</span>
      {children}
    </div>
  );
}

function Topic({ text, empty }: { readonly text: string | undefined; readonly empty: string }) {
  return text === undefined || text === '' ? <em>{empty}</em> : <code>{text}</code>;
}

/** What a frame looks like under this rule. */
function FramePattern({ rule }: { readonly rule: Rule }) {
  if (rule.frame === 'payload') {
    return (
      <code class="pattern">
        {rule.trace === 'add' && <span class="part-trace">{t('trace header')}</span>}
        <span class="part-payload">{t('payload')}</span>
      </code>
    );
  }
  return (
    <code class="pattern">
      <span class="part-topic">{rule.remote_topic || t('topic')}</span>
      <span class="part-delimiter">{rule.nng_delimiter || DEFAULT_DELIMITER}</span>
      <span class="part-payload">{t('payload')}</span>
    </code>
  );
}

interface RowProps {
  readonly bridge: BridgeState;
  readonly way: Way;
  readonly rule: Rule;
  readonly index: number;
  /** The other side stands on the left: then rows begin there. */
  readonly mirrored: boolean;
}

/** The rule as it stands between both sides: how a frame looks, or what the topic is at the remote broker. */
function RuleNode({ bridge, way, rule, index }: RowProps) {
  const label = t('Rule {n}', { n: index + 1 });
  if (bridge.kind === 'mqtt') {
    return (
      <Node kind="rule" label={label}>
        <Topic text={rule.remote_topic} empty={t('the same topic')} />
      </Node>
    );
  }
  return (
    <Node kind="rule" label={label}>
      <FramePattern rule={rule} />
      {way === 'in' && rule.frame !== 'payload' && (
        <span class="muted">{t('match: {n}', { n: String(rule.match ?? 'prefix') })}</span>
      )}
    </Node>
  );
}

function Figures({ bridge, way, index }: RowProps) {
  const series = flows.get(trackKey(bridge, way, index));
  const counters = tracksOf(bridge).find((track) => track.way === way && track.counters.index === index)?.counters;
  const rate = series?.rate('forwarded') ?? null;
  const total = series?.latest('forwarded') ?? counters?.forwarded ?? 0;
  return (
    <div class="flow-rate">
      <b>{rate === null ? '–' : count(rate)}</b>
      <span class="muted">/s</span>
      <span class="muted">{t('{n} in total', { n: count(total) })}</span>
      {Object.entries(counters?.dropped ?? {}).map(([reason, n]) => (
        <span key={reason} class="warn-text">
          {t('{n} dropped: {reason}', { n: count(n), reason })}
        </span>
      ))}
    </div>
  );
}

function RuleRow(props: RowProps) {
  const { bridge, way, rule, index, mirrored } = props;
  const off = rule.enable === false || !bridge.enable;
  const rate = off ? null : (flows.get(trackKey(bridge, way, index))?.rate('forwarded') ?? null);
  const empty = bridge.kind === 'mqtt' ? t('the same topic') : t('topic of the frame');
  const mqtt = (
    <Node kind="mqtt" label="MQTT">
      <Topic text={rule.local_topic} empty={empty} />
      <span class="muted">QoS {rule.qos ?? t('unchanged')}</span>
    </Node>
  );
  return (
    <li class={off ? 'flow-row off' : 'flow-row'}>
      {mirrored ? <RuleNode {...props} /> : mqtt}
      <Arrow rate={rate} back={way === 'in' && !mirrored} />
      {mirrored ? mqtt : <RuleNode {...props} />}
      <Figures {...props} />
    </li>
  );
}

/** What all rules of a bridge carry together in a second. */
function totalRate(bridge: BridgeState): number {
  return tracksOf(bridge).reduce((sum, { key }) => sum + (flows.get(key)?.rate('forwarded') ?? 0), 0);
}

/** Frames that wait for a peer, where the bridge keeps some. */
function Waiting({ bridge }: { readonly bridge: BridgeState }) {
  const frames = (bridge.waiting?.frames ?? 0) + (bridge.waiting?.spooled ?? 0) + (bridge.remote?.queued ?? 0);
  return frames === 0 ? null : <span class="warn-text small">{t('{n} waiting', { n: count(frames) })}</span>;
}

function Ends({ bridge, addresses }: { readonly bridge: BridgeState; readonly addresses: readonly string[] }) {
  const peers = bridge.peers ?? [];
  const remote = bridge.kind === 'mqtt';
  return (
    <div class="flow-ends">
      <span class="flow-label">{remote ? t('Remote broker') : 'NNG'}</span>
      {(bridge.endpoints ?? []).length === 0 &&
        addresses.map((url) => (
          <div key={url} class="flow-end">
            <code>{url}</code>
            {!bridge.enable && <span class="muted">{t('disabled')}</span>}
          </div>
        ))}
      {(bridge.endpoints ?? []).map((end) => (
        <div key={end.url} class="flow-end">
          <code>{end.bound ?? end.url}</code>
          <span class={end.lastError === null ? 'muted' : 'bad-text'}>
            {end.lastError === null ? t(end.state) : answerText(end.lastError)}
          </span>
        </div>
      ))}
      {!remote && (
        <span class={peers.length > 0 ? 'peers some' : 'peers'}>
          {peers.length === 1 ? t('1 peer') : t('{n} peers', { n: peers.length })}
        </span>
      )}
      <Waiting bridge={bridge} />
    </div>
  );
}

export function Flow({
  bridge,
  addresses,
  forwards,
  subscription,
}: {
  readonly bridge: BridgeState;
  /** Shown where no endpoint tells more. */
  readonly addresses: readonly string[];
  readonly forwards: readonly Rule[];
  readonly subscription: readonly Rule[];
}) {
  // What only receives is read from the left too: peers first.
  const mirrored = forwards.length === 0 && subscription.length > 0;
  const rate = bridge.enable ? totalRate(bridge) : null;
  const rows = (
    <ol class="flow-rules">
      {forwards.map((rule, i) => (
        <RuleRow key={`out${i}`} bridge={bridge} way="out" rule={rule} index={i} mirrored={false} />
      ))}
      {subscription.map((rule, i) => (
        <RuleRow key={`in${i}`} bridge={bridge} way="in" rule={rule} index={i} mirrored={mirrored} />
      ))}
    </ol>
  );
  return (
    <div class={mirrored ? 'flow sub' : 'flow pub'}>
      {mirrored ? <Ends bridge={bridge} addresses={addresses} /> : rows}
      <Arrow rate={rate} both={forwards.length > 0 && subscription.length > 0} />
      {mirrored ? rows : <Ends bridge={bridge} addresses={addresses} />}
    </div>
  );
}
