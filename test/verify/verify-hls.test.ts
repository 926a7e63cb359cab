import { createCipheriv } from 'node:crypto';
import { join } from 'node:path';
import fs from 'fs-extra';
import {
  codesOf,
  FAIRPLAY_FLAGS,
  FAIRPLAY_IV,
  FAIRPLAY_KEY,
  FAIRPLAY_URL,
  keyFileText,
  startStream,
  statesOf,
} from '../support/start-stream';

const OTHER = 'ffeeddccbbaa99887766554433221100';
const withFairPlay = (part: Partial<Record<'licenseUrl' | 'key' | 'iv', string>>) => ({
  name: 'news.key',
  text: keyFileText({ fairplay: { licenseUrl: FAIRPLAY_URL, key: FAIRPLAY_KEY, iv: FAIRPLAY_IV, ...part } }),
});

test('a FairPlay stream of the key file decrypts, and there is nothing to say', async () => {
  const stream = await startStream('hls');
  const report = await stream.verify();
  expect({ faults: report.faults, type: report.type, live: report.live }).toEqual({
    faults: [],
    type: 'hls',
    live: false,
  });
  expect(report.renditions).toEqual([
    expect.objectContaining({ kind: 'video', scheme: 'cbcs', codec: expect.stringMatching(/^avc1/) }),
    expect.objectContaining({ name: 'audio main sound', kind: 'audio', scheme: 'cbcs' }),
  ]);
  expect(statesOf(report)).toEqual(['decrypts', 'decrypts']);
  expect(report.systems[0]).toEqual({
    systemId: '94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
    name: 'FairPlay',
    in: ['v.m3u8', 'a.m3u8'],
    fields: expect.arrayContaining([{ name: 'key.uri', value: FAIRPLAY_URL }]),
  });
});

test('one media playlist is tested by itself', async () => {
  const stream = await startStream('hls');
  const report = await stream.verify({ path: '/v.m3u8' });
  expect({ faults: report.faults, names: report.renditions.map(({ name }) => name) }).toEqual({
    faults: [],
    names: ['media playlist'],
  });
});

test('a key id of its own is nothing against a stream that FairPlay alone plays', async () => {
  const stream = await startStream('hls', {
    packaging: {
      scheme: 'cbcs',
      keyId: 'aaaaaaaabbbbccccddddeeeeffff0000',
      key: FAIRPLAY_KEY,
      iv: FAIRPLAY_IV,
    },
  });
  const report = await stream.verify();
  expect({
    faults: report.faults.filter(({ severity }) => severity === 'error'),
    states: statesOf(report),
  }).toEqual({ faults: [], states: ['decrypts', 'decrypts'] });
});

describe('MPEG-TS', () => {
  test('SAMPLE-AES decrypts with key and IV of the key file', async () => {
    const stream = await startStream('hls', { extension: 'ts', flags: FAIRPLAY_FLAGS });
    const report = await stream.verify();
    expect({ faults: report.faults, schemes: report.renditions.map(({ scheme }) => scheme) }).toEqual({
      faults: [],
      schemes: ['sample-aes', 'sample-aes'],
    });
    expect(statesOf(report)).toEqual(['decrypts', 'decrypts']);
  });
});

describe('AES-128', () => {
  const key = Buffer.from('00112233445566778899aabbccddeeff', 'hex');

  /** Clear transport streams, encrypted as whole segments; the key is where the playlists say. */
  async function startEncrypted() {
    const stream = await startStream('hls', { extension: 'ts', packaging: undefined, flags: [] });
    for (const name of ['v', 'a']) {
      for (const number of [1, 2, 3]) {
        const path = join(stream.folder, `${name}${number}.ts`);
        const iv = Buffer.alloc(16);
        iv.writeUInt32BE(number - 1, 12);
        const cipher = createCipheriv('aes-128-cbc', key, iv);
        const clear = await fs.readFile(path);
        await fs.writeFile(path, Buffer.concat([cipher.update(clear), cipher.final()]));
      }
      await stream.change(`${name}.m3u8`, (text) =>
        text.replace('#EXTINF', '#EXT-X-KEY:METHOD=AES-128,URI="keys/one.key"\n#EXTINF'),
      );
    }
    await fs.outputFile(join(stream.folder, 'keys/one.key'), key);
    return stream;
  }

  test('decrypts with the key that the playlist names, without a warning', async () => {
    const report = await (await startEncrypted()).verify({ keyFiles: [] });
    expect({ codes: codesOf(report), states: statesOf(report) }).toEqual({
      codes: { errors: [], warnings: [] },
      states: ['decrypts', 'decrypts'],
    });
    expect(JSON.stringify(report)).not.toContain(key.toString('hex'));
  });

  test('a key that is another one, or none, is one error', async () => {
    const stream = await startEncrypted();
    await fs.outputFile(join(stream.folder, 'keys/one.key'), Buffer.alloc(16, 7));
    expect(codesOf(await stream.verify({ keyFiles: [] })).errors).toEqual(['content_key_wrong']);
    await fs.outputFile(join(stream.folder, 'keys/one.key'), 'no key');
    expect(codesOf(await stream.verify({ keyFiles: [] })).errors).toEqual(['key_not_fetched']);
  });
});

describe('a key file of the sidecar that was changed after the newest part of the stream began', () => {
  const DISCONTINUITY = (text: string) => text.replace(/(#EXTINF[^#]*)$/, '#EXT-X-DISCONTINUITY\n$1');
  const EARLIER = (text: string) => text.replace('#EXTINF', '#EXT-X-DISCONTINUITY-SEQUENCE:1\n#EXTINF');

  test.each([
    ['is named as the likely cause', 5, (text: string) => text, '12:00:00'],
    ['is the same after a discontinuity', 5, DISCONTINUITY, '12:00:04'],
    ['is not, before the discontinuity', 3, DISCONTINUITY, undefined],
    ['is not, after a discontinuity of which the time is not known', 5, EARLIER, undefined],
  ])('%s', async (_what, second, change, begun) => {
    const stream = await startStream('hls');
    for (const file of ['v.m3u8', 'a.m3u8'])
      await stream.change(file, (text) =>
        change(text.replace(/#EXT-X-ENDLIST\n?/, '').replace('#EXT-X-PLAYLIST-TYPE:VOD\n', '')).replace(
          '#EXTINF',
          '#EXT-X-PROGRAM-DATE-TIME:2026-11-22T12:00:00Z\n#EXTINF',
        ),
      );
    const changed = new Date(`2026-11-22T12:00:0${second}Z`);
    const now = () => new Date('2026-11-22T12:00:10Z');
    const { faults } = await stream.verify({ now, keyFiles: [{ ...withFairPlay({ key: OTHER }), changed }] });
    const history = /(?<=Restart the stream so .* news\.key was changed at ).*(?=, and restarting)/.exec(
      faults[0]?.description ?? '',
    );
    expect([faults.map(({ code }) => code), history?.[0]]).toEqual([
      ['content_key_wrong'],
      begun &&
        `2026-11-22 12:00:0${second} UTC, after the stream began (2026-11-22 ${begun} UTC): most likely the packager still uses the former key file`,
    ]);
  });
});
