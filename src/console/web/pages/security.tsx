// Security: who may come in through which listener, what decides on rights, why a client may or may not do something,
// and who changed what.
import { useState } from 'preact/hooks';
import { fetchData, query, textOf } from '../lib/api.ts';
import { date } from '../lib/format.ts';
import { useLoaded } from '../lib/live.ts';
import type { AccessRow } from '../lib/types.ts';
import { t } from '../lib/words.ts';
import { Badge, Button, Empty, Failed, Panel, Scroll, SearchBox, SelectField, TextField } from '../ui/parts.tsx';
import { WebUsers } from './webusers.tsx';

type Action = 'publish' | 'subscribe' | 'deliver';
interface Verdict {
  readonly allowed: boolean;
  readonly rule: string;
  readonly connected: boolean;
  readonly as: { readonly username: string | null; readonly address: string; readonly listener: string };
}

/** Of a client that is not there: as whom it was judged. */
function JudgedAs({ verdict }: { readonly verdict: Verdict }) {
  const { username, address, listener } = verdict.as;
  return (
    <p class="note">
      {t('This client is not connected. Judged as: {user}, {listener}, {address}.', {
        user: username === null ? t('no user name') : t('user {n}', { n: username }),
        listener: listener === '' ? t('any listener') : t('listener {n}', { n: listener }),
        address: address === '' ? t('any address') : t('address {n}', { n: address }),
      })}
    </p>
  );
}

function Explain() {
  const [clientId, setClientId] = useState('');
  const [username, setUsername] = useState('');
  const [topic, setTopic] = useState('');
  const [address, setAddress] = useState('');
  const [listener, setListener] = useState('');
  const [action, setAction] = useState<Action>('publish');
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const submit = (event: Event): void => {
    event.preventDefault();
    const asked = query({ clientid: clientId, username, topic, action, address, listener });
    fetchData<Verdict>(`/access/explain${asked}`).then(
      (found) => {
        setVerdict(found);
        setProblem(null);
      },
      (error: unknown) => {
        setVerdict(null);
        setProblem(textOf(error));
      },
    );
  };
  return (
    <Panel title={t('Check a permission')}>
      <form onSubmit={submit}>
        <div class="fields">
          <TextField label={t('Client id')} value={clientId} onValue={setClientId} mono required />
          <SelectField
            label={t('Action')}
            value={action}
            onValue={setAction}
            options={[
              ['publish', t('publish')],
              ['subscribe', t('subscribe')],
              ['deliver', t('receive')],
            ]}
          />
          <TextField label={t('Topic')} value={topic} onValue={setTopic} mono required />
          <TextField
            label={t('User')}
            value={username}
            onValue={setUsername}
            hint={t('empty = that of the connected client')}
            mono
          />
          <TextField label={t('Listener')} value={listener} onValue={setListener} mono />
          <TextField label={t('Address')} value={address} onValue={setAddress} mono />
        </div>
        <div class="line">
          <Button kind="primary" type="submit">
            {t('Explain')}
          </Button>
          <span aria-live="polite" class="verdict">
            {verdict !== null && (
              <>
                <Badge state={verdict.allowed ? 'allowed' : 'denied'} /> {verdict.rule}
              </>
            )}
          </span>
        </div>
        {verdict !== null && !verdict.connected && <JudgedAs verdict={verdict} />}
        {problem !== null && (
          <p class="failed" role="alert">
            {problem}
          </p>
        )}
      </form>
    </Panel>
  );
}

function listenerName(name: string): string {
  return name === '' ? t('all listeners without their own settings') : name;
}

function rightsOf(row: AccessRow): string {
  const parts = [row.acl_file ?? '', row.rules ? 'auth.acl.rules' : ''].filter((part) => part !== '');
  return parts.length === 0 ? t('no ACL: all actions are allowed') : parts.join(', ');
}

function Listeners({ rows }: { readonly rows: readonly AccessRow[] }) {
  return (
    <Panel title={t('Listeners and authentication')}>
      <Scroll look="table-box" label={t('Listeners and authentication')}>
        <table>
          <thead>
            <tr>
              <th>{t('Listener')}</th>
              <th>{t('Anonymous')}</th>
              <th>{t('Users')}</th>
              <th>{t('Permissions')}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.listener}>
                <td>{listenerName(row.listener)}</td>
                <td>
                  <Badge state={row.anonymous ? 'warn' : 'good'} text={row.anonymous ? t('allowed') : t('refused')} />
                </td>
                <td>
                  {row.users_count ?? t('no users of its own')}
                  {row.sources.length > 0 && <span class="muted"> + {row.sources.join(', ')}</span>}
                </td>
                <td class="muted">{rightsOf(row)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  );
}

