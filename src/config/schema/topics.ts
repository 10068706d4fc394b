// The keys of topics and validation.<name>: each once, with type, default and text. Data for schema.ts; to add a key,
// add a row here, its name in code to policy/topics.ts or policy/payload.ts, and run `make docs`. Schemas are compiled
// by gateway/policies.ts.
import { checkTopicFilter, checkTopicName } from '../values.ts';
import { block, list, named } from './blocks.ts';
import { digit, flag, int, seconds, size, text, word } from './keys.ts';

/** A timer of Node.js ends after 31 bits of milliseconds. */
const MOST_DELAY_SECONDS = 24 * 24 * 3600;

function checkFrom(filter: string): string | null {
  if (/^\$(?:share|exclusive|delayed)(?:\/|$)/.test(filter)) return 'the filter without its prefix expected';
  return checkTopicFilter(filter);
}

/** What is filled in may hold wildcards, where a filter is rewritten; what is written here may not. */
function checkTo(topic: string): string | null {
  return checkTopicName(topic.replace(/\{(?:topic|[1-9][0-9]{0,2})\}|%[cu]/g, 'x'));
}

function checkOwn(filter: string): string | null {
  return checkTopicFilter(filter.replace(/%[cu]/g, 'x'));
}

const LISTENER = text({
  default: '',
  text: 'Only for clients on this listener, such as "tcp.second". Empty = on every listener.',
});

const REWRITE = block(
  {
    action: word(['publish', 'subscribe', 'all'], {
      default: 'all',
      text: 'publish = topics of messages and wills; subscribe = filters of SUBSCRIBE and UNSUBSCRIBE.',
    }),
    from: text({ text: 'Topic filter of what is rewritten.', example: 'old/+/#', check: checkFrom }),
    to: text({
      text: 'New topic: {1} {2} ... = what the wildcards of from stand for, {topic} = the whole topic, %c = client id, %u = username.',
      example: 'new/{1}/{2}',
      check: checkTo,
    }),
    listener: LISTENER,
    username: text({ default: '', text: 'Only for this user. Empty = for every user.' }),
  },
  { unknown: 'error', text: 'One rule.' },
);

const AUTO_SUBSCRIPTION = block(
  {
    topic: text({
      text: 'Topic filter; %c = client id, %u = username. A client whose name is empty or holds / + or # goes without.',
      example: 'commands/%c/#',
      check: checkOwn,
    }),
    qos: digit([0, 1, 2], { default: 0, text: 'Highest QoS.' }),
    no_local: flag({ default: false, text: 'Leave out messages that the client has published itself.' }),
    retain_as_published: flag({ default: false, text: 'Keep the RETAIN flag of messages.' }),
    retain_handling: digit([0, 1, 2], {
      default: 0,
      text: '0 = retained messages at each connection, 1 = with a new subscription, 2 = never.',
    }),
    listener: LISTENER,
  },
  { unknown: 'error', text: 'One subscription.' },
);

export const TOPICS = block(
  {
    rewrite: list(REWRITE, {
      text: 'Rules that rewrite topics, in order: the first whose filter matches applies. Rights are judged on the new topic.',
    }),
    auto_subscribe: list(AUTO_SUBSCRIPTION, {
      text: 'Subscriptions that clients get when they connect, as far as their rights allow.',
    }),
    exclusive_subscriptions: flag({
      default: false,
      text: '$exclusive/<filter> is granted to one client at a time; others get 0x97.',
    }),
    delayed: block(
      {
        enable: flag({
          default: false,
          text: 'Publish messages on $delayed/<seconds>/<topic> that many seconds later on <topic>.',
        }),
        max_delay: seconds({ default: 86_400, min: 1, max: MOST_DELAY_SECONDS, text: 'Longest delay.' }),
        max_messages: int({ default: 10_000, min: 1, max: 1_000_000, text: 'Delayed messages at the same time.' }),
        max_bytes: size({ default: '64MB', min: 1024, text: 'Payload bytes of all delayed messages.' }),
      },
      { unknown: 'error', text: 'Delayed messages.' },
    ),
  },
  { unknown: 'error', text: 'Topics of clients: rewriting, subscriptions by configuration, delayed messages.' },
);

const RULE = block(
  {
    enable: flag({ default: true, text: 'Whether the rule is active.' }),
    topics: list(text({ text: 'Topic filter.', check: checkTopicFilter }), {
      single: true,
      min: 1,
      text: 'Topics whose messages are checked, from every publisher: clients, wills, bridges, rules, REST.',
      example: ['sensors/#'],
    }),
    content: word(['any', 'utf8', 'json'], {
      default: 'any',
      text: 'What a payload must be. json = one JSON value in UTF-8.',
    }),
    schema: text({
      default: null,
      text: 'JSON Schema that the value must satisfy, with content = json.',
      example: '{"type": "object", "required": ["temperature"]}',
    }),
    schema_file: text({
      default: null,
      text: 'File with the JSON Schema; read again at a reload.',
      example: '/etc/tidegate/sensor.schema.json',
    }),
    max_size: size({
      default: '1MB',
      text: 'Largest payload that passes. 0 = no limit, only with content = any or utf8.',
    }),
    action: word(['refuse', 'drop', 'tag'], {
      default: 'refuse',
      text: 'What happens to a message that fails. refuse = no effect, MQTT 5 publishers get 0x99; drop = no effect, acknowledged; tag = delivered with a User Property.',
    }),
    tag: text({
      default: 'invalid',
      text: 'Name of the User Property of action = tag; its value is the name of the rule.',
    }),
  },
  { unknown: 'error', text: 'One rule.' },
);

export const VALIDATION = named(RULE, {
  example: 'sensors',
  text: 'Rules that check payloads. A message must pass every rule that matches its topic.',
});
