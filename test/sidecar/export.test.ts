import fs from 'fs-extra';
import { exportCpix } from '../../src/drm/export/export-cpix';
import { exportKeyFile } from '../../src/drm/export/export-key-file';
import { EXPORT_NAMES } from '../../src/drm/export/names';
import { cbcsDocument, IV, KEY } from '../support/cbcs-document';
import { asUtf16 } from '../support/made-cpix';
import { CENC_ONLY_FILE, POST_MANUAL_FILE } from '../support/post-manual';
import { apiKeysFile, startSidecar, type TestSidecar } from '../support/start-sidecar';

const CPIX = 'application/cpix+xml';

const post = ({ api }: Pick<TestSidecar, 'api'>, query: string, body: string | Buffer, type = CPIX) =>
  api.post(`/api/export?${query}`).set('content-type', type).send(body).buffer(true);

describe.each(EXPORT_NAMES)('POST /api/export?as=%s', (as) => {
  it('answers the keys of a document and of a key file in that form, and keeps and logs none', async () => {
    const sidecar = await startSidecar();
    const document = as === 'ffmpeg' ? cbcsDocument({ scheme: 'cenc' }) : cbcsDocument();
    const [made, ofFile] = [exportCpix(document, { as }), exportKeyFile(POST_MANUAL_FILE, as, 'cenc')];
    const read = async (query: string, body: string | Buffer, type?: string) => {
      const answer = await post(sidecar, query, body, type)
        .parse((response, done) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('end', () => done(null, Buffer.concat(chunks).toString()));
        })
        .expect(200);
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-store',
        'content-disposition': expect.stringMatching(/^attachment; filename="keys\.\w+"$/),
      });
      return answer.body;
    };
    const text = made.ok && made.value.text;
    expect(await read(`as=${as}`, document)).toBe(text);
    expect(await read(`as=${as}`, asUtf16(document), 'text/xml')).toBe(text);
    expect(await read(`as=${as}`, document, 'text/plain')).toBe(text);
    expect(await read(`as=${as}&scheme=cenc`, POST_MANUAL_FILE, 'text/plain')).toBe(ofFile.ok && ofFile.text);
    expect(await fs.readdir(sidecar.folder)).toEqual([]);
    const log = await sidecar.logText();
    expect(log).toContain(`"as":"${as}"`);
    for (const secret of [KEY, IV])
      for (const encoding of ['hex', 'base64'] as const) expect(log).not.toContain(secret.toString(encoding));
  });
});

it('kid and track choose a key of several', async () => {
  const sidecar = await startSidecar();
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
    const { body: answer } = await post(await startSidecar(), query, body, type).expect(400);
    expect(answer.errors.map((error: { code: string }) => error.code)).toEqual([code]);
  },
);

it('a body that is too large, or of another type or method, is refused', async () => {
  const sidecar = await startSidecar();
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
