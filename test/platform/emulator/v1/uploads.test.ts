import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import request from 'supertest';
import { onceForAll } from '../../../support/after-test';
import {
  createV1,
  type Fields,
  okV1,
  processFile,
  refusedV1,
  uploadForm,
  type V1Link,
} from '../../../support/call-v1';
import { queryOf } from '../../../support/sign-v1';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const md5Of = (text: string) => createHash('md5').update(text).digest('hex');
const linkOf = ({ link }: Fields) => link as V1Link;
const targetOf = ({ path, query }: V1Link, more = '') => `${path}?${queryOf(Object.entries(query))}${more}`;

async function sizeOf(emulator: TestEmulator, video_key: string): Promise<unknown> {
  return ((await okV1(emulator, 'videos/show', { video_key })).video as Fields).size;
}

/** For tests whose uploads are their own. */
const platform = onceForAll(() => startEmulator());

test('a file that is not what was said of it is refused, and may come again', async () => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create', { md5: md5Of('abc').toUpperCase(), size: '3' });
  const { key } = made.video as { key: string };
  const codeOf = async (file: string) => {
    const { status, body } = await uploadForm(emulator, made, file);
    return [status, body.code];
  };
  expect(await codeOf('abd')).toEqual([400, 'DigestInvalid']);
  expect(await codeOf('abcd')).toEqual([400, 'FileSizeInvalid']);
  expect(await sizeOf(emulator, key)).toBe('0');
  expect(await codeOf('abc')).toEqual([200, undefined]);
  // The answer may have been lost.
  expect(await codeOf('abc')).toEqual([200, undefined]);
  expect(await codeOf('xyz')).toEqual([400, 'DigestInvalid']);
  expect(await sizeOf(emulator, key)).toBe('3');
});

test('the answer to an upload comes in the format that is asked for', async () => {
  const emulator = await platform();
  const made = await okV1(emulator, 'videos/create');
  const { key } = made.video as Fields;
  const { text } = await emulator.unauthenticated
    .post(targetOf(linkOf(made), '&api_format=xml'))
    .attach('file', Buffer.from('abc'), 'film.mp4')
    // Pages of any origin may send forms.
    .expect('access-control-allow-origin', '*');
  expect(text).toBe(
    `<?xml version="1.0" encoding="UTF-8"?>\n<response><status>ok</status><media key="${key}"><type>video</type></media><video key="${key}"/><file><md5>${md5Of('abc')}</md5><size>3</size></file></response>`,
  );
});

test.each([
  ['another token', { token: 'x' }, 403, 'PermissionDenied'],
  ['no token', { token: undefined }, 403, 'PermissionDenied'],
  ['another key', { key: 'none0000' }, 404, 'NotFound'],
  ['no key', { key: undefined }, 400, 'ParameterMissing'],
] as const)('a link with %s takes no file', async (_what, changed, status, code) => {
  const emulator = await startEmulator();
  const made = await okV1(emulator, 'videos/create');
  const { path, query } = linkOf(made);
  const parameters = Object.entries({ ...query, ...changed }).filter(([, value]) => value !== undefined);
  const answer = await uploadForm(emulator, { link: { path, query: Object.fromEntries(parameters) } }, 'abc');
  expect([answer.status, answer.body.status, answer.body.code]).toEqual([status, 'error', code]);
  expect(emulator.context.uploads.files.usedBytes).toBe(0);
});

test('a form without the field file, an empty file and another body are refused', async () => {
  const emulator = await startEmulator();
  const target = targetOf(linkOf(await okV1(emulator, 'videos/create')));
  const { unauthenticated } = emulator;
  const answers = [
    await unauthenticated.post(target).attach('other', Buffer.from('abc'), 'film.mp4'),
    await unauthenticated.post(target).attach('file', Buffer.alloc(0), 'film.mp4'),
    await unauthenticated.post(target).send('file=abc'),
    await unauthenticated.get(target),
  ];
  expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
    [400, 'FileUploadFailed'],
    [400, 'FileUploadFailed'],
    [415, 'FileUploadFailed'],
    [405, 'NotSupported'],
  ]);
  expect(emulator.context.uploads.files.usedBytes).toBe(0);
});

test('the method s3 gets the address to PUT the bytes', async () => {
  const emulator = await platform();
  const made = await okV1(emulator, 'videos/create', { upload_method: 's3' });
  const { key } = made.video as { key: string };
  const target = targetOf(linkOf(made));
  await emulator.unauthenticated.put(target).send('abc').expect(200);
  await processFile(emulator, key);
  expect(await sizeOf(emulator, key)).toBe('3');
});

