import fs from 'fs-extra';
import { FAIRPLAY_SYSTEM_ID } from '../../../src/drm/cpix/document';
import { spekeKeyId } from '../../../src/drm/cpix/speke';
import { PLAYREADY_SYSTEM_ID } from '../../../src/drm/playready';
import { WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import type { ProviderHeaders } from '../../../src/provider/provider-headers';
import { temporaryFolder } from '../../support/after-test';
import { documentOf, recipientNamed } from '../../support/cpix';
import type { Received } from '../../support/fake-upstream';
import { playReadyHeader } from '../../support/speke-reference';
import { seriesOf } from '../../support/start-observed';
import type { TestSidecar } from '../../support/start-sidecar';
import {
  answering,
  CONTENT_ID,
  dashLines,
  hlsLines,
  KEY_IS_IV,
  reference,
  SPEKE_PATH,
  startSpeke,
} from '../../support/start-speke';
import { until } from '../../support/until';

const PATH = '/api/keyfile/demo';
const post = (api: TestSidecar['api'], body: object) => api.post(PATH).send(body);
const BODY = { contentId: CONTENT_ID };
const NOT_NEEDED = / version="2\.3"|<cpix:ContentKeyUsageRuleList>.*<\/cpix:ContentKeyUsageRuleList>/gs;

describe('provisioning by SPEKE', () => {
  it.each([1, 2] as const)(
    'writes the keys of both answers of version %j as one key file, the same each time',
    async (version) => {
      const { sidecar } = await startSpeke({ version });
      const file = `${dashLines()}${hlsLines()}`;
      const answer = await sidecar.api.post(PATH).send(BODY).expect(200, file);
      expect(answer.headers.warning).toBe(KEY_IS_IV);
      await sidecar.api.post(PATH).send(BODY).expect(200, file);
      expect(await sidecar.files()).toEqual({ 'demo.key': file });
    },
  );

  const asked = ({ body }: Received) => {
    const { id, contentId, version, keys, systems, rules } = documentOf(body);
    return {
      ...{ id, contentId, version },
      keys: keys.map(({ keyId, scheme }) => [keyId.toString('hex'), scheme]),
      systems: systems.map(({ systemId, asked: signals }) => [systemId, ...signals]),
      tracks: rules.map(({ intendedTrackType }) => intendedTrackType),
    };
  };
  const OF_CENC = [
    [WIDEVINE_SYSTEM_ID, 'pssh', 'contentProtectionData'],
    [PLAYREADY_SYSTEM_ID, 'pssh', 'contentProtectionData', 'protectionHeader'],
  ];
  const bySystems = (one: { systems: unknown[] }, other: { systems: unknown[] }) =>
    one.systems.length - other.systems.length;
  const kid = (scheme: 'cenc' | 'cbcs') => spekeKeyId(CONTENT_ID, scheme).toString('hex');

  it('asks version 2 in two POSTs under way together, one a scheme, with the version in a header', async () => {
    const { sidecar, upstream } = await startSpeke({});
    upstream.holdUntil(2);
    await sidecar.api.post(PATH).set('x-request-id', 'req-42').send(BODY).expect(200);
    const common = { id: undefined, contentId: CONTENT_ID, version: '2.3', tracks: ['ALL'] };
    expect(upstream.received.map(asked).sort(bySystems)).toEqual([
      {
        ...common,
        keys: [[kid('cbcs'), 'cbcs']],
        systems: [[FAIRPLAY_SYSTEM_ID, 'hlsMedia', 'hlsMultivariant']],
      },
      { ...common, keys: [[kid('cenc'), 'cenc']], systems: OF_CENC },
    ]);
    for (const { method, path, headers } of upstream.received) {
      expect([method, path]).toEqual(['POST', SPEKE_PATH]);
      expect(headers).toMatchObject({
        accept: 'application/xml, application/cpix+xml',
        'accept-encoding': 'identity',
        'content-type': 'application/xml',
        'x-request-id': 'req-42',
        'x-speke-version': '2.0',
      });
      for (const name of ['api-key', 'api_key', 'x-api-key', 'transfer-encoding'])
        expect(headers[name]).toBeUndefined();
    }
  });

  it('asks version 1 with the content id as the id of the document, and without a version', async () => {
    const { sidecar, upstream } = await startSpeke({ version: 1 });
    await sidecar.api.post(PATH).send(BODY).expect(200);
    const common = { id: CONTENT_ID, contentId: undefined, version: undefined, tracks: [] };
    expect(upstream.received.map(asked).sort(bySystems)).toEqual([
      { ...common, keys: [[kid('cbcs'), undefined]], systems: [[FAIRPLAY_SYSTEM_ID, 'uriExtXKey']] },
      { ...common, keys: [[kid('cenc'), undefined]], systems: OF_CENC },
    ]);
    for (const { headers } of upstream.received) expect(headers['x-speke-version']).toBeUndefined();
  });

  it('takes the key id of the answer where it is another than the one asked for', async () => {
    const { sidecar, upstream } = await startSpeke();
    const own = 'c0ffee00-1111-4222-8333-444455556666';
    upstream.on(
      SPEKE_PATH,
      // An answer need not repeat version and usage rules.
      answering((body) => body.replaceAll(/kid="[^"]*"/g, `kid="${own}"`).replaceAll(NOT_NEEDED, ''), {
        playReadyHeader: () => playReadyHeader(Buffer.from(own.replaceAll('-', ''), 'hex')),
      }),
    );
    for (const body of [BODY, { ...BODY, track: 'HD' }]) {
      const { text } = await sidecar.api.post(PATH).send(body).expect(200);
      expect(text).toContain('mpegdashstreaming-cenc-key-id: wP/uABERQiKDM0REVVVmZg==\n');
    }
  });

  it('takes of several keys the one that was asked for, and none when it is not there', async () => {
    const { sidecar, upstream } = await startSpeke();
    const kid = '99999999-0000-4000-8000-000000000001';
    const other = `<cpix:ContentKey kid="${kid}"><cpix:Data><pskc:Secret><pskc:PlainValue>AQIDBAUGBwgJCgsMDQ4PEA==</pskc:PlainValue></pskc:Secret></cpix:Data></cpix:ContentKey>`;
    const systems = (body: string) =>
      [WIDEVINE_SYSTEM_ID, PLAYREADY_SYSTEM_ID, FAIRPLAY_SYSTEM_ID]
        .filter((id) => body.includes(id))
        .map((id) => `<cpix:DRMSystem kid="${kid}" systemId="${id}"/>`);
    const withAnotherKey = (body: string) =>
      body
        .replace('<cpix:ContentKeyList>', `$&${other}`)
        .replace('<cpix:DRMSystemList>', `$&${systems(body).join('')}`);
    upstream.on(SPEKE_PATH, answering(withAnotherKey));
    await sidecar.api.post(PATH).send(BODY).expect(200, `${dashLines()}${hlsLines()}`);
    const renamed = (body: string) => body.replaceAll(/kid="[^"]*"/g, `kid="${kid.replace(/1$/, '2')}"`);
    upstream.on(
      SPEKE_PATH,
      answering((body) => withAnotherKey(renamed(body))),
    );
    const { body } = await sidecar.api.post(PATH).send(BODY).expect(502);
    expect(body.errors[0].description).toMatch(
      / has no key [-0-9a-f]{36}; it has .*\. No key file was changed\.$/,
    );
  });

  it.each([
    [['widevine'], 1, dashLines({ systems: ['widevine'] })],
    [['fairplay', 'widevine'], 2, `${dashLines({ systems: ['widevine'] })}${hlsLines()}`],
  ])('asks for %j alone when a request names them', async (systems, calls, file) => {
    const { sidecar, upstream } = await startSpeke();
    await post(sidecar.api, { ...BODY, systems }).expect(200, file);
    expect(upstream.received).toHaveLength(calls);
  });

  it('takes the one PlayReady header that a provider has for all keys, with a warning, and the address of the request, else of the service, where it has none', async () => {
    const playReadyUrl = 'https://playready.example/of-the-service';
    const { sidecar, upstream } = await startSpeke({ config: { playReadyUrl } });
    const always = () => playReadyHeader(Buffer.alloc(16, 7), '');
    upstream.on(
      SPEKE_PATH,
      answering((body) => body, { playReadyHeader: always }),
    );
    const file = `${dashLines()}${hlsLines()}`;
    const answer = await post(sidecar.api, BODY).expect(
      200,
      file.replace(/(playready.*)rights/, '$1of-the-service'),
    );
    expect(answer.headers.warning).toMatch(/^299 - "key_id_mismatch: [^"]*", 299 - "key_is_iv: [^"]*"$/);
    const playready = { laurl: 'https://playready.example/rights' };
    const asked = await post(sidecar.api, { ...BODY, playready }).expect(200, file);
    expect(asked.headers.warning).toBe(answer.headers.warning);
  });

  it.each([1, 2] as const)(
    'opens encrypted keys of version %j when it has a certificate',
    async (version) => {
      const recipient = recipientNamed('next');
      const { sidecar, upstream } = await startSpeke({
        version,
        dependencies: { cpixRecipient: () => recipient },
      });
      await post(sidecar.api, BODY).expect(200, `${dashLines({ isEncrypted: true })}${hlsLines()}`);
      for (const { body } of upstream.received) {
        const [delivery] = documentOf(body).deliveries;
        expect(delivery?.certificate?.equals(recipient.certificate)).toBe(true);
      }
    },
  );

  it('refuses plain keys when encrypted ones were asked for, and those for somebody else', async () => {
    const recipient = recipientNamed('next');
    const { sidecar, upstream } = await startSpeke({ dependencies: { cpixRecipient: () => recipient } });
    const refusal = async () => (await sidecar.api.post(PATH).send(BODY).expect(502)).body.errors;
    upstream.on(SPEKE_PATH, (request) => {
      const body = request.body.replace(/<cpix:DeliveryDataList>[\s\S]*<\/cpix:DeliveryDataList>/, '');
      return reference()({ ...request, body });
    });
    expect(await refusal()).toEqual([
      failed('returned plain content keys, although the request asks for encrypted ones'),
    ]);
    const other = recipientNamed('Cert1').certificate.toString('base64');
    upstream.on(SPEKE_PATH, (request) => {
      const body = request.body.replace(/(<ds:X509Certificate>)[^<]*/, `$1${other}`);
      return reference()({ ...request, body });
    });
    expect((await refusal())[0].description).toMatch(/^The key provider returned a CPIX document that /);
    expect(await sidecar.files()).toEqual({});
  });
});

