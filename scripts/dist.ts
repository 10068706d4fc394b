// Packs release/tidegate-<version>.tgz: the files of package.json, with a manifest that names only what the command
// itself can use. Run by `make dist`, after `make build`. Without the development packages in it, `npm install PACKAGE`
// inside the unpacked folder brings that one package and nothing else.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const release = path.join(root, 'release');

/** package.json as it is installed: what a build or a test needs is left out. */
export function installedManifest(): string {
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  for (const key of ['scripts', 'devDependencies', 'allowScripts']) delete manifest[key];
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** Gives files and folders the rights they have in a release, whatever the umask of the checkout was. */
export function evenRights(folder: string): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const file = path.join(folder, name);
    chmodSync(file, (statSync(file).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const stage = path.join(release, 'stage');
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  const { files } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { files: string[] };
  for (const name of files) cpSync(path.join(root, name), path.join(stage, name), { recursive: true });
  writeFileSync(path.join(stage, 'package.json'), installedManifest());
  evenRights(stage);
  execFileSync('npm', ['pack', '--silent', '--pack-destination', release], { cwd: stage, stdio: 'inherit' });
  rmSync(stage, { recursive: true });
}
