// Topics: retained messages and subscriptions as one tree of levels; the value of a topic and who subscribes to it.
import { useState } from 'preact/hooks';
import { call, can, escaped, fetchData, query } from '../lib/api.ts';
import { bytes, count, date } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import { hrefOf } from '../lib/route.ts';
import { addRetained, addSubscriber, emptyTree, sorted, type TopicNode, takes } from '../lib/topictree.ts';
import type { Meta, Retained, Subscription } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Icon } from '../ui/icons.tsx';
import { Button, Check, Confirm, Empty, Facts, Failed, Panel, Payload, SearchBox } from '../ui/parts.tsx';

/** Rows that are loaded at most; a tree of more is no reading matter, searching narrows it. */
const LOADED = 5000;
/** Children of one node that are drawn. */
const DRAWN = 300;
const EVERY_MS = 10_000;

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
    call<{ data: Subscription[]; meta: Meta }>('GET', `/subscriptions${query({ limit: LOADED })}`),
  ]);
  const [plain, sys, subscriptions] = lists;
  const part = search.toLowerCase();
  return {
    retained: [...plain.data, ...(sys?.data ?? [])],
    subscriptions: subscriptions.data.filter(({ topic }) => topic.toLowerCase().includes(part)),
    cut: plain.meta.hasnext || sys?.meta.hasnext === true || subscriptions.meta.hasnext,
  };
}

function treeOf({ retained, subscriptions }: Everything): TopicNode {
  const root = emptyTree();
  for (const { topic } of retained) addRetained(root, topic);
  for (const { topic } of subscriptions) addSubscriber(root, topic);
  return root;
}

interface BranchProps {
  readonly node: TopicNode;
  readonly depth: number;
  readonly open: ReadonlySet<string>;
  readonly chosen: string | null;
  readonly onToggle: (topic: string) => void;
  readonly onChoose: (topic: string) => void;
}

function Branch({ node, depth, open, chosen, onToggle, onChoose }: BranchProps) {
  const isOpen = open.has(node.topic);
  const inner = node.children.size > 0;
  const children = isOpen ? sorted(node.children) : [];
  return (
    <li>
      <div class={chosen === node.topic ? 'branch chosen' : 'branch'}>
        {inner ? (
          <button
            type="button"
            class="twist"
            aria-expanded={isOpen}
            aria-label={isOpen ? t('Close {n}', { n: node.topic }) : t('Open {n}', { n: node.topic })}
            onClick={() => onToggle(node.topic)}
          >
            <Icon name={isOpen ? 'down' : 'right'} />
          </button>
        ) : (
          <span class="twist" />
        )}
        <button type="button" class="branch-name" onClick={() => onChoose(node.topic)}>
          <code>{node.name === '' ? t('(empty level)') : node.name}</code>
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
          {inner && !isOpen && <span class="muted small">{count(node.retainedBelow + node.subscribersBelow)}</span>}
        </button>
      </div>
      {isOpen && (
        <ul>
          {children.slice(0, DRAWN).map((child) => (
            <Branch
              key={child.name}
              node={child}
              depth={depth + 1}
              open={open}
              chosen={chosen}
              onToggle={onToggle}
              onChoose={onChoose}
            />
          ))}
          {children.length > DRAWN && (
            <li class="muted small">{t('and {n} more: search to narrow', { n: count(children.length - DRAWN) })}</li>
          )}
        </ul>
      )}
    </li>
  );
}

function Value({ topic, onCleared }: { readonly topic: string; readonly onCleared: () => void }) {
  const [asking, setAsking] = useState(false);
  const loaded = useLoaded(() => fetchData<Retained>(`/retained/${escaped(topic)}`), topic, 3000);
  const message = loaded.value;
  if (message === null) return loaded.error === null ? null : <Empty>{t('No retained message.')}</Empty>;
  return (
    <>
      <Facts
        rows={[
          [t('From'), message.from_client_id || '–'],
          ['QoS', message.qos],
          [t('Size'), bytes(message.bytes)],
          [t('Expires'), message.expires_at === null ? t('never') : date(message.expires_at)],
        ]}
      />
      {message.payload_base64 !== undefined ? (
        <Payload base64={message.payload_base64} />
      ) : (
        <Empty>{t('The payload is too large to be shown.')}</Empty>
      )}
      {can('operator') && !topic.startsWith('$') && (
        <Button kind="danger" onClick={() => setAsking(true)}>
          {t('Clear the retained message')}
        </Button>
      )}
      {asking && (
        <Confirm
          title={t('Clear the retained message?')}
          action={t('Clear')}
          onClose={() => setAsking(false)}
          onYes={async () => {
            await call('DELETE', `/retained/${escaped(topic)}`);
            onCleared();
            loaded.reload();
          }}
        >
          <p>
            <code>{topic}</code>
          </p>
        </Confirm>
      )}
    </>
  );
}

