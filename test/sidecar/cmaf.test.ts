import { PROTECTION_SCHEMES, parseWidevinePsshData, withProtectionScheme } from '../../src/drm/widevine';
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

test('cmaf: "cbcs" writes AESCBC, Widevine data of that scheme, and no checksum', async () => {
  const { api } = await startSidecar();
  const expected = cmafLines(DASH_LINES)
    .filter((line) => !line.includes('checksum'))
    .map((line) =>
      line
        .replace('AESCTR', 'AESCBC')
        // Field 9 of the published data, cenc, is cbcs here.
        .replace(/SOPclZsG$|I49yVmwY=$/, (end) => (end === 'SOPclZsG' ? 'SPPGiZsG' : 'I88aJmwY=')),
    );
  await api
    .post(PATH)
    .send({ ...POST_MANUAL, cmaf: 'cbcs' })
    .expect(200, file(...DASH_LINES, ...expected, ...HLS_LINES));
});

test.each([
  [false, undefined, CENC_ONLY_FILE],
  ['cenc', undefined, CENC_ONLY_FILE + CENC_ONLY_FILE.replaceAll('mpegdash', 'cmaf')],
  ['cenc', null, CENC_ONLY_FILE + CENC_ONLY_FILE.replaceAll('mpegdash', 'cmaf')],
  ['cenc', false, CENC_ONLY_FILE],
  ['cbcs', 'cenc', CENC_ONLY_FILE + CENC_ONLY_FILE.replaceAll('mpegdash', 'cmaf')],
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
  const { api } = await startSidecar({ cmaf: 'cenc' });
  await api
    .post(PATH)
    .send({ fairplay: POST_MANUAL.fairplay })
    .expect(200, file(...HLS_LINES));
});

test.each([
  ['yes', 'cmaf: must be true, "cenc", "cbcs" or false'],
  [1, 'cmaf: must be true, "cenc", "cbcs" or false'],
])('refuses cmaf: %s', async (cmaf, description) => {
  const { api } = await startSidecar();
  await api
    .post(PATH)
    .send({ ...POST_MANUAL, cmaf })
    .expect(400, { errors: [{ code: 'invalid_body', description }] });
});

test('refuses CMAF without cenc, which its lines are made of', async () => {
  const { api } = await startSidecar();
  const description = 'cmaf needs cenc: give cenc.keyid and cenc.contentkey with it.';
  await api
    .post(PATH)
    .send({ fairplay: POST_MANUAL.fairplay, cmaf: true })
    .expect(400, { errors: [{ code: 'invalid_body', description }] });
  await api.post(PATH).send({ fairplay: POST_MANUAL.fairplay, cmaf: false }).expect(200);
});

test('changes the scheme of Widevine data and nothing else, fields that nobody knows included', () => {
  // algorithm 1, content id "a", an unknown field 15 of 32 bits, scheme cenc
  const payload = Buffer.from('0801220161' + '7d01020304' + '48e3dc959b06', 'hex').toString('base64');
  const changed = Buffer.from(withProtectionScheme(payload, 'cbcs'), 'base64');
  expect(changed.toString('hex')).toBe('220161' + '7d01020304' + '48f3c6899b06');
  const read = parseWidevinePsshData(changed);
  expect(read.ok && read.value.protectionScheme).toBe(PROTECTION_SCHEMES.cbcs);
  expect(withProtectionScheme(payload, 'cenc')).toBe(payload);
});
