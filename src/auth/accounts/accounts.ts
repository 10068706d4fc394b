// SEAM of auth/accounts/: users, groups and roles that are managed at run time, and the file that keeps them. Built by
// realms.ts from auth.dynamic_security; asked by users.ts (who may log in) and authorizer.ts (what they may do);
// changed by the control topic and the REST API, one request after the other. A change is on the disk before it is
// answered and holds from then on; one that cannot be written changes nothing.

import { type Account, type Book, EMPTY_BOOK, objectOf } from '../../base/accounts.ts';
import { BookError, bookText, parseBook } from '../../base/accountsfile.ts';
import { errorText, GatewayError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { parseHash } from '../../base/passwordhash.ts';
import type { Explanation } from '../aclfile.ts';
import type { Gate } from '../gate.ts';
import { DEFAULT_ITERATIONS, makePbkdf2 } from '../hash.ts';
import { type Answered, answer } from './commands.ts';
import { Draft } from './draft.ts';
import { type AccountAction, type Asking, Judge } from './judge.ts';
import { KeptText, type ReadText } from './kepttext.ts';
import type { Hashed } from './request.ts';

/** Commands in one request, and requests that may wait. */
export const MOST_COMMANDS = 1000;
export const MOST_WAITING = 64;
/** Bytes of one request. */
export const MOST_REQUEST_BYTES = 1024 * 1024;

/** Who changes something, for the log. */
export interface Changer {
  readonly user: string;
  readonly remote: string;
  readonly via: 'mqtt' | 'http';
}

/** What came of a request; `ended`: users whose connections have to end. */
export interface Change {
  readonly ended: ReadonlySet<string>;
  /** What was done, for whoever keeps a record. */
  readonly done: readonly { readonly command: string; readonly name: string }[];
  readonly by: Changer | null;
}

export type Outcome =
  | { readonly ok: true; readonly responses: readonly Answered['response'][] }
  /** Nothing has been changed. */
  | { readonly ok: false; readonly why: 'busy' | 'unwritable'; readonly message: string };

/** A book that was read and does not hold yet. */
export interface Reading {
  readonly book: Book;
  readonly text: ReadText;
  readonly warnings: readonly string[];
}

export interface AccountsDeps {
  readonly log: Log;
  readonly gate: Gate;
}

export class Accounts {
  readonly path: string;
  /** Whether clients with the right to do so may send commands over MQTT. */
  served = false;
  /** Called after each change, when it holds; its answer waits until what it takes away has ended. Never rejects. */
  onChange: (change: Change) => Promise<void> = async () => {};
  private readonly deps: AccountsDeps;
  private readonly file: KeptText;
  private current: Book = EMPTY_BOOK;
  private judge = new Judge(EMPTY_BOOK);
  private readonly texts = new WeakMap<object, string>();
  private line: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(path: string, deps: AccountsDeps) {
    this.path = path;
    this.deps = deps;
    this.file = new KeptText(path);
  }

  get book(): Book {
    return this.current;
  }

  get(username: string): Account | undefined {
    return this.current.accounts.get(username);
  }

  /** Reads the file; a file that is not there is an empty book. Throws AUTH-SOURCE. Changes nothing. */
  async read(): Promise<Reading> {
    let text: ReadText;
    try {
      text = await this.file.read();
    } catch (error) {
      throw new GatewayError('AUTH-SOURCE', `${this.path}: ${errorText(error)}`, error);
    }
    // One that has vanished is no order to forget everybody.
    if (text.text === null && this.current.accounts.size > 0)
      throw new GatewayError('AUTH-SOURCE', `${this.path}: no such file`);
    if (text.text === null) return { book: EMPTY_BOOK, text, warnings: [] };
    try {
      return { ...parseBook(text.text), text };
    } catch (error) {
      if (error instanceof BookError) throw new GatewayError('AUTH-SOURCE', `${this.path}: ${error.message}`, error);
      throw error;
    }
  }

  /** What was read holds from now on. Gives the users whose connections have to end. */
  adopt({ book, text, warnings }: Reading): ReadonlySet<string> {
    for (const warning of warnings) this.deps.log('warn', 'AUTH-WARNING', { text: `${this.path}: ${warning}` });
    if (text.text !== null && (text.mode & 0o007) !== 0)
      this.deps.log('warn', 'AUTH-WARNING', { text: `${this.path}: every user of this machine can read or change it` });
    const draft = new Draft(this.current);
    draft.replace(book);
    this.file.take(text);
    this.hold(book);
    return draft.ended;
  }

  /** What is decided here; null: nothing is, others may say. */
  verdict(who: Asking, action: AccountAction, topic: string): Explanation | null {
    return this.judge.judge(who, action, topic);
  }

  /** Why this client may not be here under this name, whoever vouches for it; null = it may. */
  bar(username: string | null, clientId: string): 'disabled' | 'client-id' | null {
    const account = username === null ? undefined : this.get(username);
    if (account === undefined) return null;
    if (account.disabled) return 'disabled';
    return account.clientId === null || fitsClientId(account, clientId) ? null : 'client-id';
  }

  /**
   * Does the commands of one request, in order. Each answers for itself; `whole`: one that is refused undoes them all.
   */
  run(requests: readonly unknown[], by: Changer, whole = false): Promise<Outcome> {
    return this.inLine(async () => {
      const hashes = await this.hashesOf(requests);
      const draft = new Draft(this.current);
      const answered = requests.map((request, i) => answer(draft, request, hashes[i]));
      const responses = answered.map(({ response }) => response);
      const done = answered.flatMap(({ changed }) => changed ?? []);
      if (!draft.changed || (whole && responses.some(({ error }) => error !== undefined)))
        return { ok: true, responses };
      return this.keep(draft, { ended: draft.ended, done, by }, responses);
    });
  }

  /** Takes the place of everything. Throws BookError for what cannot be read. */
  replace(text: string, by: Changer): Promise<Outcome> {
    const { book } = parseBook(text);
    return this.inLine(() => {
      const draft = new Draft(this.current);
      draft.replace(book);
      return this.keep(draft, { ended: draft.ended, done: [{ command: 'replace', name: '' }], by }, []);
    });
  }

  /** The file as it would be written now. */
  text(): string {
    return bookText(this.current, this.texts);
  }

  // ---- inside

  private async keep(draft: Draft, change: Change, responses: Answered['response'][]): Promise<Outcome> {
    const { book } = draft;
    try {
      await this.file.write(bookText(book, this.texts));
    } catch (error) {
      const message = `${this.path}: ${errorText(error)}`;
      this.deps.log('error', 'AUTH-NOT-KEPT', { error: message });
      return { ok: false, why: 'unwritable', message };
    }
    this.hold(book);
    for (const { command, name } of change.done) this.deps.log('warn', 'AUTH-CHANGE', { ...change.by, command, name });
    await this.onChange(change);
    return { ok: true, responses };
  }

  private hold(book: Book): void {
    this.current = book;
    this.judge = new Judge(book);
  }

  private inLine(work: () => Promise<Outcome>): Promise<Outcome> {
    if (this.waiting >= MOST_WAITING)
      return Promise.resolve({ ok: false, why: 'busy', message: `more than ${MOST_WAITING} requests are waiting` });
    this.waiting++;
    const next = this.line.then(work).finally(() => {
      this.waiting--;
    });
    this.line = next.catch(() => {});
    return next;
  }

  /** The hash of each request's password, not on the event loop. */
  private async hashesOf(requests: readonly unknown[]): Promise<(Hashed | null)[]> {
    const hashes: (Hashed | null)[] = [];
    for (const request of requests) {
      const password = objectOf(request)?.password;
      hashes.push(typeof password === 'string' && password !== '' ? await this.hash(password) : null);
    }
    return hashes;
  }

  private async hash(password: string): Promise<Hashed> {
    const text = await makePbkdf2(Buffer.from(password), DEFAULT_ITERATIONS);
    const parsed = parseHash(text);
    if (typeof parsed === 'string') throw new GatewayError('AUTH-SOURCE', parsed);
    return { text, parsed };
  }
}

/** A `*` of a pattern stands for any text. Linear: each part is looked for once. */
function fitsClientId({ clientId, isPattern }: Account, given: string): boolean {
  if (clientId === null || !isPattern) return clientId === given;
  const parts = clientId.split('*');
  const first = parts[0];
  const last = parts[parts.length - 1];
  if (parts.length === 1) return clientId === given;
  if (given.length < first.length + last.length || !given.startsWith(first) || !given.endsWith(last)) return false;
  let at = first.length;
  const end = given.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = given.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
