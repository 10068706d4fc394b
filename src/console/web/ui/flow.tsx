// The picture of a bridge: on the left what comes from MQTT or NNG, in the middle the rule, on the right where it goes, with live rates.
import type { ComponentChildren } from 'preact';
import { DEFAULT_DELIMITER } from '../lib/bridgedoc.ts';
import { count } from '../lib/format.ts';
import { flows } from '../lib/live.ts';
import type { BridgeState, Rule } from '../lib/types.ts';
import { t } from '../lib/words.ts';

function Arrow({ rate }: { readonly rate: number | null }) {
  const moving = rate !== null && rate > 0;
  return (
    <div class={moving ? 'arrow moving' : 'arrow'} aria-hidden="true">
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
  return (
    <code class="pattern">
      <span class="part-topic">
        {rule.remote_topic === undefined || rule.remote_topic === '' ? t('topic') : rule.remote_topic}
      </span>
      <span class="part-delimiter">{rule.nng_delimiter || DEFAULT_DELIMITER}</span>
      <span class="part-payload">{t('payload')}</span>
    </code>
  );
}

function RuleRow({ bridge, rule, index }: { bridge: BridgeState; rule: Rule; index: number }) {
  const series = flows.get(`${bridge.kind}/${bridge.type ?? ''}/${bridge.name}/${index}`);
  const rate = series?.rate('forwarded') ?? null;
  const total = series?.latest('forwarded') ?? bridge.rules?.[index]?.forwarded ?? 0;
  const dropped = Object.entries(bridge.rules?.[index]?.dropped ?? {});
  const pub = bridge.type === 'pub';
  const mqtt = (
    <Node kind="mqtt" label="MQTT">
      <Topic text={rule.local_topic} empty={t('topic of the frame')} />
      <span class="muted">QoS {rule.qos ?? 0}</span>
    </Node>
  );
  const frame = (
    <Node kind="rule" label={t('Rule {n}', { n: index + 1 })}>
      <FramePattern rule={rule} />
      {!pub && <span class="muted">{t('match: {n}', { n: String(rule.match ?? 'prefix') })}</span>}
    </Node>
  );
  const figures = (
    <div class="flow-rate">
      <b>{rate === null ? '–' : count(rate)}</b>
      <span class="muted">/s</span>
      <span class="muted">{t('{n} in all', { n: count(total) })}</span>
      {dropped.map(([reason, n]) => (
        <span key={reason} class="warn-text">
          {t('{n} dropped: {reason}', { n: count(n), reason })}
        </span>
      ))}
    </div>
  );
  const off = rule.enable === false || !bridge.enable;
  return (
    <li class={off ? 'flow-row off' : 'flow-row'}>
      {pub ? mqtt : frame}
      <Arrow rate={off ? null : rate} />
      {pub ? frame : mqtt}
      {figures}
    </li>
  );
}

/** What all rules of a bridge carry together in a second. */
function totalRate(bridge: BridgeState): number {
  let sum = 0;
  for (const { index } of bridge.rules ?? []) {
    sum += flows.get(`${bridge.kind}/${bridge.type ?? ''}/${bridge.name}/${index}`)?.rate('forwarded') ?? 0;
  }
  return sum;
}

export function Flow({ bridge, rules }: { readonly bridge: BridgeState; readonly rules: readonly Rule[] }) {
  const peers = bridge.peers ?? [];
  const pub = bridge.type === 'pub';
  const ends = (
    <div class="flow-ends">
      <span class="flow-label">NNG</span>
      {(bridge.endpoints ?? []).map((end) => (
        <div key={end.url} class="flow-end">
          <code>{end.bound ?? end.url}</code>
          <span class={end.lastError === null ? 'muted' : 'bad-text'}>{end.lastError ?? t(end.state)}</span>
        </div>
      ))}
      <span class={peers.length > 0 ? 'peers some' : 'peers'}>
        {peers.length === 1 ? t('1 peer') : t('{n} peers', { n: peers.length })}
      </span>
    </div>
  );
  const rows = (
    <ol class="flow-rules">
      {rules.map((rule, i) => (
        <RuleRow key={i} bridge={bridge} rule={rule} index={i} />
      ))}
    </ol>
  );
  return (
    <div class={pub ? 'flow pub' : 'flow sub'}>
      {pub ? rows : ends}
      <Arrow rate={bridge.enable ? totalRate(bridge) : null} />
      {pub ? ends : rows}
    </div>
  );
}
