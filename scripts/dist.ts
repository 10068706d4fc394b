// Packs release/tidegate-<version>.tgz: the files of package.json, with a manifest that names only what the command
// itself can use. Run by `make dist`, after `make build`. Without the development packages in it, `npm install PACKAGE`
// inside the unpacked folder brings that one package and nothing else.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const stage = path.join(release, 'stage');
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  const { files } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { files: string[] };
  for (const name of files) cpSync(path.join(root, name), path.join(stage, name), { recursive: true });
  writeFileSync(path.join(stage, 'package.json'), installedManifest());
  execFileSync('npm', ['pack', '--silent', '--pack-destination', release], { cwd: stage, stdio: 'inherit' });
  rmSync(stage, { recursive: true });
}
