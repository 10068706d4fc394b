// Proxy: pools with the health of their servers, what leads to them, and taking a server out of its pool for a while.
import { call, can, escaped, fetchData } from '../lib/api.ts';
import { count } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import type { Upstream } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Badge, Button, Empty, Failed, Panel, Scroll } from '../ui/parts.tsx';
import { attempt } from '../ui/toast.tsx';

const EVERY_MS = 2000;

interface Proxy {
  readonly bind?: string;
  readonly default?: string | null;
  readonly routes?: readonly { readonly match?: unknown; readonly upstream?: string }[];
}

function matchText(match: unknown): string {
  if (typeof match === 'string') return match;
  if (Array.isArray(match)) return match.map(matchText).join(' & ');
  if (typeof match !== 'object' || match === null) return '*';
  const parts = Object.entries(match).map(
    ([key, value]) => `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return parts.join(' & ');
}

function Routes({ proxies }: { readonly proxies: Readonly<Record<string, Proxy>> }) {
  return (
    <Panel title={t('Routes')}>
      {Object.entries(proxies).map(([name, proxy]) => (
        <div key={name} class="block">
          <h3>
            {name} <code>{proxy.bind}</code>
          </h3>
          <table>
            <thead>
              <tr>
                <th>{t('Clients where')}</th>
                <th>{t('go to')}</th>
              </tr>
            </thead>
            <tbody>
              {(proxy.routes ?? []).map((route, i) => (
                <tr key={i}>
                  <td>
                    <code>{matchText(route.match)}</code>
                  </td>
                  <td>{route.upstream}</td>
                </tr>
              ))}
              <tr>
                <td class="muted">{t('all other clients')}</td>
                <td>{proxy.default ?? t('refused')}</td>
              </tr>
            </tbody>
          </table>
        </div>
      ))}
    </Panel>
  );
}

/** Where the servers of a pool are looked for, and how that goes. */
function Discovery({ pool: { discovery } }: { readonly pool: Upstream }) {
  if (!discovery) return null;
  const { source, servers, error } = discovery;
  return (
    <p class={error === null ? 'muted' : 'warn-text'}>
      {t('{n} servers found by discovery:', { n: servers })} <code>{source}</code>
      {error !== null && ` ${t('The last discovery answer was rejected: {n}', { n: error })}`}
    </p>
  );
}

function Pool({ pool, onChanged }: { readonly pool: Upstream; readonly onChanged: () => void }) {
  const drain = (server: string, on: boolean): void => {
    const done = on ? t('{n} gets no new connections.', { n: server }) : t('{n} is back in its pool.', { n: server });
    const path = `/proxy/upstreams/${escaped(pool.name)}/drain`;
    void attempt(() => call('POST', path, { server, drain: on }), done).then(onChanged);
  };
  return (
    <Panel
      title={
        <>
          {pool.name} <span class="muted">{pool.balance}</span>
        </>
      }
      tools={
        <span class="muted">
          {pool.health === null ? t('no health checks') : t('health check: {n}', { n: pool.health })}
        </span>
      }
    >
      <Discovery pool={pool} />
      <Scroll look="table-box" label={pool.name}>
        <table>
          <thead>
            <tr>
              <th>{t('Server')}</th>
              <th>{t('State')}</th>
              <th class="number">{t('Connections')}</th>
              <th class="number">{t('Served')}</th>
              <th class="number">{t('Failures')}</th>
              <th class="number">{t('Weight')}</th>
              <th>{t('Last error')}</th>
              <th>
                <span class="hidden">{t('Actions')}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {pool.servers.map((server) => (
              <tr key={`${server.server}/${server.address}`}>
                <td>
                  <code>{server.server}</code>
                  {server.address !== server.server && <span class="muted"> {server.address}</span>}
                  {server.from !== 'config' && <span class="mini">{server.from}</span>}
                  {server.backup && <span class="mini">{t('backup')}</span>}
                </td>
                <td>
                  <Badge state={server.state} />
                </td>
                <td class="number">{count(server.connections)}</td>
                <td class="number">{count(server.served)}</td>
                <td class="number">{count(server.fails)}</td>
                <td class="number">{server.weight}</td>
                <td class="muted">{server.lastError ?? '–'}</td>
                <td class="actions">
                  {can('operator') && server.state !== 'down' && (
                    <Button onClick={() => drain(server.server, server.state !== 'draining')}>
                      {server.state === 'draining' ? t('Undrain') : t('Drain')}
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  );
}

export function ProxyPage() {
  const pools = useLoaded(() => fetchData<readonly Upstream[]>('/proxy/upstreams'), 'pools', EVERY_MS);
  const config = useLoaded(() => fetchData<{ proxy?: Readonly<Record<string, Proxy>> }>('/config'), 'config');
  return (
    <>
      <Failed error={pools.error} />
      {pools.value?.length === 0 && <Empty>{t('No upstream pools.')}</Empty>}
      {pools.value?.map((pool) => (
        <Pool key={pool.name} pool={pool} onChanged={pools.reload} />
      ))}
      {config.value?.proxy !== undefined && Object.keys(config.value.proxy).length > 0 && (
        <Routes proxies={config.value.proxy} />
      )}
    </>
  );
}
