import { createCipheriv } from 'node:crypto';
import { join } from 'node:path';
import fs from 'fs-extra';
import { openMedia } from '../../src/verify/media/open-media';
import { StreamMemory } from '../../src/verify/stream-memory';
import {
  CONTENT_KEY,
  codesOf,
  dashPackaging,
  expectToPlay,
  FAIRPLAY_IV,
  FAIRPLAY_KEY,
  KEY_ID,
  keyFileText,
  type ServedStream,
  startStream,
  statesOf,
} from '../support/start-stream';

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const OTHER_KEY = 'ffeeddccbbaa99887766554433221100';
const SOUND_ID = '99999999888847777666555544443333';

const withKeys = (keyId: string, contentKey: string) =>
  keyFileText({
    cenc: { keyId: base64(keyId), contentKey: base64(contentKey) },
    widevine: { psshData: base64(`1210${keyId}`) },
  });

async function changeBytes(
  stream: ServedStream,
  file: string,
  change: (bytes: Buffer) => Buffer,
): Promise<void> {
  const path = join(stream.folder, file);
  await fs.writeFile(path, change(await fs.readFile(path)));
}

describe('what the samples show', () => {
  test('an IV in the media that they were not encrypted with is told, and the key is not blamed', async () => {
    const stream = await startStream('hls');
    for (const file of ['v.mp4', 'a.mp4'])
      await changeBytes(stream, file, (init) => {
        Buffer.alloc(16, 7).copy(init, init.indexOf(Buffer.from(FAIRPLAY_IV, 'hex')));
        return init;
      });
    const report = await stream.verify();
    expect(codesOf(report)).toEqual({ errors: ['iv_wrong'], warnings: [] });
    expect(statesOf(report)).toEqual(['garbage', 'garbage']);
  });

  test('what was encrypted twice is told', async () => {
    const stream = await startStream('hls');
    const init = await fs.readFile(join(stream.folder, 'a.mp4'));
    await changeBytes(stream, 'a3.m4s', (segment) => {
      const opened = openMedia(init, segment);
      const samples = opened.ok ? opened.value.tracks.flatMap(({ content }) => content.samples) : [];
      for (const { data } of samples) {
        const whole = data.subarray(0, data.length - (data.length % 16));
        const cipher = createCipheriv(
          'aes-128-cbc',
          Buffer.from(FAIRPLAY_KEY, 'hex'),
          Buffer.from(FAIRPLAY_IV, 'hex'),
        ).setAutoPadding(false);
        cipher.update(whole).copy(segment, segment.indexOf(whole));
      }
      return segment;
    });
    const report = await stream.verify();
    expect(codesOf(report)).toEqual({ errors: ['encrypted_twice'], warnings: [] });
    expect(statesOf(report)).toEqual(['decrypts', 'garbage']);
  });

  test('clear samples in a segment that says that they are encrypted are told', async () => {
    const [stream, clear] = await Promise.all([
      startStream('dash'),
      startStream('dash', { packaging: undefined }),
    ]);
    for (const name of ['v', 'a'])
      for (const number of [1, 2, 3]) {
        const file = `${name}${number}.m4s`;
        const source = await fs.readFile(join(clear.folder, file));
        await changeBytes(stream, file, (segment) =>
          Buffer.concat([
            segment.subarray(0, segment.indexOf('mdat') + 4),
            source.subarray(source.indexOf('mdat') + 4),
          ]),
        );
      }
    const report = await stream.verify();
    expect(codesOf(report)).toEqual({ errors: ['not_encrypted'], warnings: [] });
    expect(statesOf(report)).toEqual(['clear', 'clear']);
  });

  test('encryption that neither manifest nor init segment signals is told without a key file', async () => {
    const stream = await startStream('dash');
    await stream.change('m.mpd', (text) =>
      text.replaceAll(/<ContentProtection[\s\S]*?(?:\/>|<\/ContentProtection>)/g, ''),
    );
    for (const [file, plain, encrypted] of [
      ['v.mp4', 'avc1', 'encv'],
      ['a.mp4', 'mp4a', 'enca'],
    ] as const)
      await changeBytes(stream, file, (init) => {
        init.write('free', init.indexOf('sinf'), 'latin1');
        init.write(plain, init.indexOf(encrypted), 'latin1');
        for (let at = init.indexOf('pssh'); at > 0; at = init.indexOf('pssh'))
          init.write('free', at, 'latin1');
        return init;
      });
    expect(codesOf(await stream.verify({ keyFiles: [] }))).toEqual({
      errors: ['not_signalled'],
      warnings: [],
    });
  });
});

