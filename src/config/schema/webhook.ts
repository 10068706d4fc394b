// The keys of webhook: each once, with type, default and text. Data for schema.ts; to add a key, add a row here and its
// name in code to WebhookSettings of webhook/webhook.ts, then run `make docs`. Names, units and meanings are NanoMQ's
// where NanoMQ has the key; what it has and this gateway does not need is `ignored`.
import { checkTopicFilter, maskUrl } from '../values.ts';
import { block, ignored, list, optional, pairs } from './blocks.ts';
import { duration, flag, int, masked, text, word } from './keys.ts';
import { SECRET_HEADER, TLS_CLIENT } from './listeners.ts';

const EVENT = block(
  {
    event: word(
      [
        'on_client_connect',
        'on_client_connack',
        'on_client_connected',
        'on_client_disconnected',
        'on_client_subscribe',
        'on_client_unsubscribe',
        'on_session_subscribed',
        'on_session_unsubscribed',
        'on_session_terminated',
        'on_message_publish',
        'on_message_delivered',
        'on_message_acked',
      ],
      { text: 'Event to report.', example: 'on_message_publish' },
    ),
    topic: text({
      default: null,
      text: 'For on_message_publish: topic filter of the messages.',
      check: checkTopicFilter,
      example: 'a/#',
    }),
  },
  { unknown: 'warn', text: 'One event.' },
);
export const WEBHOOK = optional(
  {
    enable: flag({ default: true, text: 'Whether events are sent.' }),
    url: masked(
      maskUrl,
      text({ text: 'URL that receives the events as POST requests.', example: 'http://127.0.0.1:8080/events' }),
    ),
    headers: pairs({
      secret: SECRET_HEADER,
      text: 'Headers to send.',
      example: { 'content-type': 'application/json' },
    }),
    body: block(
      { encoding: word(['plain', 'base64', 'base62'], { default: 'plain', text: 'Encoding of payloads.' }) },
      { unknown: 'warn', text: 'Format of the request body.' },
    ),
    pool_size: int({ default: 32, min: 1, max: 1024, text: 'Largest number of concurrent requests.' }),
    cancel_timeout: duration({ default: '5s', unit: 'ms', text: 'Time allowed for an answer.' }),
    batch: block(
      {
        size: int({
          default: 1,
          min: 1,
          max: 1000,
          text: 'Largest number of events in one request. 1 = one event per request, as NanoMQ sends them; more = always a JSON array of events.',
        }),
        interval: duration({
          default: '100ms',
          unit: 'ms',
          text: 'Longest time an event waits for the request to fill.',
        }),
      },
      { unknown: 'error', text: 'Sending several events in one request.' },
    ),
    events: list(EVENT, { text: 'Events to send.' }),
    tls: optional(TLS_CLIENT, { unknown: 'error', text: 'TLS settings for https:// URLs.' }),
    ssl: ignored('NanoMQ reads these and does not use them; use the block tls', 'block'),
  },
  { unknown: 'warn', text: 'Events sent to an HTTP service. Off without this block.' },
);
