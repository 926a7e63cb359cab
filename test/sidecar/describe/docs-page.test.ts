import { createHash } from 'node:crypto';
import type { OpenApiDocument } from '../../../src/sidecar/describe/document';
import { docsPage, PAGE_POLICY } from '../../../src/sidecar/describe/page/docs-page';
import { DOCUMENT, OPERATIONS } from '../../support/start-described';

const PAGE = docsPage(DOCUMENT);

function matches(pattern: RegExp): string[] {
  return [...PAGE.matchAll(pattern)].map(([, found = '']) => found);
}

it('has a policy that lets its own style in and nothing else', () => {
  const [style = '', ...others] = matches(/<style>(.*?)<\/style>/gs);
  const digest = createHash('sha256').update(style).digest('base64');
  expect(others).toEqual([]);
  expect(PAGE_POLICY).toBe(
    `default-src 'none';style-src 'sha256-${digest}';img-src data:;base-uri 'none';form-action 'none';frame-ancestors 'none'`,
  );
});

it('holds no script, no style beside the sheet and no address that is loaded', () => {
  expect(PAGE).not.toMatch(
    /<(?:script|iframe|object|embed|form|base)\b|<[^>]*\s(?:style|on\w+|srcset)=|javascript:/i,
  );
  expect(PAGE).not.toMatch(/@import|@font-face|url\(/);
  expect(
    matches(/<(?:img|link)\b[^>]*(?:src|href)="([^"]*)"/g).filter((url) => !url.startsWith('data:')),
  ).toEqual([]);
});

it('links within itself and to the document alone, and every link leads somewhere', () => {
  const links = [...new Set(matches(/<a\b[^>]*href="([^"]*)"/g))];
  const ids = matches(/\sid="([^"]*)"/g);
  expect(links.filter((link) => !link.startsWith('#'))).toEqual(['openapi.json']);
  expect(links.filter((link) => link.startsWith('#') && !ids.includes(link.slice(1)))).toEqual([]);
  expect(ids).toEqual([...new Set(ids)]);
});

it.each(OPERATIONS)(
  'shows $title with its parameters, answers, errors and examples',
  ({ path, operation }) => {
    const [, section = ''] =
      new RegExp(`<section class="operation" id="${operation.operationId}"(.*?)</section>`, 's').exec(PAGE) ??
      [];
    const text = section
      .replaceAll(/<[^>]*>/g, '')
      .replaceAll(/&#(\d+);/g, (_whole, code) => String.fromCharCode(code));
    const own = Object.entries(operation.responses).filter(([status]) => Number(status) < 400);
    const samples = operation['x-codeSamples'];
    const told = [
      path,
      operation.summary,
      ...operation.parameters.map(({ name }) => name),
      ...own.map(([status]) => status),
      ...samples.flatMap(({ label, source }) => (samples.length > 1 ? [label, source] : [source])),
    ];
    expect(told.filter((part) => !text.includes(part))).toEqual([]);
  },
);

it('shows every error code', () => {
  const codes = OPERATIONS.flatMap(({ operation }) =>
    Object.entries(operation.responses)
      .filter(([status]) => Number(status) >= 400)
      .flatMap(([, { content }]) => Object.keys(content?.['application/json']?.examples ?? {})),
  );
  expect([...new Set(codes)].filter((code) => !PAGE.includes(`<code>${code}</code>`))).toEqual([]);
});

it('has one heading of the first level, and skips no level', () => {
  const levels = matches(/<h(\d)/g).map(Number);
  expect(levels.filter((level) => level === 1)).toEqual([1]);
  expect(levels.filter((level, place) => level > (levels[place - 1] ?? 0) + 1)).toEqual([]);
});

it('escapes whatever the document says', () => {
  const hostile = JSON.parse(
    JSON.stringify(DOCUMENT, (name, value) =>
      typeof value === 'string' && !['openapi', '$ref', 'type', 'in'].includes(name)
        ? `${value}</style><script>alert("1")</script>' onload='x`
        : value,
    ),
  ) as OpenApiDocument;
  const page = docsPage(hostile);
  expect(page).toContain('&#60;script&#62;');
  expect(page).not.toContain('<script');
  expect(page.match(/<\/style>/g)).toHaveLength(1);
});