/** Sends chunks of a resumable upload, each with the range that it says. */
async function startChunks(announced: Readonly<Record<string, string>> = {}) {
  const emulator = await platform();
  const made = await okV1(emulator, 'videos/create', { upload_method: 'multipart', ...announced });
  const { session_id } = made as { session_id: string };
  const { files } = emulator.context.uploads;
  const before = files.usedBytes;
  const send = async (range: string, bytes: string, headers: Readonly<Record<string, string>> = {}) => {
    const { status, body, text } = await request(emulator.url)
      .post(targetOf(linkOf(made), '&api_format=json'))
      .set({
        'x-session-id': session_id,
        'x-content-range': `bytes ${range}`,
        'content-type': 'application/octet-stream',
        ...headers,
      })
      .send(Buffer.from(bytes));
    return [status, status === 201 ? text : (body.code ?? body)];
  };
  return {
    emulator,
    usedBytes: () => files.usedBytes - before,
    send,
    key: (made.video as { key: string }).key,
  };
}

test('a chunk that was lost is reported, and one that came already may come again', async () => {
  const { send } = await startChunks();
  expect(await send('2-3/4', 'cd')).toEqual([412, 'PreconditionFailed']);
  expect(await send('0-1/4', 'ab')).toEqual([201, '0-1/4']);
  expect(await send('0-1/4', 'AB')).toEqual([201, '0-1/4']);
  expect(await send('3-3/4', 'd')).toEqual([412, 'PreconditionFailed']);
});

test('a chunk that comes again with another length is dropped, as another one follows it', async () => {
  const { emulator, send, key } = await startChunks();
  await send('0-3/8', 'abcd');
  expect(await send('0-5/8', 'abcdef')).toEqual([201, '0-5/8']);
  expect(await send('6-6/8', 'g')).toEqual([201, '0-6/8']);
  expect(await send('0-3/8', 'abcd')).toEqual([201, '0-6/8']);
  expect(await send('0-5/8', 'ABCDEF')).toEqual([201, '0-6/8']);
  expect((await send('7-7/8', 'h'))[0]).toBe(200);
  await processFile(emulator, key);
  const { video } = await okV1(emulator, 'videos/show', { video_key: key });
  expect(video).toMatchObject({ md5: md5Of('ABCDEFgh') });
});

test('a client that resumes finds out with any chunk from byte 0 where to go on', async () => {
  const { emulator, send, key } = await startChunks();
  expect(await send('0-3/9', 'abcd')).toEqual([201, '0-3/9']);
  expect(await send('4-6/9', 'efg')).toEqual([201, '0-6/9']);
  expect(await send('0-0/9', '?')).toEqual([201, '0-6/9']);
  expect(await send('0-5/9', '??????')).toEqual([201, '0-6/9']);
  expect(await send('0-8/9', 'abcdefghi')).toEqual([412, 'PreconditionFailed']);
  const answer = { status: 'ok', media: { type: 'video', key }, video: { key }, file: { size: '9' } };
  expect(await send('7-8/9', 'hi')).toEqual([200, answer]);
  expect((await send('0-1/9', '??'))[0]).toBe(200);
  await processFile(emulator, key);
  const { video } = await okV1(emulator, 'videos/show', { video_key: key });
  expect(video).toMatchObject({ status: 'ready', size: '9', md5: md5Of('abcdefghi') });
});

test.each([
  ['create', { upload_method: 'multipart' }],
  ['create', { upload_method: 'resumable' }],
  ['create', { resumable: 'True' }],
  ['update', { update_file: 'True', upload_method: 'multipart' }],
  ['update', { update_file: 'True', resumable: 'true' }],
] as const)('videos/%s with %j gets the address for chunks', async (method, parameters) => {
  const emulator = await platform();
  const { key } = (await okV1(emulator, 'videos/create')).video as { key: string };
  const video = method === 'update' ? { video_key: key } : {};
  const made = await okV1(emulator, `videos/${method}`, { ...video, ...parameters });
  expect([linkOf(made).path, made.session_id]).toEqual(['/v1/videos/upload/resumable', expect.any(String)]);
});

test.each([
  [{ md5: md5Of('abce') }, 'DigestInvalid'],
  [{ size: '5' }, 'FileSizeInvalid'],
])('chunks whose file is not as %j said are refused, and may come again', async (announced, code) => {
  const { emulator, usedBytes, send, key } = await startChunks(announced);
  expect(await send('0-1/4', 'ab')).toEqual([201, '0-1/4']);
  expect(await send('2-3/4', 'cd')).toEqual([400, code]);
  expect(usedBytes()).toBe(4);
  const { video } = await okV1(emulator, 'videos/show', { video_key: key });
  expect(video).toMatchObject({ status: 'created' });
  const again = await send('2-3/4', 'ce');
  expect(again[0]).toBe('md5' in announced ? 200 : 400);
});

