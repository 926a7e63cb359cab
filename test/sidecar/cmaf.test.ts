import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { PROVIDED, startProvisioning } from '../support/start-provisioning';
import { startSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/live';
const DASH_LINES = POST_MANUAL_FILE.split('\n').filter((line) => line.startsWith('mpegdash'));
const HLS_LINES = POST_MANUAL_FILE.split('\n').filter((line) => line.startsWith('cupertino'));

function cmafLines(lines: readonly string[]): string[] {
  return lines.map((line) => line.replace('mpegdashstreaming', 'cmafstreaming'));
}

function file(...lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

test.each([true, 'cenc'])('cmaf: %s puts the lines of CMAF beside those of DASH', async (cmaf) => {
  const { api } = await startSidecar();
  await api
    .post(PATH)
    .send({ ...POST_MANUAL, cmaf })
    .expect(200, file(...DASH_LINES, ...cmafLines(DASH_LINES), ...HLS_LINES));
});

test.each([
  [false, undefined, CENC_ONLY_FILE],
  [true, undefined, CENC_ONLY_FILE + CENC_ONLY_FILE.replaceAll('mpegdash', 'cmaf')],
  [true, null, CENC_ONLY_FILE + CENC_ONLY_FILE.replaceAll('mpegdash', 'cmaf')],
  [true, false, CENC_ONLY_FILE],
  [false, 'cenc', CENC_ONLY_FILE + CENC_ONLY_FILE.replaceAll('mpegdash', 'cmaf')],
] as const)('configured as %s, a request that says %s has its way', async (configured, cmaf, expected) => {
  const { api } = await startSidecar({ cmaf: configured });
  await api
    .post(PATH)
    .send({ ...CENC_ONLY, ...(cmaf === undefined ? {} : { cmaf }) })
    .expect(200, expected);
});

test('writes CMAF lines of keys from the provider', async () => {
  const { sidecar } = await startProvisioning();
  const { text: plain } = await sidecar.api.post('/api/keyfile/plain').send(PROVIDED).expect(200);
  const { text } = await sidecar.api
    .post(PATH)
    .send({ ...PROVIDED, cmaf: true })
    .expect(200);
  const dash = plain.split('\n').filter((line) => line.startsWith('mpegdash'));
  expect(text.split('\n').filter((line) => line.startsWith('cmaf'))).toEqual(cmafLines(dash));
});

test('leaves a file of FairPlay alone as it is, though CMAF is configured', async () => {
  const { api } = await startSidecar({ cmaf: true });
  await api
    .post(PATH)
    .send({ fairplay: POST_MANUAL.fairplay })
    .expect(200, file(...HLS_LINES));
});

const NO_CBCS =
  "can't be cbcs: the packager's manual has a page on CMAF HLS under cbcs, for live since version 4.8.28, whose key-file " +
  'lines are not known; use cenc (or true) here, and fairplay for HLS';

test.each([
  ['yes', 'must be true, "cenc" or false'],
  [1, 'must be true, "cenc" or false'],
  ['cbcs', NO_CBCS],
])('refuses cmaf: %s', async (cmaf, sentence) => {
  const { api, files } = await startSidecar();
  const errors = [{ code: 'invalid_body', description: `cmaf: ${sentence}` }];
  for (const body of [POST_MANUAL, PROVIDED])
    await api
      .post(PATH)
      .send({ ...body, cmaf })
      .expect(400, { errors });
  const group = { members: ['g'], ...POST_MANUAL, cmaf };
  const batch = { streams: [{ streamid: 's', ...POST_MANUAL, cmaf }], groups: [group] };
  const answer = await api.post('/api/keyfiles').send(batch).expect(200);
  expect(answer.body.results).toEqual([
    { index: expect.any(Number), streamid: 's', result: 'failed', errors },
    { index: expect.any(Number), streamid: 'g', result: 'failed', errors },
  ]);
  expect(await files()).toEqual({});
  const check = await api
    .post('/api/check')
    .send({ ...POST_MANUAL, cmaf })
    .expect(200);
  expect(check.body.faults).toEqual([
    { severity: 'error', code: 'wrong_value', field: 'cmaf', description: `cmaf ${sentence}.` },
  ]);
});

test('refuses cmaf=cbcs beside a CPIX document', async () => {
  const { api } = await startSidecar();
  await api
    .post(`${PATH}?cmaf=cbcs`)
    .set('content-type', 'application/cpix+xml')
    .send('<CPIX/>')
    .expect(400, { errors: [{ code: 'invalid_query', description: `cmaf: ${NO_CBCS}` }] });
});

test('refuses CMAF without cenc, which its lines are made of', async () => {
  const { api } = await startSidecar();
  const description = 'cmaf: needs cenc; give cenc.keyid and cenc.contentkey with it';
  await api
    .post(PATH)
    .send({ fairplay: POST_MANUAL.fairplay, cmaf: true })
    .expect(400, { errors: [{ code: 'invalid_body', description }] });
  await api.post(PATH).send({ fairplay: POST_MANUAL.fairplay, cmaf: false }).expect(200);
});
