// Clients: search, order, pages; one client with its subscriptions, in-flight and queued messages and last error;
// disconnecting it.
import { useEffect, useState } from 'preact/hooks';
import { call, can, escaped, fetchData, query } from '../lib/api.ts';
import { bytes, count, date, duration } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import { go, place } from '../lib/route.ts';
import { useStore } from '../lib/store.ts';
import type { Client, Meta, Subscription } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { CopyButton, Identifier } from '../ui/identifier.tsx';
import {
  Badge,
  Button,
  Check,
  Choice,
  Confirm,
  Dialog,
  Empty,
  Facts,
  Failed,
  IconButton,
  Scroll,
  SearchBox,
} from '../ui/parts.tsx';
import { tell } from '../ui/toast.tsx';

const PAGE = 50;
const EVERY_MS = 5000;
const TYPING_MS = 250;

interface Column {
  readonly key: string;
  readonly title: string;
  readonly number?: boolean;
  readonly cell: (client: Client) => string;
}

function columns(): readonly Column[] {
  return [
    { key: 'username', title: t('User'), cell: (c) => c.username ?? '–' },
    { key: 'remote', title: t('Address'), cell: (c) => c.remote },
    { key: 'listener', title: t('Listener'), cell: (c) => c.listener },
    { key: 'proto_ver', title: 'MQTT', cell: (c) => VERSIONS[c.proto_ver] ?? String(c.proto_ver) },
    { key: 'subscriptions', title: t('Subscriptions'), number: true, cell: (c) => count(c.subscriptions) },
    { key: 'inflight', title: t('In flight'), number: true, cell: (c) => count(c.inflight) },
    { key: 'queued', title: t('Queued'), number: true, cell: (c) => count(c.queued) },
    { key: 'recv_msg', title: t('Received'), number: true, cell: (c) => count(c.recv_msg) },
    { key: 'send_msg', title: t('Sent'), number: true, cell: (c) => count(c.send_msg) },
    { key: 'dropped', title: t('Dropped'), number: true, cell: (c) => count(c.dropped) },
  ];
}
const VERSIONS: Readonly<Record<number, string>> = { 3: '3.1', 4: '3.1.1', 5: '5.0' };

function SortHead({
  column,
  sort,
  onSort,
}: {
  column: Pick<Column, 'key' | 'title' | 'number'>;
  sort: string;
  onSort: (sort: string) => void;
}) {
  const up = sort === column.key;
  const down = sort === `-${column.key}`;
  // Numbers are looked at from the highest down.
  const next = column.number === true ? (down ? column.key : `-${column.key}`) : up ? `-${column.key}` : column.key;
  return (
    <th class={column.number === true ? 'number' : ''} aria-sort={up ? 'ascending' : down ? 'descending' : undefined}>
      <button type="button" onClick={() => onSort(next)}>
        {column.title}
        <span aria-hidden="true">{up ? '↑' : down ? '↓' : ''}</span>
      </button>
    </th>
  );
}

