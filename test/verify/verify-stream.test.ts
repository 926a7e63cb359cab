import { createCipheriv } from 'node:crypto';
import { join } from 'node:path';
import fs from 'fs-extra';
import { PLAYREADY_SYSTEM_ID, playReadyObjectOf } from '../../src/drm/playready';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../src/drm/pssh';
import { StreamMemory } from '../../src/verify/stream-memory';
import { signalsOfManifest } from '../../src/verify/systems';
import {
  CONTENT_KEY,
  codesOf,
  dashPackaging,
  expectToPlay,
  FAIRPLAY_IV,
  FAIRPLAY_KEY,
  FAIRPLAY_URL,
  KEY_ID,
  keyFileText,
  type ServedStream,
  startStream,
  statesOf,
} from '../support/start-stream';

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const UUID = '4b6a75d3-8049-4edc-b82a-c7a2680c5781';
const OTHER = 'ffeeddccbbaa99887766554433221100';
const at = (time: string) => new Date(`2026-11-22T${time}Z`);
const DATED = '#EXT-X-PROGRAM-DATE-TIME:2026-11-22T12:00:00Z\n';

const changePlaylists = (stream: ServedStream, change: (text: string) => string) =>
  Promise.all(['v.m3u8', 'a.m3u8'].map((file) => stream.change(file, change)));
const makeLive = (stream: ServedStream, change: (text: string) => string) =>
  changePlaylists(stream, (text) => change(text.replaceAll(/#EXT-X-(?:ENDLIST|PLAYLIST-TYPE:VOD)\n?/g, '')));

test('a DASH stream of the key file decrypts, and there is nothing to say', async () => {
  const stream = await startStream('dash');
  const report = await stream.verify({ formerKeyFiles: [{ name: 'old.key', text: keyFileText() }] });
  const systems = { in: ['m.mpd', 'v.mp4', 'a.mp4'], fields: expect.any(Array) };
  const keyId = expect.objectContaining({ name: 'box.data.key_id', value: UUID });
  expect(report).toEqual({
    url: `${stream.url}/m.mpd`,
    type: 'dash',
    live: false,
    decrypted: true,
    systems: [
      {
        ...systems,
        systemId: 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
        name: 'Widevine',
        fields: expect.arrayContaining([keyId]),
      },
      { ...systems, systemId: '1077efec-c0b2-4d02-ace3-3c1e52e2fb4b', name: 'W3C common' },
    ],
    renditions: [
      {
        name: expect.stringMatching(/^video 160x90 \d+ kb\/s$/),
        kind: 'video',
        codec: expect.stringMatching(/^avc1\./),
        scheme: 'cenc',
        keyIds: [UUID],
        init: { url: `${stream.url}/v.mp4`, bytes: expect.any(Number) },
        segment: { url: `${stream.url}/v3.m4s`, bytes: expect.any(Number), seconds: 2, number: 3 },
        judgement: expect.objectContaining({ state: 'decrypts', kind: 'video' }),
      },
      expect.objectContaining({
        kind: 'audio',
        codec: 'mp4a.40.2',
        scheme: 'cenc',
        judgement: expect.objectContaining({ state: 'decrypts' }),
      }),
    ],
    faults: [],
    fetched: { requests: 7, bytes: expect.any(Number), ms: expect.any(Number) },
  });
  for (const form of [CONTENT_KEY, base64(CONTENT_KEY)]) expect(JSON.stringify(report)).not.toContain(form);
});

test('what systems signal is read from a manifest whose base64 is broken over lines', () => {
  const element = (id: string, inside: string) =>
    `<ContentProtection schemeIdUri="urn:uuid:${id}">${inside}</ContentProtection>`;
  const [keyId, key] = [KEY_ID, CONTENT_KEY].map((hex) => Buffer.from(hex, 'hex')) as [Buffer, Buffer];
  const box = buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [keyId]).toString('base64');
  const object = playReadyObjectOf(keyId, key, 'https://license.example/').toString('base64');
  const xml = (pssh: string, pro: string) =>
    element(COMMON_SYSTEM_ID, `<cenc:pssh>${pssh}</cenc:pssh>`) +
    element(PLAYREADY_SYSTEM_ID, `<mspr:pro>${pro}</mspr:pro>`);
  const broken = (text: string) => `\n  ${text.replaceAll(/.{40}/g, '$&\n  ')}\n`;
  const signals = signalsOfManifest(xml(box, object));
  expect(signals.map(({ fields }) => fields.length > 0)).toEqual([true, true]);
  expect(signalsOfManifest(xml(broken(box), broken(object)))).toEqual(signals);
});

test('a FairPlay stream of the key file decrypts, and there is nothing to say', async () => {
  const stream = await startStream('hls');
  const report = await stream.verify();
  expectToPlay(report);
  expect([report.type, report.live]).toEqual(['hls', false]);
  expect(report.renditions).toEqual([
    expect.objectContaining({ kind: 'video', scheme: 'cbcs', codec: expect.stringMatching(/^avc1/) }),
    expect.objectContaining({ name: 'audio main sound', kind: 'audio', scheme: 'cbcs' }),
  ]);
  expect(report.systems[0]).toEqual({
    systemId: '94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
    name: 'FairPlay',
    in: ['v.m3u8', 'a.m3u8'],
    fields: expect.arrayContaining([{ name: 'key.uri', value: FAIRPLAY_URL }]),
  });
});

test('key and key id swapped is one error, which does not show the key', async () => {
  const packaging = { scheme: 'cenc', keyId: CONTENT_KEY, key: KEY_ID } as const;
  const report = await (await startStream('dash', { packaging })).verify();
  expect(codesOf(report)).toEqual({ errors: ['key_and_key_id_swapped'], warnings: expect.any(Array) });
  expect(JSON.stringify(report.faults)).not.toContain(CONTENT_KEY);
});

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
    const says = `^Whether the key decrypts ${segment} \\(${other}\\) is undetermined\\. .* In ${segment}: \\d+ samples were checked: too little data to decide\\.$`;
    const description = expect.stringMatching(new RegExp(says, 'i'));
    expect((await stream.verify()).faults).toEqual([
      { severity: 'warning', code: 'undetermined', description },
    ]);
    // Nothing is wrong with an encrypted stream for which there is no key file.
    const { decrypted, faults } = await stream.verify({ keyFiles: [] });
    expect([decrypted, faults]).toEqual([false, []]);
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
  const { errors, warnings } = codesOf(await stream.verify({ keyFiles: [{ name: 'news.key', text }] }));
  expect([errors, new Set(warnings)]).toEqual([[], new Set(['key_id_byte_order_suspected'])]);
});

