import { join } from 'node:path';
import fs from 'fs-extra';
import type { Response } from 'supertest';
import { exportCpix } from '../../src/drm/export/export-cpix';
import { exportKeyFile, notTaken, schemesOf } from '../../src/drm/export/export-key-file';
import { EXPORT_NAMES, type ExportName, type ExportScheme } from '../../src/drm/export/names';
import { cbcsDocument, IV, KEY } from '../support/cbcs-document';
import { asUtf16 } from '../support/made-cpix';
import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { right } from '../support/right';
import {
  apiKeysFile,
  errorBody,
  sidecarForAll,
  startSidecar,
  type TestSidecar,
} from '../support/start-sidecar';

const PATH = '/api/keyfile/demo';
const CPIX = 'application/cpix+xml';
const sidecar = sidecarForAll();
const { api } = sidecar;
const TYPES: Readonly<Record<ExportName, [type: string, extension: string]>> = {
  shaka: ['text/plain; charset=utf-8', 'flags'],
  'nginx-vod': ['application/json; charset=utf-8', 'json'],
  bento4: ['text/plain; charset=utf-8', 'options'],
  'shaka-streamer': ['text/plain; charset=utf-8', 'yaml'],
  gpac: ['text/plain; charset=utf-8', 'xml'],
  ffmpeg: ['text/plain; charset=utf-8', 'ffmpeg'],
  cpix: [CPIX, 'cpix'],
};

const textOf = (as: ExportName, scheme?: ExportScheme) =>
  right(exportKeyFile(POST_MANUAL_FILE, as, scheme)).text;

const place = (file: string | Buffer = POST_MANUAL_FILE, { folder }: { folder: string } = sidecar) =>
  fs.writeFile(join(folder, 'demo.key'), file);

it.each(EXPORT_NAMES)('answers the keys of the key file in the form %s, also to HEAD', async (as) => {
  await place();
  const [type, extension] = TYPES[as];
  for (const scheme of [undefined, ...schemesOf(as).filter((each) => each !== 'aes-128')]) {
    const path = `${PATH}?as=${as}${scheme ? `&scheme=${scheme}` : ''}`;
    const text = textOf(as, scheme);
    const [answer, head] = [await api.get(path).buffer(true).parse(asText), await api.head(path)];
    expect([answer.status, answer.body, head.status]).toEqual([200, text, 200]);
    expect(answer.headers).toMatchObject({
      'content-type': type,
      'content-length': String(Buffer.byteLength(text)),
      'content-disposition': `attachment; filename="demo.${extension}"`,
      'cache-control': 'no-store',
      etag: expect.stringMatching(/^"[\w-]{27}"$/),
    });
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control', 'content-disposition'])
      expect(head.headers[name]).toBe(answer.headers[name]);
  }
});

it('every export has an entity tag of its own, and is answered 304 to that alone', async () => {
  await place();
  const paths = [
    PATH,
    ...EXPORT_NAMES.flatMap((as) =>
      schemesOf(as).map((scheme) => `${PATH}?as=${as}&scheme=${scheme}`),
    ).filter((path) => !path.endsWith('aes-128')),
  ];
  const tags = new Map<string, string>();
  for (const path of paths) tags.set(path, String((await api.head(path)).headers.etag));
  expect(new Set(tags.values()).size).toBe(paths.length);
  for (const path of paths) {
    const own = tags.get(path) ?? '';
    const others = [...tags.values()].filter((tag) => tag !== own);
    await api.get(path).set('if-none-match', own).expect(304).expect('etag', own);
    await api.get(path).set('if-none-match', others.join(', ')).expect(200);
  }
});

it('a changed key file is exported as it is then, with another entity tag', async () => {
  await place();
  const path = `${PATH}?as=nginx-vod`;
  const before = await api.get(path).expect(200);
  await api.post(PATH).send(CENC_ONLY).expect(200);
  const after = await api.get(path).set('if-none-match', String(before.headers.etag)).expect(200);
  expect(after.body).toEqual([{ key: CENC_ONLY.cenc.contentkey, key_id: CENC_ONLY.cenc.keyid }]);
  expect(after.headers.warning).toBe(
    '299 - "no_drm_system: The export has a key and no DRM system, so players cannot request a license; add Widevine, PlayReady or FairPlay, unless players get the key by other means (ClearKey)."',
  );
});

