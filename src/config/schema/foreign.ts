// Sections of NanoMQ's files that are no sections here: some mean another key (sqlite, preset), the others do nothing
// and say so. Data for schema.ts.
import { checkTopicFilter } from '../values.ts';
import { block, ignored, list, named, needless, optional } from './blocks.ts';
import { digit, flag, int, text } from './keys.ts';

const PRESET_SESSION = block(
  {
    clientid: text({
      text: 'Client id. The first client that connects with it without clean start owns the session.',
      example: 'device-1',
    }),
    topic: list(
      block(
        {
          remote_topic: text({ text: 'Topic filter.', check: checkTopicFilter, example: 'down/device-1/#' }),
          qos: digit([0, 1, 2], { default: 1, text: 'QoS of the subscription.' }),
          retain_as_published: flag({ default: false, text: 'Retain As Published (MQTT 5).' }),
          retain_handling: int({ default: 0, max: 2, text: 'Retain Handling (MQTT 5).' }),
          retain: ignored('retained messages are sent when a client subscribes; no effect', 'number'),
          stream_id: ignored('QUIC streams are not supported', 'number'),
        },
        { unknown: 'warn', text: 'One subscription.' },
      ),
      { text: 'Subscriptions of the session; matching messages are kept until the client connects.' },
    ),
  },
  { unknown: 'warn', text: 'A session that exists from the start of the gateway and is kept for max_session_expiry.' },
);

/** Blocks of NanoMQ that mean something here, and those for what is not here. */
export const FOREIGN = {
  system: needless('threads and processes are not configured; no effect', 'block'),
  sqlite: optional(
    {
      enable: flag({ default: true, text: 'Whether persistence is on.' }),
      mounted_file_path: text({ default: '.', text: 'Folder of the database.' }),
      disk_cache_size: needless('the size of the database is persistence.max_size; no effect', 'number'),
      flush_mem_threshold: needless('writes are grouped by time, see persistence.sync; no effect', 'number'),
      resend_interval: needless('messages are resent when a client reconnects; no effect', 'number'),
    },
    {
      unknown: 'warn',
      text: "NanoMQ's block for persistence: the same as persistence.path = <mounted_file_path>/tidegate.db.",
    },
  ),
  preset: optional(
    {
      session: named(PRESET_SESSION, { example: 'name', text: 'Sessions that exist before their clients connect.' }),
    },
    { unknown: 'warn', text: "NanoMQ's preset sessions." },
  ),
  plugin: ignored('plugins are not supported', 'block'),
  exchange_client: ignored('exchanges are not supported', 'block'),
  exchange: ignored('exchanges are not supported', 'block'),
  parquet: ignored('parquet files are not supported', 'block'),
  blf: ignored('BLF files are not supported', 'block'),
  cmd: needless('no effect', 'block'),
  license: needless('no licence is needed', 'block'),
};
