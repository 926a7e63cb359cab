import { setTimeout as wait } from 'node:timers/promises';
import { spekeKeyId } from '../../../src/drm/cpix/speke';
import { SPEKE_TRACKS } from '../../../src/drm/cpix/usage-rules';
import { documentOf } from '../../support/cpix';
import type { Received } from '../../support/fake-upstream';
import { asksFairPlay } from '../../support/speke-reference';
import {
  answering,
  CONTENT_ID,
  dashLines,
  hlsLines,
  reference,
  SPEKE_PATH,
  startSpeke,
} from '../../support/start-speke';

const TRACKS = ['SD', 'HD', 'UHD1', 'UHD2', 'STEREO_AUDIO'];
const SYSTEMS = ['widevine', 'fairplay'];
const streams = Object.fromEntries(TRACKS.map((track) => [track, `news_${track.toLowerCase()}`]));
const entry = { contentId: CONTENT_ID, systems: SYSTEMS, tracks: streams };
const fileOf = (track: string) => `${dashLines({ systems: SYSTEMS, track })}${hlsLines(CONTENT_ID, track)}`;
const files = (tracks = TRACKS) =>
  Object.fromEntries(tracks.map((track) => [`${streams[track]}.key`, fileOf(track)]));

const rulesOf = ({ body }: Received) =>
  documentOf(body).rules.map(({ keyId, intendedTrackType, video, audio }) => [
    keyId.toString('hex'),
    intendedTrackType,
    ...video,
    ...audio,
  ]);
const kid = (track: string) => spekeKeyId(CONTENT_ID, 'cenc', track).toString('hex');
/** AWS, "SPEKE v2.0 presets". */
const LIMITS: Readonly<Record<string, object>> = {
  SD: { maxPixels: '589824' },
  HD: { minPixels: '589825', maxPixels: '2073600' },
  UHD1: { minPixels: '2073601', maxPixels: '8847360' },
  UHD2: { minPixels: '8847361' },
  STEREO_AUDIO: { maxChannels: '2' },
};

describe.each([1, 2, 2.1] as const)('several tracks by SPEKE %d', (version) => {
  it('get a key each, which are asked for in one request a scheme, and the same files again', async () => {
    const { sidecar, upstream } = await startSpeke({ version });
    const post = () => sidecar.batch({ streams: [entry] });
    expect((await post()).summary).toEqual({ created: 5, changed: 0, unchanged: 0, failed: 0 });
    expect(await sidecar.files()).toEqual(files());
    const [cenc, cbcs] = upstream.received.toSorted((one, other) => (one.body < other.body ? 1 : -1));
    expect(upstream.received).toHaveLength(2);
    const asked = [cenc, cbcs].map((request) => request && rulesOf(request));
    expect(asked).toContainEqual(TRACKS.map((track) => [kid(track), track, LIMITS[track]]));
    expect(new Set(asked.flat().map((rule) => rule?.[0])).size).toBe(10);
    expect((await post()).summary).toEqual({ created: 0, changed: 0, unchanged: 5, failed: 0 });
  });
});

it('one track of a single request gets the key that it has among several, whatever its case', async () => {
  const { sidecar, upstream } = await startSpeke();
  for (const track of ['HD', 'hd']) {
    const body = { contentId: CONTENT_ID, systems: SYSTEMS, track };
    await sidecar.api.post('/api/keyfile/one').send(body).expect(200, fileOf('HD'));
  }
  expect(rulesOf(upstream.received[0] as Received)).toHaveLength(1);
});

it('a type of several parts has a filter for each', async () => {
  const { sidecar, upstream } = await startSpeke();
  const body = { contentId: CONTENT_ID, systems: ['widevine'], track: 'SD+HD1' };
  await sidecar.api.post('/api/keyfile/one').send(body).expect(200);
  expect(upstream.received.map(rulesOf)).toEqual([
    [[kid('SD+HD1'), 'SD+HD1', LIMITS.SD, { minPixels: '589825', maxPixels: '921600' }]],
  ]);
});

