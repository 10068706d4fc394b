// The state of a bridge as a retained message, 1 or 0, here and at the remote broker: what mosquitto calls
// notifications. Called by bridge.ts and connect.ts; whether there are any is configuration. The remote broker says 0
// by the will when the bridge is lost. Source: mosquitto.conf(5), notifications and notification_topic.
import type { LocalClient } from '../../broker/broker.ts';
import type { Will } from '../../mqtt/packet.ts';
import type { MqttBridgeOptions } from './options.ts';
import type { Outgoing } from './outmessage.ts';

const UP = Buffer.from('1');
const DOWN = Buffer.from('0');

type NoticeOptions = Pick<MqttBridgeOptions, 'notifications'>;

/** Null when the state is not published. */
export function noticeTopic({ notifications = null }: NoticeOptions, clientId: string): string | null {
  if (notifications === null) return null;
  return notifications.topic ?? `$SYS/broker/connection/${clientId}/state`;
}

function isLocalOnly({ notifications = null }: NoticeOptions): boolean {
  return notifications?.localOnly === true;
}

function retains({ notifications = null }: NoticeOptions): boolean {
  return notifications?.remoteRetain !== false;
}

/** What the remote broker publishes when it loses the bridge; null when it is told nothing. */
export function noticeWill(options: NoticeOptions, clientId: string): Will | null {
  const topicName = noticeTopic(options, clientId);
  if (topicName === null || isLocalOnly(options)) return null;
  return { topicName, payload: DOWN, qos: 1, retain: retains(options), properties: null, delayInterval: 0 };
}

/** Publishes the state here. */
export function noteHere(options: NoticeOptions, clientId: string, client: LocalClient | null, up: boolean): void {
  const topic = noticeTopic(options, clientId);
  const payload = up ? UP : DOWN;
  if (topic !== null) client?.publish(topic, payload, 0, payload.length, 1, true);
}

/** The state as a message for the remote broker, or null. */
export function noteThere(options: NoticeOptions, clientId: string, up: boolean): Outgoing | null {
  const topic = noticeTopic(options, clientId);
  if (topic === null || isLocalOnly(options)) return null;
  return { topic, payload: up ? UP : DOWN, qos: 0, retain: retains(options), properties: null, expiresAt: 0 };
}
