import fs from 'fs-extra';
import type { ProviderHeaders } from '../../../src/provider/provider-headers';
import { temporaryFolder } from '../../support/after-test';
import { seriesOf } from '../../support/start-observed';
import { CONTENT_ID, dashLines, hlsLines, SPEKE_PATH, startSpeke } from '../../support/start-speke';
import { until } from '../../support/until';

const PATH = '/api/keyfile/demo';
const BODY = { contentId: CONTENT_ID };
const FILE = `${dashLines()}${hlsLines()}`;
const HOUR = 3_600_000;

/** Starts a sidecar with a provider cache, whose provider knows it by the headers given. */
async function start(headers: ProviderHeaders | undefined) {
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
  const { sidecar, upstream, entries } = await start(CREDENTIAL);
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
  const { sidecar, upstream, state, entries } = await start(CREDENTIAL);
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
  const { sidecar, upstream, entries } = await start(headers);
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
