// Topics: what is published, retained messages and subscriptions as one tree of levels, with the rates of every branch.
import { useMemo, useState } from 'preact/hooks';
import { ApiError, call, query } from '../lib/api.ts';
import { bytes, count } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import { addRetained, addSubscriber, addTraffic, emptyTree, nodeOf, sorted, type TopicNode } from '../lib/topictree.ts';
import type { Meta, Retained, Subscription, Topic, TopicMeta } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Icon } from '../ui/icons.tsx';
import { Check, Empty, Failed, Panel, SearchBox } from '../ui/parts.tsx';
import { TopicDetail } from './topicdetail.tsx';

/** Rows that are loaded at most; a tree of more is no reading matter, searching narrows it. */
const LOADED = 5000;
/** Children of one node that are drawn. */
const DRAWN = 300;
const EVERY_MS = 10_000;
const RATES_MS = 3000;

interface Everything {
  readonly retained: readonly Retained[];
  readonly subscriptions: readonly Subscription[];
  readonly cut: boolean;
}

async function load(search: string, system: boolean): Promise<Everything> {
  const narrowed = { search, limit: LOADED };
  const lists = await Promise.all([
    call<{ data: Retained[]; meta: Meta }>('GET', `/retained${query(narrowed)}`),
    system
      ? call<{ data: Retained[]; meta: Meta }>('GET', `/retained${query({ ...narrowed, filter: '$SYS/#' })}`)
      : null,
    call<{ data: Subscription[]; meta: Meta }>('GET', `/subscriptions${query(narrowed)}`),
  ]);
  const [plain, sys, subscriptions] = lists;
  return {
    retained: [...plain.data, ...(sys?.data ?? [])],
    subscriptions: subscriptions.data,
    cut: plain.meta.hasnext || sys?.meta.hasnext === true || subscriptions.meta.hasnext,
  };
}

interface Published {
  readonly topics: readonly Topic[];
  readonly meta: TopicMeta;
  /** When it was asked for. */
  readonly time: number;
}

/** The busiest topics; null where the broker engine does not count topic by topic. */
async function loadTraffic(search: string, system: boolean): Promise<Published | null> {
  const asked = { search, sort: '-messages_rate', limit: LOADED };
  try {
    const [plain, sys] = await Promise.all([
      call<{ data: Topic[]; meta: TopicMeta }>('GET', `/topics${query(asked)}`),
      system ? call<{ data: Topic[] }>('GET', `/topics${query({ ...asked, filter: '$SYS/#' })}`) : null,
    ]);
    return { topics: [...plain.data, ...(sys?.data ?? [])], meta: plain.meta, time: Date.now() };
  } catch (error) {
    if (error instanceof ApiError && error.status === 503) return null;
    throw error;
  }
}

function treeOf(all: Everything, published: Published | null): TopicNode {
  const root = emptyTree();
  for (const { topic } of all.retained) addRetained(root, topic);
  for (const { topic } of all.subscriptions) addSubscriber(root, topic);
  for (const one of published?.topics ?? []) addTraffic(root, one.topic, one);
  return root;
}

interface View {
  readonly open: ReadonlySet<string>;
  readonly chosen: string | null;
  readonly busiest: boolean;
  readonly onToggle: (topic: string) => void;
  readonly onChoose: (topic: string) => void;
}

function Marks({ node, folded }: { readonly node: TopicNode; readonly folded: boolean }) {
  const below = node.retainedBelow + node.subscribersBelow;
  return (
    <>
      {node.retained && (
        <span class="mini retained-mark" title={t('retained')}>
          R
        </span>
      )}
      {node.subscribers > 0 && (
        <span class="mini" title={t('{n} subscribers', { n: node.subscribers })}>
          {count(node.subscribers)} ↓
        </span>
      )}
      {folded && below > 0 && (
        <span
          class="muted small"
          title={t('{n} retained messages and subscriptions in this branch', { n: count(below) })}
        >
          {count(below)}
        </span>
      )}
    </>
  );
}

/** Rates of the node and all below it. */
function Rates({ node }: { readonly node: TopicNode }) {
  if (node.topicsBelow === 0) return null;
  const quiet = node.messageRate === 0 ? ' quiet' : '';
  return (
    <span class={`branch-rates${quiet}`}>
      <span>{count(node.messageRate)}/s</span>
      <span>{bytes(node.byteRate)}/s</span>
    </span>
  );
}

