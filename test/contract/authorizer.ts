// What every source of rights owes session/, run for each of them: the user `u` with client id `c` may publish on and read `yes/...`
// and may neither on `no/...`. Topics of the server are refused whatever the source says; deliver() never waits.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Authorizer, Identity } from '../../src/auth/auth.ts';
import type { AccessControl } from '../../src/auth/chain.ts';

export interface AuthorizerUnderTest {
  make(): Promise<AccessControl>;
  /** The client that is asked about. */
  who(control: AccessControl): Promise<Identity> | Identity;
  /** Whether deliveries are filtered by topic (a remote source decides at SUBSCRIBE only). */
  readonly filtersDelivery: boolean;
  /** Whether the SUBSCRIBE to `no/#` is refused. */
  readonly refusesSubscribe: boolean;
  done?(): Promise<void> | void;
}

const SERVER_TOPICS = ['$SYS', '$SYS/broker/uptime', '$SYSx', '$CONTROL/x', '$CONTROL', '$share/g/yes/1', '$sharex'];

export function authorizerContract(name: string, subject: AuthorizerUnderTest): void {
  describe(`${name} as a source of rights`, () => {
    let control: AccessControl;
    let authorizer: Authorizer;
    let who: Identity;
    beforeAll(async () => {
      control = await subject.make();
      who = await subject.who(control);
      authorizer = control.access('tcp').authorizer;
    });
    afterAll(async () => {
      control.close();
      await subject.done?.();
    });

    it('allows what it grants', async () => {
      for (const topic of ['yes', 'yes/1', 'yes/a/b', 'yes/'])
        expect(await authorizer.publish(who, topic, 1, false), topic).toBe(true);
      expect(await authorizer.subscribe(who, 'yes/#', 1)).toBe(true);
      expect(authorizer.deliver(who, 'yes/1')).toBe(true);
    });

    it('refuses to publish what it does not grant', async () => {
      for (const topic of ['no', 'no/1', 'yesx', 'Yes/1', '/yes/1', '$yes/1', '$x/yes']) {
        expect(await authorizer.publish(who, topic, 0, true), topic).toBe(false);
      }
    });

    it('keeps what may not be read from the client, at SUBSCRIBE or at delivery', async () => {
      expect(await authorizer.subscribe(who, 'no/#', 0)).toBe(!subject.refusesSubscribe);
      expect(authorizer.deliver(who, 'no/1')).toBe(!subject.filtersDelivery);
      expect(subject.refusesSubscribe || subject.filtersDelivery).toBe(true);
    });

    it('refuses topics of the server', async () => {
      for (const topic of SERVER_TOPICS) expect(await authorizer.publish(who, topic, 0, false), topic).toBe(false);
      expect(authorizer.deliver(who, '$share/g/yes/1')).toBe(false);
    });

    it('explains what it says', async () => {
      for (const topic of ['yes/1', 'no/1', '$SYS/x']) {
        const allowed = await authorizer.publish(who, topic, 0, false);
        expect(authorizer.explain(who, 'publish', topic), topic).toEqual({ allowed, rule: expect.stringMatching(/./) });
        const delivered = authorizer.deliver(who, topic);
        expect(authorizer.explain(who, 'deliver', topic).allowed, topic).toBe(delivered);
      }
    });

    it('has a version that does not fall', () => {
      const before = authorizer.version;
      expect(Number.isSafeInteger(before)).toBe(true);
      expect(authorizer.version).toBeGreaterThanOrEqual(before);
    });
  });
}