test.each([
  ['the right', CONTENT_KEY],
  ['another', OTHER_KEY],
])('samples whose IVs are nowhere are one error, and %s key is not blamed', async (_which, contentKey) => {
  const stream = await startStream('dash');
  for (const file of ['v1.m4s', 'v3.m4s', 'a1.m4s', 'a3.m4s'])
    await changeBytes(stream, file, (segment) => {
      for (const box of ['senc', 'saiz', 'saio']) segment.write('free', segment.indexOf(box), 'latin1');
      return segment;
    });
  const report = await stream.verify({
    keyFiles: [{ name: 'news.key', text: withKeys(KEY_ID, contentKey) }],
    formerKeyFiles: [{ name: 'former.key', text: keyFileText() }],
  });
  expect(codesOf(report)).toEqual({ errors: ['iv_missing'], warnings: [] });
  expect(statesOf(report)).toEqual(['unknown', 'unknown']);
});

test.each([
  ['v.mp4', 'avc1', 'vp09', 'v3.m4s'],
  ['v.mp4', 'avc1', 'av01', 'v3.m4s'],
  ['a.mp4', 'mp4a', 'Opus', 'a3.m4s'],
])(
  'of %s, whose %s is made %s, it is a warning that nothing is proven',
  async (file, codec, other, segment) => {
    const stream = await startStream('dash');
    await changeBytes(stream, file, (init) => {
      init.write(other, init.indexOf(`frma${codec}`) + 4, 'latin1');
      return init;
    });
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

describe('several keys', () => {
  /** Picture and sound have a key each. */
  const start = () =>
    startStream('dash', {
      packaging: { scheme: 'cenc', keyId: KEY_ID, key: CONTENT_KEY },
      flags: [
        `--keys=label=AUDIO:key_id=${SOUND_ID}:key=${OTHER_KEY},label=SD:key_id=${KEY_ID}:key=${CONTENT_KEY}`,
      ],
    });
  const ofPicture = { name: 'sd.key', text: keyFileText() };

  test('all key files together decrypt the stream', async () => {
    const report = await (await start()).verify({
      keyFiles: [ofPicture, { name: 'sound.key', text: withKeys(SOUND_ID, OTHER_KEY) }],
    });
    expectToPlay(report);
  });

  test('the key file that is missing is asked for, and none is called wrong', async () => {
    const stream = await start();
    const report = await stream.verify({ keyFiles: [ofPicture] });
    expect(report.faults).toEqual([
      {
        severity: 'error',
        code: 'key_id_unknown',
        description:
          'There is no key for a3.m4s (key id 99999999-8888-4777-7666-555544443333) in sd.key; give the key file of this stream, or package the stream again so that the packager reads it.',
      },
    ]);
    expect(codesOf(await stream.verify({ keyFiles: [ofPicture], allowMissingKeys: true }))).toEqual({
      errors: [],
      warnings: ['key_id_unknown'],
    });
  });

  test('of several key files the one is named whose key is wrong', async () => {
    const report = await (await start()).verify({
      keyFiles: [ofPicture, { name: 'sound.key', text: withKeys(SOUND_ID, CONTENT_KEY) }],
    });
    expect(codesOf(report)).toEqual({ errors: ['content_key_wrong'], warnings: [] });
    expect(report.faults[0]?.description).toMatch(/^The content key of sound\.key does not decrypt a3\.m4s/);
  });

  test('keys that rotate are no keys of a key file', async () => {
    const stream = await startStream('dash', { flags: ['--crypto_period_duration=2'] });
    const { errors, warnings } = codesOf(await stream.verify());
    // The newest segments of picture and sound may be of two periods.
    expect([new Set(errors), warnings]).toEqual([new Set(['key_id_unknown']), ['key_rotation']]);
  });
});

describe('key ids', () => {
  test('a random key id in the wrong byte order is only suspected while all agree on it', async () => {
    const text = withKeys('d3756a4b4980dc4eb82ac7a2680c5781', CONTENT_KEY);
    const stream = await startStream('dash', { packaging: dashPackaging(text) });
    const report = await stream.verify({ keyFiles: [{ name: 'news.key', text }] });
    expect(codesOf(report).errors).toEqual([]);
    expect(new Set(codesOf(report).warnings)).toEqual(new Set(['key_id_byte_order_suspected']));
  });

  test('a key file in the wrong byte order is told once, and no longer suspected', async () => {
    const text = withKeys('d3756a4b4980dc4eb82ac7a2680c5781', CONTENT_KEY);
    const report = await (await startStream('dash')).verify({ keyFiles: [{ name: 'news.key', text }] });
    expect(codesOf(report)).toEqual({ errors: ['key_id_byte_order'], warnings: [] });
  });

  test.each([
    ['another key id', '99999999-2222-4333-8444-555566667777', 'key_id_mismatch'],
    ['the key id in the other byte order', 'd3756a4b-4980-dc4e-b82a-c7a2680c5781', 'key_id_byte_order'],
  ])('%s in the manifest alone is one error', async (_what, keyId, code) => {
    const stream = await startStream('dash');
    await stream.change('m.mpd', (text) => text.replaceAll(/default_KID="[^"]*"/g, `default_KID="${keyId}"`));
    const report = await stream.verify();
    expect([codesOf(report).errors, statesOf(report)]).toEqual([[code], ['decrypts', 'decrypts']]);
  });
});

test('a clear part before the encrypted one, with an init segment of its own, is a clear lead', async () => {
  const [stream, clear] = await Promise.all([
    startStream('hls'),
    startStream('hls', { packaging: undefined, flags: [] }),
  ]);
  for (const file of ['v.mp4', 'v1.m4s'])
    await fs.copy(join(clear.folder, file), join(stream.folder, `clear-${file}`));
  await stream.change('v.m3u8', (text) =>
    text.replace(
      /(?=#EXT-X-(?:MAP|KEY))/,
      '#EXT-X-MAP:URI="clear-v.mp4"\n#EXTINF:2,\nclear-v1.m4s\n#EXT-X-DISCONTINUITY\n',
    ),
  );
  const report = await stream.verify();
  expect([codesOf(report), statesOf(report)]).toEqual([
    { errors: [], warnings: ['clear_lead'] },
    ['decrypts', 'decrypts'],
  ]);
});

describe('files that are not there, or are something else', () => {
  const page = '<!DOCTYPE html><html>blocked</html>';

  test.each([
    ['an init segment that is a web page', 'v.mp4', page, 'not_media'],
    ['a segment that is a web page', 'v3.m4s', page, 'not_media'],
    ['a segment of WebM', 'v3.m4s', Buffer.from('1a45dfa39f4286810142f78101', 'hex'), 'not_media'],
    ['an empty segment', 'v3.m4s', '', 'no_samples'],
    ['no init segment', 'v.mp4', undefined, 'segment_not_found'],
  ])('%s is one error, and the sound is tested', async (_what, file, content, code) => {
    const stream = await startStream('dash');
    if (content === undefined) await fs.remove(join(stream.folder, file));
    else await fs.writeFile(join(stream.folder, file), content);
    const report = await stream.verify();
    expect([codesOf(report), statesOf(report)]).toEqual([
      { errors: [code], warnings: [] },
      [undefined, 'decrypts'],
    ]);
  });
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
