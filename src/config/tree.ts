// The effective configuration as a tree of plain values: what `check --print` and REST show. Made by the schema
// (config/schema/key.ts). Types alone.

/** A tree with the key names of the file, defaults included, sizes in bytes and durations in milliseconds. */
export type Tree = { readonly [key: string]: TreeValue };
export type TreeValue = string | number | boolean | null | readonly TreeValue[] | Tree;
