// Recognises configurations of other brokers: those that only `tidegate convert` reads: mosquitto.conf, and the old
// key=value form of NanoMQ. Called by load.ts, so that check and start say what a file is, and by converting.ts.
import { looksLikeMosquitto } from './mosquitto/mosquitto.ts';
import { looksLikeKeyValue } from './nanomq/keyvalue.ts';
import { ConfigError } from './problem.ts';

export type ForeignForm = 'mosquitto' | 'keyvalue';

export function foreignForm(text: string): ForeignForm | null {
  if (looksLikeMosquitto(text)) return 'mosquitto';
  return looksLikeKeyValue(text) ? 'keyvalue' : null;
}

const CALLED: Readonly<Record<ForeignForm, string>> = {
  mosquitto: 'this is a mosquitto.conf',
  keyvalue: 'this is a nanomq.conf in its old key=value form',
};

/** Throws ConfigError when a text is in another broker's form: it says which, and the command that takes it over. */
export function refuseForeign(text: string, file: string): void {
  const form = foreignForm(text);
  if (form === null) return;
  const message = `${CALLED[form]}; \`tidegate convert ${file} -o tidegate.conf\` takes it over`;
  throw new ConfigError([{ at: { file, line: 1, column: 1 }, key: 'syntax', message }]);
}
