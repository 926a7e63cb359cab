import { commonKeys, QUALITY, qualityFields, qualityOf, readLimits } from '../../src/drm/quality';
import type { SmilStream } from '../../src/drm/smil';

function stream(of: Partial<SmilStream>): SmilStream {
  return { name: 'a', kind: 'video', lines: undefined, bitrate: undefined, ...of };
}

test.each<[lines: number, quality: string]>([
  [576, 'SD'],
  [577, 'HD'],
  [1080, 'HD'],
  [1081, 'UHD'],
])('a picture of %d lines is %s', (lines, value) => {
  expect(qualityOf(stream({ lines }), {})).toEqual({ ok: true, value });
});

const limits = { heights: { HIGH: 2000, LOW: 480 }, bitrates: { SD: 1_000_000, HD: 5_000_000 } };

test.each<[what: string, of: Partial<SmilStream>, quality: string]>([
  ['by limits that are given, in any order', { lines: 480 }, 'LOW'],
  ['by the next of them', { lines: 481 }, 'HIGH'],
  ['without a picture, as sound', { kind: 'audio', bitrate: 9_000_000 }, 'AUDIO'],
  ['without a height, by its bit rate', { bitrate: 1_000_001 }, 'HD'],
  ['with a height, whatever its bit rate', { lines: 400, bitrate: 1_000_001 }, 'LOW'],
])('a stream has a quality %s', (_what, of, value) => {
  expect(qualityOf(stream(of), limits)).toEqual({ ok: true, value });
});

test.each<[of: Partial<SmilStream>, bitrates: object | undefined, sentence: string]>([
  [{ lines: 5000 }, undefined, 'the stream has 5000 lines, more than heights allows for any quality'],
  [{ bitrate: 9 }, { SD: 8 }, 'the stream has 9 bits per second, more than bitrates allows for any quality'],
  [
    { bitrate: 9 },
    undefined,
    'the stream has no height in the SMIL document; add it there, or give members with their quality',
  ],
  [
    {},
    { SD: 8 },
    'the stream has neither height nor bit rate in the SMIL document; add it there, or give members with their quality',
  ],
])('a quality that cannot be determined is a fault: %j', (of, bitrates, sentence) => {
  const given = { ...(bitrates && { bitrates: bitrates as Record<string, number> }) };
  const problem = { code: 'no_quality', description: sentence };
  expect(qualityOf(stream(of), given)).toEqual({ ok: false, problem });
});

const LIMITS = {
  code: 'wrong_value',
  description: 'must be the maximum of each quality, such as {"SD": 576, "HD": 1080}',
};
const twenty = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`Q${index}`, index + 1]));

test.each<[value: unknown]>([
  [[1]],
  [{}],
  [{ SD: 0 }],
  [{ SD: 1.5 }],
  [{ 'S D': 576 }],
  [{ SD: 576, HD: null }],
  [{ ...twenty, MORE: 1 }],
])('limits are whole numbers by the names of qualities: not %j', (value) => {
  expect(readLimits(value)).toEqual({ ok: false, problem: LIMITS });
});

test('takes limits as they are', () => {
  for (const value of [{ SD: 576, HD: 1080 }, twenty]) expect(readLimits(value)).toEqual({ ok: true, value });
});

test('a quality has 1 to 20 letters, digits, underscores and hyphens, and begins with a letter or digit', () => {
  const takes = (text: string) => QUALITY.pattern.test(text);
  expect(['SD', '4K', 'a_b-c', 'a'.repeat(20)].filter(takes)).toHaveLength(4);
  expect(['', '-SD', '_SD', 'S D', 'SD ', 'a'.repeat(21)].filter(takes)).toEqual([]);
});

test('names the common fields that would give all qualities one key', () => {
  const fairplay = { key: 'k', iv: 'i', laurl: 'skd://a' };
  expect(commonKeys({ cenc: {}, keyfile: 'x', fairplay, widevine: {}, contentId: 'a' })).toEqual([
    'cenc',
    'keyfile',
    'fairplay.key',
    'fairplay.iv',
  ]);
  expect(commonKeys({ cenc: null, fairplay: { laurl: 'skd://a', key: null } })).toEqual([]);
  expect(commonKeys({ fairplay: 'x' })).toEqual([]);
  expect(commonKeys({ cpix: '<CPIX/>', kid: 'k', track: 'HD' })).toEqual(['kid', 'track']);
  expect(commonKeys({ cpix: '<CPIX/>', period: '1', systems: ['widevine'], kid: null })).toEqual([]);
});

describe('the fields of a quality', () => {
  const common = {
    contentId: 'show',
    client: 'c',
    playready: { laurl: 'https://l.example/' },
    widevine: { psshdata: 'w' },
    fairplay: { laurl: 'skd://a' },
  };

  test('get the common content id with the quality behind it, where the provider makes the keys', () => {
    expect(qualityFields('HD', {}, common)).toEqual({ ...common, contentId: 'show-hd' });
    expect(qualityFields('HD', { contentId: 'own' }, common)).toEqual({ ...common, contentId: 'own' });
    expect(qualityFields('HD', {}, { client: 'c' })).toEqual({ client: 'c' });
  });

  test('choose of a common CPIX document the track of the quality, unless they choose by themselves', () => {
    const document = { cpix: '<CPIX/>', period: '1', contentId: 'show', playready: { laurl: 'https://l/' } };
    expect(qualityFields('HD', {}, document)).toEqual({ ...document, track: 'HD' });
    expect(qualityFields('HD', { track: 'UHD1' }, document)).toEqual({ ...document, track: 'UHD1' });
    expect(qualityFields('HD', { kid: 'k' }, document)).toEqual({ ...document, kid: 'k' });
    expect(qualityFields('HD', { cpix: '<c:CPIX/>' }, document)).toEqual({ ...document, cpix: '<c:CPIX/>' });
    const cenc = { keyid: 'i', contentkey: 'k' };
    const { contentId, playready } = document;
    expect(qualityFields('AUDIO', { cenc }, document)).toEqual({ contentId, playready, cenc });
  });

  test('keep of the common parts those that its keys are for', () => {
    const { contentId, client, playready, widevine, fairplay } = common;
    const cenc = { keyid: 'i', contentkey: 'k' };
    expect(qualityFields('HD', { cenc }, common)).toEqual({ contentId, client, playready, widevine, cenc });
    expect(qualityFields('HD', { fairplay: { key: 'k' } }, common)).toEqual({
      contentId,
      client,
      fairplay: { ...fairplay, key: 'k' },
    });
  });

  test('count more than the common ones', () => {
    const cenc = { keyid: 'i', contentkey: 'k' };
    const own = { cenc, playready: { laurl: 'https://own.example/' }, widevine: null };
    expect(qualityFields('HD', own, common)).toMatchObject({
      playready: { laurl: 'https://own.example/' },
      widevine: null,
    });
  });
});
