import fs from 'fs-extra';
import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { PROVIDED } from '../support/start-provisioning';
import { sidecarForAll, startSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/live?dryrun=true';
const sidecar = sidecarForAll();
const { api, files } = sidecar;
const MASK = '********';
const SECRETS = /^(.*-content-key|cupertinostreaming-aes128-key|cupertinostreaming-aes128-iv)$/;

/** The lines of a key file with what is secret masked. */
function masked(file: string) {
  return file
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [name = '', value = ''] = line.split(/: (.*)/);
      return { name, value: SECRETS.test(name) ? MASK : value };
    });
}

test('returns the lines of a file that would be created, and writes none', async () => {
  const sidecar = await startSidecar();
  const { body } = await sidecar.api.post(PATH).send(POST_MANUAL).expect(200);
  expect(body).toEqual({
    streamid: 'live',
    dryrun: true,
    result: 'created',
    etag: expect.stringMatching(/^".{27}"$/),
    present_etag: null,
    lines: masked(POST_MANUAL_FILE).map((line) => ({ ...line, change: 'added' })),
    warnings: [],
  });
  expect(await sidecar.files()).toEqual({});
  expect(await sidecar.logText()).not.toContain('key file written');
});

test('hex digits of FairPlay in the other case change nothing: a batch does not write them', async () => {
  const batch = async (keys: object) =>
    (await sidecar.batch({ streams: [{ streamid: 'live', ...keys }] })).results[0];
  const { etag } = await batch(POST_MANUAL);
  const { fairplay } = POST_MANUAL;
  const other = {
    ...POST_MANUAL,
    fairplay: { ...fairplay, key: fairplay.key.toLowerCase(), iv: fairplay.iv.toLowerCase() },
  };
  const { body } = await sidecar.api.post(PATH).send(other).expect(200);
  expect(body.result).toBe('unchanged');
  expect(body.lines.filter(({ change }: { change: string }) => change !== 'same')).toEqual([]);
  expect(await batch(other)).toMatchObject({ result: 'unchanged', etag });
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
});

test('returns the lines that would change, come and go', async () => {
  await sidecar.api.post('/api/keyfile/live').send(POST_MANUAL).expect(200);
  const other = {
    cenc: { ...CENC_ONLY.cenc, contentkey: 'AAAAAAAAAAAAAAAAAAAAAQ==' },
    widevine: { psshdata: 'SOPclZsG' },
  };
  const { body } = await sidecar.api.post(PATH).send(other).expect(200);
  expect(body.result).toBe('changed');
  expect(body.present_etag).not.toBe(body.etag);
  const changes: { name: string; change: string; value: string; former?: string }[] = body.lines;
  const names = (change: string) => changes.filter((line) => line.change === change).map(({ name }) => name);
  expect(names('added')).toEqual([]);
  expect(names('removed')).toHaveLength(11);
  expect(changes.filter(({ change }) => change === 'changed')).toEqual([
    { name: 'mpegdashstreaming-cenc-content-key', value: MASK, change: 'changed', former: MASK },
    {
      name: 'mpegdashstreaming-cenc-keyserver-widevine-pssh-data',
      value: 'SOPclZsG',
      change: 'changed',
      former: POST_MANUAL.widevine.psshdata,
    },
  ]);
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
});

test('shows a diff to a client that asks for text', async () => {
  await sidecar.api.post('/api/keyfile/live').send(CENC_ONLY).expect(200);
  const body = { ...CENC_ONLY, widevine: { psshdata: 'SOPclZsG' } };
  const answer = await sidecar.api.post(PATH).set('accept', 'text/plain').send(body).expect(200);
  expect(answer.text).toBe(`\
  mpegdashstreaming-cenc-key-id: ${CENC_ONLY.cenc.keyid}
  mpegdashstreaming-cenc-content-key: ${MASK}
  mpegdashstreaming-cenc-algorithm: AESCTR
+ mpegdashstreaming-cenc-keyserver-widevine: true
+ mpegdashstreaming-cenc-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
+ mpegdashstreaming-cenc-keyserver-widevine-pssh-data: SOPclZsG
`);
});

test('answers warnings, preconditions and faults as the real run would', async () => {
  const odd = { ...CENC_ONLY, widevine: { psshdata: 'EhBE2lLvRSMJjmhUd37jImgdSPPGiZsG' } };
  const { body, headers } = await sidecar.api.post(PATH).send(odd).expect(200);
  const [{ code, description }] = body.warnings;
  expect([body.warnings.length, code]).toEqual([1, 'scheme_mismatch']);
  expect(headers.warning).toBe(`299 - "scheme_mismatch: ${description}"`);
  await sidecar.api.post(PATH).send({ cenc: {} }).expect(400);
  await sidecar.api.post(PATH).set('if-match', '*').send(CENC_ONLY).expect(412);
  expect(await sidecar.files()).toEqual({});
});

