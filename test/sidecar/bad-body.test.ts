import { swapKeyIdOrder } from '../../src/drm/bytes';
import { buildWidevinePsshData } from '../../src/drm/widevine';
import { CENC_ONLY_FILE, PLAIN, PLAIN_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { rawExchange, rawRequest } from '../support/raw-http';
import {
  PATHS,
  PLAIN_CENC,
  PLAIN_FAIRPLAY,
  PROVIDED,
  sealed,
  startProvisioning,
} from '../support/start-provisioning';
import { API_KEY, errorBody, sidecarForAll, startSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/demo';
const CHECKSUM_OF_OTHER_KEY = 'Mv5YB5EhHKw=';

const sidecar = sidecarForAll();
const { api, files } = sidecar;

// A refused POST can be seen to change nothing.
beforeEach(() => api.post(PATH).send(PLAIN).expect(200));

async function expectUnchanged(): Promise<void> {
  expect(await files()).toEqual({ 'demo.key': PLAIN_FILE });
}

/** A JSON object of exactly so many bytes that asks for the key file of `PLAIN`. */
function bodyOf(bytes: number): string {
  const head = `${JSON.stringify(PLAIN).slice(0, -1)},"drmjson":"`;
  return `${head}${'x'.repeat(bytes - head.length - 2)}"}`;
}

describe('a POST that is no JSON request', () => {
  it.each([PATH, '/api/keyfiles'])('answers 400 to JSON at %s that is not UTF-8', async (path) => {
    const fields = { keyfile: `${PLAIN_FILE}# caf\u00e9\nnote: caf\u00e9\n`, keepunknown: true };
    const body = path === PATH ? fields : { streams: [{ streamid: 'demo', ...fields }] };
    const refusal = errorBody('malformed_json', 'The body is not UTF-8. Send the JSON as UTF-8.');
    const latin1 = Buffer.from(JSON.stringify(body), 'latin1');
    const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
    const answer = await rawRequest(sidecar.port, 'POST', path, headers, latin1);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([400, refusal]);
    await expectUnchanged();
  });

  const WHICH_TYPES =
    'Send the body as JSON, with content-type: application/json, the lines of a key file as text/plain, or a CPIX document as application/cpix+xml.';

  it.each<[what: string, headers: Record<string, string>, description: string]>([
    ['type', { 'content-type': 'application/jsonp' }, WHICH_TYPES],
    ['charset', { 'content-type': 'application/json; charset=latin1' }, 'Send the body as UTF-8.'],
    [
      'content-encoding',
      { 'content-type': 'application/json', 'content-encoding': 'secret' },
      'Send the body without that content-encoding.',
    ],
  ])('answers 415 to a %s that is not known', async (_what, headers, description) => {
    const sent = api.post(PATH).set(headers).send(JSON.stringify(POST_MANUAL));
    await sent.expect(415, errorBody('unsupported_media_type', description));
    await expectUnchanged();
  });

  it.each(['gzip', 'deflate', 'br'])(
    'answers 400 to a body that is not encoded as it says: %s',
    async (encoding) => {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
      const refusal = errorBody('invalid_body', 'The body is not encoded as its content-encoding says.');
      await api.post(PATH).set(headers).send(JSON.stringify(POST_MANUAL)).expect(400, refusal);
      await expectUnchanged();
    },
  );

  it('answers 415 to a body without a type', async () => {
    const headers = { 'x-api-key': API_KEY };
    const { status } = await rawRequest(sidecar.port, 'POST', PATH, headers, JSON.stringify(POST_MANUAL));
    expect(status).toBe(415);
    await expectUnchanged();
  });

  it('answers 400 to a POST without a body', async () => {
    const head = `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${API_KEY}\r\n\r\n`;
    const answer = await rawExchange(sidecar.port, head, /\}\]\}$/);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer.split('\r\n\r\n')[1]).toBe(
      JSON.stringify(errorBody('invalid_body', 'Send a JSON object with content-type: application/json.')),
    );
    await expectUnchanged();
  });

  it('takes a body of 64 KiB', async () => {
    const body = bodyOf(64 * 1024);
    expect(Buffer.byteLength(body)).toBe(65_536);
    await api.post(PATH).set('content-type', 'application/json').send(body).expect(200, PLAIN_FILE);
  });

  it.each(['with a content-length', 'in chunks'])('answers 413 to 64 KiB and a byte %s', async (how) => {
    const headers = {
      'x-api-key': API_KEY,
      'content-type': 'application/json',
      ...(how === 'in chunks' ? { 'transfer-encoding': 'chunked' } : {}),
    };
    const answer = await rawRequest(sidecar.port, 'POST', PATH, headers, bodyOf(64 * 1024 + 1));
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      413,
      errorBody('body_too_large', 'The body is larger than this route accepts: 64 KiB.'),
    ]);
    await expectUnchanged();
  });

  it.each([
    ['as the body', (deep: string) => deep],
    ['as an unknown field', (deep: string) => `{"cenc":null,"unknown":${deep}}`],
  ])('answers 400 to 20,000 arrays in each other %s', async (_where, wrap) => {
    const deep = '['.repeat(20_000) + ']'.repeat(20_000);
    await api.post(PATH).set('content-type', 'application/json').send(wrap(deep)).expect(400);
    await expectUnchanged();
  });

  it('takes drmjson however deep it is', async () => {
    const deep = `${'{"a":'.repeat(8_000)}1${'}'.repeat(8_000)}`;
    const body = `${JSON.stringify(PLAIN).slice(0, -1)},"drmjson":${deep}}`;
    await api.post(PATH).set('content-type', 'application/json').send(body).expect(200, PLAIN_FILE);
  });
});