test.each([
  ['0-1/4', 'abc', {}, 400, 'FileSizeInvalid'],
  ['3-1/4', 'ab', {}, 400, 'ParameterInvalid'],
  ['0-4/4', 'abcde', {}, 400, 'ParameterInvalid'],
  ['0-1/*', 'ab', {}, 400, 'ParameterInvalid'],
  ['0-1/4', '', {}, 400, 'FileUploadFailed'],
  ['0-1/4', 'ab', { 'x-session-id': 'x' }, 403, 'PermissionDenied'],
] as const)('the chunk %s of %j is refused', async (range, bytes, headers, status, code) => {
  const { usedBytes, send } = await startChunks();
  expect(await send(range, bytes, headers)).toEqual([status, code]);
  expect(usedBytes()).toBe(0);
});

test('a file is not fetched from an address that webhooks may not call', async () => {
  const emulator = await platform();
  const made = await okV1(emulator, 'videos/create', { download_url: 'https://10.0.0.1/film.mp4' });
  const { key } = made.video as { key: string };
  expect(made).not.toHaveProperty('link');
  await emulator.advance(10);
  const { video } = await okV1(emulator, 'videos/show', { video_key: key });
  expect(video).toMatchObject({ status: 'failed', error: expect.any(String) });
  const download_url = 'ftp://a.test/film.mp4';
  const [status, code] = await refusedV1(emulator, 'videos/create', { download_url });
  expect([status, code]).toEqual([400, 'ParameterInvalid']);
});

/** Calls that are refused, with the status, the code and the message. `x*201` is x 201 times. */
const REFUSED = String.raw`
accounts/tags/delete → 400 ParameterMissing name is missing.
accounts/tags/delete?name= → 400 ParameterEmpty name is empty.
accounts/tags/delete?name=none → 404 NotFound name: there is nothing with the key none.
accounts/tags/update?name=a → 400 ParameterMissing new_name is missing.
accounts/tags/update?name=none&new_name=b → 404 NotFound name: there is nothing with the key none.
accounts/tags/update?name=a&new_name=x*201 → 400 ParameterInvalid new_name is longer than 200 characters.
accounts/usage/show?start_date=today → 400 ParameterInvalid start_date must be a UNIX time in seconds, as 1237387851.
accounts/usage/show?account_key=othrsite → 404 NotFound account_key: there is nothing with the key othrsite.
accounts/usage/show?start_date=1893542400&end_date=1893456000 → 400 ParameterInvalid end_date: must not be before start_date
channels/create?type=manual&sort_order=date-asc → 400 ParameterInvalid sort_order is not a parameter of this call.
channels/create?videos_max=0 → 400 ParameterInvalid videos_max must be at least 1.
channels/update?channel_key=DYNAMIC&type=manual&title=E → 400 ParameterInvalid type: a channel keeps its type. Leave it out, or create another channel.
channels/videos/create?channel_key=DYNAMIC&video_key=VIDEO → 405 NotSupported channel_key: only a manual channel has videos of its own.
channels/videos/create?channel_key=MANUAL → 400 ParameterMissing video_key is missing.
channels/videos/create?channel_key=MANUAL&video_key=none0000 → 404 NotFound video_key: there is nothing with the key none0000.
channels/videos/create?channel_key=MANUAL&video_key=OTHER&position=2 → 400 ParameterInvalid position must be at most 1.
channels/videos/delete?channel_key=MANUAL → 400 ParameterMissing position is missing.
channels/videos/delete?channel_key=MANUAL&position=1 → 400 ParameterInvalid position must be at most 0.
channels/videos/delete?channel_key=MANUAL&position=-1 → 400 ParameterInvalid position must be a whole number, 0 or more.
channels/videos/delete?channel_key=MANUAL&video_key=VIDEO&position=0 → 400 ParameterInvalid video_key and position cannot be set together.
channels/videos/show?channel_key=MANUAL&video_key=OTHER → 404 NotFound
channels/videos/update?channel_key=MANUAL&position_from=0 → 400 ParameterMissing position_to is missing.
players/create → 400 ParameterMissing name is missing.
players/create?name=x*201 → 400 ParameterInvalid name is longer than 200 characters.
players/show?player_key=none0000 → 404 NotFound This site has no player with this id.
videos/show → 400 ParameterMissing video_key is missing.
videos/show?video_key=+ → 400 ParameterEmpty video_key is empty.
videos/delete?video_key=, → 400 ParameterEmpty video_key is empty.
videos/delete?video_key=a,*1001 → 400 ParameterInvalid video_key has more than 1000 keys.
videos/create?titel=A → 405 NotSupported titel is not a parameter of /v1/videos/create. Did you mean title?
videos/create?upload_method=fetch → 400 ParameterMissing download_url is missing.
videos/update?video_key=VIDEO&upload_method=fetch → 400 ParameterMissing download_url is missing.
videos/create?sourcetype=url → 400 ParameterMissing sourceurl is missing.
videos/create?title=x*1001 → 400 ParameterInvalid title is longer than 1000 characters.
videos/create?custom.a=x*4001 → 400 ParameterInvalid custom.a is longer than 4000 characters.
videos/create?trim_in_point=5 → 400 ParameterInvalid trim_in_point must be a time as HH:MM:SS.mmm.
videos/create?md5=x → 400 ParameterInvalid md5 must be the MD5 of the file, as 32 hexadecimal digits.
videos/create?size=-1 → 400 ParameterInvalid size must be a whole number, 0 or more.
videos/conversions/list → 400 ParameterMissing
videos/conversions/list?video_key=none0000 → 404 NotFound
videos/conversions/create?video_key=VIDEO → 400 ParameterMissing template_key is missing.
videos/conversions/create?video_key=none0000&template_key=1 → 404 NotFound
videos/conversions/show?conversion_key=none0000 → 404 NotFound
videos/conversions/delete → 400 ParameterMissing
videos/tracks/create?video_key=none0000&kind=captions → 404 NotFound
videos/tracks/create?video_key=VIDEO&kind=poem → 400 ParameterInvalid
videos/tracks/show?track_key=none0000 → 404 NotFound
videos/tracks/update → 400 ParameterMissing
videos/tracks/delete?track_key=none0000 → 404 NotFound
videos/thumbnails/show?video_key=none0000 → 404 NotFound
videos/thumbnails/update → 400 ParameterMissing
videos/thumbnails/update?video_key=VIDEO&position=-1 → 400 ParameterInvalid
videos/thumbnails/update?video_key=VIDEO&position=1&thumbnail_index=1 → 400 ParameterInvalid
videos/list?api_format=yaml → 400 ParameterInvalid api_format must be one of json, xml, php, py.
videos/list?result_limit=1001 → 400 ParameterInvalid result_limit must be at most 1000.
videos/list?result_limit=all → 400 ParameterInvalid result_limit must be a whole number, 0 or more.
videos/list?result_limit={limit} → 400 ParameterInvalid result_limit is a placeholder. Send a value.
videos/list?order_by=shoesize:asc → 400 ParameterInvalid order_by names a field that this list does not have.
videos/list?order_by=title:asc,*1000 → 400 ParameterInvalid order_by is longer than 200 characters.
videos/list?search=x*201 → 400 ParameterInvalid search is longer than 200 characters.
videos/list?search:*="\*5000 → 400 ParameterInvalid search:* is longer than 200 characters.
videos/list?search:shoesize=9 → 400 ParameterInvalid search:shoesize names a field that this list does not have.
videos/list?search:shoesize,custom.*=9 → 400 ParameterInvalid search:shoesize,custom.* names a field that this list does not have.
`;

