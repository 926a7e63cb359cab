import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { fieldsOfForm, startLibraryPages, type TestLibraryPages } from '../../../support/start-library-pages';

const HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>';

/** Sends a file as a form, as a browser without script does. */
const sendFile = ({ unauthenticated }: TestLibraryPages, path: string, bytes: string, contentType: string) =>
  unauthenticated
    .post(`/dashboard/${path}`)
    .attach('file', Buffer.from(bytes, 'latin1'), { filename: 'a', contentType });

/** Sends a form as the script does. */
const ask = ({ unauthenticated }: TestLibraryPages, path: string, fields: object = {}) =>
  unauthenticated.post(`/dashboard/${path}`).set('accept', 'application/json').type('form').send(fields);

test('shows what a media is and where players get it', async () => {
  const { page, createReady, url } = await startLibraryPages();
  const media = await createReady({ title: 'News' });
  const whole = await page(`media/${media.id}`);
  expect(whole).toContain('<h1 dir="auto">News</h1>');
  const text = textOf(whole);
  expect(text).toContain('Status ready');
  expect(text).toContain('Viewers published');
  expect(text).toContain('Content at https://cdn.example.com/a.mp4');
  expect(text).toContain(`For players ${url}/v2/media/${media.id}`);
});

test('changes nothing when the form is sent as it came, whatever the values are', async () => {
  const { page, post, createReady } = await startLibraryPages();
  const media = await createReady({
    title: ' \u202eodd  title\nin two lines ',
    description: '\nbegins with a line feed\r\nhas a return\ra NUL\0 and a tab\t',
    tags: ['two\nlines', ' spaces ', 'comma, within'],
    publish_end_date: '2031-01-01T00:00:00.123456Z',
    custom_params: { ' name ': ' value\n\nlines ', [HOSTILE]: HOSTILE, 'two\r\nlines': '' },
  });
  const before = structuredClone(media.metadata);
  const sent = fieldsOfForm(await page(`media/${media.id}`), `action="/dashboard/media/${media.id}"`);
  expect((await post(`media/${media.id}`, sent)).status).toBe(303);
  expect(media.metadata).toEqual(before);
});

test('changes what was edited alone, so that what others changed meanwhile stays', async () => {
  const { page, post, admin, siteId, createReady } = await startLibraryPages();
  const media = await createReady({ title: 'News', author: 'Kim', custom_params: { a: '1' } });
  const sent = fieldsOfForm(await page(`media/${media.id}`), `action="/dashboard/media/${media.id}"`);
  const metadata = { author: 'Lee', custom_params: { a: '2', b: '3' } };
  await admin.patch(`/v2/sites/${siteId}/media/${media.id}/`).send({ metadata }).expect(200);
  const answer = await post(`media/${media.id}`, { ...sent, title: 'Late news' });
  expect(answer.headers.location).toBe(`/dashboard/media/${media.id}?done=media-saved`);
  expect(media.metadata).toMatchObject({ title: 'Late news', ...metadata });
});

