import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const ROOT = join(__dirname, '..');
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'));

/** A page without its code, which may hold what only looks like a link or a heading. */
function proseOf(path: string): string {
  return readFileSync(path, 'utf8').replaceAll(/^( *)```.*?^\1```$/gms, '');
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(path: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of proseOf(path).matchAll(/^#+ (.+)$/gm)) {
    const shown = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = shown.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-');
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

/** The fault of a relative link of a page, or undefined. */
function faultOf(page: string, link: string): string | undefined {
  const [file = '', anchor] = link.split('#');
  const path = file === '' ? join(ROOT, page) : join(ROOT, dirname(page), file);
  if (relative(ROOT, path).startsWith('..') || !existsSync(path)) return `${page}: ${link} is not there`;
  if (anchor !== undefined && !anchorsOf(path).has(anchor)) return `${page}: ${link} has no such heading`;
  return undefined;
}

test('every relative link of README.md, CHANGELOG.md and docs leads to a file, and to a heading of it', () => {
  const links = PAGES.flatMap((page) =>
    [...proseOf(join(ROOT, page)).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link = '']) => ({ page, link }))
      .filter((each) => !/^[a-z]+:/.test(each.link)),
  );
  expect(links.length).toBeGreaterThan(100);
  expect(links.flatMap(({ page, link }) => faultOf(page, link) ?? [])).toEqual([]);
});

test('README.md leads to every page of docs', () => {
  const readme = proseOf(join(ROOT, 'README.md'));
  expect(PAGES.filter((page) => page !== 'README.md' && !readme.includes(`](${page}`))).toEqual([]);
});

test('every test that a page names is there, and every control of the hardening guide that has a setting names one', () => {
  const named = PAGES.flatMap((page) =>
    [...proseOf(join(ROOT, page)).matchAll(/`(test\/[\w./-]+\.ts)`/g)].map(([, test = '']) => ({
      page,
      test,
    })),
  );
  expect(named.filter(({ test }) => !existsSync(join(ROOT, test)))).toEqual([]);
  const rows = proseOf(join(ROOT, 'docs/hardening.md')).match(/^\| \*\*[A-Z]{2}-.*$/gm) ?? [];
  expect(rows.length).toBeGreaterThan(20);
  // These two are answered by what users do, and by a page.
  const without = rows.filter((row) => !row.includes('`test/')).map((row) => row.slice(4, 11));
  expect(without).toEqual(['OP-3.1*', 'TS-1.10']);
});
