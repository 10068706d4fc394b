// The keys of persistence: each once, with type, default and text. Data for schema.ts; to add a key, add a row here
// and its name in code to the options of store/sqlite.ts, then run `make docs`.
import { block } from './blocks.ts';
import { duration, flag, size, text, word } from './keys.ts';

export const PERSISTENCE = block(
  {
    enable: flag({
      default: null,
      restart: true,
      text: 'Whether persistence is on. Absent = on if path is set.',
      example: true,
    }),
    path: text({
      default: '',
      restart: true,
      text: 'Database file; its folder is created. Setting it turns persistence on.',
    }),
    sync: word(['ack', 'interval', 'off'], {
      default: 'ack',
      restart: true,
      text: 'When data is synced to disk. ack: before a message is acknowledged. interval: at least once per interval. off: when the operating system decides.',
    }),
    interval: duration({ default: '100ms', unit: 'ms', min: 1, restart: true, text: 'Interval for sync = interval.' }),
    max_size: size({
      default: '1GB',
      restart: true,
      text: 'Largest size of the database; beyond it, QoS 1 and 2 publishes to persistent sessions are refused. 0 = no limit.',
    }),
    on_corrupt: word(['start', 'stop'], {
      default: 'start',
      restart: true,
      text: 'Reaction to a damaged database. start: set it aside and start with an empty one. stop: do not start.',
    }),
  },
  { unknown: 'error', text: 'Storage for sessions, queued and retained messages across restarts.' },
);
