// The part of Eleventy that scripts/site.ts uses; the package has no types. Source: https://www.11ty.dev/docs/programmatic/.
declare module '@11ty/eleventy' {
  interface Config {
    addTemplate(name: string, content: string, data: Readonly<Record<string, unknown>>): void;
    setLibrary(language: 'md', library: unknown): void;
  }
  interface Options {
    readonly quietMode?: boolean;
    readonly configPath?: null;
    readonly config: (config: Config) => Readonly<Record<string, unknown>>;
  }
  export class Eleventy {
    constructor(input: string, output: string, options: Options);
    toJSON(): Promise<readonly { readonly url: string; readonly content: string }[]>;
  }
}
