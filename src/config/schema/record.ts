// The keys of record, the recording of messages: each once, with type, default and text. Data for schema.ts; to add a
// key, add a row here, use it in gateway/archive.ts and run `make docs`.
import { checkTopicFilter } from '../values.ts';
import { block, list } from './blocks.ts';
import { duration, size, text } from './keys.ts';

/** Ten years. */
const MAX_KEEP_MS = 3650 * 24 * 3_600_000;

export const RECORD = block(
  {
    topics: list(text({ text: 'Topic filter.', check: checkTopicFilter }), {
      single: true,
      text: 'Topic filters of the messages that are recorded. Empty = nothing is recorded.',
      example: ['plant/#'],
    }),
    keep: duration({
      default: '7d',
      max: MAX_KEEP_MS,
      text: 'Age at which recorded messages are deleted. 0 = no limit.',
    }),
    max_size: size({
      default: '1GB',
      text: 'Largest size of the file in use; beyond it, the oldest recorded messages are deleted. 0 = no limit.',
    }),
    path: text({
      default: '',
      restart: true,
      text: 'File of the recording. Empty = beside the database of persistence, with -archive in its name.',
    }),
  },
  { unknown: 'error', text: 'Recording of messages for later queries, export and replay: docs/recording.md.' },
);