function Branch({ node, view }: { readonly node: TopicNode; readonly view: View }) {
  const isOpen = view.open.has(node.topic);
  const inner = node.children.size > 0;
  return (
    <li>
      <div class={view.chosen === node.topic ? 'branch chosen' : 'branch'}>
        {inner ? (
          <button
            type="button"
            class="twist"
            aria-expanded={isOpen}
            aria-label={isOpen ? t('Close {n}', { n: node.topic }) : t('Open {n}', { n: node.topic })}
            onClick={() => view.onToggle(node.topic)}
          >
            <Icon name={isOpen ? 'down' : 'right'} />
          </button>
        ) : (
          <span class="twist" />
        )}
        <button type="button" class="branch-name" onClick={() => view.onChoose(node.topic)}>
          <code>{node.name === '' ? t('(empty level)') : node.name}</code>
          <Marks node={node} folded={inner && !isOpen} />
          <Rates node={node} />
        </button>
      </div>
      {isOpen && (
        <ul>
          <Branches among={node.children} view={view} />
        </ul>
      )}
    </li>
  );
}

function Branches({ among, view }: { readonly among: TopicNode['children']; readonly view: View }) {
  const nodes = sorted(among, view.busiest);
  return (
    <>
      {nodes.slice(0, DRAWN).map((node) => (
        <Branch key={node.name} node={node} view={view} />
      ))}
      {nodes.length > DRAWN && (
        <li class="muted small">{t('and {n} more: refine the search', { n: count(nodes.length - DRAWN) })}</li>
      )}
    </>
  );
}

/** With few topics all of them are seen at once. */
function firstOpen(root: TopicNode): Set<string> {
  const found = new Set<string>();
  if (Math.max(root.retainedBelow + root.subscribersBelow, root.topicsBelow) > 60) return found;
  const walk = (node: TopicNode): void => {
    for (const child of node.children.values()) {
      found.add(child.topic);
      walk(child);
    }
  };
  walk(root);
  return found;
}

/** What all topics come to, and what the tree leaves out. */
function Sum({ published }: { readonly published: Published }) {
  const { sum, others, count: topics, hasnext } = published.meta;
  return (
    <>
      <p class="tree-sum">
        <span>{topics === 1 ? t('1 topic with messages') : t('{n} topics with messages', { n: count(topics) })}</span>
        <span class="branch-rates">
          <span>{count(sum.messages_rate)}/s</span>
          <span>{bytes(sum.bytes_rate)}/s</span>
        </span>
      </p>
      {hasnext && (
        <p class="note">
          {t('The tree shows only the {n} busiest topics; the rates of branches cover only these.', {
            n: count(LOADED),
          })}
        </p>
      )}
      {others.messages > 0 && (
        <p class="note">
          {t('Topics not counted individually: {n}/s, {m}/s.', {
            n: count(others.messages_rate),
            m: bytes(others.bytes_rate),
          })}
        </p>
      )}
    </>
  );
}

export function TopicsPage() {
  const [search, setSearch] = useState('');
  const [system, setSystem] = useState(false);
  const [busiest, setBusiest] = useState(false);
  const [opened, setOpened] = useState<Set<string> | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  const key = `${search}/${system}`;
  const loaded = useLoaded(() => load(search, system), key, EVERY_MS);
  const traffic = useLoaded(() => loadTraffic(search, system), key, RATES_MS);
  const all = loaded.value;
  const published = traffic.value;
  const root = useMemo(() => (all === null ? null : treeOf(all, published)), [all, published]);
  const open = useMemo(() => opened ?? (root === null ? new Set<string>() : firstOpen(root)), [opened, root]);
  const toggle = (topic: string): void => {
    const next = new Set(open);
    if (!next.delete(topic)) next.add(topic);
    setOpened(next);
  };
  const view = { open, chosen, busiest, onToggle: toggle, onChoose: setChosen };
  return (
    <>
      <div class="bar">
        <SearchBox label={t('Part of a topic')} value={search} onValue={setSearch} />
        <Check label={t('Busiest first')} value={busiest} onValue={setBusiest} />
        <Check label={t('with $SYS')} value={system} onValue={setSystem} />
        {all?.cut === true && (
          <span class="warn-text">{t('Only the first {n} are shown. Refine the search.', { n: count(LOADED) })}</span>
        )}
      </div>
      <Failed error={loaded.error ?? traffic.error} />
      <div class="pair wide-right">
        <Panel title={t('Topics')}>
          {published !== null && <Sum published={published} />}
          {root !== null && root.children.size === 0 && (
            <Empty>{t('No retained messages, subscriptions or publishes.')}</Empty>
          )}
          <ul class="tree">{root !== null && <Branches among={root.children} view={view} />}</ul>
        </Panel>
        {chosen === null || root === null ? (
          <Panel>
            <Empty>{t('Select a topic to see its rates, value and subscribers.')}</Empty>
          </Panel>
        ) : (
          <TopicDetail
            topic={chosen}
            node={nodeOf(root, chosen)}
            time={published?.time ?? 0}
            recording={published?.meta.recording === true}
            onCleared={loaded.reload}
          />
        )}
      </div>
    </>
  );
}