describe('a POST whose fields are wrong', () => {
  it('answers 400 with every problem at once, in the order of the fields', async () => {
    await api
      .post(PATH)
      .send({
        cenc: { keyid: '44da52ef-4523-098e-6854-777ee322681d', contentkey: '' },
        playready: { laurl: 'playready.example' },
        fairplay: { key: 'CB', iv: 5 },
        widewine: {},
      })
      .expect(400, {
        errors: [
          ['invalid_body', 'cenc.keyid: is a UUID; send the base64 of its 16 bytes, big endian'],
          ['invalid_body', 'cenc.contentkey: is empty'],
          ['invalid_body', 'playready.laurl: must be an address that starts with https:// or http://'],
          ['invalid_body', 'fairplay.key: has 2 hex digits; it must have 32 (16 bytes)'],
          ['invalid_body', 'fairplay.iv: must be a string'],
          ['invalid_body', 'fairplay.laurl: is missing'],
          ['unknown_field', 'widewine is not a field of this request. Did you mean widevine?'],
        ].map(([code, description]) => ({ code, description })),
      });
    await expectUnchanged();
  });

  it.each([
    ['the body', `{"__proto__":{"cenc":1},"cenc":${JSON.stringify(POST_MANUAL.cenc)}}`, '__proto__'],
    ['cenc', `{"cenc":{"__proto__":{},${JSON.stringify(POST_MANUAL.cenc).slice(1)}}`, 'cenc.__proto__'],
    ['constructor', '{"constructor":{"prototype":{"cenc":{}}}}', 'constructor'],
  ])('answers 400 that names the field to __proto__ in %s', async (_where, body, name) => {
    const answer = await api.post(PATH).set('content-type', 'application/json').send(body).expect(400);
    expect(answer.body.errors).toEqual([
      {
        code: 'unknown_field',
        description: expect.stringMatching(`^${name} is not a field of this request\\.`),
      },
    ]);
    expect(Reflect.get({}, 'cenc')).toBeUndefined();
    await expectUnchanged();
  });
});

