// What the build contains of other projects: dist/THIRD-PARTY-NOTICES with the licence of each bundled package, and
// dist/sbom.cdx.json, a software bill of materials. Called by build.ts with the files that went into the bundles; fails
// for a package without a licence text. Sources: CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/), package URLs
// (https://github.com/package-url/purl-spec).
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Texts of LICENSE, NOTICE and the like, in the order of their names. */
  readonly texts: readonly string[];
}

/** Licences whose texts may be passed on with a binary. */
const PERMISSIVE = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'BlueOak-1.0.0']);

/** The folder of the package a bundled file belongs to, or null for a file of this project. */
function packageFolder(file: string): string | null {
  const parts = file.split(/[\\/]/);
  const at = parts.lastIndexOf('node_modules');
  if (at < 0) return null;
  return parts.slice(0, at + (parts[at + 1].startsWith('@') ? 3 : 2)).join('/');
}

/**
 * The packages that `files` (paths below `root`) belong to, by name and version. Throws for one that may not be passed
 * on.
 */
export function bundledPackages(files: Iterable<string>, root: string): BundledPackage[] {
  const folders = new Set<string>();
  for (const file of files) {
    const folder = packageFolder(file);
    if (folder !== null) folders.add(folder);
  }
  const found = new Map<string, BundledPackage>();
  for (const folder of folders) {
    const one = readPackage(path.join(root, folder));
    found.set(`${one.name}@${one.version}`, one);
  }
  return [...found.values()].sort((a, b) =>
    a.name < b.name ? -1 : a.name > b.name ? 1 : a.version < b.version ? -1 : 1,
  );
}

function readPackage(folder: string): BundledPackage {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  if (!PERMISSIVE.has(license)) throw new Error(`${name}: licence ${String(license)} is not one that is passed on`);
  const names = readdirSync(folder)
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
    .sort();
  const texts = names.map((file) => readFileSync(path.join(folder, file), 'utf8').trim());
  if (texts.length === 0) texts.push(licenceInReadme(folder, name));
  return { name, version, license, texts };
}

/** Some packages have their licence as the last chapter of their README only. */
function licenceInReadme(folder: string, name: string): string {
  const readme = readdirSync(folder).find((file) => /^readme/i.test(file));
  const text = readme === undefined ? '' : readFileSync(path.join(folder, readme), 'utf8');
  const chapter = text.match(/^#+ *licen[cs]e\b[^\n]*\n([\s\S]*?)(?=^#+ |(?![\s\S]))/im)?.[1].trim() ?? '';
  if (chapter === '') throw new Error(`${name}: no licence text`);
  return chapter;
}

export function noticesText(packages: readonly BundledPackage[]): string {
  const parts = packages.map(
    ({ name, version, license, texts }) => `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`,
  );
  const head = 'This build contains the following packages. Each is used under its own licence.\n';
  return [head, ...parts].join(`\n${'-'.repeat(80)}\n`);
}

/** A CycloneDX document; equal packages give equal bytes. */
export function billOfMaterials(version: string, packages: readonly BundledPackage[]): string {
  const components = packages.map((one) => ({
    type: 'library',
    'bom-ref': purl(one),
    name: one.name,
    version: one.version,
    licenses: [{ license: { id: one.license } }],
    purl: purl(one),
  }));
  const digest = createHash('sha256')
    .update(JSON.stringify([version, components]))
    .digest('hex');
  const serial = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  const root = {
    type: 'application',
    'bom-ref': 'tidegate',
    name: 'tidegate',
    version,
    licenses: [{ license: { id: 'MIT' } }],
  };
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${serial}`,
    version: 1,
    metadata: { component: root },
    components,
    dependencies: [{ ref: 'tidegate', dependsOn: components.map((c) => c['bom-ref']) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function purl({ name, version }: BundledPackage): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

/** Writes both documents into `folder`. */
export function writeNotices(folder: string, version: string, packages: readonly BundledPackage[]): void {
  writeFileSync(path.join(folder, 'THIRD-PARTY-NOTICES'), noticesText(packages));
  writeFileSync(path.join(folder, 'sbom.cdx.json'), billOfMaterials(version, packages));
}