it('the key of another id is chosen by the usage rules of the answer', async () => {
  const { sidecar, upstream } = await startSpeke();
  const renamed = (text: string) => text.replaceAll(/kid="([0-9a-f]{7})./g, 'kid="$10');
  upstream.on(
    SPEKE_PATH,
    answering((body) => renamed(body)),
  );
  const tracks = { SD: 'sd', HD: 'hd' };
  const batch = { streams: [{ contentId: CONTENT_ID, systems: ['widevine'], tracks }] };
  await sidecar.api.post('/api/keyfiles').send(batch).expect(200);
  const lines = (track: string) => {
    const id = Buffer.from(kid(track).replace(/^(.{7})./, '$10'), 'hex').toString('base64');
    return dashLines({ systems: ['widevine'], track }).replace(/(-key-id: ).*/, `$1${id}`);
  };
  expect(await sidecar.files()).toEqual({ 'sd.key': lines('SD'), 'hd.key': lines('HD') });
});

const MUST_BE =
  'must be one of VIDEO, SD, HD, HD1, HD2, UHD, UHD1, UHD2, AUDIO, STEREO_AUDIO, MULTICHANNEL_AUDIO, MULTICHANNEL_AUDIO_3_6, MULTICHANNEL_AUDIO_7, or several joined by +; leave it out for the key of all tracks';

it.each(['4K', 'ALL', 'SD+SD', '+'])(
  '%j, which is no track type of SPEKE, is refused alone',
  async (track) => {
    const { sidecar, upstream } = await startSpeke();
    const single = { contentId: CONTENT_ID, track };
    const errors = [{ code: 'invalid_body', description: `track: ${MUST_BE}` }];
    await sidecar.api.post('/api/keyfile/one').send(single).expect(400, { errors });
    expect((await sidecar.api.post('/api/check').send(single).expect(200)).body.faults).toHaveLength(1);
    const tracks = { [track]: 'one', ...streams };
    const { results } = await sidecar.batch({ streams: [{ ...entry, tracks }] });
    expect(results.find(({ streamid }: { streamid: string }) => streamid === 'one').errors).toEqual(errors);
    expect(await sidecar.files()).toEqual(files());
    expect(upstream.received.map((request) => rulesOf(request).length)).toEqual([5, 5]);
  },
);

it('more than twenty tracks, and one track twice, are refused', async () => {
  const { sidecar } = await startSpeke();
  const post = async (tracks: object) => (await sidecar.batch({ streams: [{ ...entry, tracks }] })).results;
  const many = Object.fromEntries(Array.from({ length: 21 }, (_none, at) => [`T${at}`, `t${at}`]));
  expect(await post(many)).toMatchObject([{ result: 'failed', errors: [{ code: 'invalid_body' }] }]);
  expect(await post({ SD: 'a', sd: 'b' })).toMatchObject([
    { streamid: 'a', result: 'created' },
    { streamid: 'b', errors: [{ code: 'duplicate_quality' }] },
  ]);
});

it('a refusal fails all tracks alike, after one request a scheme', async () => {
  const { sidecar, upstream } = await startSpeke();
  const refusal = { status: 422, body: 'Requested CPIX encryption contract not supported' };
  upstream.on(SPEKE_PATH, async (request) => {
    if (asksFairPlay(request)) return refusal;
    // The first tracks have failed by then, and more are under way.
    await wait(200);
    return reference();
  });
  const tracks = Object.fromEntries(Object.keys(SPEKE_TRACKS).map((track) => [track, track]));
  const body = await sidecar.batch({ streams: [{ ...entry, tracks }] });
  const said = new Set(body.results.map(({ errors }: { errors: object }) => JSON.stringify(errors)));
  expect([body.summary.failed, said.size, upstream.received.length]).toEqual([13, 1, 2]);
});

describe('SPEKE 2.1', () => {
  const BODY = { contentId: CONTENT_ID };

  it('is asked with its version and that of CPIX, and answers HLS methods and hierarchies', async () => {
    const { sidecar, upstream } = await startSpeke({ version: 2.1 });
    const hierarchy = (text: string) =>
      text
        .replace('"cbcs"', '"SAMPLE-AES"')
        .replace('"cenc"', '"SAMPLE-AES-CTR" dependsOnKey="00000000-0000-4000-8000-000000000001"');
    upstream.on(SPEKE_PATH, answering(hierarchy, { version: 2.1 }));
    await sidecar.api.post('/api/keyfile/demo').send(BODY).expect(200, `${dashLines()}${hlsLines()}`);
    for (const { headers, body } of upstream.received)
      expect([headers['x-speke-version'], documentOf(body).version]).toEqual(['2.1', '2.4']);
  });

  it.each([
    [
      'another SPEKE',
      reference(2),
      'answered without the header X-Speke-Version: 2.1; if it speaks SPEKE 2.0, set PACKAGERDRMAPI_KEYPROVIDERPROTOCOL to speke2',
    ],
    [
      'another CPIX',
      answering((body) => body.replace('"2.4"', '"2.3"'), { version: 2.1 }),
      'returned a CPIX document of another version than 2.4, which SPEKE v2.1 requires',
    ],
  ])('refuses an answer in %s', async (_what, script, why) => {
    const { sidecar, upstream } = await startSpeke({ version: 2.1 });
    upstream.on(SPEKE_PATH, script);
    const { body } = await sidecar.api.post('/api/keyfile/demo').send(BODY).expect(502);
    expect(body.errors[0].description).toBe(`The key provider ${why}. No key file was changed.`);
  });
});
