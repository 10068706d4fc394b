// SEAM of config/mosquitto/: takes a mosquitto.conf over. Its lines become a tree of this gateway with the same
// meaning; what means something else is told with its line and consequence, what would weaken security is refused.
// Called by config/converting.ts and, to say what a file is, by config/foreign.ts. Sources: mosquitto.conf(5) of
// 2.0.11, the options of 2.1, both on the wire where they differ.

import { Report } from '../report.ts';
import type { BlockNode } from '../text/node.ts';
import { blockNode } from '../text/node.ts';
import { placeBroker } from './broker.ts';
import { linesOf } from './lines.ts';
import { optionNamed } from './options.ts';
import { placeListeners } from './place.ts';
import { type Files, readDraft } from './read.ts';
import { placeBridges } from './remote.ts';
import { type PluginImport, placeSecurity } from './security.ts';

export interface MosquittoParts {
  readonly files: Files;
  /** Of this machine: bridges without a client id have it in theirs. */
  readonly hostname: string;
  readonly importPlugin: PluginImport;
}

/** The tree and what there is to tell. Throws what `parts.files` throws. */
export function importMosquitto(
  text: string,
  file: string,
  parts: MosquittoParts,
): { tree: BlockNode; report: Report } {
  const report = new Report();
  const draft = readDraft(text, file, parts.files, report);
  const tree = blockNode(draft.at);
  const listeners = placeListeners(draft, tree, report);
  placeSecurity(draft, listeners, tree, report, parts.importPlugin);
  placeBroker(draft, tree, report);
  placeBridges(draft, tree, parts.hostname, report);
  return { tree, report };
}

/** Lines that are looked at: a file says what it is early. */
const LOOK_LINES = 400;

/**
 * Whether a text is a mosquitto.conf rather than HOCON: a line with a key of mosquitto and a value without a sign
 * between, and none that opens or closes a block or assigns. O(LOOK_LINES).
 */
export function looksLikeMosquitto(text: string): boolean {
  const { lines } = linesOf(text.split('\n', LOOK_LINES).join('\n'), '');
  const isHocon = lines.some(({ key, value }) => /[={}[\]]|:$/.test(key) || /^[=:{[]|^\+=/.test(value));
  return !isHocon && lines.some(({ key, value }) => value !== '' && optionNamed(key) !== undefined);
}
