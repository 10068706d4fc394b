// `-D command identifier value`: MQTT 5.0 properties as people type them for mosquitto_pub and mosquitto_sub.
// Called by options.ts. Which property may stand in which packet is MQTT 5.0 table 2-4; a wrong word is CLI-USAGE.
import { usage } from '../usage.ts';

export const COMMANDS = ['connect', 'publish', 'subscribe', 'unsubscribe', 'disconnect', 'will'] as const;
export type PropertyCommand = (typeof COMMANDS)[number];

export type PropertyValue = string | number | boolean | Buffer | Record<string, string[]>;
/** Properties of one packet under the names of the mqtt package. */
export type PropertySet = Record<string, PropertyValue>;

type Kind = 'byte' | 'flag' | 'u16' | 'u32' | 'text' | 'binary' | 'pair';

interface Row {
  readonly key: string;
  readonly kind: Kind;
  readonly in: readonly PropertyCommand[];
}

const PROPERTIES: ReadonlyMap<string, Row> = new Map<string, Row>([
  ['payload-format-indicator', { key: 'payloadFormatIndicator', kind: 'flag', in: ['publish', 'will'] }],
  ['message-expiry-interval', { key: 'messageExpiryInterval', kind: 'u32', in: ['publish', 'will'] }],
  ['content-type', { key: 'contentType', kind: 'text', in: ['publish', 'will'] }],
  ['response-topic', { key: 'responseTopic', kind: 'text', in: ['publish', 'will'] }],
  ['correlation-data', { key: 'correlationData', kind: 'binary', in: ['publish', 'will'] }],
  ['topic-alias', { key: 'topicAlias', kind: 'u16', in: ['publish'] }],
  ['subscription-identifier', { key: 'subscriptionIdentifier', kind: 'u32', in: ['subscribe'] }],
  ['session-expiry-interval', { key: 'sessionExpiryInterval', kind: 'u32', in: ['connect', 'disconnect'] }],
  ['receive-maximum', { key: 'receiveMaximum', kind: 'u16', in: ['connect'] }],
  ['maximum-packet-size', { key: 'maximumPacketSize', kind: 'u32', in: ['connect'] }],
  ['topic-alias-maximum', { key: 'topicAliasMaximum', kind: 'u16', in: ['connect'] }],
  ['request-problem-information', { key: 'requestProblemInformation', kind: 'flag', in: ['connect'] }],
  ['request-response-information', { key: 'requestResponseInformation', kind: 'flag', in: ['connect'] }],
  ['authentication-method', { key: 'authenticationMethod', kind: 'text', in: ['connect'] }],
  ['authentication-data', { key: 'authenticationData', kind: 'binary', in: ['connect'] }],
  ['will-delay-interval', { key: 'willDelayInterval', kind: 'u32', in: ['will'] }],
  ['reason-string', { key: 'reasonString', kind: 'text', in: ['disconnect'] }],
  ['user-property', { key: 'userProperties', kind: 'pair', in: COMMANDS }],
]);

const LARGEST: Readonly<Record<'byte' | 'flag' | 'u16' | 'u32', number>> = {
  byte: 0xff,
  flag: 1,
  u16: 0xffff,
  u32: 0xffffffff,
};

function isCommand(word: string): word is PropertyCommand {
  return (COMMANDS as readonly string[]).includes(word);
}

function parseValue(name: string, kind: Exclude<Kind, 'pair'>, text: string): PropertyValue {
  if (kind === 'text') return text;
  if (kind === 'binary') return Buffer.from(text);
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > LARGEST[kind]) throw usage(`-D ${name} wants a number from 0 to ${LARGEST[kind]}`);
  return kind === 'flag' ? value === 1 : value;
}

/** Reads the words of all -D options in a row. Throws CLI-USAGE. */
export function parseProperties(words: readonly string[]): Map<PropertyCommand, PropertySet> {
  const sets = new Map<PropertyCommand, PropertySet>();
  let at = 0;
  const next = (what: string): string => {
    if (at >= words.length) throw usage(`-D lacks its ${what}: -D command identifier value`);
    return words[at++];
  };
  while (at < words.length) {
    const command = next('command');
    if (!isCommand(command)) throw usage(`-D ${command}: the command is one of ${COMMANDS.join(', ')}`);
    const name = next('identifier');
    const row = PROPERTIES.get(name);
    if (row === undefined) throw usage(`-D ${command} ${name}: no such property`);
    if (!row.in.includes(command)) throw usage(`-D ${command} ${name}: only for ${row.in.join(', ')}`);
    const set: PropertySet = sets.get(command) ?? Object.create(null);
    sets.set(command, set);
    if (row.kind === 'pair') addPair(set, next('name'), next('value'));
    else set[row.key] = parseValue(name, row.kind, next('value'));
  }
  return sets;
}

/** User properties may repeat a name; their values keep their order. */
function addPair(set: PropertySet, name: string, value: string): void {
  const pairs = (set.userProperties ?? Object.create(null)) as Record<string, string[]>;
  pairs[name] = [...(pairs[name] ?? []), value];
  set.userProperties = pairs;
}
