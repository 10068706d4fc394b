// Licences and bill of materials of what is bundled: every package with its text, equal builds with equal bytes, nothing unlicensed.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { billOfMaterials, bundledPackages, noticesText } from '../../scripts/notices.ts';

/** A project folder with these packages installed: name to files. */
function project(packages: Record<string, Record<string, string>>): string {
  const root = mkdtempSync(path.join(tmpdir(), 'notices-'));
  for (const [name, files] of Object.entries(packages)) {
    const folder = path.join(root, 'node_modules', name);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text);
  }
  return root;
}

const manifest = (name: string, license: string): string => JSON.stringify({ name, version: '1.2.3', license });

it('names each bundled package once, with its licence text and that of its notice', () => {
  const root = project({
    b: { 'package.json': manifest('b', 'MIT'), LICENSE: 'licence of b' },
    '@s/a': { 'package.json': manifest('@s/a', 'Apache-2.0'), 'LICENSE.md': 'licence of a', NOTICE: 'notice of a' },
  });
  const files = ['src/main.ts', 'node_modules/b/x.js', 'node_modules/b/lib/y.js', 'node_modules/@s/a/index.js'];
  const packages = bundledPackages(files, root);
  expect(packages.map((one) => one.name)).toEqual(['@s/a', 'b']);
  const text = noticesText(packages);
  for (const part of ['@s/a 1.2.3 (Apache-2.0)', 'licence of a', 'notice of a', 'b 1.2.3 (MIT)', 'licence of b'])
    expect(text).toContain(part);
});

it('takes the licence from the README where that is its only place', () => {
  const readme = '# C\nwords\n## License\n\nmay be used\n## Other\nno part of it\n';
  const root = project({ c: { 'package.json': manifest('c', 'ISC'), 'README.md': readme } });
  expect(bundledPackages(['node_modules/c/i.js'], root)[0].texts).toEqual(['may be used']);
});

it.each([
  ['without a licence text', { 'package.json': manifest('d', 'MIT') }],
  ['under a licence that is not permissive', { 'package.json': manifest('d', 'GPL-3.0'), LICENSE: 'text' }],
  ['without a licence', { 'package.json': JSON.stringify({ name: 'd', version: '1.0.0' }), LICENSE: 'text' }],
])('refuses a package %s', (_, files) => {
  const root = project({ d: files });
  expect(() => bundledPackages(['node_modules/d/i.js'], root)).toThrow(/^d: /);
});

it('the bill of materials is CycloneDX, names what it is made of by package URL, and has equal bytes each time', () => {
  const root = project({ '@s/a': { 'package.json': manifest('@s/a', 'MIT'), LICENSE: 'text' } });
  const packages = bundledPackages(['node_modules/@s/a/i.js'], root);
  const text = billOfMaterials('0.2.0', packages);
  expect(billOfMaterials('0.2.0', packages)).toBe(text);
  expect(JSON.parse(text)).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: expect.stringMatching(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/),
    metadata: { component: { name: 'tidegate', version: '0.2.0' } },
    components: [{ name: '@s/a', version: '1.2.3', purl: 'pkg:npm/%40s/a@1.2.3' }],
    dependencies: [{ ref: 'tidegate', dependsOn: ['pkg:npm/%40s/a@1.2.3'] }],
  });
});
