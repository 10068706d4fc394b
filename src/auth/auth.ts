// SEAM of auth/: who may connect (authenticators) and what they may do (authorizers). Built by chain.ts from
// configuration, asked by session/ at CONNECT, PUBLISH, SUBSCRIBE, delivery and will. Two chains: whatever let a client
// in, a denial of rights holds. Nothing fails open: an error in a source is a refusal, a reload that cannot be read
// keeps the last good state. An answer is given at once or as a promise; session/ stops reading from that client
// meanwhile. A promise of a verdict rejects, with ProtocolError 0x89, only where no source could say: not knowing is
// not denying. Other promises never reject.
//
// Map (made by `make docs`):
//   absent.ts             The rights of clients that are not here: restored sessions, kept wills
//   aclfile.ts            The mosquitto ACL file: grammar and evaluation as in mosquitto 2.1
//   address.ts            Addresses and networks of the authentication settings as a test for a client's address
//   authenticator.ts      Who may connect on one listener: certificate, anonymous rule, sources of users in order
//   authorizer.ts         What the clients of one listener may do: ACL file, acl.rules and further sources
//   certificate.ts        The user name that a TLS certificate gives
//   chain.ts              Builds who may connect and what they may do, for every listener, and rebuilds it at reload
//   filter.ts             Topic filters as sets of topics: whether one holds another, and what two have in common
//   gate.ts               A bounded number of slow things at once, the rest waiting in bounded lines
//   hash.ts               Password hashes as mosquitto writes them: make and verify; base/passwordhash.ts reads them
//   hooks.ts              What a program that embeds the gateway decides itself: its functions for CONNECT
//   http.ts               NanoMQ's auth.http_auth: a web server decides who may connect (auth_req)
//   httprequest.ts        One configured request of auth.http_auth: its template
//   jwt.ts                A JSON Web Token in the password field: who the client is and what it may do
//   limits.ts             Limits against guessing passwords: too many failures from an address, or for a user
//   options.ts            What auth/ is built from, as plain data: gateway/options.ts makes it of the configuration
//   passwordfile.ts       The mosquitto password file: `username:hash` lines
//   realm.ts              All that holds for the clients of one listener at one moment: sources of users
//   realms.ts             Reads every file that the options name and builds the realms of all listeners from them
//   remotekeys.ts         The public keys of an issuer, fetched by URL: directly, or by way of its discovery document
//   rules.ts              NanoMQ's acl.rules: permit, action, topics, and who they are for
//   ruletree.ts           Access rules as a tree of topic levels: one walk over a topic finds every rule that matches
//   scram.ts              SCRAM-SHA-256 as an Authentication Method of MQTT 5.0: the password never crosses the wire
//   scramexchange.ts      One SCRAM-SHA-256 conversation after the other
//   secret.ts             A secret of this gateway that is the same after a restart, for what must not change with one
//   source.ts             What a source of users answers (local users, HTTP, JWT)
//   textfile.ts           A file of users or rights as lines of text, read whole and bounded
//   timedcache.ts         Answers that hold for a while, bounded in number
//   users.ts              The users a listener knows by itself: password file
//   verdict.ts            Several verdicts as one: all have to allow
//   accounts/accounts.ts  SEAM of auth/accounts/: users
//   accounts/commands.ts  The commands of mosquitto's dynamic security: the JSON of $CONTROL/dynamic-security/v1
//   accounts/draft.ts     A book of accounts that is being changed
//   accounts/judge.ts     What the roles of one book allow
//   accounts/kepttext.ts  A small text file that this process replaces as a whole: old or new, whenever the power fails
//   accounts/request.ts   The keys of one request of dynamic security, read one by one
//   accounts/shown.ts     Accounts, groups and roles as answers show them: names and rights, never a hash
//   accounts/users.ts     The users of a listener where some are managed at run time: their accounts first
import type { Arrival } from '../mqtt/message.ts';
import type { TlsInfo } from '../transport/transport.ts';

