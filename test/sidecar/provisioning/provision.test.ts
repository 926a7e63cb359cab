import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fs from 'fs-extra';
import { onceForAll } from '../../support/after-test';
import { providerFailed as provider } from '../../support/error-body';
import { refusedUrl, type Script, startFakeUpstream } from '../../support/fake-upstream';
import { CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import {
  answersFor,
  PATHS,
  PLAIN_CENC,
  PLAIN_FAIRPLAY,
  PROVIDED,
  PROVIDED_FILE,
  provisioningForAll,
  SHARED_SECRET,
  sealed,
  startProvisioning,
} from '../../support/start-provisioning';
import { errorBody, startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { drmVectors } from '../../vectors/drm-vectors';

const PATH = '/api/keyfile/demo';

const start = provisioningForAll();

/** POSTs twice, for a stream without a key file and for one that has one, and expects neither folder to change. */
async function expectRefusal(sidecar: TestSidecar, status: number, body: object): Promise<void> {
  await sidecar.api.post('/api/keyfile/new').send(PROVIDED).expect(status, body);
  await fs.writeFile(join(sidecar.folder, 'demo.key'), CENC_ONLY_FILE);
  await sidecar.api.post(PATH).send(PROVIDED).expect(status, body);
  expect(await sidecar.files()).toEqual({ 'demo.key': CENC_ONLY_FILE });
}

describe('provisioning', () => {
  it('writes the published keys of the published envelopes', async () => {
    const { sidecar } = await start();
    const answer = await sidecar.api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
    expect(answer.headers.warning).toBeUndefined();
    expect(await sidecar.files()).toEqual({ 'demo.key': PROVIDED_FILE });
  });

  it('sends the client key in both headers, and the request id, with every call', async () => {
    const { sidecar, upstream } = await startProvisioning();
    await sidecar.api.post(PATH).set('x-request-id', 'req-42').send(PROVIDED).expect(200);
    expect(upstream.received.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      [`GET ${PATHS.config}`, `GET ${PATHS.cenc}`, `GET ${PATHS.fairplay}`].sort(),
    );
    for (const { headers } of upstream.received) {
      expect(headers).toMatchObject({
        'api-key': PROVIDED.clientApiKey,
        api_key: PROVIDED.clientApiKey,
        'x-request-id': 'req-42',
        accept: 'application/json',
      });
      expect(headers['x-api-key']).toBeUndefined();
    }
    const calls = (await sidecar.logEntries()).filter(({ message }) => message === 'upstream call');
    expect(
      calls.map(({ requestId, status, upstreamRequestId }) => [requestId, status, upstreamRequestId]),
    ).toEqual(Array(3).fill(['req-42', 200, 'fake-200']));
  });

  it('has all three calls under way before any is answered', async () => {
    const { sidecar, upstream } = await start();
    upstream.holdUntil(3);
    await sidecar.api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
  });

  it('takes an address with slashes at its end', async () => {
    const { upstream } = await start();
    const urls = { configServiceUrl: `${upstream.url}/config/`, keyProviderUrl: `${upstream.url}/keys//` };
    const { api } = await startSidecar(urls);
    await api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
  });

  it('fetches nothing when the body supplies the keys', async () => {
    const { sidecar, upstream } = await start();
    const body = { ...PROVIDED, ...POST_MANUAL, contentId: null };
    await sidecar.api.post(PATH).send(body).expect(200, POST_MANUAL_FILE);
    expect(upstream.received).toEqual([]);
  });

  it.each<[what: string, path: string, script: Script]>([
    ['a client record that spells it sharedSecret', PATHS.config, { body: { sharedSecret: SHARED_SECRET } }],
    [
      'a client record with both spellings, one null',
      PATHS.config,
      { body: { shared_secret: null, sharedSecret: SHARED_SECRET } },
    ],
    [
      'CENC keys that call it checksum',
      PATHS.cenc,
      sealed({ ...withoutChecksum(), checksum: 'j+7cluk2J58=' }),
    ],
    ['CENC keys without a checksum, as older ones are', PATHS.cenc, sealed(withoutChecksum())],
  ])('makes the same file of %s', async (_what, path, script) => {
    const { sidecar, upstream } = await start();
    upstream.on(path, script);
    await sidecar.api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
  });

  it('takes plain answers when the client record holds no shared secret', async () => {
    const { sidecar, upstream } = await start();
    upstream.on(PATHS.config, { body: { shared_secret: null } });
    upstream.on(PATHS.cenc, { body: PLAIN_CENC });
    upstream.on(PATHS.fairplay, { body: PLAIN_FAIRPLAY });
    await sidecar.api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
  });

  it.each<[failure: string, first: Script]>([
    ['answers 500', { status: 500 }],
    ['cuts the connection', 'reset'],
  ])('tries each upstream once more when it %s', async (_failure, first) => {
    for (const path of [PATHS.config, PATHS.cenc, PATHS.fairplay]) {
      const { sidecar, upstream } = await start();
      upstream.on(path, first, answersFor()[path] ?? 'reset');
      await sidecar.api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
      expect(upstream.received.filter((request) => request.path === path)).toHaveLength(2);
    }
  });

  it('warns when the address names another content than the Widevine data, whatever the request calls it', async () => {
    const { sidecar, upstream } = await start();
    upstream.on(
      PATHS.cenc,
      sealed({ ...PLAIN_CENC, widevine_drm_specific_data: 'Igp3b3d6YS1kZW1vSOPclZsG' }),
    );
    const answer = await sidecar.api.post(PATH).send(PROVIDED).expect(200);
    expect(answer.headers.warning).toBe(
      '299 - "content_id_mismatch: fairplay.laurl does not name the content id of widevine.psshdata; check whether the two are of one content."',
    );
  });
});

describe('a failure of an upstream changes no key file', () => {
  const { wrong_hash, no_pipe, not_json_inside } = drmVectors.envelope.negative;
  const KEYS = 'key_provider_failed';
  const CONFIG = 'config_service_failed';
  const configService = (what: string) =>
    errorBody(CONFIG, `The configuration service ${what}. No key file was changed.`);
  const unknown = errorBody(
    'client_unknown',
    'The configuration service does not know this client. Check client.',
  );
  const refusedBy = (name: string) =>
    errorBody(
      'client_api_key_refused',
      `The ${name} refused the API key of this client. Check clientApiKey.`,
    );
  const WRONG_HASH =
    'returned an envelope whose hash is wrong: it was changed, or encrypted with another shared secret';
  const NO_FORM = 'returned an envelope without the form base64|hash';
  const PLAIN = 'returned plain values instead of an encrypted envelope';
  const NO_JSON = 'returned something that is not JSON; check';
  const tooLarge = (variable: string) => `answered with more than 262144 bytes; check ${variable}`;
  const CENC_WRONG = 'returned cenc keys with missing or wrong values:';
  const FAIRPLAY_WRONG = 'returned fairplay keys with missing or wrong values:';
  const CONTRADICTION =
    "The key provider's values contradict each other: playready.checksum is not the checksum of cenc.keyid and " +
    'cenc.contentkey; leave it out to have it computed, or send the three of one key. No key file was changed.';
  const html = { body: '<html><body>Sign in</body></html>' };
  const K = 'PACKAGERDRMAPI_KEYPROVIDERURL';
  const C = 'PACKAGERDRMAPI_GRANDCENTRALURL';

  const record = (shared_secret: unknown) => ({ body: { shared_secret } });
  const cenc = (other: object) => sealed({ ...PLAIN_CENC, ...other });
  const SHORT = 'returned an envelope, but the shared secret of this client is too short to open it';
  const NO_SECRET = 'returned an envelope, but the client record has no shared secret to open it';
  const NO_JSON_INSIDE = 'returned an envelope whose content is not JSON';
  const NO_RECORD = 'returned something that is not a client record';
  const ALL_OF_CENC = `${CENC_WRONG} key_id_big, content_key, playready_laurl, widevine_drm_specific_data`;
  const LATE = 'did not answer within 100 ms';
  const TOO_MUCH = 'x'.repeat(300_000);

  it.each<[what: string, path: string, script: Script, body: object, status?: number]>([
    ['401', PATHS.config, { status: 401 }, refusedBy('configuration service'), 422],
    ['404', PATHS.config, { status: 404, headers: { 'content-encoding': 'gzip' } }, unknown, 422],
    ['401', PATHS.cenc, { status: 401 }, refusedBy('key provider'), 422],
    ['403', PATHS.fairplay, { status: 403 }, refusedBy('key provider'), 422],
    ['204', PATHS.config, { status: 204 }, configService('answered 204')],
    ['500 twice', PATHS.config, { status: 500 }, configService('answered 500')],
    ['HTML', PATHS.config, html, configService(`${NO_JSON} ${C}`)],
    ['a number', PATHS.config, record(1234567890123456), configService(NO_RECORD)],
    ['an empty secret', PATHS.config, record(''), configService(NO_RECORD)],
    ['too much', PATHS.config, record(TOO_MUCH), configService(tooLarge(C))],
    ['a secret of 15 characters', PATHS.config, record(SHARED_SECRET.slice(0, 15)), provider(SHORT)],
    ['no secret, and yet envelopes', PATHS.config, { body: {} }, provider(NO_SECRET)],
    ['204', PATHS.cenc, { status: 204 }, provider('answered 204')],
    ['404', PATHS.cenc, { status: 404 }, provider('answered 404')],
    ['too much', PATHS.fairplay, { body: TOO_MUCH }, provider(tooLarge(K))],
    ['a wrong hash', PATHS.cenc, { body: wrong_hash }, provider(WRONG_HASH)],
    ['no hash', PATHS.cenc, { body: no_pipe }, provider(NO_FORM)],
    ['no JSON inside', PATHS.cenc, sealed('not JSON'), provider(NO_JSON_INSIDE)],
    ['no object inside', PATHS.cenc, { body: not_json_inside }, provider(`${CENC_WRONG} the whole answer`)],
    ['plain keys', PATHS.cenc, { body: PLAIN_CENC }, provider(PLAIN)],
    ['an empty object inside', PATHS.cenc, sealed({}), provider(ALL_OF_CENC)],
    [
      'an empty object inside',
      PATHS.fairplay,
      sealed({}),
      provider(`${FAIRPLAY_WRONG} key_hex, iv_hex, laurl`),
    ],
    [
      'hex',
      PATHS.cenc,
      cenc({ key_id_big: PLAIN_CENC.key_id_hex, content_key: PLAIN_CENC.key_id_hex }),
      provider(`${CENC_WRONG} key_id_big, content_key`),
    ],
    [
      'a line break in a license address',
      PATHS.cenc,
      cenc({ playready_laurl: 'https://a.example/\nforged: line' }),
      provider(`${CENC_WRONG} playready_laurl`),
    ],
    [
      'another checksum',
      PATHS.cenc,
      cenc({ playready_checksum: 'pcTs6CEp98A=' }),
      errorBody(KEYS, CONTRADICTION),
    ],
    ['silence', PATHS.config, 'hang', configService(LATE), 504],
    ['silence amid an answer', PATHS.fairplay, 'stall', provider(LATE), 504],
  ])('that is %s of %s', async (_what, path, script, body, status = 502) => {
    const { sidecar, upstream } = await (status === 504
      ? startProvisioning({ upstreamTimeoutMs: 100 })
      : start());
    upstream.on(path, script);
    await expectRefusal(sidecar, status, body);
  });

  it.each<[variable: 'configServiceUrl' | 'keyProviderUrl', body: object]>([
    ['configServiceUrl', configService(`can't be reached (ECONNREFUSED); check ${C}`)],
    ['keyProviderUrl', provider(`can't be reached (ECONNREFUSED); check ${K}`)],
  ])('%s: a refused connection', async (variable, body) => {
    const { sidecar } = await startProvisioning({ [variable]: await refusedUrl() });
    await expectRefusal(sidecar, 502, body);
  });

  /** 64 MiB. */
  const bomb = onceForAll(async () => gzipSync(gzipSync(Buffer.alloc(64 * 1024 * 1024))));

  it.each<[what: string, path: string, encoding: string, body: (why: string) => object, variable: string]>([
    ['configuration service: what is packed twice', PATHS.config, 'gzip, gzip', configService, C],
    ['key provider: what is packed', PATHS.cenc, 'GZIP', provider, K],
  ])('%s is not unpacked', async (_what, path, encoding, body, variable) => {
    const { sidecar, upstream } = await start();
    upstream.on(path, { headers: { 'content-encoding': encoding }, body: await bomb() });
    const before = process.memoryUsage().rss;
    const why = `used the content-encoding ${encoding.toLowerCase()}, which was not requested; check ${variable}`;
    await expectRefusal(sidecar, 502, body(why));
    expect(process.memoryUsage().rss - before).toBeLessThan(48 * 1024 * 1024);
    const asked = upstream.received.map(({ headers }) => headers['accept-encoding']);
    expect([...new Set(asked)]).toEqual(['identity']);
  });

  it.each<[what: string, script: Script]>([
    ['a byte order mark', { body: `\ufeff${JSON.stringify({ shared_secret: SHARED_SECRET })}` }],
    [
      'an empty content-encoding',
      { headers: { 'content-encoding': '' }, body: { shared_secret: SHARED_SECRET } },
    ],
  ])('takes an answer with %s', async (_what, script) => {
    const { sidecar, upstream } = await start();
    upstream.on(PATHS.config, script);
    await sidecar.api.post(PATH).send(PROVIDED).expect(200);
  });

  it.each<[status: number, path: string, body: (why: string) => object, variable: string]>([
    [301, PATHS.config, configService, C],
    [302, PATHS.cenc, provider, K],
  ])('a redirect (%i) from %s is not followed', async (status, path, body, variable) => {
    const { sidecar, upstream } = await start();
    const elsewhere = await startFakeUpstream();
    upstream.on(path, { status, headers: { location: `${elsewhere.url}${path}` } });
    const why = `answered a redirect (${status}); set ${variable} to its final address`;
    await expectRefusal(sidecar, 502, body(why));
    expect(elsewhere.received).toEqual([]);
  });

  it('answers with what the configuration service says when the key provider fails, too', async () => {
    const { sidecar, upstream } = await start();
    // The key provider's refusals are there before the second try of the configuration service begins.
    upstream.holdUntil(3);
    upstream.on(PATHS.config, { status: 500 }, { status: 404 });
    upstream.on(PATHS.cenc, { status: 401 });
    upstream.on(PATHS.fairplay, { status: 404 });
    await expectRefusal(sidecar, 422, unknown);
  });

  it.each<[what: string, overrides: object, missing: string]>([
    ['neither address is set', { configServiceUrl: undefined, keyProviderUrl: undefined }, `${C} and ${K}`],
    ['the configuration service is not set', { configServiceUrl: undefined }, C],
    ['the key provider is not set', { keyProviderUrl: undefined }, K],
  ])('answers 503 when %s', async (_what, overrides, missing) => {
    const { sidecar, upstream } = await startProvisioning(overrides);
    const description = `Keys can't be provisioned: set ${missing}, or supply cenc and fairplay in the body.`;
    await expectRefusal(sidecar, 503, errorBody('provisioning_not_configured', description));
    expect(upstream.received).toEqual([]);
  });

  it.each(['strict', 'warn'] as const)('refuses a checksum that is none, with checks %s', async (checks) => {
    const { sidecar, upstream } = await startProvisioning({ checks });
    for (const name of ['checksum', 'playready_checksum']) {
      upstream.on(PATHS.cenc, sealed({ ...withoutChecksum(), [name]: 'AAECAwQ=' }));
      const { status, body } = await sidecar.api.post('/api/keyfile/live').send(PROVIDED);
      const why = `returned cenc keys with missing or wrong values: ${name}`;
      expect({ status, body }).toEqual({ status: 502, body: provider(why) });
    }
    expect(await sidecar.files()).toEqual({});
  });

  it('lets a wrong checksum through with a Warning when checks only warn', async () => {
    const { sidecar, upstream } = await startProvisioning({ checks: 'warn' });
    upstream.on(PATHS.cenc, sealed({ ...PLAIN_CENC, playready_checksum: 'pcTs6CEp98A=' }));
    const answer = await sidecar.api.post(PATH).send(PROVIDED).expect(200);
    expect(answer.headers.warning).toMatch(/^299 - "checksum_mismatch: /);
    expect(answer.text).toBe(PROVIDED_FILE.replace('j+7cluk2J58=', 'pcTs6CEp98A='));
  });
});

function withoutChecksum(): Record<string, string> {
  const { playready_checksum: _, ...rest } = PLAIN_CENC;
  return rest;
}
