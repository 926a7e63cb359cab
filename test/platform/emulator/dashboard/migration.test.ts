import { onceForAll } from '../../../support/after-test';
import { createV1 } from '../../../support/call-v1';
import { textOf } from '../../../support/read-page';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const shared = onceForAll(() => startEmulator());

const PATH = '/dashboard/migration';
const SECRET = 'demo-api-secret-0123456789';

/** Pastes a call, and answers the page. */
async function paste({ unauthenticated }: TestEmulator, call: string, act = 'show', site = 'demosite') {
  const { status, text } = await unauthenticated.post(PATH).type('form').send({ call, site, do: act });
  return { status, html: text, text: textOf(text) };
}

/** The texts that a page offers to copy, by their ids. */
function linesOf(page: string): [id: string, text: string][] {
  const shown = page.matchAll(/<pre[^>]*><code id="([^"]+)">(.*?)<\/code><\/pre>/gs);
  return [...shown].map(([, id = '', text = '']) => [id, textOf(text)]);
}

function answersOf(page: string): Record<string, unknown> {
  const answers = linesOf(page).filter(([id]) => id.startsWith('answer-'));
  return Object.fromEntries(answers.map(([id, text]) => [id, JSON.parse(text)]));
}

test('shows the call of v2 for a curl command, and what is different, as text, and calls nothing', async () => {
  const emulator = await startEmulator();
  const { status, html, text } = await paste(
    emulator,
    `curl -X POST 'https://api.jwplatform.com/v1/videos/create?api_key=demosite&api_signature=abc' \\
      -d 'title=It%27s%3Cscript%3Ealert(1)' --data-urlencode 'tags=a,b'`,
  );
  expect(status).toBe(200);
  const { 'v2-call-0': shown } = Object.fromEntries(linesOf(html));
  expect(shown).toContain(`curl -X POST ${emulator.url}/v2/sites/demosite/media/ \\`);
  expect(shown).toContain('"tags":["a","b"]');
  expect(html).not.toContain('<script>alert');
  expect(text).toContain('/v1/videos/create Ready');
  expect(text).toContain('Changed tags tag → none: Tags are an attribute of other resources such as media');
  expect(text).not.toContain('Answers of both here');
  expect(emulator.context.state.media.all()).toEqual([]);
});

test('reads an address that has the word curl in it', async () => {
  const { text } = await paste(await shared(), '/v1/videos/list?search=curl');
  expect(text).toContain('/v1/videos/list Ready');
});

test('runs both calls and shows their answers side by side', async () => {
  const emulator = await startEmulator();
  const video_key = await createV1(emulator, 'video', { title: 'A' });
  // Calls are signed with real time.
  await emulator.advance(100 * 24 * 3600);
  const { html, text } = await paste(emulator, `/v1/videos/show?video_key=${video_key}`, 'run');
  expect(answersOf(html)).toMatchObject({
    'answer-v1-0': { status: 'ok', video: { key: video_key, title: 'A' } },
    'answer-v2-0': { id: video_key, type: 'media', metadata: { title: 'A' } },
  });
  expect(text).toContain('POST /v1/videos/show 200');
  expect(text).toContain(`GET /v2/sites/demosite/media/${video_key}/ 200`);
});

test('reads first what an update of custom parameters must keep', async () => {
  const emulator = await startEmulator();
  const video_key = await createV1(emulator, 'video', { 'custom.keep': '1', 'custom.go': '1' });
  const call = `https://api.test/v1/videos/update?video_key=${video_key}&custom.new=2&custom.-go=`;
  // So that the change is left to v2.
  const fault = { target: 'POST /v1/videos/update', kind: 'fail', status: 503 };
  await emulator.control.post('/faults').send(fault).expect(201);
  const { html } = await paste(emulator, call, 'run');
  expect(answersOf(html)).toMatchObject({
    'answer-v1-0': { status: 'error', code: 'CallUnavailable' },
    'answer-v2-0': { id: video_key },
    'answer-v2-1': { id: video_key, metadata: { custom_params: { keep: '1', new: '2' } } },
  });
  expect(emulator.context.state.media.find(video_key)?.metadata.custom_params).toEqual({
    keep: '1',
    new: '2',
  });
});