describe('a request for a SPEKE provider', () => {
  const missing = (name: string) => ({ code: 'invalid_body', description: `${name}: is missing` });

  it('may name a client, which is put into the address, and its key, which is sent', async () => {
    const { upstream } = await startSpeke();
    const own = await startSpeke({
      config: { keyProviderUrl: `${upstream.url}/v2/{client}/keys?content={contentId}` },
    });
    const path = `/v2/demo-client/keys?content=${CONTENT_ID}`;
    upstream.on(path, reference());
    await post(own.sidecar.api, BODY).expect(400, { errors: [missing('client')] });
    const named = { ...BODY, client: 'demo-client', clientApiKey: 'key-of-the-client' };
    await own.sidecar.api.post(PATH).send(named).expect(200);
    expect(upstream.received.map(({ path: each, headers }) => [each, headers['api-key']])).toEqual(
      Array(2).fill([path, 'key-of-the-client']),
    );
  });

  it.each([
    [{}, 'The body names no keys.'],
    [{ ...BODY, kid: '00000000-0000-4000-8000-000000000001' }, 'kid: needs cpix'],
    [{ ...BODY, systems: ['clearkey'] }, 'systems.0: must be one of widevine, playready, fairplay'],
  ])('is refused with what is wrong: %j', async (body, start) => {
    const { sidecar, upstream } = await startSpeke();
    const answer = await sidecar.api.post(PATH).send(body).expect(400);
    expect(answer.body.errors).toHaveLength(1);
    expect(answer.body.errors[0].description.startsWith(start)).toBe(true);
    const check = await sidecar.api.post('/api/check').send(BODY).expect(200);
    expect(check.body.faults).toEqual([]);
    expect(upstream.received).toEqual([]);
  });

  it('is asked for at the configuration service, too, where that is set and the request names a client', async () => {
    const { upstream: config } = await startSpeke();
    const { sidecar } = await startSpeke({ config: { configServiceUrl: `${config.url}/config` } });
    const named = { ...BODY, client: 'demo-client', clientApiKey: 'key-of-the-client' };
    config.on('/config/demo-client', { body: {} });
    await sidecar.api.post(PATH).send(named).expect(200);
    await sidecar.api.post(PATH).send(BODY).expect(200);
    await sidecar.api
      .post(PATH)
      .send({ ...BODY, client: 'demo-client' })
      .expect(200);
    expect(config.received.map(({ path }) => path)).toEqual(['/config/demo-client']);
    config.on('/config/demo-client', { status: 403 });
    const { body } = await sidecar.api.post(PATH).send(named).expect(422);
    expect(body.errors[0].code).toBe('client_api_key_refused');
  });
});

