import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeBase64Block } from '../../../src/drm/bytes';
import { widevinePsshDataOf } from '../../../src/drm/widevine';
import { temporaryFolder } from '../../support/after-test';
import type { FakeUpstream } from '../../support/fake-upstream';
import { right } from '../../support/right';
import { serve } from '../../support/serve';
import {
  PATHS,
  PLAIN_CENC,
  PLAIN_FAIRPLAY,
  PROVIDED,
  PROVIDED_FILE,
  SHARED_SECRET,
  sealed,
  startProvisioning,
} from '../../support/start-provisioning';
import { API_KEY, startSidecar } from '../../support/start-sidecar';
import { until } from '../../support/until';
import { drmVectors } from '../../vectors/drm-vectors';

const PATH = '/api/keyfiles';
const { client, clientApiKey } = PROVIDED;
const FAILED_PROVIDER = { status: 500, body: 'down' };

/** Adds another content to the provider, and returns the content id in its key files. */
function teach(upstream: FakeUpstream, content: string): void {
  const { value: keyId } = right(decodeBase64Block(PLAIN_CENC.key_id_big ?? ''));
  upstream.on(
    `/keys/cenc/${client}/${content}`,
    sealed({ ...PLAIN_CENC, widevine_drm_specific_data: widevinePsshDataOf(keyId, content) }),
  );
  upstream.on(
    `/keys/fairplay/${client}/${content}`,
    sealed({ ...PLAIN_FAIRPLAY, laurl: `skd://fairplay-license.example.com/license/${content}` }),
  );
}

function contentsAskedFor({ received }: FakeUpstream): string[] {
  const contents = received.filter(({ path }) => path.startsWith('/keys/cenc/'));
  return contents.map(({ path }) => path.split('/').at(-1) ?? '').sort();
}

it('a group with the same keys is provisioned once, and every member gets the file', async () => {
  const { sidecar, upstream } = await startProvisioning();
  const members = Array.from({ length: 5 }, (_, index) => `live/a_${index}`);
  const body = await sidecar.batch({ groups: [{ members, ...PROVIDED }] });
  expect(body.summary).toEqual({ created: 5, changed: 0, unchanged: 0, failed: 0 });
  expect(upstream.received.map(({ path }) => path).sort()).toEqual(
    [PATHS.config, PATHS.cenc, PATHS.fairplay].sort(),
  );
  const { live, ...files } = await sidecar.files();
  expect(live).toBe('folder');
  expect(files).toEqual(Object.fromEntries(members.map((member) => [`${member}.key`, PROVIDED_FILE])));
});

it('a group with keys for each asks for a content of its own for each member', async () => {
  const { sidecar, upstream } = await startProvisioning();
  for (const content of ['film-vod_a.mp4', 'film-vod_b_x_1', 'c-1']) teach(upstream, content);
  const group = {
    members: ['a.mp4', 'b@x~1', { streamid: 'c', contentId: 'c-1' }],
    folder: 'vod',
    keys: 'each',
    client,
    clientApiKey,
    contentId: 'film',
  };
  const body = await sidecar.batch({ groups: [group] });
  expect(body.results).toEqual(
    ['vod/a.mp4', 'vod/b@x~1', 'vod/c'].map((streamid) => ({
      index: expect.any(Number),
      streamid,
      result: 'created',
      etag: expect.any(String),
    })),
  );
  expect(contentsAskedFor(upstream)).toEqual(['c-1', 'film-vod_a.mp4', 'film-vod_b_x_1']);
  const files = await sidecar.files();
  expect(files['vod/c.key']).toContain('skd://fairplay-license.example.com/license/c-1\n');
  expect(files['vod/b@x~1.key']).toContain('/license/film-vod_b_x_1\n');
});