function Subscriptions({ clientId }: { readonly clientId: string }) {
  const list = useLoaded(
    () => fetchData<readonly Subscription[]>(`/subscriptions${query({ clientid: clientId, limit: 500 })}`),
    clientId,
    EVERY_MS,
  );
  if (list.value === null) return <Failed error={list.error} />;
  if (list.value.length === 0) return <Empty>{t('No subscriptions.')}</Empty>;
  return (
    <table>
      <thead>
        <tr>
          <th>{t('Topic filter')}</th>
          <th>QoS</th>
          <th>{t('Options')}</th>
        </tr>
      </thead>
      <tbody>
        {list.value.map((s) => (
          <tr key={s.topic}>
            <td>
              <code>{s.topic}</code>
            </td>
            <td>{s.qos}</td>
            <td class="muted">
              {[
                s.no_local ? 'no local' : '',
                s.retain_as_published ? 'retain as published' : '',
                s.retain_handling > 0 ? `retain handling ${s.retain_handling}` : '',
                s.subscription_identifier > 0 ? `id ${s.subscription_identifier}` : '',
              ]
                .filter((text) => text !== '')
                .join(', ') || '–'}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function expiry(seconds: number): string {
  if (seconds === 0) return t('until disconnect');
  return seconds >= 0xffffffff ? t('never') : duration(seconds * 1000);
}

function ClientDialog({ clientId, onClose, onKick }: { clientId: string; onClose: () => void; onKick: () => void }) {
  const loaded = useLoaded(() => fetchData<readonly Client[]>(`/clients/${escaped(clientId)}`), clientId, 2000);
  const client = loaded.value?.[0];
  return (
    <Dialog title={clientId === '' ? t('Client') : clientId} onClose={onClose} wide>
      <div class="dialog-body">
        <Failed error={loaded.error} />
        {loaded.value !== null && client === undefined && <Empty>{t('This client no longer exists.')}</Empty>}
        {client !== undefined && (
          <>
            {client.last_error !== null && <p class="failed">{client.last_error}</p>}
            <p class="whole-id">
              <code>{clientId}</code> <CopyButton text={clientId} />
            </p>
            <Facts
              rows={[
                [t('State'), <Badge key="s" state={client.conn_state} />],
                [
                  client.conn_state === 'connected' ? t('Connected since') : t('Disconnected since'),
                  date(client.since),
                ],
                [t('User'), client.username ?? '–'],
                [t('Address'), client.remote || '–'],
                [t('Listener'), client.listener],
                ['MQTT', VERSIONS[client.proto_ver] ?? String(client.proto_ver)],
                ['Keep alive', client.keepalive === 0 ? t('off') : `${client.keepalive} s`],
                ['Clean start', client.clean_start ? t('yes') : t('no')],
                [t('Session expiry'), expiry(client.session_expiry_interval)],
                [t('In flight'), count(client.inflight)],
                [t('Queued'), `${count(client.queued)} (${bytes(client.queued_bytes)})`],
                [t('Unsent'), bytes(client.unsent_bytes)],
                [t('Received'), count(client.recv_msg)],
                [t('Sent'), count(client.send_msg)],
                [t('Dropped'), count(client.dropped)],
                [
                  t('Will'),
                  client.will_topic === undefined ? '–' : `${client.will_topic} (QoS ${client.will_qos ?? 0})`,
                ],
              ]}
            />
            <h3>{t('Subscriptions')}</h3>
            <Subscriptions clientId={clientId} />
          </>
        )}
      </div>
      <footer class="dialog-foot">
        <Button onClick={onClose}>{t('Close')}</Button>
        {can('operator') && client !== undefined && (
          <Button kind="danger" onClick={onKick}>
            {t('Disconnect')}
          </Button>
        )}
      </footer>
    </Dialog>
  );
}

function Kick({ clientId, onClose, onDone }: { clientId: string; onClose: () => void; onDone: () => void }) {
  const [session, setSession] = useState(false);
  return (
    <Confirm
      title={t('Disconnect {n}?', { n: clientId })}
      action={t('Disconnect')}
      onClose={onClose}
      onYes={async () => {
        await call('DELETE', `/clients/${escaped(clientId)}${query({ session: session ? 1 : undefined })}`);
        tell(t('{n} is disconnected.', { n: clientId }));
        onDone();
      }}
    >
      <p>{t('The client may reconnect immediately.')}</p>
      <Check
        label={t('Also end its session: subscriptions and queued messages are lost')}
        value={session}
        onValue={setSession}
      />
    </Confirm>
  );
}

interface Listing {
  readonly data: readonly Client[];
  readonly meta: Meta;
}
type State = '' | 'connected' | 'disconnected';

/** The text, a moment after the last key. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

function Pager({ meta, onPage }: { readonly meta: Meta; readonly onPage: (page: number) => void }) {
  const pages = Math.max(1, Math.ceil(meta.count / meta.limit));
  const first = meta.count === 0 ? 0 : (meta.page - 1) * meta.limit + 1;
  return (
    <nav class="pager" aria-label={t('List pages')}>
      <span class="muted">
        {t('{from}–{to} of {n}', {
          from: first,
          to: Math.min(meta.count, meta.page * meta.limit),
          n: count(meta.count),
        })}
      </span>
      <Button disabled={meta.page <= 1} onClick={() => onPage(meta.page - 1)}>
        {t('Back')}
      </Button>
      <span>
        {meta.page} / {pages}
      </span>
      <Button disabled={!meta.hasnext} onClick={() => onPage(meta.page + 1)}>
        {t('Next')}
      </Button>
    </nav>
  );
}

export function ClientsPage() {
  const [search, setSearch] = useState('');
  const [state, setState] = useState<State>('');
  const [sort, setSort] = useState('client_id');
  const [page, setPage] = useState(1);
  const [kicking, setKicking] = useState<string | null>(null);
  const open = useStore(place).rest;
  const settled = useSettled(search);
  const asked = query({ search: settled, conn_state: state, sort, page, limit: PAGE });
  const list = useLoaded(() => call<Listing>('GET', `/clients${asked}`), asked, EVERY_MS);
  const from = (set: () => void) => () => {
    setPage(1);
    set();
  };
  const rows = list.value?.data ?? [];
  return (
    <>
      <div class="bar">
        <SearchBox
          label={t('Client id, user or address')}
          value={search}
          onValue={(text) => from(() => setSearch(text))()}
        />
        <Choice
          label={t('State')}
          value={state}
          onValue={(next) => from(() => setState(next))()}
          options={[
            ['', t('all')],
            ['connected', t('connected')],
            ['disconnected', t('disconnected')],
          ]}
        />
        <span class="spring" />
        {list.value !== null && <Pager meta={list.value.meta} onPage={setPage} />}
      </div>
      <Failed error={list.error} />
      <Scroll look="table-box panel flush" label={t('Clients')}>
        <table class="list">
          <thead>
            <tr>
              <SortHead column={{ key: 'client_id', title: t('Client id') }} sort={sort} onSort={setSort} />
              {columns().map((column) => (
                <SortHead key={column.key} column={column} sort={sort} onSort={setSort} />
              ))}
              <th>
                <span class="hidden">{t('Actions')}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((client) => (
              <tr key={client.client_id}>
                <td class="first">
                  <span class={`dot ${client.conn_state}`} title={t(client.conn_state)} />
                  <button type="button" class="link" onClick={() => go('clients', client.client_id)}>
                    <Identifier text={client.client_id} />
                  </button>
                  {client.conn_state === 'disconnected' && <span class="hidden"> ({t('disconnected')})</span>}
                  {client.last_error !== null && (
                    <span class="bad-text" title={client.last_error}>
                      {' '}
                      !
                    </span>
                  )}
                </td>
                {columns().map((column) => (
                  <td key={column.key} class={column.number === true ? 'number' : ''}>
                    {column.cell(client)}
                  </td>
                ))}
                <td class="actions">
                  {can('operator') && (
                    <IconButton
                      icon="close"
                      label={t('Disconnect {n}', { n: client.client_id })}
                      onClick={() => setKicking(client.client_id)}
                    />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {list.value !== null && rows.length === 0 && (
          <Empty>{settled === '' ? t('No clients.') : t('No matching clients.')}</Empty>
        )}
      </Scroll>
      {open !== '' && kicking === null && (
        <ClientDialog clientId={open} onClose={() => go('clients')} onKick={() => setKicking(open)} />
      )}
      {kicking !== null && <Kick clientId={kicking} onClose={() => setKicking(null)} onDone={list.reload} />}
    </>
  );
}
