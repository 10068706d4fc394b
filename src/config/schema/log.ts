// The keys of log: each once, with type, default and text. Data for schema.ts; to add a key, add a row here, use it in
// cli/start.ts and run `make docs`. Names, units and meanings are NanoMQ's where NanoMQ has the key.
import { block, ignored, list } from './blocks.ts';
import { int, size, text, word } from './keys.ts';

export const LOG = block(
  {
    level: word(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], {
      default: 'warn',
      text: 'Lowest level that is logged.',
    }),
    to: list(word(['console', 'file', 'syslog', 'uds'], { text: 'A target.' }), {
      single: true,
      restart: true,
      default: ['console'],
      text: 'Where log lines are written: console, file or both.',
    }),
    dir: text({ default: '', restart: true, text: 'Folder of the log file; empty = the working directory.' }),
    file: text({ default: 'tidegate.log', restart: true, text: 'Name of the log file.' }),
    rotation: block(
      {
        size: size({
          default: '10MB',
          restart: true,
          text: 'Size at which the log file is rotated. 0 = never.',
        }),
        count: int({ default: 5, max: 1000, restart: true, text: 'Number of old files to keep. 0 = all.' }),
      },
      { unknown: 'warn', text: 'Rotation of the log file.' },
    ),
    format: word(['auto', 'json', 'pretty'], {
      default: 'auto',
      restart: true,
      text: 'Format of log lines. auto: pretty on a terminal, else json.',
    }),
    uds_addr: ignored('logging to a Unix socket is not supported', 'text'),
  },
  { unknown: 'warn', text: 'Logging.' },
);
