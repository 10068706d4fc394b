// MQTT users: who may connect, in which groups, with which roles, and what holds where no role decides. For admins;
// with auth.dynamic_security only, which this page says where it is missing.
import { useState } from 'preact/hooks';
import { type MqttGroup, type MqttRole, type MqttUser, namesOf, type Uses } from '../lib/accounts.ts';
import { ApiError, call, escaped, fetchData, query } from '../lib/api.ts';
import { useLoaded } from '../lib/live.ts';
import { t } from '../lib/words.ts';
import {
  Badge,
  Button,
  Choice,
  Confirm,
  Empty,
  Failed,
  IconButton,
  Panel,
  Scroll,
  SearchBox,
  Switch,
} from '../ui/parts.tsx';
import { attempt } from '../ui/toast.tsx';
import { aclWords, MqttGroupDialog, MqttRoleDialog, MqttUserDialog } from './mqttdialogs.tsx';

type Kind = 'users' | 'groups' | 'roles';
type Row = MqttUser | MqttGroup | MqttRole;

/** The answer of a gateway without auth.dynamic_security. */
const NOT_CONFIGURED = 210;
const DRAWN = 200;

function nameOf(row: Row): string {
  if ('username' in row) return row.username;
  return 'groupname' in row ? row.groupname : row.rolename;
}

function Names({ list }: { readonly list: readonly Uses[] | undefined }) {
  const names = namesOf(list);
  return names.length === 0 ? <span class="muted">–</span> : <span>{names.join(', ')}</span>;
}

function UserCells({ user, onChanged }: { readonly user: MqttUser; readonly onChanged: () => void }) {
  const flip = (on: boolean): void => {
    const done = on ? t('{n} may log in.', { n: user.username }) : t('{n} may not log in.', { n: user.username });
    void attempt(() => call('PUT', `/mqtt/users/${escaped(user.username)}`, { disabled: !on }), done).then(onChanged);
  };
  return (
    <>
      <td>
        <Names list={user.roles} />
      </td>
      <td>
        <Names list={user.groups} />
      </td>
      <td class="muted">{user.clientid ?? t('any')}</td>
      <td>
        <Switch label={t('{n} may log in', { n: user.username })} value={user.disabled !== true} onValue={flip} />
      </td>
    </>
  );
}

function GroupCells({ group }: { readonly group: MqttGroup }) {
  return (
    <>
      <td>
        <Names list={group.roles} />
      </td>
      <td>
        <Names list={group.clients} />
      </td>
    </>
  );
}

function RoleCells({ role }: { readonly role: MqttRole }) {
  return (
    <td>
      <ul class="plain">
        {(role.acls ?? []).map((acl, i) => (
          <li key={i}>
            <Badge state={acl.allow ? 'allowed' : 'denied'} /> {aclWords(acl.acltype)} <code>{acl.topic}</code>
          </li>
        ))}
      </ul>
    </td>
  );
}

function headsOf(kind: Kind): readonly string[] {
  if (kind === 'users') return [t('User'), t('Roles'), t('Groups'), t('Client id'), t('may log in')];
  return kind === 'groups' ? [t('Group'), t('Roles'), t('Members')] : [t('Role'), t('Permissions')];
}

