// The windows in which an MQTT user, a group or a role is added or changed. Used by mqttusers.tsx. What the gateway
// refuses is shown below the fields.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ACL_TYPES, type Acl, type MqttGroup, type MqttRole, type MqttUser, namesOf, usesOf } from '../lib/accounts.ts';
import { call, escaped } from '../lib/api.ts';
import { t } from '../lib/words.ts';
import { Button, Check, Dialog, Failed, IconButton, SelectField, TextField } from '../ui/parts.tsx';
import { tell } from '../ui/toast.tsx';

interface Closing {
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Name, fields, what went wrong, buttons. */
function Frame({
  title,
  name,
  wide,
  send,
  onClose,
  onSaved,
  children,
}: Closing & {
  readonly title: string;
  readonly name: string;
  readonly wide?: boolean;
  readonly send: () => Promise<unknown>;
  readonly children: ComponentChildren;
}) {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const save = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    send().then(
      () => {
        tell(t('{n} saved.', { n: name }));
        onSaved();
        onClose();
      },
      (problem: unknown) => {
        setError(problem);
        setBusy(false);
      },
    );
  };
  return (
    <Dialog title={title} onClose={onClose} wide={wide}>
      <form onSubmit={save} noValidate autocomplete="off">
        <div class="dialog-body">
          {children}
          <Failed error={error} />
        </div>
        <footer class="dialog-foot">
          <span class="spring" />
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button kind="primary" type="submit" disabled={busy || name.trim() === ''}>
            {t('Save')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

function NamesField({
  label,
  value,
  onValue,
}: {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}) {
  return <TextField label={label} value={value} onValue={onValue} hint={t('names, one per line')} rows={2} mono wide />;
}

/** @param user null for a new one */
export function MqttUserDialog({ user, ...closing }: Closing & { readonly user: MqttUser | null }) {
  const [name, setName] = useState(user?.username ?? '');
  const [password, setPassword] = useState('');
  const [clientId, setClientId] = useState(user?.clientid ?? '');
  const [roles, setRoles] = useState(namesOf(user?.roles).join('\n'));
  const [groups, setGroups] = useState(namesOf(user?.groups).join('\n'));
  const [enabled, setEnabled] = useState(user?.disabled !== true);
  const send = (): Promise<unknown> =>
    call('PUT', `/mqtt/users/${escaped(name.trim())}`, {
      ...(password === '' ? {} : { password }),
      ...(clientId === (user?.clientid ?? '') ? {} : { clientid: clientId.trim() }),
      roles: usesOf(roles, 'rolename', user?.roles),
      groups: usesOf(groups, 'groupname', user?.groups),
      disabled: !enabled,
    });
  return (
    <Frame
      title={user === null ? t('Add an MQTT user') : t('MQTT user {n}', { n: user.username })}
      name={name}
      send={send}
      {...closing}
    >
      <TextField label={t('Name')} value={name} onValue={setName} disabled={user !== null} mono />
      <TextField
        label={t('Password')}
        value={password}
        onValue={setPassword}
        hint={user === null ? t('empty = cannot log in with a password') : t('empty = unchanged')}
        autocomplete="new-password"
        secret
        mono
      />
      <TextField
        label={t('Client id')}
        value={clientId}
        onValue={setClientId}
        hint={t('the only one it may use; empty = any')}
        mono
      />
      <NamesField label={t('Roles')} value={roles} onValue={setRoles} />
      <NamesField label={t('Groups')} value={groups} onValue={setGroups} />
      <Check label={t('may log in')} value={enabled} onValue={setEnabled} />
    </Frame>
  );
}

export function MqttGroupDialog({ group, ...closing }: Closing & { readonly group: MqttGroup | null }) {
  const [name, setName] = useState(group?.groupname ?? '');
  const [roles, setRoles] = useState(namesOf(group?.roles).join('\n'));
  const [members, setMembers] = useState(namesOf(group?.clients).join('\n'));
  const send = (): Promise<unknown> =>
    call('PUT', `/mqtt/groups/${escaped(name.trim())}`, {
      roles: usesOf(roles, 'rolename', group?.roles),
      clients: usesOf(members, 'username', group?.clients),
    });
  return (
    <Frame
      title={group === null ? t('Add a group') : t('Group {n}', { n: group.groupname })}
      name={name}
      send={send}
      {...closing}
    >
      <TextField label={t('Name')} value={name} onValue={setName} disabled={group !== null} mono />
      <NamesField label={t('Roles')} value={roles} onValue={setRoles} />
      <NamesField label={t('Members')} value={members} onValue={setMembers} />
    </Frame>
  );
}

/** What a kind of right allows, in words. */
export function aclWords(acltype: string): string {
  switch (acltype) {
    case 'publishClientSend':
      return t('publish');
    case 'publishClientReceive':
      return t('receive');
    case 'subscribePattern':
      return t('subscribe to what the filter covers');
    case 'subscribeLiteral':
      return t('subscribe to exactly this filter');
    case 'unsubscribePattern':
      return t('unsubscribe from what the filter covers');
    case 'unsubscribeLiteral':
      return t('unsubscribe from exactly this filter');
    default:
      return acltype;
  }
}

interface AclText extends Omit<Acl, 'priority'> {
  readonly priority: string;
}

function AclFields({
  acl,
  index,
  onAcl,
  onRemove,
}: {
  readonly acl: AclText;
  readonly index: number;
  readonly onAcl: (acl: AclText) => void;
  readonly onRemove: () => void;
}) {
  const set = (more: Partial<AclText>): void => onAcl({ ...acl, ...more });
  return (
    <fieldset class="rule">
      <legend>{t('Right {n}', { n: index + 1 })}</legend>
      <div class="rule-tools">
        <IconButton icon="trash" label={t('Remove right {n}', { n: index + 1 })} onClick={onRemove} />
      </div>
      <div class="fields">
        <SelectField
          label={t('Action')}
          value={acl.acltype}
          onValue={(acltype) => set({ acltype })}
          options={ACL_TYPES.map((one) => [one, aclWords(one)] as const)}
        />
        <TextField
          label={t('Topic filter')}
          value={acl.topic}
          onValue={(topic) => set({ topic })}
          hint={t('%c = client id, %u = user name')}
          mono
        />
        <SelectField
          label={t('Verdict')}
          value={acl.allow ? 'allow' : 'deny'}
          onValue={(verdict) => set({ allow: verdict === 'allow' })}
          options={[
            ['allow', t('allowed')],
            ['deny', t('denied')],
          ]}
        />
        <TextField
          label={t('Priority')}
          value={acl.priority}
          onValue={(priority) => set({ priority })}
          hint={t('the highest is looked at first')}
          mono
        />
      </div>
    </fieldset>
  );
}

const EMPTY_ACL: AclText = { acltype: 'publishClientSend', topic: '', allow: true, priority: '' };

export function MqttRoleDialog({ role, ...closing }: Closing & { readonly role: MqttRole | null }) {
  const [name, setName] = useState(role?.rolename ?? '');
  const [acls, setAcls] = useState<readonly AclText[]>(
    (role?.acls ?? [EMPTY_ACL]).map((acl) => ({ ...acl, priority: String(acl.priority ?? '') })),
  );
  const send = (): Promise<unknown> =>
    call('PUT', `/mqtt/roles/${escaped(name.trim())}`, {
      acls: acls.map(({ priority, topic, ...acl }) => ({
        ...acl,
        topic: topic.trim(),
        ...(/^-?\d+$/.test(priority.trim()) ? { priority: Number(priority) } : {}),
      })),
    });
  return (
    <Frame
      title={role === null ? t('Add a role') : t('Role {n}', { n: role.rolename })}
      name={name}
      send={send}
      wide
      {...closing}
    >
      <TextField label={t('Name')} value={name} onValue={setName} disabled={role !== null} mono />
      {acls.map((acl, i) => (
        <AclFields
          key={i}
          acl={acl}
          index={i}
          onAcl={(next) => setAcls(acls.map((old, other) => (other === i ? next : old)))}
          onRemove={() => setAcls(acls.filter((_, other) => other !== i))}
        />
      ))}
      <Button icon="plus" onClick={() => setAcls([...acls, EMPTY_ACL])}>
        {t('Add a right')}
      </Button>
    </Frame>
  );
}
