// Code of others in the gateway: the hooks of plugins and of an embedding program as one, and whose an error is that
// nothing has caught. Built by gateway.ts. The code of plugins is loaded only when some are configured.
import path from 'node:path';
import type { HookDeps } from '../auth/hooks.ts';
import { errorText } from '../base/errors.ts';
import type { Loaded } from '../config/config.ts';
import { type GatewayHooks, ProgramHooks } from './hooks.ts';
import { isOfFile } from './ownerror.ts';
import type { Plugin } from './plugins.ts';

export class Extensions {
  private readonly own: GatewayHooks | null;
  private readonly deps: HookDeps;
  private plugins: readonly Plugin[] = [];

  /** `own`: those of the embedding program. */
  constructor(own: GatewayHooks | null, deps: HookDeps) {
    this.own = own;
    this.deps = deps;
  }

  /** Those of plugins first, then those of the embedding program; null: there are none. */
  async load({ config, file }: Loaded): Promise<ProgramHooks | null> {
    const { own, deps } = this;
    if (config.plugins.length === 0) return own === null ? null : new ProgramHooks(own, deps);
    const { loadPlugins, together } = await import('./plugins.ts');
    const { log, metrics, clock } = deps;
    const folder = file === null ? process.cwd() : path.dirname(path.resolve(file));
    this.plugins = await loadPlugins(config.plugins, folder, { log, metrics, mono: () => clock.mono() });
    const all = together([...this.plugins.map(({ hooks }) => hooks), ...(own === null ? [] : [own])]);
    return all === null ? null : new ProgramHooks(all, deps);
  }

  /** Whether an error that nothing has caught is a plugin's, which says nothing of the state of the gateway. */
  survives(error: unknown): boolean {
    const plugin = this.plugins.find(({ file }) => isOfFile(error, file));
    if (plugin === undefined) return false;
    this.deps.log('error', 'PLUGIN-FAILED', { plugin: plugin.name, error: errorText(error) });
    return true;
  }
}
