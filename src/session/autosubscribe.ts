// Subscriptions that a client gets by itself when it connects (topics.auto_subscribe). Called by served.ts behind the
// CONNACK. They pass the same checks as those of a SUBSCRIBE; nobody is answered, so what is refused is logged.
import { errorText, ProtocolError } from '../base/errors.ts';
import type { ListenerContext } from '../broker/broker.ts';
import { Hold } from '../mqtt/message.ts';
import type { Core } from './session.ts';
import type { Session } from './state.ts';
import { type Subscribed, subscribe } from './subscribe.ts';

/** Subscribes; gives what to wait for where a source of rights answers later. */
export function autoSubscribe(
  core: Core,
  session: Session,
  listener: ListenerContext,
  isOpen: () => boolean,
): Promise<void> | null {
  const subscriptions = core.policies?.of(session.identity)?.subscriptions ?? [];
  if (subscriptions.length === 0) return null;
  const refused = (topicFilter: string, reason: string): void =>
    core.log('warn', 'CLI-AUTO-SUBSCRIBE', { clientId: session.clientId, topicFilter, reason });
  const done = (granted: Subscribed | null): void => {
    if (granted === null) return;
    for (const [i, code] of granted.reasonCodes.entries())
      if (code >= 0x80) refused(subscriptions[i].topicFilter, `0x${code.toString(16)}`);
    if (granted.stored) core.journal.barrierAll(new Hold());
    if (isOpen()) granted.afterAnswer();
  };
  const failed = (error: unknown): void => {
    // A denial that would end the connection of a client that asks for it itself.
    if (!(error instanceof ProtocolError)) throw error;
    refused(subscriptions[0].topicFilter, errorText(error));
  };
  try {
    const result = subscribe(core, session, listener, { subscriptions, properties: null }, isOpen);
    if (result instanceof Promise) return result.then(done).catch(failed);
    done(result);
  } catch (error) {
    failed(error);
  }
  return null;
}
