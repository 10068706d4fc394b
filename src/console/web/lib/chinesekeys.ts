// The descriptions of all configuration keys in Chinese. Loaded by the page of the configuration when that is the
// language: nobody else needs these texts.
import { BRIDGE_KEYS } from './chinesekeysbridges.ts';
import { BROKER_KEYS } from './chinesekeysbroker.ts';
import { PROXY_KEYS } from './chinesekeysproxy.ts';

export const KEY_TEXTS: Readonly<Record<string, string>> = { ...BROKER_KEYS, ...BRIDGE_KEYS, ...PROXY_KEYS };
