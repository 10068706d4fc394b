// Users and rights of mosquitto_dynamic_security.so: its JSON file becomes a password file and auth.acl.rules. Called
// by config/converting.ts for a plugin of that name that guards all listeners. What its rights say and our rules cannot
// is refused, never left out. Sources: the plugin's documentation; mosquitto 2.0.11 with the plugin on the wire.
import type { Position } from '../problem.ts';
import type { Report } from '../report.ts';
import { append, child, listOf, put } from '../text/grow.ts';
import { type BlockNode, blockNode } from '../text/node.ts';
import type { PluginDraft } from './draft.ts';

export interface DynsecParts {
  /** Throws ConfigError or CFG-READ. */
  read(file: string): string;
  /** Where the users go; null when nothing but standard output is written. */
  readonly passwordFile: string | null;
}

interface Acl {
  readonly type: string;
  readonly topic: string;
  readonly allow: boolean;
  readonly priority: number;
}

type Json = Readonly<Record<string, unknown>>;

const PLUGIN = /(?:^|\/)mosquitto_dynamic_security(?:\.so|\.dll)?$/;

export function isDynsec({ path }: PluginDraft): boolean {
  return PLUGIN.test(path);
}

/**
 * Fills `root` and gives the text of the password file; null when the plugin could not be taken over, which has been
 * reported.
 */
export function importDynsec(plugin: PluginDraft, root: BlockNode, report: Report, parts: DynsecParts): string | null {
  const { at, key } = plugin;
  const file = plugin.options.get('config_file');
  if (file === undefined) {
    report.invalid(at, key, 'the plugin needs plugin_opt_config_file');
    return null;
  }
  if (parts.passwordFile === null) {
    report.never(at, key, 'its users need a file of their own: with -o FILE they are written to FILE.passwd');
    return null;
  }
  const place: Position = { file: file.value, line: 1, column: 1 };
  let parsed: unknown;
  try {
    parsed = JSON.parse(parts.read(file.value));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    report.invalid(place, 'syntax', 'this is no JSON');
    return null;
  }
  const importer = new Importer(objectOf(parsed), place, report);
  const users = importer.users();
  importer.rules(root);
  put(root, 'auth.password_file', parts.passwordFile, at);
  return users;
}

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function priorityOf(value: Json): number {
  return typeof value.priority === 'number' ? value.priority : -1;
}

/** The higher priority first, else the order of the file. */
function byPriority<T extends Json>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => priorityOf(b) - priorityOf(a));
}

class Importer {
  private readonly json: Json;
  private readonly at: Position;
  private readonly report: Report;
  private readonly roles = new Map<string, readonly Acl[]>();
  private readonly defaults: Json;

  constructor(json: Json, at: Position, report: Report) {
    this.json = json;
    this.at = at;
    this.report = report;
    this.defaults = objectOf(json.defaultACLAccess);
    for (const role of objects(json.roles)) this.roles.set(textOf(role.rolename), this.aclsOf(role));
  }

  private aclsOf(role: Json): Acl[] {
    return byPriority(objects(role.acls)).map((acl) => ({
      type: textOf(acl.acltype),
      topic: textOf(acl.topic),
      allow: acl.allow === true,
      priority: priorityOf(acl),
    }));
  }

  /** Those that may log in. */
  private clients(): Json[] {
    return objects(this.json.clients).filter((client) => client.disabled !== true && textOf(client.username) !== '');
  }

  users(): string {
    const lines: string[] = [];
    for (const client of this.clients()) {
      const username = textOf(client.username);
      const name = `clients.${username}`;
      if (textOf(client.clientid) !== '')
        this.report.refuse(this.at, name, 'a user is not tied to one client id: it could log in with others');
      const [hash, salt] = [textOf(client.password), textOf(client.salt)];
      // Without a password nobody can log in as this user.
      if (hash === '') continue;
      const rounds = typeof client.iterations === 'number' ? client.iterations : 101;
      const isHash = Buffer.from(hash, 'base64').length === 64 && Buffer.from(salt, 'base64').length > 0;
      if (!isHash || !Number.isInteger(rounds) || rounds < 1 || /[:\r\n]/.test(username))
        this.report.invalid(this.at, name, 'a name and a salted SHA-512 hash expected');
      else lines.push(`${username}:$7$${rounds}$${salt}$${hash}\n`);
    }
    return lines.join('');
  }