test('shows a refused form before everything else, as it was sent', async () => {
  const { post, createReady } = await startLibraryPages();
  const media = await createReady({ title: 'News' });
  const unnamed = { 'custom_params.name': '', 'custom_params.value': 'lost' };
  const sent = { title: 'x'.repeat(1001), author: HOSTILE, ...unnamed };
  const { status, text } = await post(`media/${media.id}`, sent);
  expect(status).toBe(400);
  expect(complaintsOf(text)).toEqual([
    'Title is longer than 1000 characters.',
    'Custom parameters has a name that is empty or longer than 200 characters.',
  ]);
  expect(text.indexOf('id="settings"')).toBeLessThan(text.indexOf('id="content-card"'));
  expect(text).not.toContain('<img src=x');
  expect(textOf(text.replaceAll(/value="([^"]*)"/g, '> $1 <'))).toContain(HOSTILE);
  expect(media.metadata.title).toBe('News');
});

test('takes the file of a media as a form, where there is no script', async () => {
  const emulator = await startLibraryPages();
  const { createMedia, advance, page } = emulator;
  const media = await createMedia({ title: 'News' });
  const { headers } = await sendFile(emulator, `media/${media.id}/file`, 'the bytes', 'video/mp4');
  expect(headers.location).toBe(`/dashboard/media/${media.id}?done=file-received`);
  while (media.status === 'created') await advance(0);
  for (let tries = 0; media.status !== 'ready' && tries < 100; tries += 1) await advance(5);
  expect([media.status, media.file?.size]).toEqual(['ready', 9]);
  const renditions = rowsOf((await page(`media/${media.id}`)).split('id="renditions"')[1] ?? '');
  expect(renditions[0]).toEqual([expect.stringMatching(/^Original primary original /), '–', '9 B', 'ready']);
});

test('gives the script the link that the media waits at, and for a new content another one', async () => {
  const { post, createMedia, createReady, advance } = await startLibraryPages();
  const waiting = await createMedia();
  const link = await post(`media/${waiting.id}/upload`);
  expect(link.body.upload_link).toContain(`/uploads/${waiting.upload?.id}?token=`);
  expect((await post(`media/${waiting.id}/upload`, { method: 'multipart' })).body).toEqual(link.body);
  await advance(25 * 3600);
  expect((await post(`media/${waiting.id}/upload`)).body).not.toEqual(link.body);
  const ready = await createReady();
  const parts = await post(`media/${ready.id}/upload`, { method: 'multipart' });
  expect(parts.body).toEqual({ upload_id: ready.upload?.id, upload_token: ready.upload?.token });
});

test('replaces the content by an address, or says what is missing', async () => {
  const { post, createReady } = await startLibraryPages();
  const media = await createReady();
  const none = await post(`media/${media.id}/source`);
  expect(complaintsOf(none.text)).toEqual([expect.stringContaining('Fill in one of the addresses')]);
  const wrong = await post(`media/${media.id}/source`, { source_url: 'ftp://cdn.example.com/a' });
  const complaint = 'Source address must be an absolute address with https or http.';
  expect(complaintsOf(wrong.text)).toEqual([complaint]);
  const source_url = 'https://cdn.example.com/b.m3u8';
  const done = await post(`media/${media.id}/source`, { source_url });
  expect(done.headers.location).toBe(`/dashboard/media/${media.id}?done=content-requested`);
  expect(media.sourceUrl).toBe(source_url);
});

test('adds pictures, chooses the poster among them and deletes one', async () => {
  const emulator = await startLibraryPages();
  const { post, page, context, createReady } = emulator;
  const media = await createReady();
  const [own] = context.state.thumbnails.all();
  const picture = `media/${media.id}/pictures/file`;
  await sendFile(emulator, picture, '\x89PNG\r\n\x1a\n', 'image/png').expect(303);
  await post(`media/${media.id}/pictures/position`, { video_position: '1.5' });
  const [, uploaded, taken] = context.state.thumbnails.all();
  expect([own?.isPoster, uploaded?.status, taken?.videoPosition]).toEqual([true, 'ready', 1.5]);
  const { headers } = await post(`media/${media.id}/pictures/${uploaded?.id}/poster`);
  expect(headers.location).toBe(`/dashboard/media/${media.id}?done=poster-chosen`);
  expect(context.state.thumbnails.all().map(({ isPoster }) => isPoster)).toEqual([false, true, false]);
  await post(`media/${media.id}/pictures/${own?.id}/delete`);
  expect(context.state.thumbnails.all()).toEqual([uploaded, taken]);
  expect((await page(`media/${media.id}`)).match(/class="picture picture-poster"/g)).toHaveLength(1);
});

test('keeps no picture and no content whose file was refused', async () => {
  const emulator = await startLibraryPages();
  const { context, createMedia, createReady } = emulator;
  const waiting = await createMedia();
  const media = await createReady();
  const before = context.state.thumbnails.all();
  for (const path of [`media/${media.id}/pictures/file`, `media/${waiting.id}/file`]) {
    const { text } = await sendFile(emulator, path, '', 'image/png').expect(400);
    expect(complaintsOf(text)).toEqual([expect.stringContaining('The file is empty.')]);
  }
  expect(context.state.thumbnails.all()).toEqual(before);
  expect(waiting.status).toBe('created');
});

test('makes a text track, takes its file, publishes, changes and deletes it', async () => {
  const emulator = await startLibraryPages();
  const { post, page, context, createReady } = emulator;
  const media = await createReady();
  const path = `media/${media.id}/tracks`;
  await post(path, { label: 'English', srclang: 'en', position: '1', track_kind: 'subtitles' });
  const [track] = context.state.textTracks.of(media.id);
  if (!track) throw new Error('There is no track.');
  expect(await page(`media/${media.id}`)).toContain(`action="/dashboard/${path}/${track.id}/file"`);
  await sendFile(emulator, `${path}/${track.id}/file`, 'WEBVTT', 'text/vtt').expect(303);
  await post(`${path}/${track.id}/publish`);
  await post(`${path}/${track.id}`, { label: 'British English', srclang: 'en-GB', position: '2' });
  expect(track).toMatchObject({
    status: 'ready',
    isPublished: true,
    metadata: { label: 'British English', srclang: 'en-GB', position: 2, track_kind: 'subtitles' },
  });
  const refused = await post(`${path}/${track.id}`, { label: 'x', position: '-1' });
  expect(complaintsOf(refused.text)).toEqual(['Position must not be negative.']);
  expect((await post(`${path}/${track.id}/upload`)).status).toBe(409);
  await post(`${path}/${track.id}/unpublish`);
  expect(track.isPublished).toBe(false);
  expect((await ask(emulator, `${path}/${track.id}/delete`)).status).toBe(204);
  expect(context.state.textTracks.of(media.id)).toEqual([]);
});

test('answers 404 to a form of a part, or of a media, that is not there', async () => {
  const { post, createReady } = await startLibraryPages();
  const { id } = await createReady();
  for (const path of [`${id}/pictures/nothing1/poster`, `${id}/tracks/nothing1/publish`, 'nothing1/tracks'])
    expect((await post(`media/${path}`)).status).toBe(404);
});

test('finds media by title, tag, author and external id, and by status and type', async () => {
  const { page, createMedia, createReady } = await startLibraryPages();
  const news = await createReady({ title: 'Evening news', tags: ['studio'] });
  const sports = await createMedia({ title: 'Sports', author: 'Kim', external_id: 'ext-77' });
  sports.mediaType = 'audio';
  const found = async (query: string) => rowsOf(await page(`media?${query}`)).map(([name = '']) => name);
  const [newsRow, sportsRow] = [`Evening news ${news.id}`, `Sports ${sports.id}`];
  for (const query of ['q=EVENING', 'q=studio', 'status=ready'])
    expect([query, await found(query)]).toEqual([query, [newsRow]]);
  for (const query of ['q=kim', 'q=ext-77', 'status=created', 'type=audio'])
    expect([query, await found(query)]).toEqual([query, [sportsRow]]);
});

test('creates a media whose content stays where it is, or names the fields that do not fit together', async () => {
  const { post, context, siteId } = await startLibraryPages();
  const form = { site: siteId, title: 'Elsewhere', source_url: 'https://cdn.example.com/clip.mp4' };
  const { text } = await post('media', { ...form, trim_in_point: '00:00:01' });
  const complaint = 'Trim in point and Trim out point cannot be set for the method external.';
  expect(complaintsOf(text)).toEqual([complaint]);
  await post('media', form);
  expect(context.state.media.all()).toMatchObject([
    { hostingType: 'external', sourceUrl: form.source_url, mimeType: 'video/mp4' },
  ]);
});

test('answers the script where a file goes, in one piece or in parts', async () => {
  const emulator = await startLibraryPages();
  const { context, siteId, url } = emulator;
  const direct = await ask(emulator, 'media', { site: siteId }).expect(201);
  const parts = await ask(emulator, 'media', { site: siteId, method: 'multipart' }).expect(201);
  const [first, second] = context.state.media.all();
  const pageOf = (id = '') => ({ page: `/dashboard/media/${id}`, undo: `/dashboard/media/${id}/delete` });
  expect(direct.body).toEqual({
    upload_link: `${url}/uploads/${first?.upload?.id}?token=${first?.upload?.token}`,
    ...pageOf(first?.id),
  });
  expect(parts.body).toEqual({
    upload_id: second?.upload?.id,
    upload_token: second?.upload?.token,
    ...pageOf(second?.id),
  });
  await ask(emulator, `media/${first?.id}/delete`).expect(204);
  expect(context.state.media.all()).toEqual([second]);
});

test('answers the script in JSON what is wrong', async () => {
  const emulator = await startLibraryPages();
  for (const [path, status, code, description] of [
    ['media', 400, 'invalid_body', 'The account has no such site.'],
    ['media/nothing1/upload', 404, 'not_found', 'There is no media with this id. It may have been deleted.'],
  ] as const)
    await ask(emulator, path, { site: 'elsewher' }).expect(status, { errors: [{ code, description }] });
});