const DRAWN = 200;

function Users({ rows }: { readonly rows: readonly AccessRow[] }) {
  const [search, setSearch] = useState('');
  const names = [...new Set(rows.flatMap((row) => row.users ?? []))].sort((a, b) => a.localeCompare(b));
  const found = names.filter((name) => name.toLowerCase().includes(search.toLowerCase()));
  return (
    <Panel title={t('MQTT users')} tools={<SearchBox label={t('Part of a name')} value={search} onValue={setSearch} />}>
      {names.length === 0 ? (
        <Empty>{t('No users. Create a password file with `tidegate passwd`.')}</Empty>
      ) : (
        <ul class="plain line">
          {found.slice(0, DRAWN).map((name) => (
            <li key={name} class="chip">
              {name}
            </li>
          ))}
          {found.length > DRAWN && <li class="muted">+{found.length - DRAWN}</li>}
        </ul>
      )}
    </Panel>
  );
}

interface AclRule {
  readonly permit?: string;
  readonly action?: string;
  readonly topics?: readonly string[];
  readonly [key: string]: unknown;
}
interface AuthConfig {
  readonly acl?: { readonly rules?: readonly AclRule[] } | null;
  readonly no_match?: string;
  readonly deny_action?: string;
}

function whoOf({ permit: _, action: __, topics: ___, ...who }: AclRule): string {
  const parts = Object.entries(who).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return parts.length === 0 ? t('everyone') : parts.map(([key, value]) => `${key} ${JSON.stringify(value)}`).join(', ');
}

function Rules({ auth }: { readonly auth: AuthConfig }) {
  const rules = auth.acl?.rules ?? [];
  if (rules.length === 0) return null;
  return (
    <Panel title={t('Rules in the configuration')}>
      <Scroll look="table-box" label={t('Rules in the configuration')}>
        <table>
          <thead>
            <tr>
              <th>#</th>
              <th>{t('Verdict')}</th>
              <th>{t('Action')}</th>
              <th>{t('Topics')}</th>
              <th>{t('Applies to')}</th>
            </tr>
          </thead>
          <tbody>
            {rules.map((rule, i) => (
              <tr key={i}>
                <td class="muted">{i}</td>
                <td>
                  <Badge state={rule.permit === 'allow' ? 'allowed' : 'denied'} />
                </td>
                <td>{rule.action}</td>
                <td>
                  <code>{(rule.topics ?? []).join(' ')}</code>
                </td>
                <td>{whoOf(rule)}</td>
              </tr>
            ))}
            <tr>
              <td class="muted">–</td>
              <td>
                <Badge state={auth.no_match === 'deny' ? 'denied' : 'allowed'} />
              </td>
              <td colSpan={3} class="muted">
                {t('if no rule matches')}
              </td>
            </tr>
          </tbody>
        </table>
      </Scroll>
    </Panel>
  );
}

interface Change {
  readonly time: number;
  readonly user: string;
  readonly remote: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

function Audit() {
  const list = useLoaded(() => fetchData<readonly Change[]>('/audit'), 'audit', 5000);
  const rows = list.value ?? [];
  return (
    <Panel title={t('Changes made in the console and through the API')}>
      {rows.length === 0 ? (
        <Empty>{t('None since the gateway started.')}</Empty>
      ) : (
        <Scroll look="table-box tall" label={t('Changes made in the console and through the API')}>
          <table>
            <thead>
              <tr>
                <th>{t('Time')}</th>
                <th>{t('User')}</th>
                <th>{t('Address')}</th>
                <th>{t('Call')}</th>
                <th>{t('Outcome')}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={`${row.time}/${row.path}/${row.method}`}>
                  <td>{date(row.time)}</td>
                  <td>{row.user}</td>
                  <td class="muted">{row.remote}</td>
                  <td>
                    <code>
                      {row.method} {row.path}
                    </code>
                  </td>
                  <td>
                    <Badge state={row.status < 400 ? 'good' : 'bad'} text={String(row.status)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  );
}

export function SecurityPage() {
  const access = useLoaded(() => fetchData<readonly AccessRow[]>('/access'), 'access', 10_000);
  const config = useLoaded(() => fetchData<{ auth?: AuthConfig }>('/config'), 'config');
  const rows = access.value ?? [];
  return (
    <>
      <Failed error={access.error} />
      <Explain />
      <WebUsers />
      <Listeners rows={rows} />
      <Users rows={rows} />
      {config.value?.auth !== undefined && <Rules auth={config.value.auth} />}
      <Audit />
    </>
  );
}