function Table({
  kind,
  rows,
  onEdit,
  onRemove,
  onChanged,
}: {
  readonly kind: Kind;
  readonly rows: readonly Row[];
  readonly onEdit: (row: Row) => void;
  readonly onRemove: (row: Row) => void;
  readonly onChanged: () => void;
}) {
  return (
    <Scroll look="table-box" label={t('MQTT users')}>
      <table>
        <thead>
          <tr>
            {headsOf(kind).map((head) => (
              <th key={head}>{head}</th>
            ))}
            <th class="cell-tools">{t('Change')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, DRAWN).map((row) => (
            <tr key={nameOf(row)}>
              <td class="name-cell">
                <code>{nameOf(row)}</code>
              </td>
              {kind === 'users' && <UserCells user={row as MqttUser} onChanged={onChanged} />}
              {kind === 'groups' && <GroupCells group={row as MqttGroup} />}
              {kind === 'roles' && <RoleCells role={row as MqttRole} />}
              <td class="cell-tools">
                <IconButton icon="edit" label={t('Change {n}', { n: nameOf(row) })} onClick={() => onEdit(row)} />
                <IconButton icon="trash" label={t('Remove {n}', { n: nameOf(row) })} onClick={() => onRemove(row)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

type Defaults = Readonly<Record<string, boolean | string | null>>;

/** What holds where no role says anything. */
function DefaultAccess() {
  const loaded = useLoaded(() => fetchData<Defaults>('/mqtt/default_access'), 'defaults');
  const flags = Object.entries(loaded.value ?? {}).filter(([, value]) => typeof value === 'boolean');
  const words: Readonly<Record<string, string>> = {
    publishClientSend: t('publish'),
    publishClientReceive: t('receive'),
    subscribe: t('subscribe'),
    unsubscribe: t('unsubscribe'),
  };
  const flip = (name: string, on: boolean): void => {
    void attempt(() => call('PUT', '/mqtt/default_access', { [name]: on }), t('Saved.')).then(loaded.reload);
  };
  return (
    <Panel title={t('Where no role decides')}>
      <Failed error={loaded.error} />
      <ul class="plain line">
        {flags.map(([name, value]) => (
          <li key={name} class="line">
            <Switch label={words[name] ?? name} value={value === true} onValue={(on) => flip(name, on)} />
            <span>{words[name] ?? name}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function MqttUsersPage() {
  const [kind, setKind] = useState<Kind>('users');
  const [search, setSearch] = useState('');
  const list = useLoaded(
    () => fetchData<readonly Row[]>(`/mqtt/${kind}${query({ search, limit: DRAWN })}`).then((rows) => ({ kind, rows })),
    `${kind}/${search}`,
    10_000,
  );
  const [editing, setEditing] = useState<{ row: Row | null } | null>(null);
  const [removing, setRemoving] = useState<Row | null>(null);
  if (list.error instanceof ApiError && list.error.code === NOT_CONFIGURED) {
    return (
      <Empty>
        {t(
          'MQTT users are managed here once auth.dynamic_security is set in the configuration. Until then, they are in password files.',
        )}
      </Empty>
    );
  }
  // Rows of the kind that was shown before are not drawn as the other kind.
  const rows = list.value?.kind === kind ? list.value.rows : [];
  const closing = { onClose: () => setEditing(null), onSaved: list.reload };
  const added = { users: t('Add an MQTT user'), groups: t('Add a group'), roles: t('Add a role') }[kind];
  return (
    <>
      <div class="bar">
        <Choice
          label={t('Show')}
          value={kind}
          onValue={setKind}
          options={[
            ['users', t('Users')],
            ['groups', t('Groups')],
            ['roles', t('Roles')],
          ]}
        />
        <SearchBox label={t('Part of a name')} value={search} onValue={setSearch} />
        <span class="spring" />
        <Button kind="primary" icon="plus" onClick={() => setEditing({ row: null })}>
          {added}
        </Button>
      </div>
      <Failed error={list.error} />
      <Panel flush>
        {rows.length === 0 ? (
          <Empty>{t('None found.')}</Empty>
        ) : (
          <Table
            kind={kind}
            rows={rows}
            onEdit={(row) => setEditing({ row })}
            onRemove={setRemoving}
            onChanged={list.reload}
          />
        )}
      </Panel>
      <DefaultAccess />
      {editing !== null && kind === 'users' && <MqttUserDialog user={editing.row as MqttUser | null} {...closing} />}
      {editing !== null && kind === 'groups' && (
        <MqttGroupDialog group={editing.row as MqttGroup | null} {...closing} />
      )}
      {editing !== null && kind === 'roles' && <MqttRoleDialog role={editing.row as MqttRole | null} {...closing} />}
      {removing !== null && (
        <Confirm
          title={t('Remove {n}?', { n: nameOf(removing) })}
          action={t('Remove')}
          onClose={() => setRemoving(null)}
          onYes={async () => {
            await call('DELETE', `/mqtt/${kind}/${escaped(nameOf(removing))}`);
            list.reload();
          }}
        >
          <p>
            {kind === 'users'
              ? t('Its connections end immediately.')
              : t('Its members lose these rights immediately; they stay connected.')}
          </p>
        </Confirm>
      )}
    </>
  );
}
