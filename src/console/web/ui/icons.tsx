// The pictures of the console: strokes on a field of 24 by 24, in the colour of the text. Decoration only, never read
// out.

const PATHS: Readonly<Record<string, string>> = {
  overview: 'M4 19V9m5 10V5m5 14v-7m5 7V8',
  bridges: 'M3 8c3 0 3 8 9 8s6-8 9-8M3 16h5m8 0h5M3 8h0m18 0h0',
  rules: 'M4 5h16l-6 7v7l-4-2v-5z',
  clients: 'M5 6h14v9H5zM9 19h6m-3-4v4',
  topics: 'M6 4v14h6M6 11h6m3-2h4v4h-4zm0 7h4v4h-4zM4 4h4',
  messages: 'M4 6h16v10H9l-5 4z',
  recording: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zm0 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6z',
  events: 'M5 5h14v15H5zM5 9h14M9 3v4m6-4v4M9 13h6',
  proxy: 'M4 12h6m0 0 5-6h5m-10 6 5 6h5m-10-6h10',
  users:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-4 2.5-6 6-6s6 2 6 6M16 5a3.5 3.5 0 0 1 0 6m2 3c2 .7 3 2.500 3 6',
  security: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4',
  configuration: 'M4 7h9m5 0h2M4 17h2m5 0h9M13 5v4m-2 6v4',
  log: 'M5 5h14M5 10h14M5 15h9M5 20h6',
  docs: 'M5 4h9l5 5v11H5zM14 4v5h5M8 13h8m-8 4h6',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  plus: 'M12 5v14M5 12h14',
  trash: 'M5 7h14M10 7V4h4v3m-7 0 1 13h8l1-13',
  edit: 'M4 20l1-4L16 5l3 3L8 19z',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20',
  pause: 'M9 5v14m6-14v14',
  play: 'M7 5l11 7-11 7z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.5 1.5m11 11L19 19M5 19l1.5-1.5m11-11L19 5',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  auto: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  out: 'M14 4h5v16h-5M4 12h10m-4-4 4 4-4 4',
  right: 'M9 5l7 7-7 7',
  down: 'M5 9l7 7 7-7',
  refresh: 'M20 11a8 8 0 1 0-2 6m2-11v5h-5',
  up: 'M12 19V5m-6 6 6-6 6 6',
};

export function Icon({ name }: { readonly name: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name] ?? ''} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M6 13c3.3 0 3.3-3 6.7-3s3.3 3 6.6 3 3.4-3 6.7-3M6 20c3.3 0 3.3-3 6.7-3s3.3 3 6.6 3 3.4-3 6.7-3M16 5v22" />
    </svg>
  );
}
