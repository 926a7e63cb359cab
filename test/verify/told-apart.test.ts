import { join } from 'node:path';
import fs from 'fs-extra';
import { StreamMemory } from '../../src/verify/stream-memory';
import {
  CONTENT_KEY,
  codesOf,
  dashPackaging,
  KEY_ID,
  keyFileText,
  type ServedStream,
  startStream,
  statesOf,
} from '../support/start-stream';

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');

test.each([
  ['v.mp4', 'avc1', 'vp09', 'v3.m4s'],
  ['v.mp4', 'avc1', 'av01', 'v3.m4s'],
  ['a.mp4', 'mp4a', 'Opus', 'a3.m4s'],
])(
  'of %s, whose %s is made %s, it is a warning that nothing is proven',
  async (file, codec, other, segment) => {
    const stream = await startStream('dash');
    const path = join(stream.folder, file);
    const init = await fs.readFile(path);
    init.write(other, init.indexOf(`frma${codec}`) + 4, 'latin1');
    await fs.writeFile(path, init);
    const { faults } = await stream.verify();
    expect(faults).toEqual([
      {
        severity: 'warning',
        code: 'undetermined',
        description: expect.stringMatching(
          new RegExp(
            `^Whether the key decrypts ${segment} \\(${other}\\) is undetermined\\. .* In ${segment}: \\d+ samples were checked: too little data to tell\\.$`,
            'i',
          ),
        ),
      },
    ]);
    expect(codesOf(await stream.verify({ keyFiles: [] })).warnings).toEqual([]);
  },
);

test('keys that rotate are no keys of a key file', async () => {
  const stream = await startStream('dash', { flags: ['--crypto_period_duration=2'] });
  const { errors, warnings } = codesOf(await stream.verify());
  // The newest segments of picture and sound may be of two periods.
  expect([new Set(errors), warnings]).toEqual([new Set(['key_id_unknown']), ['key_rotation']]);
});

test('a random key id in the wrong byte order is only suspected while all agree on it', async () => {
  const keyId = 'd3756a4b4980dc4eb82ac7a2680c5781';
  const text = keyFileText({
    cenc: { keyId: base64(keyId), contentKey: base64(CONTENT_KEY) },
    widevine: { psshData: base64(`1210${keyId}`) },
  });
  const stream = await startStream('dash', { packaging: dashPackaging(text) });
  const report = await stream.verify({ keyFiles: [{ name: 'news.key', text }] });
  expect(codesOf(report).errors).toEqual([]);
  expect(new Set(codesOf(report).warnings)).toEqual(new Set(['key_id_byte_order_suspected']));
});

describe('a live playlist', () => {
  const makeLive = (stream: ServedStream, withTimes: (text: string) => string) =>
    Promise.all(
      ['v.m3u8', 'a.m3u8'].map((file) =>
        stream.change(file, (text) =>
          withTimes(text.replaceAll(/#EXT-X-(?:ENDLIST|PLAYLIST-TYPE:VOD)\n?/g, '')),
        ),
      ),
    );

  test('that has no new segment any more is told while it is watched', async () => {
    const stream = await startStream('hls');
    await makeLive(stream, (text) => text);
    const memory = new StreamMemory();
    const at = (second: number) => () => new Date(Date.UTC(2026, 10, 22, 12, 0, second));
    expect((await stream.verify({ memory, now: at(0) })).faults).toEqual([]);
    expect((await stream.verify({ memory, now: at(9) })).faults).toEqual([]);
    expect(codesOf(await stream.verify({ memory, now: at(11) }))).toEqual({
      errors: ['playlist_not_moving'],
      warnings: [],
    });
  });

  test('whose encoder was away for an hour moves', async () => {
    const stream = await startStream('hls');
    await makeLive(stream, (text) =>
      text
        .replace('#EXTINF', '#EXT-X-PROGRAM-DATE-TIME:2026-11-22T12:00:00Z\n#EXTINF')
        .replace(
          /(#EXTINF[^#]*)$/,
          '#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2026-11-22T13:00:00Z\n$1',
        ),
    );
    const report = await stream.verify({ now: () => new Date('2026-11-22T13:00:05Z') });
    expect([report.faults, report.live]).toEqual([[], true]);
  });
});

describe('a key in the playlist itself', () => {
  const line = (text: string, bytes: Buffer) =>
    text.replace(
      '#EXTINF',
      `#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,${bytes.toString('base64')}",KEYFORMAT="identity"\n#EXTINF`,
    );
  const start = async (bytes: Buffer) => {
    const stream = await startStream('hls', { packaging: dashPackaging(), flags: [] });
    for (const file of ['v.m3u8', 'a.m3u8'])
      await stream.change(file, (text) => line(text.replaceAll(/#EXT-X-KEY:.*\n/g, ''), bytes));
    return stream;
  };

  test('decrypts, and is not shown', async () => {
    const report = await (await start(Buffer.from(CONTENT_KEY, 'hex'))).verify({ keyFiles: [] });
    expect([statesOf(report), codesOf(report).errors]).toEqual([['decrypts', 'decrypts'], []]);
    expect(JSON.stringify(report)).not.toContain(base64(CONTENT_KEY));
  });

  test('is none where it is the key id, which shaka-packager writes there', async () => {
    const report = await (await start(Buffer.from(KEY_ID, 'hex'))).verify();
    expect([statesOf(report), codesOf(report).errors]).toEqual([['decrypts', 'decrypts'], []]);
  });
});