it('a stream in a sub-folder gives its file the last part of its name', async () => {
  await api.post('/api/keyfile/live%2Fnews').send(POST_MANUAL).expect(200);
  const { headers } = await api.get('/api/keyfile/live%2Fnews?as=shaka&scheme=cbcs').expect(200);
  expect(headers['content-disposition']).toBe('attachment; filename="news.flags"');
});

it.each([
  ['as=cpix&as=shaka', 'as: must be one of shaka, shaka-streamer, nginx-vod, bento4, gpac, ffmpeg, cpix'],
  ['as=constructor', 'as: must be one of shaka, shaka-streamer, nginx-vod, bento4, gpac, ffmpeg, cpix'],
  [
    'as=cpix&scheme=cens',
    'scheme: must be cenc, the key of Widevine and PlayReady, cbcs, the key of FairPlay, or aes-128, the key of HLS without DRM',
  ],
  ['scheme=cbcs', 'as: is missing'],
  ['as=cpix&shceme=cbcs', 'shceme is not a parameter of this request. Did you mean scheme?'],
])('a query that is not understood is refused with what there is: %s', async (query, description) => {
  await place();
  await api.get(`${PATH}?${query}`).expect(400, errorBody('invalid_query', description));
});

it('other parameters are passed over where no export is asked for, unless they look like one', async () => {
  await place();
  const { text } = await api.get(`${PATH}?sa=cpix`).expect(400);
  expect(text).toContain('sa is not a parameter of this request. Did you mean as?');
  await api.get(`${PATH}?_=1&constructor=2`).expect(200, POST_MANUAL_FILE);
});

it('a scheme that the key file has no key of is refused, or that the form has not', async () => {
  await place(CENC_ONLY_FILE);
  const refused = async (as: ExportName) =>
    (await api.get(`${PATH}?as=${as}&scheme=cbcs`).expect(409)).body.errors[0].description;
  expect(await refused('shaka')).toBe(
    'The key file has no FairPlay lines, which cbcs needs; provision the stream with fairplay, or ask for the scheme cenc.',
  );
  expect(await refused('ffmpeg')).toBe(`The key file ${notTaken('ffmpeg', 'cbcs')}.`);
});

it.each([
  ['key_file_malformed', 'The key file is empty; provision the stream again.', ''],
  [
    'key_file_malformed',
    'The key file ends within a line, as if it was written only in part; add a line break if it is whole, or provision the stream again.',
    POST_MANUAL_FILE.slice(0, 200),
  ],
  [
    'key_file_malformed',
    'The key file is not UTF-8, so it cannot be exported. Write it again.',
    Buffer.from('mpegdashstreaming-cenc-key-id: \xff\n', 'latin1'),
  ],
  [
    'key_file_malformed',
    'The key file can\'t be used: line 4 is not "name: value"; correct it, or start it with # to make it a comment.',
    `${CENC_ONLY_FILE}nothing\n`,
  ],
  [
    'keys_missing',
    'The key file has no lines of DASH or FairPlay; provision the stream with its keys.',
    'vendor-tier: gold\n',
  ],
])('a key file that cannot be exported is refused, %s: %s', async (code, description, file) => {
  await place(file);
  await api.get(`${PATH}?as=shaka`).expect(409, errorBody(code, description));
  // A second time: what is refused is not kept.
  await api.get(`${PATH}?as=shaka`).expect(409);
});

it('the log names the form, and no secret', async () => {
  const { api, logText, folder } = await startSidecar();
  await place(POST_MANUAL_FILE, { folder });
  await api.get(`${PATH}?as=bento4`).expect(200);
  const log = await logText();
  expect(log).toContain('"as":"bento4"');
  const { cenc, fairplay } = POST_MANUAL;
  for (const secret of [cenc.contentkey, fairplay.key, fairplay.iv]) {
    expect(log).not.toContain(secret);
    expect(log.toLowerCase()).not.toContain(Buffer.from(secret, 'base64').toString('hex'));
  }
});

const post = ({ api }: Pick<TestSidecar, 'api'>, query: string, body: string | Buffer, type = CPIX) =>
  api.post(`/api/export?${query}`).set('content-type', type).send(body).buffer(true);

