// Who may log in and what they may do, of a mosquitto.conf: for all listeners, or with per_listener_settings for each.
// Called by mosquitto.ts when the listeners are placed; fills the tree and the report. A plugin that cannot be asked
// here closes what it guarded. Sources: mosquitto.conf(5), mosquitto 2.0.11 and 2.1 on the wire.
import type { Position } from '../problem.ts';
import type { Report } from '../report.ts';
import { put } from '../text/grow.ts';
import type { BlockNode } from '../text/node.ts';
import type { Draft, PluginDraft, SecurityDraft, Settings } from './draft.ts';
import type { PlacedListener } from './place.ts';

/**
 * Takes a plugin over that guards all listeners; false when it is not asked here, then or after a problem that has been
 * reported.
 */
export type PluginImport = (plugin: PluginDraft, root: BlockNode, report: Report) => 'taken' | 'reported' | 'unknown';

export function placeSecurity(
  draft: Draft,
  listeners: readonly PlacedListener[],
  root: BlockNode,
  report: Report,
  importPlugin: PluginImport,
): void {
  const isClosed = placeShared(draft, listeners, root, report, importPlugin);
  for (const listener of listeners) placeOwn(draft, listener, isClosed, report, importPlugin);
}

/** Gives whether a plugin guarded everything and is not here. */
function placeShared(
  draft: Draft,
  listeners: readonly PlacedListener[],
  root: BlockNode,
  report: Report,
  importPlugin: PluginImport,
): boolean {
  const { security, perListener, at } = draft;
  const { settings } = security;
  putFile(settings, 'password_file', root, 'auth.password_file');
  putFile(settings, 'acl_file', root, 'auth.acl_file');
  const unasked = guards(security, root, report, importPlugin);
  const local = listeners.some((listener) => listener.implicit === 'local');
  const implicit = listeners.some((listener) => listener.implicit !== null);
  const line = settings.line('allow_anonymous');
  let open = settings.flag('allow_anonymous') ?? implicit;
  if (implicit && line !== undefined && !open && local) {
    const message = 'mosquitto 2.0 lets anybody in while no listener is named, 2.1 and this do not';
    report.change(line.at, line.key, message);
  }
  if (perListener) open = local;
  put(root, 'auth.allow_anonymous', open && !unasked, line?.at ?? at);
  if (listeners.some((listener) => listener.implicit === 'default') && line === undefined && !perListener) {
    const message =
      'no listener is named and allow_anonymous is not given: mosquitto 2.0 lets anybody in from anywhere; so does this';
    report.change(at, 'allow_anonymous', message);
  }
  return unasked;
}

function placeOwn(
  draft: Draft,
  listener: PlacedListener,
  isClosed: boolean,
  report: Report,
  importPlugin: PluginImport,
): void {
  const { block, implicit } = listener;
  const { security, settings: own, at } = listener.draft;
  const { settings } = draft.perListener ? security : draft.security;
  placeKeys(settings, own, block, report);
  placeClientIds(settings, own, block);
  const word = own.line('listener_allow_anonymous');
  if (!draft.perListener) {
    const unasked = isClosed || guards(security, null, report, importPlugin);
    if (unasked) put(block, 'allow_anonymous', false, at);
    else if (word !== undefined) put(block, 'allow_anonymous', own.flag('listener_allow_anonymous') === true, word.at);
    return;
  }
  putFile(settings, 'password_file', block, 'password_file');
  putFile(settings, 'acl_file', block, 'acl_file');
  const unasked = guards(security, null, report, importPlugin);
  const line = word ?? settings.line('allow_anonymous');
  const said = own.flag('listener_allow_anonymous') ?? settings.flag('allow_anonymous');
  const byDefault = isFirst(draft, listener) || implicit !== null;
  if (byDefault && said === null) tellDefault(at, report);
  const prefix = settings.line('auto_id_prefix');
  if (prefix !== undefined && isFirst(draft, listener))
    report.change(prefix.at, prefix.key, 'counts here; mosquitto 2.0 forgets it for the default listener');
  put(block, 'allow_anonymous', (said ?? byDefault) && !unasked, line?.at ?? at);
}

function isFirst(draft: Draft, { draft: listener }: PlacedListener): boolean {
  return listener.settings === draft.first.settings;
}

function tellDefault(at: Position, report: Report): void {
  const message =
    'mosquitto 2.0 lets anybody in to the default listener while its allow_anonymous is not given; so does this, 2.1 does not start';
  report.change(at, 'allow_anonymous', message);
}

/** The keys of a listener with psk_hint: without any nobody can connect, here and there. */
function placeKeys(settings: Settings, own: Settings, block: BlockNode, report: Report): void {
  const hint = own.line('psk_hint');
  if (hint === undefined || !block.fields.has('psk_hint')) return;
  putFile(settings, 'psk_file', block, 'psk_file');
  if (settings.has('psk_file')) return;
  block.fields.delete('psk_hint');
  put(block, 'enable', false, hint.at);
  report.change(hint.at, hint.key, 'without psk_file nobody can connect: the listener is written with enable = false');
}

function putFile(settings: Settings, key: string, block: BlockNode, path: string): void {
  const line = settings.line(key);
  if (line !== undefined) put(block, path, line.value, line.at);
}

/** What a client is called that gives no name, and whether it may. */
function placeClientIds(settings: Settings, own: Settings, block: BlockNode): void {
  const empty = settings.line('allow_zero_length_clientid');
  if (empty !== undefined && settings.flag('allow_zero_length_clientid') === false)
    put(block, 'allow_empty_clientid', false, empty.at);
  const prefix = own.line('listener_auto_id_prefix') ?? settings.line('auto_id_prefix');
  if (prefix !== undefined) put(block, 'auto_clientid_prefix', prefix.value, prefix.at);
}

/** Whether a plugin is named that is not asked here. `root`: it guards all listeners, and may be taken over. */
function guards(security: SecurityDraft, root: BlockNode | null, report: Report, importPlugin: PluginImport): boolean {
  let unasked = false;
  for (const plugin of security.plugins) {
    // It is asked before password_file and acl_file there and here.
    const isAlone = security.plugins.length === 1;
    const outcome = root !== null && isAlone ? importPlugin(plugin, root, report) : 'unknown';
    if (outcome === 'taken') continue;
    unasked = true;
    if (outcome === 'reported') continue;
    const message = `${plugin.path} would not be asked who may log in and what they may do; asked for, its listeners take no anonymous clients`;
    report.refuse(plugin.at, plugin.key, message);
  }
  return unasked;
}
