import { temporaryFolder } from '../support/after-test';
import { invalidBody } from '../support/error-body';
import { refusedUrl } from '../support/fake-upstream';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { PATHS, PROVIDED, PROVIDED_FILE, sealed, startProvisioning } from '../support/start-provisioning';
import { sidecarForAll, startSidecar, type TestSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/news';
const post = (api: TestSidecar['api'], body: object) => api.post(PATH).send(body);
const KEY = 'CBF76BB43B9A54254A5FC20074A3A53B';
const IV = '1A3F2AA76D84742DD123E3E50E7BC681';
const URL = 'https://keys.example.com/news';
const AES = { key: KEY, url: URL };
const { fairplay: _, ...DASH } = POST_MANUAL;
const DASH_FILE = POST_MANUAL_FILE.replace(/^cupertino.*\n/gm, '');

const file = (key = KEY, url = URL) => `\
cupertinostreaming-aes128-method: AES-128
cupertinostreaming-aes128-url: ${url}
cupertinostreaming-aes128-key: ${key}
`;
const WITH_IV = `${file()}\
cupertinostreaming-aes128-iv: ${IV}
cupertinostreaming-aes128-iv-include-in-chunklist: true
`;

describe('a key for HLS with AES-128', () => {
  const { api, files } = sidecarForAll();

  it.each([
    ['alone', { aes: AES }, file()],
    ['with an IV, which is in the playlist', { aes: { ...AES, iv: IV } }, WITH_IV],
    ['without one where it is null', { aes: { ...AES, iv: null }, fairplay: null }, file()],
    ['next to DASH', { ...DASH, aes: AES }, DASH_FILE + file()],
  ])('is written %s, is no fault to a check, and is taken over as it is', async (_what, body, text) => {
    const { headers } = await api.post(PATH).send(body).expect(200, text);
    expect(headers.warning).toBeUndefined();
    const { body: found } = await api.post('/api/check').send(body).expect(200);
    expect(found.faults).toEqual([]);
    await api.post(PATH).set('content-type', 'text/plain').send(text).expect(200, text);
    const dry = await api.post(`${PATH}?dryrun=true`).send(body).expect(200);
    for (const answer of [JSON.stringify(found), dry.text]) expect(answer).not.toContain(KEY);
  });

  it.each([
    [
      { aes: AES, fairplay: POST_MANUAL.fairplay },
      'aes: has the same lines of the key file as fairplay; give one of the two',
    ],
    [{ aes: { key: KEY } }, 'aes.url: is missing'],
    [{ aes: { ...AES, url: 'skd://a' } }, 'aes.url: must be an address that starts with https:// or http://'],
  ])('is refused as %j', async (body, description) => {
    await post(api, body).expect(400, invalidBody(description));
    expect(await files()).toEqual({});
  });

  it('has no form of another packager, and is named where it is left out', async () => {
    await api.post(PATH).send({ aes: AES }).expect(200);
    const alone = await api.get(`${PATH}?as=cpix`).expect(409);
    expect(alone.text).toContain('its HLS lines are not of FairPlay');
    await post(api, { ...DASH, aes: AES }).expect(200);
    const both = await api.get(`${PATH}?as=cpix`).expect(200);
    expect(both.headers.warning).toMatch(/"key_left_out: /);
    expect(both.text).not.toContain(Buffer.from(KEY, 'hex').toString('base64'));
  });
});

describe("the key provider's AES-128", () => {
  const AES_PATH = `/keys/aes/${PROVIDED.client}/${PROVIDED.contentId}`;
  const ANSWER = { key_hex: KEY.toLowerCase(), key_url: URL };
  const DASH_LINES = PROVIDED_FILE.replace(/^cupertino.*\n/gm, '');
  const WIDEVINE_LINES = DASH_LINES.replace(/^.*keyserver-playready.*\n/gm, '');

  it.each([
    [['aes'], '', [AES_PATH, PATHS.config]],
    [['widevine', 'playready', 'aes'], DASH_LINES, [AES_PATH, PATHS.cenc, PATHS.config]],
    [['aes', 'widevine'], WIDEVINE_LINES, [AES_PATH, PATHS.cenc, PATHS.config]],
  ])('is asked for by systems: %j', async (systems, dash, paths) => {
    const { sidecar, upstream } = await startProvisioning();
    upstream.on(AES_PATH, sealed(ANSWER));
    await post(sidecar.api, { ...PROVIDED, systems }).expect(200, dash + file(KEY.toLowerCase()));
    expect(upstream.received.map(({ path }) => path).sort()).toEqual([...paths].sort());
  });

  it('is refused with what is wrong with it', async () => {
    const { sidecar, upstream } = await startProvisioning();
    upstream.on(AES_PATH, sealed({ ...ANSWER, key_url: 'skd://a' }));
    const { body } = await post(sidecar.api, { ...PROVIDED, systems: ['aes'] }).expect(502);
    expect(body.errors[0].description).toContain('returned aes keys with missing or wrong values: key_url');
    expect(await sidecar.files()).toEqual({});
  });

  it('is kept apart from the keys of the DRM systems in the provider cache', async () => {
    const folder = await temporaryFolder();
    const { sidecar, upstream } = await startProvisioning({ providerCache: { folder, maxAgeMs: 60_000 } });
    upstream.on(AES_PATH, sealed(ANSWER));
    const asked = { ...PROVIDED, systems: ['aes'] };
    await sidecar.api.post(PATH).send(asked).expect(200);
    await sidecar.api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
    for (const path of [AES_PATH, PATHS.cenc]) upstream.on(path, { status: 503 });
    const kept = await sidecar.api.post(PATH).send(asked).expect(200, file(KEY.toLowerCase()));
    expect(kept.headers.warning).toContain('provider_cache');
    await post(sidecar.api, { ...asked, systems: ['widevine', 'aes'] }).expect(502);
    await sidecar.api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
  });
});

test.each(['speke2', 'cpix'] as const)('a provider of %s has no AES-128', async (keyProviderProtocol) => {
  const { api } = await startSidecar({ keyProviderUrl: await refusedUrl(), keyProviderProtocol });
  const why = 'systems: has aes, which only a key provider that is asked by JSON has; leave it out';
  await post(api, { contentId: 'a', systems: ['widevine', 'aes'] }).expect(400, invalidBody(why));
});