test.each(['yes', ''])('refuses dryrun=%s, which might be meant either way', async (value) => {
  const description = 'dryrun: must be true or false. Nothing was changed.';
  await sidecar.api
    .post(`/api/keyfile/live?dryrun=${value}`)
    .send(CENC_ONLY)
    .expect(400, { errors: [{ code: 'invalid_query', description }] });
  expect(await sidecar.files()).toEqual({});
});

test('writes with dryrun=false', async () => {
  await api.post('/api/keyfile/live?dryrun=false').send(CENC_ONLY).expect(200, CENC_ONLY_FILE);
});

test.each([
  [
    'post',
    '/api/keyfile/live?dryRun=true',
    'dryRun is not a parameter of this request. Did you mean dryrun?',
  ],
  ['post', '/api/keyfiles?force=1', 'force is not a parameter of this request. Parameters: dryrun, wait.'],
  ['delete', '/api/keyfile/live?dryrun=true', 'dryrun is not a parameter of this request. Parameters: wait.'],
] as const)('refuses %s %s, which might be meant as a dry run', async (method, path, why) => {
  const description = `${why} Nothing was changed.`;
  await sidecar.api.post('/api/keyfile/live').send(POST_MANUAL).expect(200);
  await sidecar.api[method](path)
    .send({ ...CENC_ONLY, streams: [] })
    .expect(400, { errors: [{ code: 'invalid_query', description }] });
  expect(await sidecar.files()).toEqual({ 'live.key': POST_MANUAL_FILE });
});

test('promises nothing when the folder is gone', async () => {
  await fs.remove(sidecar.folder);
  const { body } = await sidecar.api.post(PATH).send(CENC_ONLY).expect(500);
  expect(body.errors[0].code).toBe('key_files_not_writable');
});

describe('CMAF lines', () => {
  const PATH = '/api/keyfile/live';
  const { fairplay } = POST_MANUAL;
  const HLS_LINES = POST_MANUAL_FILE.replace(/^mpegdash.*\n/gm, '');
  const DASH_LINES = POST_MANUAL_FILE.replace(HLS_LINES, '');
  const CMAF_FILE = DASH_LINES + DASH_LINES.replaceAll('mpegdash', 'cmaf') + HLS_LINES;

  test.each<[configured: boolean, what: string, body: object, expected: string]>([
    [false, 'nothing of them', POST_MANUAL, POST_MANUAL_FILE],
    [false, 'true', { ...POST_MANUAL, cmaf: true }, CMAF_FILE],
    [false, 'cenc', { ...POST_MANUAL, cmaf: 'cenc' }, CMAF_FILE],
    [true, 'nothing of them', POST_MANUAL, CMAF_FILE],
    [true, 'false', { ...POST_MANUAL, cmaf: false }, POST_MANUAL_FILE],
    [true, 'FairPlay alone', { fairplay }, HLS_LINES],
  ])(
    'are next to those of DASH as configured (%s), or as a request says: %s',
    async (cmaf, _what, body, expected) => {
      const { api } = await startSidecar({ cmaf });
      await api.post(PATH).send(body).expect(200, expected);
    },
  );

  const NO_CBCS =
    "can't be cbcs: the packager's manual has a page on CMAF HLS under cbcs, for live since version 4.8.28, whose key-file " +
    'lines are not known; use cenc (or true) here, and fairplay for HLS';

  test.each([
    ['yes', 'must be true, "cenc" or false'],
    ['cbcs', NO_CBCS],
  ])('refuses cmaf: %s', async (cmaf, sentence) => {
    const errors = [{ code: 'invalid_body', description: `cmaf: ${sentence}` }];
    for (const body of [POST_MANUAL, PROVIDED])
      await api
        .post(PATH)
        .send({ ...body, cmaf })
        .expect(400, { errors });
    expect(await files()).toEqual({});
  });

  test('refuses CMAF without cenc, which its lines are made of', async () => {
    const description = 'cmaf: needs cenc; give cenc.keyid and cenc.contentkey with it';
    const errors = [{ code: 'invalid_body', description }];
    await api.post(PATH).send({ fairplay, cmaf: true }).expect(400, { errors });
    await api.post(PATH).send({ fairplay, cmaf: false }).expect(200);
  });
});
