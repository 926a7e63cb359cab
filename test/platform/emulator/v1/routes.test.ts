import fc from 'fast-check';
import { parseXml } from '../../../../src/drm/xml';
import { FORMATS } from '../../../../src/platform/emulator/v1/serialize';
import { onceForAll } from '../../../support/after-test';
import { anyCharacter } from '../../../support/any-character';
import { callV1, getV1 } from '../../../support/call-v1';
import { processorMs } from '../../../support/processor-time';
import { signedPath } from '../../../support/sign-v1';
import { startEmulator } from '../../../support/start-emulator';

const shared = onceForAll(() => startEmulator());

test.each(['accounts/tags/list', 'status'])('%s is not supported, as v2 has nothing for it', async (call) => {
  const emulator = await shared();
  const refused = {
    status: 405,
    body: {
      status: 'error',
      code: 'NotSupported',
      title: 'Method or parameter not supported',
      message: `/v1/${call} → not supported in Management API v2.`,
    },
  };
  expect(await callV1(emulator, call)).toEqual(refused);
  expect(await getV1(emulator, `${call}/`)).toEqual(refused);
});

test.each([
  ['/v1/videos/publish', 'NotFound', '/v1/videos/publish is not a call of Management API v1.'],
  ['/v1/constructor', 'NotFound', '/v1/constructor is not a call of Management API v1.'],
  ['/v1/', 'NoMethod', '/v1 needs a method, as /v1/list.'],
  ['/v1/videos/tracks/', 'NoMethod', '/v1/videos/tracks needs a method, as /v1/videos/tracks/list.'],
])('%s is no call', async (path, code, message) => {
  const { unauthenticated } = await shared();
  const { status, body } = await unauthenticated.get(path);
  const [expected, title] = code === 'NotFound' ? [404, 'Not Found'] : [400, 'No Method Specified'];
  expect([status, body]).toEqual([expected, { status: 'error', code, title, message }]);
});

test.each(['put', 'patch', 'delete'] as const)('a route does not take %s', async (method) => {
  const { unauthenticated } = await shared();
  const { status, headers, body } = await unauthenticated[method]('/v1/videos/list');
  expect([status, headers.allow, body.code]).toEqual([405, 'GET, POST', 'NotSupported']);
});

test('errors come in the format that was asked for, also before the call is read', async () => {
  const { unauthenticated } = await shared();
  const wrong = await unauthenticated.get('/v1/videos/list?api_format=xml&title=%ff');
  expect([wrong.status, wrong.headers['content-type'], wrong.text]).toEqual([
    400,
    'application/xml; charset=utf-8',
    '<?xml version="1.0" encoding="UTF-8"?>\n<response><status>error</status><code>ParameterEncodingError</code><title>Parameter Encoding Error</title><message>The query is not UTF-8, percent-encoded once.</message></response>',
  ]);
  const missing = await unauthenticated.get('/v1/nothing?api_format=php');
  expect(missing.text).toMatch(/^a:4:\{s:6:"status";s:5:"error";s:4:"code";s:8:"NotFound";/);
});

test('a list in XML is as the documents of v1 show it', async () => {
  const { unauthenticated } = await startEmulator();
  const path = signedPath('/v1/players/list', { api_format: 'xml' });
  expect((await unauthenticated.get(path)).text).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n<response><status>ok</status><limit>50</limit><offset>0</offset><total>0</total><players total="0"/><rate_limit><limit>60</limit><remaining>59</remaining><reset>1893456060</reset></rate_limit></response>',
  );
});

test.each([
  ['a form that is too large', `title=${'x'.repeat(300_000)}`, 413, 'FileSizeInvalid'],
  ['JSON that is none', '{"title": ', 400, 'CallInvalid'],
  ['a form that is not UTF-8', 'title=%C3', 400, 'ParameterEncodingError'],
  ['JSON that is not UTF-8', Buffer.from('{"title": "\u00e9"}', 'latin1'), 400, 'ParameterEncodingError'],
  ['JSON of great depth', `${'{"a":'.repeat(20)}1${'}'.repeat(20)}`, 400, 'ParameterInvalid'],
])('%s is refused', async (_what, body, status, code) => {
  const { unauthenticated } = await shared();
  const answer = await unauthenticated.post(signedPath('/v1/videos/create')).send(body);
  expect([answer.status, answer.body.status, answer.body.code]).toEqual([status, 'error', code]);
});

test('a form of very many parameters takes no time to refuse', async () => {
  const { unauthenticated } = await shared();
  const took = await processorMs(async () => {
    for (const form of ['a=&'.repeat(85_000), Array.from({ length: 40_000 }, (_, at) => `${at}`).join('&')]) {
      const { status, body } = await unauthenticated.post('/v1/videos/create').send(form);
      expect([status, body.code]).toEqual([400, 'ApiKeyMissing']);
    }
  });
  expect(took).toBeLessThan(3000);
});

test('a multipart form is refused with the place for parameters', async () => {
  const { unauthenticated } = await shared();
  const answer = await unauthenticated.post(signedPath('/v1/videos/create')).field('title', 'A');
  expect([answer.status, answer.body.code]).toEqual([400, 'CallInvalid']);
});

test('a fault switch on a route of v1 answers as v1 does', async () => {
  const { control, unauthenticated } = await startEmulator();
  const target = 'GET /v1/videos/list';
  await control.post('/faults').send({ target, kind: 'fail', status: 503 }).expect(201);
  const { status, body } = await unauthenticated.get('/v1/videos/list');
  expect([status, body.status, body.code]).toEqual([503, 'error', 'CallUnavailable']);
});