export interface Credentials {
  readonly clientId: string;
  readonly username: string | null;
  readonly password: Uint8Array | null;
  /** Without port; "" for unix sockets. */
  readonly remoteAddress: string;
  /** Name of the listener, e.g. "tcp" or "tcp.second". */
  readonly listener: string;
  readonly tls: TlsInfo | null;
  readonly version: 3 | 4 | 5;
  /** Whether the connection has gone: nobody needs the answer any more. */
  readonly gone?: () => boolean;
}

/** Who a client is once it is in. Authorizers see only this. */
export interface Identity extends Arrival {
  readonly clientId: string;
  /** null for anonymous clients; taken from the certificate where the listener says so. */
  readonly username: string | null;
  /** Internal clients (bridges, REST) that a source of users never saw. */
  readonly internal: boolean;
  /** Wall-clock milliseconds when what vouched for it ends (a token); absent: it does not. */
  readonly validUntil?: number;
  /** Only its names are known (a store of an earlier format): rules that ask for listener, address or claims deny. */
  readonly partial?: boolean;
}

export type AuthResult =
  | { readonly accepted: true; readonly identity: Identity }
  /**
   * `why` is for the log and metrics, a stable word: unknown-user, bad-password, anonymous, locked, source-down ...;
   * clients never see it.
   */
  | { readonly accepted: false; readonly reasonCode: number; readonly why: string };

export interface Authenticator {
  authenticate(credentials: Credentials): AuthResult | Promise<AuthResult>;
}

/** One step of an enhanced authentication (MQTT 5.0 section 4.12). */
export type EnhancedStep =
  | { readonly kind: 'continue'; readonly data: Uint8Array | null }
  | { readonly kind: 'accept'; readonly data: Uint8Array | null; readonly username: string }
  | { readonly kind: 'refuse'; readonly reasonCode: number; readonly why: string };
export interface EnhancedExchange {
  /** `data` is the Authentication Data of CONNECT (first) or AUTH. */
  step(data: Uint8Array | null): EnhancedStep | Promise<EnhancedStep>;
}
export interface EnhancedMethod {
  /** The Authentication Method, e.g. "SCRAM-SHA-256". */
  readonly name: string;
  begin(credentials: Credentials): EnhancedExchange;
}

/** true = allowed; a rejected promise = nobody could say. */
export type Verdict = boolean | Promise<boolean>;

export interface Authorizer {
  /** Rises whenever verdicts may have changed; who caches them compares it. */
  readonly version: number;
  /** A verdict on a PUBLISH holds for that packet alone: it is asked for again for the next one. */
  readonly everyPublish?: boolean;
  publish(identity: Identity, topicName: string, qos: number, retain: boolean): Verdict;
  /** Whether the SUBSCRIBE is granted; with mosquitto rules this is mostly true and deliver() filters. */
  subscribe(identity: Identity, topicFilter: string, qos: number): Verdict;
  /** Whether a subscription may be ended by the client; absent: always. */
  unsubscribe?(identity: Identity, topicFilter: string): boolean;
  /** Whether a message on this topic may reach the client. Never a promise: delivery does not wait. */
  deliver(identity: Identity, topicName: string): boolean;
  /** Which rule decided: file and line or configuration key, for `ctl explain`. */
  explain(
    identity: Identity,
    action: 'publish' | 'subscribe' | 'deliver',
    topic: string,
  ): { allowed: boolean; rule: string };
}

/** What a denial of a PUBLISH or SUBSCRIBE does beyond the answer. */
export type DenyAction = 'ignore' | 'disconnect';

/** All that session/ needs, for one listener. Swapped whole on reload. */
export interface Access {
  /** The set of users of the listener, as in Identity. */
  readonly realm: string;
  /** Whether what let this client in would let it in now: asked for what a client left behind, its will above all. */
  vouches(identity: Identity): boolean;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly enhanced: readonly EnhancedMethod[];
  readonly denyAction: DenyAction;
}

/**
 * How clients are judged that are not here: restored sessions, their wills, publishers of stored messages. Nothing
 * unknown is allowed.
 */
export interface Absentees {
  /** The rights of who came as this one did; if its listener is there no more, what every listener would allow. */
  access(identity: Identity): Access;
  /** The realm that a user name of unknown realm belongs to; null when that is not certain. */
  realmOf(username: string | null): string | null;
}