it('answers the keys of a document and of a key file in every form, and keeps and logs none', async () => {
  const { api, folder, logText } = await startSidecar();
  const read = async (query: string, body: string | Buffer, type?: string) => {
    const answer = await post({ api }, query, body, type).parse(asText).expect(200);
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-disposition': expect.stringMatching(/^attachment; filename="keys\.\w+"$/),
    });
    return answer.body;
  };
  for (const as of EXPORT_NAMES) {
    const document = as === 'ffmpeg' ? cbcsDocument({ scheme: 'cenc' }) : cbcsDocument();
    const [made, ofFile] = [exportCpix(document, { as }), exportKeyFile(POST_MANUAL_FILE, as, 'cenc')];
    const text = made.ok && made.value.text;
    expect(await read(`as=${as}`, document)).toBe(text);
    expect(await read(`as=${as}`, asUtf16(document), 'text/xml')).toBe(text);
    expect(await read(`as=${as}`, document, 'text/plain')).toBe(text);
    expect(await read(`as=${as}&scheme=cenc`, POST_MANUAL_FILE, 'text/plain')).toBe(ofFile.ok && ofFile.text);
  }
  expect(await fs.readdir(folder)).toEqual([]);
  const log = await logText();
  for (const as of EXPORT_NAMES) expect(log).toContain(`"as":"${as}"`);
  for (const secret of [KEY, IV])
    for (const encoding of ['hex', 'base64'] as const) expect(log).not.toContain(secret.toString(encoding));
});

it('kid and track choose a key of several', async () => {
  for (const choice of ['track=HD', 'kid=77777777-7777-7777-7777-777777777777']) {
    const { text } = await post(sidecar, `as=bento4&${choice}`, cbcsDocument({}, 'HD')).expect(200);
    expect(text).toContain(`--encryption-key=${'77'.repeat(16)}:`);
  }
});

it.each([
  ['as=shaka', cbcsDocument({}, 'HD'), CPIX, 'cpix_choice'],
  ['as=shaka&period=2', cbcsDocument(), CPIX, 'cpix_choice'],
  ['as=shaka&scheme=cenc', cbcsDocument(), CPIX, 'cpix_choice'],
  ['as=ffmpeg&scheme=aes-128', cbcsDocument(), CPIX, 'cpix_choice'],
  ['as=shaka', cbcsDocument({ value: undefined }), CPIX, 'cpix_not_usable'],
  ['as=shaka', POST_MANUAL_FILE, CPIX, 'invalid_cpix'],
  ['as=shaka', 'nothing', 'text/plain', 'key_file_malformed'],
  ['as=shaka&scheme=cbcs', CENC_ONLY_FILE, 'text/plain', 'keys_missing'],
  ['as=shaka&track=HD', CENC_ONLY_FILE, 'text/plain', 'invalid_query'],
  ['as=shaka&kid=1', cbcsDocument(), CPIX, 'invalid_query'],
  ['as=other', cbcsDocument(), CPIX, 'invalid_query'],
  ['scheme=cbcs', cbcsDocument(), CPIX, 'invalid_query'],
  ['as=shaka', '', CPIX, 'invalid_body'],
])(
  'a key file that cannot be exported is refused with its code: %s (%#)',
  async (query, body, type, code) => {
    const { body: answer } = await post(sidecar, query, body, type).expect(400);
    expect(answer.errors.map((error: { code: string }) => error.code)).toEqual([code]);
  },
);

it('a body that is too large, or of another type or method, is refused', async () => {
  await post(sidecar, 'as=shaka', ' '.repeat(300 * 1024)).expect(413);
  await post(sidecar, 'as=shaka', 'a: b\n'.repeat(20_000), 'text/plain').expect(413);
  await post(sidecar, 'as=shaka', '{}', 'application/json').expect(415);
  await sidecar.api.get('/api/export?as=shaka').expect(405);
});

it('any API key will do, and one is needed', async () => {
  const key = 'the-key-of-a-packager-0123456789';
  const keys = await apiKeysFile({ name: 'packager', key, scope: 'read', streams: ['live'] });
  const { unauthenticated } = await startSidecar({ apiKey: undefined, ...keys });
  await post({ api: unauthenticated }, 'as=shaka', cbcsDocument()).expect(401);
  await post({ api: unauthenticated }, 'as=shaka', cbcsDocument()).set('x-api-key', key).expect(200);
});

/** The body as it came, of any type. */
function asText(response: Response, done: (error: Error | null, text: string) => void): void {
  let text = '';
  response.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
  });
  response.on('end', () => done(null, text));
}