function Detail({ topic, all, onCleared }: { topic: string; all: Everything; onCleared: () => void }) {
  const wild = topic.includes('+') || topic.includes('#');
  const takers = all.subscriptions.filter((s) => s.topic === topic || (!wild && takes(s.topic, topic)));
  return (
    <Panel title={<code>{topic}</code>}>
      {!wild && !all.retained.some((one) => one.topic === topic) && <Empty>{t('No retained message.')}</Empty>}
      {all.retained.some((one) => one.topic === topic) && <Value key={topic} topic={topic} onCleared={onCleared} />}
      <h3>{t('Subscribers')}</h3>
      {takers.length === 0 ? (
        <Empty>{t('Nobody subscribes to it.')}</Empty>
      ) : (
        <table>
          <thead>
            <tr>
              <th>{t('Client id')}</th>
              <th>{t('Topic filter')}</th>
              <th>QoS</th>
            </tr>
          </thead>
          <tbody>
            {takers.slice(0, DRAWN).map((s) => (
              <tr key={`${s.clientid}/${s.topic}`}>
                <td>
                  <a href={hrefOf('clients', s.clientid)}>{s.clientid}</a>
                </td>
                <td>
                  <code>{s.topic}</code>
                </td>
                <td>{s.qos}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

/** With few topics all of them are seen at once. */
function firstOpen(root: TopicNode): Set<string> {
  const found = new Set<string>();
  if (root.retainedBelow + root.subscribersBelow > 60) return found;
  const walk = (node: TopicNode): void => {
    for (const child of node.children.values()) {
      found.add(child.topic);
      walk(child);
    }
  };
  walk(root);
  return found;
}

export function TopicsPage() {
  const [search, setSearch] = useState('');
  const [system, setSystem] = useState(false);
  const [opened, setOpened] = useState<Set<string> | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  const loaded = useLoaded(() => load(search, system), `${search}/${system}`, EVERY_MS);
  const all = loaded.value;
  const root = all === null ? null : treeOf(all);
  const open = opened ?? (root === null ? new Set<string>() : firstOpen(root));
  const toggle = (topic: string): void => {
    const next = new Set(open);
    if (!next.delete(topic)) next.add(topic);
    setOpened(next);
  };
  return (
    <>
      <div class="bar">
        <SearchBox label={t('Part of a topic')} value={search} onValue={setSearch} />
        <Check label={t('with $SYS')} value={system} onValue={setSystem} />
        {all?.cut === true && (
          <span class="warn-text">{t('Only the first {n} are shown: search to narrow.', { n: count(LOADED) })}</span>
        )}
      </div>
      <Failed error={loaded.error} />
      <div class="pair wide-right">
        <Panel title={t('Topics')}>
          {root !== null && root.children.size === 0 && (
            <Empty>{t('No retained messages and no subscriptions.')}</Empty>
          )}
          <ul class="tree">
            {root !== null &&
              sorted(root.children).map((node) => (
                <Branch
                  key={node.name}
                  node={node}
                  depth={0}
                  open={open}
                  chosen={chosen}
                  onToggle={toggle}
                  onChoose={setChosen}
                />
              ))}
          </ul>
        </Panel>
        {chosen === null || all === null ? (
          <Panel>
            <Empty>{t('Choose a topic to see its value and its subscribers.')}</Empty>
          </Panel>
        ) : (
          <Detail topic={chosen} all={all} onCleared={loaded.reload} />
        )}
      </div>
    </>
  );
}
