// What a source of users answers (local users, HTTP, JWT). Asked in order by chain.ts; the first that knows the user
// decides. A source never throws and never rejects: what goes wrong inside is a refusal.
import type { Via } from '../mqtt/message.ts';
import type { Credentials } from './auth.ts';

export type Answer =
  | {
      readonly kind: 'accept';
      /** Taken from a token where it says so; otherwise what the client sent holds. */
      readonly clientId?: string;
      readonly username?: string | null;
      /** JSON values: they are stored with what the client leaves behind. */
      readonly claims?: ReadonlyMap<string, unknown>;
      /** Wall-clock milliseconds; absent: it does not end. */
      readonly validUntil?: number;
      /** Which source it was. */
      readonly via: Via;
    }
  | { readonly kind: 'refuse'; readonly reasonCode: number; readonly why: string }
  /** This source does not know such a user; the next is asked. */
  | { readonly kind: 'unknown' };

export interface Source {
  /** Credentials have a user name or a password, and the password has no NUL. */
  check(credentials: Credentials): Answer | Promise<Answer>;
}
