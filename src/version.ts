// The version of this build, from package.json (the bundler puts it in).
// Used by the command line and whatever says which gateway this is.
import manifest from '../package.json' with { type: 'json' };

export const version: string = manifest.version;
