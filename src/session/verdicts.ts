// Verdicts of the authorizer kept per client, so that rights cost a map look-up and not a rule walk.
// Used by publish.ts and state.ts; dropped when the authorizer's version rises.

/** Topics remembered for one client; above that all are forgotten. */
export const WRITE_VERDICTS = 1000;
export const READ_VERDICTS = 1000;