test('fills in the type of a playlist that it has read', async () => {
  const emulator = await startEmulator();
  const channel_key = await createV1(emulator, 'channel', { type: 'manual', title: 'A' });
  const call = `/v1/channels/update?channel_key=${channel_key}&title=B&custom.x=1`;
  const { html, text } = await paste(emulator, call, 'run');
  expect(text).toContain(`PATCH /v2/sites/demosite/playlists/${channel_key}/manual_playlist/ 200`);
  expect(answersOf(html)['answer-v2-1']).toMatchObject({
    metadata: { title: 'B', custom_params: { x: '1' } },
  });
});

test('does not call what somebody must complete, or an address without its id, and says so', async () => {
  const emulator = await startEmulator();
  const channel_key = await createV1(emulator, 'channel', { type: 'manual' });
  const video_key = await createV1(emulator, 'video');
  const call = `/v1/channels/videos/create?channel_key=${channel_key}&video_key=${video_key}`;
  const { text } = await paste(emulator, call, 'run');
  expect(text).toContain('To complete by hand');
  expect(text).toContain('This was not called: replace the words in braces by hand.');
  const without = await paste(emulator, '/v1/videos/show', 'run');
  expect(without.text).toContain('POST /v1/videos/show 400');
  expect(without.text).toContain('GET /v2/sites/demosite/media/{media_id}/ This was not called');
});

test('changes the thumbnail that the call before has made', async () => {
  const emulator = await startEmulator();
  const video_key = await createV1(emulator, 'video');
  const call = `/v1/videos/thumbnails/update?video_key=${video_key}&position=1`;
  const { text } = await paste(emulator, call, 'run');
  const id = emulator.context.state.thumbnails.all().at(-1)?.id;
  expect(text).toContain(`PATCH /v2/sites/demosite/thumbnails/${id} 200`);
});

test('shows what v2 does not support, with the answer of v1', async () => {
  const emulator = await shared();
  const { html, text } = await paste(emulator, '/v1/accounts/tags/list', 'run');
  expect(text).toContain('Not supported in v2');
  expect(text).toContain('There is no call of v2 to run.');
  expect(answersOf(html)).toMatchObject({ 'answer-v1-0': { status: 'error', code: 'NotSupported' } });
});

test.each([
  ['', 'Paste a call first: a curl command, or its address.'],
  ['hello', 'This has no call of Management API v1: its address has /v1/ in it, as /v1/videos/list.'],
  ['curl a.test/v1/videos/list; curl a.test/v1/videos/list', 'These are several calls. Paste one at a time.'],
  [
    'curl a.test/v1/videos/create -d @b',
    'A part of this call comes from a file. Paste the content of the file.',
  ],
  ["curl 'a.test/v1/videos/list", "The text has a quote (') that is not closed."],
])('says what is wrong with %j', async (call, problem) => {
  const emulator = await shared();
  const { status, html, text } = await paste(emulator, call, 'run');
  expect([status, html.includes('role="alert"')]).toEqual([400, true]);
  expect(text).toContain(problem);
});

test('runs a call for the site that is chosen, and never shows its secret', async () => {
  const env = { EMULATOR_SITE_ID: 'demosite,othrsite', EMULATOR_V1_SECRET: 'a-secret-of-version-1' };
  const emulator = await startEmulator(env);
  const { html } = await paste(emulator, '/v1/players/create?name=P', 'run', 'othrsite');
  expect(emulator.context.state.players.all().map(({ siteId }) => siteId)).toEqual(['othrsite', 'othrsite']);
  for (const secret of [SECRET, 'a-secret-of-version-1', 'api_signature='])
    expect(html).not.toContain(secret);
  const refused = await paste(emulator, '/v1/videos/list', 'run', 'nonesuch');
  expect(refused.status).toBe(400);
  expect(refused.text).toContain('The account has no such site.');
  emulator.context.state.credentials.clear();
  const { text } = await paste(emulator, '/v1/videos/list', 'run');
  expect(text).toContain('No Admin credential reaches this site.');
});

test('shows a connection that a fault switch breaks', async () => {
  const emulator = await startEmulator();
  await emulator.control.post('/faults').send({ target: 'POST /v1/videos/list', kind: 'reset' }).expect(201);
  const { status, text } = await paste(emulator, '/v1/videos/list', 'run');
  expect(status).toBe(200);
  expect(text).toContain('The connection broke before there was an answer.');
});