  rules(root: BlockNode): void {
    put(root, 'auth.no_match', 'deny', this.at);
    child(child(root, 'auth', this.at), 'acl', this.at);
    for (const client of this.clients()) {
      const username = textOf(client.username);
      this.rulesOf(root, username, this.aclsFor(username, client));
    }
    // Users have rules for everything: what comes now is for clients without a name.
    const group = textOf(this.json.anonymousGroup);
    if (group !== '') this.rulesOf(root, null, this.rolesOf(this.groupNamed(group)));
  }

  private groupNamed(name: string): Json {
    return objects(this.json.groups).find((group) => textOf(group.groupname) === name) ?? {};
  }

  private rolesOf(holder: Json): Acl[] {
    return byPriority(objects(holder.roles)).flatMap((role) => this.roles.get(textOf(role.rolename)) ?? []);
  }

  /** Own roles come before those of groups. */
  private aclsFor(username: string, client: Json): Acl[] {
    const groups = objects(this.json.groups).flatMap((group) => {
      const member = objects(group.clients).find((one) => textOf(one.username) === username);
      return member === undefined ? [] : [{ ...group, priority: priorityOf(member) }];
    });
    return [...this.rolesOf(client), ...byPriority(groups).flatMap((group) => this.rolesOf(group))];
  }

  private rulesOf(root: BlockNode, username: string | null, acls: readonly Acl[]): void {
    const add = (action: string, allow: boolean, topic: string | null): void => {
      const rule = blockNode(this.at);
      put(rule, 'permit', allow ? 'allow' : 'deny', this.at);
      put(rule, 'action', action, this.at);
      if (username !== null) put(rule, 'username', username, this.at);
      if (topic !== null) put(rule, 'topics', listOf([topic], this.at), this.at);
      append(child(child(root, 'auth', this.at), 'acl', this.at), 'rules', rule, this.at);
    };
    for (const { type, topic, allow } of acls) if (type === 'publishClientSend') add('publish', allow, named(topic));
    add('publish', this.defaults.publishClientSend === true, null);
    this.receiving(username, acls, (topic) => add('subscribe', false, topic));
    for (const { type, topic, allow } of acls) {
      if (type === 'subscribePattern') add('subscribe', allow, named(topic));
      else if (type === 'subscribeLiteral') add('subscribe', allow, `@${named(topic)}`);
      else if (/^unsubscribe/.test(type) && !allow)
        this.report.change(
          this.at,
          `clients.${username ?? ''}`,
          `may end any subscription of its own (${type} ${topic})`,
        );
    }
    add('subscribe', this.defaults.subscribe === true, null);
  }

  /** Rights to receive stand beside those to subscribe there; here what may be subscribed may be received. */
  private receiving(username: string | null, acls: readonly Acl[], deny: (topic: string) => void): void {
    const key = username === null ? 'anonymousGroup' : `clients.${username}`;
    const own = acls.filter((acl) => acl.type === 'publishClientReceive');
    const denied = own.filter((acl) => !acl.allow);
    const isPlain = this.defaults.publishClientReceive !== false && own.findIndex((acl) => acl.allow) === -1;
    if (this.defaults.publishClientReceive === false || (denied.length > 0 && !isPlain)) {
      this.report.refuse(
        this.at,
        key,
        'rights to receive (publishClientReceive) beside those to subscribe are not there',
      );
      return;
    }
    for (const { topic } of denied) deny(named(topic));
    if (denied.length > 0)
      this.report.change(this.at, key, 'a subscription to what it may not receive is refused, not granted and silent');
  }
}

/** %c and %u as our rules write them. */
function named(topic: string): string {
  return topic
    .split('/')
    .map((level) => (level === '%c' ? '$' + '{clientid}' : level === '%u' ? '$' + '{username}' : level))
    .join('/');
}