test('one media playlist is tested by itself', async () => {
  const report = await (await startStream('hls')).verify({ path: '/v.m3u8' });
  expect([report.faults, report.renditions.map(({ name }) => name)]).toEqual([[], ['media playlist']]);
});

test('a key id of its own is nothing against a stream that FairPlay alone plays', async () => {
  const keyId = 'aaaaaaaabbbbccccddddeeeeffff0000';
  const packaging = { scheme: 'cbcs', keyId, key: FAIRPLAY_KEY, iv: FAIRPLAY_IV } as const;
  const report = await (await startStream('hls', { packaging })).verify();
  expect([codesOf(report).errors, statesOf(report)]).toEqual([[], ['decrypts', 'decrypts']]);
});

describe('AES-128', () => {
  const key = Buffer.from('00112233445566778899aabbccddeeff', 'hex');

  /** Clear media, encrypted as whole files, an init segment too; the key is where the playlists say. */
  async function startEncrypted(extension: 'ts' | 'm4s' = 'ts') {
    const stream = await startStream('hls', { extension, packaging: undefined, flags: [] });
    const isNamed = extension === 'm4s';
    for (const name of await fs.readdir(stream.folder)) {
      const [, number] = /^[va](\d?)\.(?:ts|m4s|mp4)$/.exec(name) ?? [];
      if (number === undefined) continue;
      const path = join(stream.folder, name);
      const iv = Buffer.alloc(16);
      iv.writeUInt32BE(isNamed ? 7 : Number(number) - 1, 12);
      const cipher = createCipheriv('aes-128-cbc', key, iv);
      const clear = await fs.readFile(path);
      await fs.writeFile(path, Buffer.concat([cipher.update(clear), cipher.final()]));
    }
    const line = `#EXT-X-KEY:METHOD=AES-128,URI="keys/one.key"${isNamed ? ',IV=0x7' : ''}\n`;
    await changePlaylists(stream, (text) => text.replace(/#EXT-X-MAP|#EXTINF/, `${line}$&`));
    await fs.outputFile(join(stream.folder, 'keys/one.key'), key);
    return stream;
  }

  test.each(['ts', 'm4s'] as const)(
    'decrypts %s with the key that the playlist names, without a warning',
    async (extension) => {
      const report = await (await startEncrypted(extension)).verify({ keyFiles: [] });
      expectToPlay(report);
      // As the multivariant playlist has it.
      expect(report.renditions[0]?.codec).toMatch(/^avc1\./);
      expect(JSON.stringify(report)).not.toContain(key.toString('hex'));
    },
  );

  test('subtitles below its line that are not encrypted are an error, since players decrypt them', async () => {
    const stream = await startEncrypted();
    await fs.writeFile(join(stream.folder, 'a3.ts'), 'WEBVTT\n');
    expect(codesOf(await stream.verify({ keyFiles: [] })).errors).toEqual(['not_encrypted']);
  });

  test('a key that is another one, or none, is one error', async () => {
    const stream = await startEncrypted();
    await fs.outputFile(join(stream.folder, 'keys/one.key'), Buffer.alloc(16, 7));
    const { faults } = await stream.verify({ keyFiles: [] });
    const description = expect.stringMatching(
      /^The key at the address that the playlist names does not decrypt v3\.ts, .* or package the stream again with the key that is there\. The same is true of a3\.ts\./,
    );
    expect(faults).toEqual([{ severity: 'error', code: 'content_key_wrong', description }]);
    await fs.outputFile(join(stream.folder, 'keys/one.key'), 'no key');
    expect(codesOf(await stream.verify({ keyFiles: [] })).errors).toEqual(['key_not_fetched']);
  });
});

describe('a key in the playlist itself', () => {
  const start = async (hex: string) => {
    const stream = await startStream('hls', { packaging: dashPackaging(), flags: [] });
    const line = `#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,${base64(hex)}",KEYFORMAT="identity"\n`;
    await changePlaylists(stream, (text) =>
      text.replaceAll(/#EXT-X-KEY:.*\n/g, '').replace('#EXTINF', `${line}#EXTINF`),
    );
    return stream;
  };

  test('decrypts, and is not shown', async () => {
    const report = await (await start(CONTENT_KEY)).verify({ keyFiles: [] });
    const codes = { errors: [], warnings: ['content_key_in_address'] };
    expect([statesOf(report), codesOf(report)]).toEqual([['decrypts', 'decrypts'], codes]);
    expect(JSON.stringify(report)).not.toContain(base64(CONTENT_KEY));
  });

  test('is none where it is the key id, which shaka-packager writes there', async () => {
    expectToPlay(await (await start(KEY_ID)).verify());
  });
});

describe('a live playlist', () => {
  test('that has no new segment any more is reported while it is watched', async () => {
    const stream = await startStream('hls');
    await makeLive(stream, (text) => text);
    const memory = new StreamMemory();
    const codes: string[][] = [];
    for (const second of ['00', '09', '11']) {
      const { faults } = await stream.verify({ memory, now: () => at(`12:00:${second}`) });
      codes.push(faults.map(({ code }) => code));
    }
    expect(codes).toEqual([[], [], ['playlist_not_moving']]);
  });

  test('whose encoder was away for an hour moves', async () => {
    const stream = await startStream('hls');
    const later = `#EXT-X-DISCONTINUITY\n${DATED.replace('12:', '13:')}`;
    await makeLive(stream, (text) =>
      text.replace('#EXTINF', `${DATED}#EXTINF`).replace(/(#EXTINF[^#]*)$/, `${later}$1`),
    );
    const report = await stream.verify({ now: () => at('13:00:05') });
    expect([report.faults, report.live]).toEqual([[], true]);
  });
});

describe('a key file of the sidecar that was changed after the newest part of the stream began', () => {
  const DISCONTINUITY = (text: string) => text.replace(/(#EXTINF[^#]*)$/, '#EXT-X-DISCONTINUITY\n$1');
  const SINCE_1970 = (text: string) => text.replace('#EXTINF', '#EXT-X-MEDIA-SEQUENCE:882153000\n#EXTINF');
  const EARLIER = (text: string) => text.replace('#EXTINF', '#EXT-X-DISCONTINUITY-SEQUENCE:1\n#EXTINF');

  test.each([
    ['is named as the likely cause', 5, (text: string) => text, '12:00:00'],
    ['is the same after a discontinuity', 5, DISCONTINUITY, '12:00:04'],
    ['is not, before the discontinuity', 3, DISCONTINUITY, undefined],
    ['is not, where its segments count from 1970', 5, SINCE_1970, undefined],
    ['is not, after a discontinuity of which the time is not known', 5, EARLIER, undefined],
  ])('%s', async (_what, second, change, begun) => {
    const stream = await startStream('hls');
    await makeLive(stream, (text) => change(text).replace('#EXTINF', `${DATED}#EXTINF`));
    const fairplay = { licenseUrl: FAIRPLAY_URL, key: OTHER, iv: FAIRPLAY_IV };
    const keyFile = { name: 'news.key', text: keyFileText({ fairplay }), changed: at(`12:00:0${second}`) };
    const { faults } = await stream.verify({ now: () => at('12:00:10'), keyFiles: [keyFile] });
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