it('upstreams that fail for some streams fail for those alone', async () => {
  const { sidecar, upstream } = await startProvisioning();
  for (const content of ['one', 'two', 'three']) teach(upstream, content);
  upstream.on(`/keys/cenc/${client}/two`, FAILED_PROVIDER);
  const streams = ['one', 'two', 'three', 'unknown'].map((content) => ({
    streamid: content,
    ...PROVIDED,
    contentId: content,
  }));
  const body = await sidecar.batch({ streams });
  expect(body.summary).toEqual({ created: 2, changed: 0, unchanged: 0, failed: 2 });
  const errors = [expect.objectContaining({ code: 'key_provider_failed' })];
  expect(body.results[1]).toEqual({ index: 1, streamid: 'two', result: 'failed', errors });
  expect(Object.keys(await sidecar.files())).toEqual(['one.key', 'three.key']);
  const entries = await sidecar.logEntries();
  expect(entries.filter(({ message }) => message === 'streams of a batch failed')).toEqual([
    expect.objectContaining({ code: 'key_provider_failed', status: 502, count: 2 }),
  ]);
});

it('upstreams are asked for eight streams at a time, all batches together', async () => {
  let underWay = 0;
  let most = 0;
  const answers = new Map<string, unknown>([
    [PATHS.config, { shared_secret: SHARED_SECRET }],
    [PATHS.cenc, drmVectors.envelope.cenc_response],
    [PATHS.fairplay, drmVectors.envelope.fairplay_response],
  ]);
  const { url } = await serve(({ url = '' }, response) => {
    underWay += 1;
    most = Math.max(most, underWay);
    setTimeout(() => {
      underWay -= 1;
      response.end(JSON.stringify(answers.get(url)));
    }, 10);
  });
  const sidecar = await startSidecar({ configServiceUrl: `${url}/config`, keyProviderUrl: `${url}/keys` });
  const batch = (name: string) => ({
    streams: Array.from({ length: 10 }, (_, index) => ({ streamid: `${name}-${index}`, ...PROVIDED })),
    groups: Array.from({ length: 10 }, (_, index) => ({ members: [`${name}-g-${index}`], ...PROVIDED })),
  });
  const bodies = await Promise.all(['a', 'b'].map((name) => sidecar.batch(batch(name))));
  for (const { summary } of bodies) expect(summary).toMatchObject({ created: 20 });
  // Three calls for each of them.
  expect(most).toBeGreaterThan(8);
  expect(most).toBeLessThanOrEqual(24);
});

it.each([
  ['a pulled stream, which is written', `/cpix/${client}/${PROVIDED.contentId}`, undefined, 1, ['created']],
  ['a batch, and begins no other stream of it', PATH, 10, 8, Array(10).fill('stopping')],
] as const)('a stop waits for %s', async (_what, path, count, places, expected) => {
  const audit = join(await temporaryFolder(), 'audit.log');
  const { sidecar, upstream } = await startProvisioning({ audit, provisionOnRead: true });
  // Three calls for each, and that of this test.
  upstream.holdUntil(3 * places + 1);
  const streams = Array.from({ length: count ?? 0 }, (_, index) => ({ streamid: `s-${index}`, ...PROVIDED }));
  const headers = { 'x-api-key': API_KEY, 'api-key': clientApiKey, 'content-type': 'application/json' };
  const batch = count === undefined ? {} : { method: 'POST', body: JSON.stringify({ streams }) };
  const cut = fetch(sidecar.url + path, { headers, ...batch }).catch(() => 'cut');
  await until(() => upstream.received.length === 3 * places);
  const stopped = sidecar.stop();
  expect(await cut).toBe('cut');
  await new Promise(setImmediate);
  await fetch(upstream.url);
  await stopped;
  const results = readFileSync(audit, 'utf8').trim().split('\n');
  expect(results.map((line) => JSON.parse(line).result)).toEqual(expected);
  expect(upstream.received.length).toBe(3 * places + 1);
  expect(Object.keys(await sidecar.files())).toHaveLength(count === undefined ? 1 : 0);
});