test('a batch stops asking a provider that refuses the headers of this service', async () => {
  const { sidecar, upstream } = await startSpeke();
  upstream.on(SPEKE_PATH, { status: 401 });
  const streams = Array.from({ length: 30 }, (_none, at) => ({ streamid: `s-${at}`, ...BODY }));
  const body = await sidecar.batch({ streams });
  expect(body.summary).toMatchObject({ failed: 30 });
  expect(upstream.received.length).toBeLessThanOrEqual(2 * (5 + 8));
  expect(body.results[29].errors).toEqual([
    {
      code: 'key_provider_failed',
      description:
        'Not tried: an upstream refused the credentials of this service 5 times in a row. No key file was changed; correct the headers for the key provider, and send the batch again.',
    },
  ]);
});

describe('the provider cache of SPEKE', () => {
  const FILE = `${dashLines()}${hlsLines()}`;
  const HOUR = 3_600_000;

  /** Starts a sidecar with a provider cache, whose provider knows it by the headers given. */
  async function startCached(headers: ProviderHeaders | undefined) {
    const folder = await temporaryFolder();
    const state = { headers };
    const providerHeaders = headers && (() => state.headers ?? {});
    const { sidecar, upstream } = await startSpeke({
      config: { providerCache: { folder, maxAgeMs: 24 * HOUR } },
      dependencies: { providerHeaders },
    });
    const entries = () => fs.readdirSync(folder).filter((name) => name.endsWith('.sealed'));
    return { sidecar, upstream, state, entries, folder };
  }

  const CREDENTIAL = { authorization: 'Bearer 0123456789abcdef' };

  it('keeps the answers to different systems apart', async () => {
    const { sidecar, upstream, entries } = await startCached(CREDENTIAL);
    await sidecar.api
      .post(PATH)
      .send({ ...BODY, systems: ['fairplay'] })
      .expect(200, hlsLines());
    await until(() => entries().length === 1);
    upstream.on(SPEKE_PATH, 'reset');
    await sidecar.api.post(PATH).send(BODY).expect(502);
    await sidecar.api
      .post(PATH)
      .send({ ...BODY, systems: ['fairplay'] })
      .expect(200, hlsLines());
  });

  it('gives nothing of before when the credential has changed, nor when the provider refuses', async () => {
    const { sidecar, upstream, state, entries } = await startCached(CREDENTIAL);
    await sidecar.api.post(PATH).send(BODY).expect(200);
    await until(() => entries().length === 1);
    upstream.on(SPEKE_PATH, (request) => (request.body.includes('cbcs') ? { status: 403 } : { status: 503 }));
    await sidecar.api.post(PATH).send(BODY).expect(502);
    upstream.on(SPEKE_PATH, 'reset');
    state.headers = { authorization: 'Bearer fedcba9876543210' };
    await sidecar.api.post(PATH).send(BODY).expect(502);
    state.headers = CREDENTIAL;
    await sidecar.api.post(PATH).send(BODY).expect(200, FILE);
  });

  it.each([
    ['no file of headers', undefined],
    ['no header that is long enough for a credential', { 'x-tenant': 'acme' }],
  ])('keeps nothing with %s, says so once, and seals by the key of a request', async (_what, headers) => {
    const { sidecar, upstream, entries } = await startCached(headers);
    await sidecar.api.post(PATH).send(BODY).expect(200, FILE);
    await sidecar.api.post(PATH).send(BODY).expect(200, FILE);
    const named = { ...BODY, clientApiKey: 'key-of-the-client-0123' };
    await sidecar.api.post(PATH).send(named).expect(200, FILE);
    await until(() => entries().length === 1);
    upstream.on(SPEKE_PATH, 'reset');
    await sidecar.api.post(PATH).send(BODY).expect(502);
    await sidecar.api.post(PATH).send(named).expect(200, FILE);
    const { text } = await sidecar.unauthenticated.get('/metrics');
    expect(seriesOf(text)).toMatchObject({
      'packagerdrmapi_provider_cache_events_total{event="kept"}': 1,
      'packagerdrmapi_provider_cache_events_total{event="not_kept"}': 2,
      'packagerdrmapi_provider_cache_events_total{event="missed"}': 1,
    });
    const reported = (await sidecar.logEntries()).filter(({ message }) =>
      String(message).includes('keeps no answers'),
    );
    expect(reported).toHaveLength(1);
    expect(reported[0]?.message).toBe(
      'the provider cache keeps no answers to requests without clientApiKey, because it has no secret to encrypt them with. Name a file of headers in PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE with a credential of at least 16 characters, or give clientApiKey',
    );
  });
});

function failed(what: string) {
  return { code: 'key_provider_failed', description: `The key provider ${what}. No key file was changed.` };
}