const shared = onceForAll(async () => {
  const emulator = await platform();
  const VIDEO = await createV1(emulator, 'video', { tags: 'a' });
  const OTHER = await createV1(emulator, 'video');
  const MANUAL = await createV1(emulator, 'channel', { type: 'manual' });
  const DYNAMIC = await createV1(emulator, 'channel');
  await okV1(emulator, 'channels/videos/create', { channel_key: MANUAL, video_key: VIDEO });
  return { emulator, keys: { VIDEO, OTHER, MANUAL, DYNAMIC } };
});

test.each(REFUSED.trim().split('\n'))('refused, and nothing is changed: %s', async (row) => {
  const { emulator, keys } = await shared();
  const { rateWindows: _windows, signatures: _signatures, ...stores } = emulator.context.state;
  const everything = () => inspect(stores, { depth: 7 });
  const [asked = '', expected = ''] = row.split(' → ');
  const [call = '', query = ''] = asked
    .replaceAll(/VIDEO|OTHER|MANUAL|DYNAMIC/g, (name) => keys[name as keyof typeof keys])
    .split(/\?(.*)/);
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => {
    const [, text = value, times = '1'] = /^(.+)\*(\d+)$/.exec(value) ?? [];
    return [name, text.repeat(Number(times))];
  });
  const before = everything();
  const refusal = await refusedV1(emulator, call, Object.fromEntries(pairs));
  const [, status, code, message = refusal[2]] = /^(\d+) (\w+)(?: (.*))?$/.exec(expected) ?? [];
  expect(refusal).toEqual([Number(status), code, message]);
  expect(everything()).toBe(before);
});
