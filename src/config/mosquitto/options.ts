// All options of mosquitto.conf by name. Asked by read.ts and mosquitto.ts.
import { BRIDGE } from './bridge.ts';
import { GENERAL } from './general.ts';
import { LISTENER } from './listener.ts';
import type { Option } from './option.ts';

export const OPTIONS: readonly Option[] = [...GENERAL, ...LISTENER, ...BRIDGE];

const BY_KEY: ReadonlyMap<string, Option> = new Map(
  OPTIONS.flatMap((option) => [option.key, ...(option.aliases ?? [])].map((key) => [key, option])),
);

/** Every name an option has. */
export const OPTION_KEYS: readonly string[] = [...BY_KEY.keys()];

export function optionNamed(key: string): Option | undefined {
  return BY_KEY.get(key) ?? BY_KEY.get(key.replace(/^(plugin|auth)_opt_.+$/, '$1_opt_*'));
}
