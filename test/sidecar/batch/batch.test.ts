import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import { etagOf } from '../../../src/drm/bytes';
import type { ApiKey } from '../../../src/sidecar/api-key';
import { PLAIN, PLAIN_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { startBatch } from '../../support/start-batch';
import { sidecarForAll } from '../../support/start-sidecar';

const PATH = '/api/keyfiles';
const sidecar = sidecarForAll();
const { api } = sidecar;
const CENC_TAG = etagOf(Buffer.from(PLAIN_FILE));
const MANUAL_TAG = etagOf(Buffer.from(POST_MANUAL_FILE));

const created = (streamid: string, etag = CENC_TAG) => ({
  index: expect.any(Number),
  streamid,
  result: 'created',
  etag,
});
const unchanged = (streamid: string, etag = CENC_TAG) => ({
  ...created(streamid, etag),
  result: 'unchanged',
});
const summary = (counts: object) => ({ created: 0, changed: 0, unchanged: 0, failed: 0, ...counts });

const post = async (body: object, query = '') => {
  const answer = await api.post(PATH + query).send(body);
  expect(answer.status).toBe(200);
  return answer.body;
};

/** Distinguishes every file from one that was written again with the same bytes. */
async function marks(folder: string): Promise<Record<string, string>> {
  const names = (await fs.readdir(folder, { recursive: true }))
    .map(String)
    .filter((name) => name.endsWith('.key'));
  const found = names.map(async (name): Promise<[string, string]> => {
    const { ino, mtimeNs } = await stat(join(folder, name), { bigint: true });
    return [name, `${ino} ${mtimeNs}`];
  });
  return Object.fromEntries(await Promise.all(found));
}

describe('streams and groups', () => {
  it('are written, with a result for each in the order of the request', async () => {
    const answer = await post({
      groups: [{ members: ['a_720p', { streamid: 'a_360p' }], folder: 'live', ...PLAIN }],
      streams: [
        { streamid: 'z', ...POST_MANUAL },
        { streamid: 'live/b', ...PLAIN, widevine: null, drmJson: '{}' },
      ],
    });
    expect(answer).toEqual({
      results: [created('z', MANUAL_TAG), created('live/b'), created('live/a_720p'), created('live/a_360p')],
      summary: summary({ created: 4 }),
    });
    expect(answer.results.map(({ index }: { index: number }) => index)).toEqual([0, 1, 2, 2]);
    expect(await sidecar.files()).toEqual({
      live: 'folder',
      'live/a_360p.key': PLAIN_FILE,
      'live/a_720p.key': PLAIN_FILE,
      'live/b.key': PLAIN_FILE,
      'z.key': POST_MANUAL_FILE,
    });
  });

  it('are answered as JSON that nobody stores', async () => {
    const { body, headers } = await api.post(PATH).send({ streams: [] }).expect(200);
    expect(body).toEqual({ results: [], summary: summary({}) });
    expect(headers['cache-control']).toBe('no-store');
  });

  it('leave as it is what would not change, so that a batch can be repeated', async () => {
    const body = {
      streams: [
        { streamid: 'a', ...PLAIN },
        { streamid: 'b', ...POST_MANUAL },
      ],
      groups: [{ members: ['c', 'd'], ...PLAIN }],
    };
    await post(body);
    const before = await marks(sidecar.folder);
    expect(await post(body)).toEqual({
      results: [unchanged('a'), unchanged('b', MANUAL_TAG), unchanged('c'), unchanged('d')],
      summary: summary({ unchanged: 4 }),
    });
    expect(await marks(sidecar.folder)).toEqual(before);
    body.streams[0] = { streamid: 'a', ...POST_MANUAL };
    expect(await post(body)).toEqual({
      results: [
        { ...created('a', MANUAL_TAG), result: 'changed' },
        unchanged('b', MANUAL_TAG),
        unchanged('c'),
        unchanged('d'),
      ],
      summary: summary({ changed: 1, unchanged: 3 }),
    });
    expect(await marks(sidecar.folder)).toEqual({
      ...before,
      'a.key': expect.not.stringMatching(before['a.key'] ?? ''),
    });
  });

  it('warn of the name of a group, and write it', async () => {
    const description =
      'The packager reads no key file of a group (.smil); each of its member streams needs its own, and a group in a batch or in a manifest writes them all.';
    const warnings = [{ code: 'group_name', description }];
    expect(
      await post({
        streams: [{ streamid: 'live/a.smil', ...PLAIN }],
        groups: [{ members: ['b.SMIL'], ...PLAIN }],
      }),
    ).toEqual({
      results: [
        { ...created('live/a.smil'), warnings },
        { ...created('b.SMIL'), warnings },
      ],
      summary: summary({ created: 2 }),
    });
  });
});

it('a dry run returns the lines that would change, and writes nothing', async () => {
  const [old, same] = ['old', 'same'].map((streamid) => ({ streamid, ...PLAIN }));
  await post({ streams: [old, same] });
  const cenc = { ...PLAIN.cenc, contentkey: Buffer.alloc(16, 1).toString('base64') };
  const other = { streamid: 'old', cenc, playready: { laurl: PLAIN.playready.laurl } };
  const body = {
    streams: [other, same, { streamid: 'bad', cenc: 1 }],
    groups: [{ members: ['new'], ...PLAIN }],
  };
  const answer = await post(body, '?dryrun=true');
  const name = 'mpegdashstreaming-cenc-content-key';
  const mask = '********';
  expect(answer).toMatchObject({
    results: [
      {
        streamid: 'old',
        result: 'changed',
        etag: expect.stringMatching(/^".{27}"$/),
        lines: [
          { name, value: mask, change: 'changed', former: mask },
          { change: 'changed', former: PLAIN.playready.checksum },
        ],
        warnings: [{ code: 'key_id_reused' }],
      },
      unchanged('same'),
      { streamid: 'bad', result: 'failed', errors: [{ code: 'invalid_body' }] },
      created('new'),
    ],
    summary: summary({ created: 1, changed: 1, unchanged: 1, failed: 1 }),
  });
  expect(answer.results[1]).toEqual(unchanged('same'));
  expect(answer.results[3].lines.slice(1, 2)).toEqual([{ name, value: mask, change: 'added' }]);
  expect(await sidecar.files()).toEqual({ 'old.key': PLAIN_FILE, 'same.key': PLAIN_FILE });
});

it('a batch of many has its most streams, those of a SMIL document counted', async () => {
  const owner: ApiKey = { name: 'owner', scope: 'write', streams: undefined };
  const { post: send } = await startBatch(owner, { mostStreams: 3 });
  const videos = (count: number) =>
    Array.from({ length: count }, (_, index) => `<video src="a${index}"/>`).join('');
  const bodyOf = (count: number) => ({
    streams: [{ streamid: 's', ...PLAIN }],
    groups: [{ smil: `<smil><body>${videos(count)}</body></smil>`, ...PLAIN }],
  });
  expect((await send(bodyOf(2))).body.summary).toMatchObject({ created: 3 });
  expect(await send(bodyOf(3))).toMatchObject({
    status: 400,
    body: { errors: [{ code: 'invalid_body' }] },
  });
});

it('a batch of many runs while another does over the same streams, and leaves each file whole', async () => {
  const members = Array.from({ length: 30 }, (_, index) => `live/s-${index}`);
  const streams = (fields: object) => members.map((streamid) => ({ streamid, ...fields }));
  const answers = await Promise.all([
    post({ streams: streams(PLAIN) }),
    post({ streams: streams(POST_MANUAL) }),
    post({
      groups: [{ members, ...PLAIN }],
    }),
  ]);
  for (const { summary: counts } of answers) expect(counts).toMatchObject({ failed: 0 });
  const files = Object.values(await sidecar.files()).filter((text) => text !== 'folder');
  expect(files).toHaveLength(30);
  expect(files.filter((text) => text !== PLAIN_FILE && text !== POST_MANUAL_FILE)).toEqual([]);
});
