// `tidegate ctl bridge connect`: tests whether a bridge reaches its other side, one that is there or a document. Called
// by bridge.ts. Exit code 1 when a step failed. Changes nothing.
import { GatewayError } from '../../base/errors.ts';
import type { Context } from '../cli.ts';
import { column, type Row } from './table.ts';
import { documentOf, rowOf, rowsOf, show, type Work } from './work.ts';

export interface ConnectOptions {
  readonly type?: string;
  readonly file?: string;
  readonly publish?: string;
}

/** The type of a bridge there is: NNG ones tell it, the others are bridges to remote brokers. */
async function typeOf(work: Work, name: string): Promise<string> {
  const nng = rowsOf((await work.client.call('GET', '/nng/bridges')).data).find((row) => row.name === name);
  return nng === undefined ? 'mqtt' : String(nng.type);
}

function days(value: unknown): string {
  const end = rowOf(value).valid_to;
  return typeof end === 'number' ? new Date(end).toISOString().slice(0, 10) : '';
}

function wordsOf(row: Row): string {
  const certificate = rowOf(row.certificate);
  if (certificate.subject === undefined) return String(row.text ?? '');
  const names = Array.isArray(certificate.names) ? certificate.names.join(' ') : '';
  return `${row.text}: ${certificate.subject}, for ${names}, until ${days(certificate)}`;
}

export async function connectBridge(
  work: Work,
  options: ConnectOptions,
  name: string,
  context: Context,
): Promise<void> {
  const { file, publish } = options;
  if (name === '' && file === undefined) throw new GatewayError('CLI-USAGE', 'connect wants a name or --file');
  const whole = file === undefined ? null : rowOf(await documentOf(file, work.io));
  const { type: told, name: called, ...document } = whole ?? {};
  const known = options.type ?? told ?? (document.server === undefined ? undefined : 'mqtt');
  const type = known ?? (await typeOf(work, name));
  const about = name === '' ? called : name;
  const body = { type, document: whole === null ? null : document, publish_to: publish ?? null };
  const { data } = await work.client.call(
    'POST',
    '/test_connection',
    about === undefined ? body : { ...body, name: about },
  );
  const steps = rowsOf(data);
  show(work, steps, [
    column('STEP', 'step'),
    column('OUTCOME', 'outcome'),
    column('ABOUT', 'about'),
    { title: 'RESULT', value: wordsOf },
  ]);
  if (steps.some(({ outcome }) => outcome === 'failed')) context.exit(1);
}
