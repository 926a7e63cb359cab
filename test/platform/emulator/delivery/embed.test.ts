import { onceForAll } from '../../../support/after-test';
import { startEmulator } from '../../../support/start-emulator';

const shared = onceForAll(() => startEmulator());

test.each([
  ['/embed/channel.js', 'public, max-age=3600'],
  ['/embed/player.js', 'public, max-age=3600'],
  ['/embed/page.js', 'public, max-age=3600'],
  ['/embed/shaka-player.js', 'public, max-age=604800'],
])('serves a script to pages of any origin, for them to keep for a while: %s', async (path, cacheControl) => {
  const { unauthenticated } = await shared();
  const { status, headers, text } = await unauthenticated.get(path);
  expect(status).toBe(200);
  expect(headers).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': cacheControl,
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  });
  expect(text.length).toBeGreaterThan(1000);
  const again = await unauthenticated.get(path).set('if-none-match', String(headers.etag));
  expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: '' });
  // The tags of files are for them alone.
  expect((await unauthenticated.get('/healthz')).headers).not.toHaveProperty('etag');
});

test('writes every text into the page as text: nothing that it is sent becomes markup or code', async () => {
  const { unauthenticated } = await shared();
  const { text } = await unauthenticated.get('/embed/channel.js');
  expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/);
});

test('serves a page that uses the script, under a policy that allows the page its own scripts alone', async () => {
  const { unauthenticated, url } = await shared();
  const { status, headers, text } = await unauthenticated.get('/embed/channel.html?channelId=abcd1234');
  expect(status).toBe(200);
  expect(headers['x-frame-options']).toBeUndefined();
  expect(headers['cache-control']).toBe('no-store');
  expect(headers['content-security-policy']).toBe(
    `default-src 'none';base-uri 'none';connect-src 'self';form-action 'self';frame-ancestors *;` +
      `img-src 'self' data:;media-src 'self' blob: data:;script-src 'self';style-src 'self'`,
  );
  expect(text.match(/<(?:script|link rel="stylesheet")[^>]*>/g)).toEqual([
    '<link rel="stylesheet" href="../docs/oat.min.css">',
    '<link rel="stylesheet" href="../docs/style.css">',
    '<link rel="stylesheet" href="page.css">',
    '<script src="channel.js">',
    '<script src="page.js">',
  ]);
  expect(text.replaceAll(/<\/?(?:wbr|span)>/g, '')).toContain(`src=&#34;${url}/embed/channel.js&#34;`);
});

test('shows a channel id in the page as text, whatever it holds', async () => {
  const { unauthenticated } = await shared();
  const { text } = await unauthenticated
    .get('/embed/channel.html')
    .query({ channelId: '"><script>alert(1)</script>' });
  expect(text).not.toContain('<script>alert');
  expect(text).not.toContain('"><script');
});

test.each(['/embed/channel.html', '/embed/channel.html?channelId=a&channelId=b', '/embed/media.html'])(
  'asks for an id at %s',
  async (path) => {
    const { unauthenticated } = await shared();
    const { status, text } = await unauthenticated.get(path);
    expect(status).toBe(200);
    expect(text).toContain('<form class="field-row">');
    expect(text).not.toContain('<script');
  },
);

/** The options of the setup function, as the page's script reads them. */
function optionsIn(page: string): unknown {
  const [, options = ''] = /data-options="([^"]*)"/.exec(page) ?? [];
  return JSON.parse(options.replaceAll('&#34;', '"'));
}

test.each([
  ['/embed/channel.html?channelId=abcd1234', { channelId: 'abcd1234', element: '#stage' }],
  ['/embed/media.html?mediaId=abcd1234', { mediaId: 'abcd1234', element: '#stage' }],
  [
    '/embed/media.html?mediaId=abcd1234&format=hls',
    { mediaId: 'abcd1234', format: 'hls', element: '#stage' },
  ],
  ['/embed/media.html?mediaId=abcd1234&format=smil', { mediaId: 'abcd1234', element: '#stage' }],
])('plays what its address names: %s', async (path, options) => {
  const { unauthenticated } = await shared();
  const { text } = await unauthenticated.get(path);
  expect(optionsIn(text)).toEqual(options);
});

test('plays a preview by its token, with the keys of the license server', async () => {
  const { unauthenticated, url } = await shared();
  const { text } = await unauthenticated.get('/embed/media.html?preview=a/b');
  const file = `${url}/live/previews/a%2Fb`;
  const drm = { clearkey: { url: `${url}/keyprovider/clearkey` } };
  const sources = [
    { file: `${file}.mpd`, drm },
    { file: `${file}.m3u8`, drm },
  ];
  expect(optionsIn(text)).toEqual({ item: { title: 'Preview', sources }, element: '#stage' });
});

test('offers both formats of what it plays, and marks the one that is asked for', async () => {
  const { unauthenticated } = await shared();
  const { text } = await unauthenticated.get('/embed/media.html?mediaId=abcd1234&format=hls');
  expect(text.match(/<nav.*<\/nav>/)?.[0]).toBe(
    '<nav aria-label="Format"><a href="?mediaId=abcd1234&#38;format=dash">DASH</a>' +
      '<a href="?mediaId=abcd1234&#38;format=hls" aria-current="page">HLS</a></nav>',
  );
});