test('the thirty-first list of videos in a minute is refused when the limit is on', async () => {
  const emulator = await startEmulator({ EMULATOR_RATELIMIT: 'on' });
  const reset = 1_893_456_060;
  for (const remaining of [29, 0]) {
    const { body } = await emulator.unauthenticated.get(signedPath('/v1/videos/list')).expect(200);
    expect(body.rate_limit).toEqual({ limit: 30, remaining, reset });
    emulator.countRequests(29);
  }
  emulator.countRequests(30);
  await emulator.advance(20);
  const { status, headers, body } = await emulator.unauthenticated.get(signedPath('/v1/videos/list'));
  expect([status, headers['retry-after'], body]).toEqual([
    429,
    '40',
    {
      status: 'error',
      code: 'RateLimitExceeded',
      title: 'Rate Limit Exceeded',
      message: 'These are more than 30 requests in a minute. Wait 40 s.',
      rate_limit: { limit: 30, remaining: 0, reset },
    },
  ]);
  const others = await emulator.unauthenticated.get(signedPath('/v1/players/list')).expect(200);
  expect(others.body.rate_limit).toMatchObject({ limit: 60, remaining: 59 });
  await emulator.advance(40);
  await emulator.unauthenticated.get(signedPath('/v1/videos/list')).expect(200);
});

test('a caller that guesses signatures is slowed down without a count on the account of the site', async () => {
  const emulator = await startEmulator({ EMULATOR_RATELIMIT: 'on' });
  const guess = () => emulator.unauthenticated.get(signedPath('/v1/players/list', {}, { secret: 'wrong' }));
  for (const requests of [59, 60]) {
    expect((await guess()).status).toBe(400);
    emulator.countRequests(requests);
  }
  expect((await guess()).body.code).toBe('RateLimitExceeded');
  const { body } = await emulator.unauthenticated.get(signedPath('/v1/players/list'));
  expect(body.rate_limit.remaining).toBe(59);
});

const VIDEO = {
  key: 'yYul4DRz',
  author: 'J & W',
  custom: { key: 'k', 'my param': '<v>' },
  date: 1225962900,
  duration: '12.0',
  expires_date: null,
  required: true,
  link: { protocol: 'http', query: { key: 'q', token: 't' } },
};

test('XML has keys and totals as attributes, and an element of its singular for what a list has', async () => {
  const answer = { status: 'ok', total: 22, videos: [VIDEO] };
  expect(await FORMATS.xml(answer)).toEqual({
    type: 'application/xml; charset=utf-8',
    body: `<?xml version="1.0" encoding="UTF-8"?>
<response><status>ok</status><total>22</total><videos total="22"><video key="yYul4DRz"><author>J &amp; W</author><custom><key>k</key><param name="my param">&lt;v&gt;</param></custom><date>1225962900</date><duration>12.0</duration><expires_date/><required>True</required><link><protocol>http</protocol><query><key>q</key><token>t</token></query></link></video></videos></response>`,
  });
  expect((await FORMATS.xml({ status: 'ok', tracks: [], rates: [0.5, 2] })).body).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n<response><status>ok</status><tracks total="0"/><rates total="2"><rate>0.5</rate><rate>2</rate></rates></response>',
  );
});

test('XML is well-formed whatever names and values there are', async () => {
  const text = fc.string({ unit: anyCharacter });
  const values = fc.dictionary(text, fc.oneof(text, fc.double(), fc.boolean(), fc.constant(null)));
  await fc.assert(
    fc.asyncProperty(values, text, async (custom, title) => {
      const { body } = await FORMATS.xml({ videos: [{ key: title, title, custom }] });
      const parsed = parseXml(body);
      expect(parsed).toMatchObject({ ok: true });
    }),
  );
});

// Read by `unserialize` of PHP.
test('PHP is serialized with lengths in bytes', () => {
  const answer = { status: 'ok', a: [1, -2, 0.5], b: { é: '€"' }, c: null, d: [true, false], e: [] };
  expect(FORMATS.php(answer)).toEqual({
    type: 'text/plain; charset=utf-8',
    body: 'a:6:{s:6:"status";s:2:"ok";s:1:"a";a:3:{i:0;i:1;i:1;i:-2;i:2;d:0.5;}s:1:"b";a:1:{s:2:"é";s:4:"€"";}s:1:"c";N;s:1:"d";a:2:{i:0;b:1;i:1;b:0;}s:1:"e";a:0:{}}',
  });
});

// Read by `pickle.loads` of Python 3.11.
test('Python is pickled in protocol 2', () => {
  const { type, body } = FORMATS.py({ a: 'é', b: [1, -2, 2 ** 40, 0.5], c: null, d: [true, false] });
  expect([type, body.toString('hex')]).toEqual([
    'application/octet-stream',
    [
      '80027d28',
      '580100000061',
      '5802000000c3a9',
      '580100000062',
      '5d284a010000004afeffffff8a080000000000010000473fe000000000000065',
      '5801000000634e',
      '5801000000645d28888965',
      '752e',
    ].join(''),
  ]);
});

test('the log names the call, as long as it is one', async () => {
  const emulator = await startEmulator();
  const { unauthenticated } = emulator;
  await unauthenticated.get('/v1/Videos/List/').expect(400);
  await unauthenticated.put('/v1/videos/show').expect(405);
  await unauthenticated.get('/v1/videos/none').expect(404);
  const lines = (await emulator.logOf(3)).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line)).flatMap(({ route }) => route ?? [])).toEqual([
    '/v1/videos/list',
    '/v1/videos/show',
    'unmatched',
  ]);
});
