import { startSidecar } from '../../support/start-sidecar';

const FILES = [
  '',
  '/fleet.css',
  '/fleet.js',
  '/fleet-findings.js',
  '/fleet-parts.js',
  '/fleet-plot.js',
  '/fleet-tables.js',
  '/fleet-words.js',
];

test.each(FILES)('/fleet%s is answered without an API key, in a fleet or not', async (file) => {
  const { unauthenticated } = await startSidecar();
  const { status, headers } = await unauthenticated.get(`/fleet${file}`);
  const type = file.endsWith('.css') ? 'text/css' : file.endsWith('.js') ? 'text/javascript' : 'text/html';
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([
    200,
    `${type}; charset=utf-8`,
    'no-cache',
  ]);
});

test('lets the page load its own files and ask its own service, and nothing else', async () => {
  const { unauthenticated } = await startSidecar();
  const { headers, text } = await unauthenticated.get('/fleet');
  expect(headers['content-security-policy']).toBe(
    "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
  );
  expect(text).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/);
});

test('leads from the page with a slash at its end to the page, below whatever prefix', async () => {
  const { unauthenticated } = await startSidecar();
  const { headers } = await unauthenticated.get('/fleet/').expect(308);
  expect(new URL(String(headers.location), 'http://a/prefix/fleet/').pathname).toBe('/prefix/fleet');
});

test('refuses what would change something', async () => {
  const { unauthenticated } = await startSidecar();
  const { headers } = await unauthenticated.post('/fleet').expect(405);
  expect(headers.allow).toBe('GET, HEAD');
});
