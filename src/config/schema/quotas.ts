// The keys of quotas.<name>: each once, with type, default and text. Data for schema.ts; to add a key, add a row here,
// its name in code to policy/quota.ts, and run `make docs`.
import { block, named } from './blocks.ts';
import { decimal, flag, int, size, text, word } from './keys.ts';

const none = (what: string) => int({ default: 0, text: `${what} 0 = no limit.` });

const QUOTA = block(
  {
    enable: flag({ default: true, text: 'Whether the quota is active.' }),
    per: word(['client', 'user', 'listener', 'address'], {
      text: 'What the limits are for: one client id, all clients of one username (anonymous ones count as one), of one listener, of one IP address (IPv6: its /64 network).',
      example: 'client',
    }),
    listener: text({
      default: '',
      text: 'Only for clients on this listener, such as "tcp.second". Empty = on every listener.',
    }),
    username: text({ default: '', text: 'Only for this user. Empty = for every user.' }),
    connects: none('CONNECT packets per second.'),
    publishes: none('PUBLISH packets per second.'),
    bytes: size({ default: '0B', text: 'Bytes of PUBLISH packets per second. 0 = no limit.' }),
    burst: decimal({
      default: 1,
      min: 0,
      text: 'Seconds whose amount may come at once, for the three limits per second.',
    }),
    subscriptions: none('Subscriptions of their sessions, connected or not; more get 0x97.'),
    sessions: none('Sessions, connected or not; more get 0x97.'),
    retained: none('Retained messages published by them; more are refused like a full store.'),
    inflight: none('QoS 1 and 2 messages from them that wait for an acknowledgement of the gateway.'),
    action: word(['delay', 'drop', 'disconnect'], {
      default: 'delay',
      text: 'When publishes, bytes or inflight are exceeded: delay = the client is not read until it is due; drop = QoS 0 is dropped, QoS 1 and 2 are delayed; disconnect = 0x96 (inflight: 0x97). connects: delay = CONNACK waits up to 5 seconds; otherwise and beyond, refused with 0x9F.',
    }),
  },
  { unknown: 'error', text: 'One quota.' },
);

export const QUOTAS = named(QUOTA, {
  example: 'devices',
  text: 'What clients may use. A client must stay within every quota that concerns it.',
});