it('writes a PlayReady checksum of another key with a Warning and a log line when checks only warn', async () => {
  const sidecar = await startSidecar({ checks: 'warn' });
  const body = {
    ...POST_MANUAL,
    playready: { ...POST_MANUAL.playready, checksum: CHECKSUM_OF_OTHER_KEY },
  };
  const answer = await sidecar.api.post(PATH).set('x-request-id', 'req-1').send(body).expect(200);
  const code = 'checksum_mismatch';
  const description = expect.stringMatching(/^playready.checksum is not the checksum of/);
  expect(answer.headers.warning).toMatch(/^299 - "checksum_mismatch: playready.checksum is /);
  expect(answer.text).toContain(`-checksum: ${body.playready.checksum}\n`);
  expect(await sidecar.files()).toEqual({ 'demo.key': answer.text });
  expect((await sidecar.logEntries()).filter(({ level }) => level === 'warn')).toEqual([
    {
      time: '1970-01-01T00:00:00.000Z',
      level: 'warn',
      message: 'key file written with a warning',
      requestId: 'req-1',
      streamId: 'demo',
      code,
      description,
    },
  ]);
});

it('writes what may be meant so with a Warning for each oddity, also when checks are strict', async () => {
  const answer = await api
    .post(PATH)
    .send({ ...POST_MANUAL, contentId: 'another' })
    .expect(200);
  expect(answer.headers.warning).toBe(
    '299 - "content_id_mismatch: widevine.psshdata names another content id than contentId.", ' +
      '299 - "content_id_mismatch: fairplay.laurl does not name contentId."',
  );
});

describe('zeros', () => {
  const warning = sidecarForAll({ checks: 'warn' });
  const { cenc, fairplay } = POST_MANUAL;
  const HEX_ZEROS = '0'.repeat(32);
  const HLS_KEY = 'cupertinostreaming-aes128-key';
  const ZERO_KEY_FILE = POST_MANUAL_FILE.replace(fairplay.key, HEX_ZEROS);
  const MANY_KEY_IDS = buildWidevinePsshData({
    // Each reads as a UUID in the other byte order alone, which is warned of.
    keyIds: Array.from({ length: 150 }, (_, index) => {
      const keyId = swapKeyIdOrder(Buffer.from('09d2a744a6f14ac5b5eb1c3ab3a0e4d1', 'hex'));
      keyId.writeUInt8(index, 15);
      return keyId;
    }),
  }).toString('base64');
  const UUID_ZEROS = '00000000-0000-0000-0000-000000000000';

  it.each<[what: string, body: string | object, name: string]>([
    ['content key', { cenc: { ...cenc, contentkey: 'AAAAAAAAAAAAAAAAAAAAAA==' } }, 'cenc.contentkey'],
    ['key id as a UUID', CENC_ONLY_FILE.replace(cenc.keyid, UUID_ZEROS), 'mpegdashstreaming-cenc-key-id'],
    [
      'key behind Widevine data with a hundred warnings',
      ZERO_KEY_FILE.replace(POST_MANUAL.widevine.psshdata, MANY_KEY_IDS),
      HLS_KEY,
    ],
  ])('are refused in a %s, also where checks only warn', async (_what, body, name) => {
    for (const dryrun of [true, false]) {
      const answer = await warning.api
        .post(`${PATH}?dryrun=${dryrun}`)
        .type(typeof body === 'string' ? 'text/plain' : 'application/json')
        .send(body)
        .expect(400);
      expect(answer.body.errors).toContainEqual({
        code: 'all_zero',
        description: expect.stringMatching(`^${name} is all zeros; `),
      });
    }
    expect(await warning.files()).toEqual({});
  });

  it('of a provider are refused, also where checks only warn', async () => {
    const { sidecar, upstream } = await startProvisioning({ checks: 'warn' });
    upstream.on(PATHS.fairplay, sealed({ ...PLAIN_FAIRPLAY, key_hex: HEX_ZEROS }));
    upstream.on(PATHS.cenc, sealed({ ...PLAIN_CENC, playready_checksum: 'pcTs6CEp98A=' }));
    const answer = await sidecar.api.post(PATH).send(PROVIDED).expect(502);
    // The wrong checksum would be written.
    const description =
      "The key provider's values can't be used: fairplay.key is all zeros; send the real key. No key file was changed.";
    expect(answer.body.errors).toEqual([{ code: 'key_provider_failed', description }]);
    expect(await sidecar.files()).toEqual({});
  });
});
