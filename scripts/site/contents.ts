// The order of the documentation site: chapters and their pages, by the name of the Markdown file without its ending.
// Used by scripts/site.ts. A page of docs/ that is missing here fails the build.

export interface Chapter {
  readonly title: string;
  readonly pages: readonly string[];
}

export const CHAPTERS: readonly Chapter[] = [
  { title: 'Start', pages: ['index', 'getting-started'] },
  {
    title: 'Guides',
    pages: [
      'guide-tls',
      'guide-users',
      'guide-central-broker',
      'local-analytics',
      'from-mosquitto',
      'from-nanomq',
      'from-nginx',
      'guide-monitoring',
      'guide-backup',
      'guide-hardening',
      'service',
      'containers',
      'troubleshooting',
    ],
  },
  {
    title: 'Features',
    pages: [
      'nng-bridges',
      'mqtt-bridges',
      'rules',
      'topics',
      'quotas',
      'recording',
      'tracing',
      'authentication',
      'console',
      'proxy',
      'embedding',
    ],
  },
  {
    title: 'Reference',
    pages: [
      'reference-config',
      'reference-errors',
      'reference-sys',
      'metrics',
      'rest-api',
      'proxy-features',
      'conformance',
      'interop',
    ],
  },
  {
    title: 'How it works',
    pages: ['architecture', 'durability', 'reliability', 'limits', 'broker-engines', 'benchmarks', 'contributing'],
  },
  { title: '中文', pages: ['zh/index', 'zh/*'] },
];
