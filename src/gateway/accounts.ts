// Users, groups and roles at run time, as the rest of the gateway has them: commands over MQTT
// ($CONTROL/dynamic-security/v1) and REST go in, and what a change takes away ends at once. Made by gateway.ts; the
// rules are auth/accounts/'s. Source: the interface of mosquitto's dynamic security plugin.
import type { Accounts, Change, Changer, Outcome } from '../auth/accounts/accounts.ts';
import { MOST_COMMANDS, MOST_REQUEST_BYTES } from '../auth/accounts/accounts.ts';
import { members } from '../auth/accounts/commands.ts';
import { shownAccount, shownGroup, shownRole } from '../auth/accounts/shown.ts';
import { CONTROL_RESPONSE, CONTROL_TOPIC } from '../auth/authorizer.ts';
import type { AccessControl } from '../auth/chain.ts';
import { DEFAULTS, objectOf } from '../base/accounts.ts';
import { BookError } from '../base/accountsfile.ts';
import { type Log, limitLog } from '../base/log.ts';
import type { Engine, LocalClient } from '../broker/broker.ts';
import type { AccountsControl, AccountsOutcome, JsonObject } from '../console/console.ts';
import type { Publication } from '../mqtt/message.ts';
import { QUOTA_EXCEEDED } from '../mqtt/reason.ts';

type Noted = (change: Change) => void;

const NOT_JSON = { responses: [{ command: 'Unknown command', error: 'Payload not valid JSON' }] };

export class AccountsService {
  private readonly access: AccessControl;
  private readonly broker: Engine;
  private readonly warn: Log;
  private client: LocalClient | null = null;
  private readonly noted = new Set<Noted>();

  constructor(access: AccessControl, broker: Engine, log: Log, monoMs: () => number) {
    this.access = access;
    this.broker = broker;
    this.warn = limitLog(log, monoMs, 1000);
  }

  /** Takes up what is configured now; called at start and after each reload. */
  renew(): void {
    const { accounts } = this.access;
    if (accounts === null) return;
    accounts.onChange = (change) => this.changed(change);
    if (this.client !== null || this.broker.answer === undefined) return;
    const client = this.broker.attach({
      clientId: '$dynamic-security',
      username: null,
      kind: 'api',
      bridge: null,
      trusted: false,
    });
    const receiver = { control: true, receive: (publication: Publication) => this.receive(publication) };
    client.subscribe({ topicFilter: CONTROL_TOPIC, qos: 2, receiver, retainHandling: 2 });
    this.client = client;
  }

  stop(): void {
    this.client?.close();
    this.client = null;
  }

  /** For the REST API; null where nothing is configured now. */
  control(): AccountsControl | null {
    const { accounts } = this.access;
    if (accounts === null) return null;
    const { book } = accounts;
    return {
      path: accounts.path,
      user: (name) => {
        const account = accounts.get(name);
        if (account === undefined) return undefined;
        return { ...(shownAccount(name, account) as JsonObject), has_password: account.hash !== null };
      },
      users: () => book.accounts.keys(),
      group: (name) => {
        const group = book.groups.get(name);
        return group === undefined ? undefined : (shownGroup(name, group, members(book, name)) as JsonObject);
      },
      groups: () => book.groups.keys(),
      role: (name) => {
        const role = book.roles.get(name);
        return role === undefined ? undefined : (shownRole(name, role) as JsonObject);
      },
      roles: () => book.roles.keys(),
      defaults: () => ({
        ...Object.fromEntries(DEFAULTS.map((kind) => [kind, book.defaults[kind]])),
        anonymous_group: book.anonymousGroup,
      }),
      run: async (commands, by, whole) => told(await accounts.run(commands, { ...by, via: 'http' }, whole)),
      text: () => accounts.text(),
      replace: async (text, by) => {
        try {
          return told(await accounts.replace(text, { ...by, via: 'http' }));
        } catch (error) {
          if (error instanceof BookError) return { ok: false, why: 'invalid', message: error.message };
          throw error;
        }
      },
    };
  }

  /** Calls `note` for each change made over MQTT, until the returned function is called. */
  follow(note: Noted): () => void {
    this.noted.add(note);
    return () => this.noted.delete(note);
  }

  // ---- inside

  /** What a change takes away ends now: connections, subscriptions, rights that were remembered. */
  private async changed(change: Change): Promise<void> {
    const { access, broker } = this;
    access.accountsChanged();
    broker.accessChanged();
    broker.dropRevoked((listener, username) => access.ends(listener, username, change.ended));
    for (const note of this.noted) note(change);
    await broker.endSubscriptions((identity, filter) => access.deniesSubscription(identity, filter));
  }

  private receive(publication: Publication): void {
    const { accounts } = this.access;
    const { origin } = publication;
    if (origin.kind !== 'client' || accounts === null) return;
    const bytes = publication.payloadEnd - publication.payloadStart;
    const by: Changer = { user: origin.username ?? '', remote: origin.arrival?.remoteAddress ?? '', via: 'mqtt' };
    // A will, or somebody else by now.
    if (this.broker.client(origin.clientId)?.username !== origin.username) return;
    if (bytes > MOST_REQUEST_BYTES) {
      this.reply(origin.clientId, failed(`Payload larger than ${MOST_REQUEST_BYTES} bytes`));
      return;
    }
    const text = Buffer.from(publication.buffer.subarray(publication.payloadStart, publication.payloadEnd)).toString(
      'utf8',
    );
    const commands = commandsOf(text);
    if (!Array.isArray(commands)) {
      this.reply(origin.clientId, commands);
      return;
    }
    this.run(accounts, commands, by, origin.clientId, publication);
  }

  /** The publisher's acknowledgement waits until the change is on the disk. */
  private run(
    accounts: Accounts,
    commands: readonly unknown[],
    by: Changer,
    clientId: string,
    publication: Publication,
  ): void {
    const hold = publication.qos > 0 ? publication.hold() : null;
    hold?.add();
    void accounts.run(commands, by).then((outcome) => {
      if (!outcome.ok) this.warn('warn', 'AUTH-NOT-KEPT', { error: outcome.message });
      this.reply(clientId, outcome.ok ? { responses: outcome.responses } : failed(outcome.message));
      hold?.done(outcome.ok ? 0 : QUOTA_EXCEEDED);
    });
  }

  private reply(clientId: string, value: object): void {
    this.broker.answer?.(clientId, CONTROL_RESPONSE, Buffer.from(JSON.stringify(value)));
  }
}

function failed(error: string): object {
  return { responses: [{ command: 'Unknown command', error }] };
}

/** The commands of a request, or the answer to what holds none. */
function commandsOf(text: string): unknown[] | object {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
  const commands = objectOf(root)?.commands;
  if (!Array.isArray(commands)) return failed('Invalid/missing commands');
  return commands.length > MOST_COMMANDS ? failed(`More than ${MOST_COMMANDS} commands`) : commands;
}

function told(outcome: Outcome): AccountsOutcome {
  if (!outcome.ok) return outcome;
  return { ok: true, responses: outcome.responses as readonly JsonObject[] };
}
