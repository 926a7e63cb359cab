import fc from 'fast-check';
import { formatUuid, swapKeyIdOrder } from '../../../src/drm/bytes';
import { compareInputs, withoutAnswered } from '../../../src/drm/check/compare';
import { type KeyFile, keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { buildPsshBox, COMMON_SYSTEM_ID } from '../../../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { POST_MANUAL } from '../../support/post-manual';
import { processorMs } from '../../support/processor-time';
import { keyFileOf } from '../../vectors/drm-vectors';
import { packagedManifest, packagedMedia } from '../../vectors/packaged-media';
import { checkAll, codes, expectHidden, type Inputs, KEY_ID, said, UUID, withKeyId } from './checked';

const CONTENT_KEY = Buffer.from(POST_MANUAL.cenc.contentkey, 'base64');

/** Without a checksum, which would show that the two are exchanged. */
function keyFile(keyId: Buffer, contentKey: Buffer, more: Partial<KeyFile> = {}): string {
  const { playready: _, ...rest } = keyFileOf(POST_MANUAL);
  const cenc = { keyId: keyId.toString('base64'), contentKey: contentKey.toString('base64') };
  return renderKeyFile(keyFileLines({ ...rest, ...more, cenc }));
}

/** Media and manifest whose samples and boxes have another key id. */
function packagedAs(keyId: Buffer): Inputs {
  const mpd = `<MPD xmlns:cenc="urn:mpeg:cenc:2013"><ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011"
    value="cenc" cenc:default_KID="${formatUuid(keyId)}"/></MPD>`;
  return { 'init.mp4': withKeyId(packagedMedia('cenc/v.mp4'), keyId), 'stream.mpd': mpd };
}

/** Key files of keys of their own. */
function numbered(count: number, more: Partial<KeyFile> = {}): Inputs {
  const bytes = Array.from({ length: count }, (_, index) => index + 1);
  const ofByte = (byte: number) => keyFile(Buffer.alloc(16, byte), Buffer.alloc(16, byte + 9), more);
  return Object.fromEntries(bytes.map((byte) => [`${byte}.key`, ofByte(byte)]));
}

/** All that is shown of inputs that are checked together, as a command shows it. */
function shown(inputs: Inputs, reveal = false): string {
  const found = withoutAnswered(checkAll(inputs, reveal));
  const results = found.map(({ name, result }) => ({ name, ...result }));
  return JSON.stringify({ inputs: results, comparison: compareInputs(found, { reveal }) });
}

const ZEROS = Buffer.alloc(16);
const EXCHANGED = { 'news.key': keyFile(CONTENT_KEY, KEY_ID) };
const RIGHT = { 'news.key': keyFile(KEY_ID, CONTENT_KEY) };
const CENC = { 'init.mp4': packagedMedia('cenc/v.mp4'), 'stream.mpd': packagedManifest('cenc/s.mpd') };

const ASK = 'ask the license server which of the two is the key id, then ';
const SWAP = 'swap the two in news.key, and use a new key if a stream has used them swapped';
const renew = (name: string) => `package again with a new key, because anyone can read this one in ${name}`;
/** The finding for media and manifest, each. */
const ofBoth = (rest: (name: string) => string) =>
  ['init.mp4', 'stream.mpd'].map(
    (name) =>
      `E key_and_key_id_swapped: The key id of ${name} is the content key of news.key, so key and key id are ` +
      `swapped${rest(name)}.`,
  );
const inOneOfThem = ofBoth((name) => ` in one of them; ${ASK}${SWAP}, or ${renew(name)}`);
const RANDOM = Buffer.from('0e58f5d746844199a9b1438646ef4775', 'hex');
const { playready } = keyFileOf(POST_MANUAL);
const SHOWS_SO = { 'news.key': keyFile(CONTENT_KEY, KEY_ID, playready && { playready }) };

it.each<[what: string, inputs: Inputs, sentences: string[]]>([
  ['the key file, or what was packaged', { ...EXCHANGED, ...CENC }, inOneOfThem],
  ['the key file, which shows so by itself', { ...SHOWS_SO, ...CENC }, ofBoth(() => ` in news.key; ${SWAP}`)],
  [
    'the key file, most likely, whose key id is no random UUID',
    { 'news.key': keyFile(CONTENT_KEY, RANDOM), ...packagedAs(RANDOM) },
    ofBoth(() => `, most likely in news.key; ${ASK}${SWAP}`),
  ],
  [
    'media and manifest, most likely, whose key id is none',
    { 'news.key': keyFile(RANDOM, CONTENT_KEY), ...packagedAs(CONTENT_KEY) },
    ofBoth((name) => `, most likely in ${name}; ${ASK}${renew(name)}`),
  ],
  [
    'one of two key files, once for each that may be wrong',
    { 'a.key': RIGHT['news.key'], 'b.key': RIGHT['news.key'], 'c.key': EXCHANGED['news.key'] },
    [
      'E key_and_key_id_swapped: The key id of c.key is the content key of a.key, so key and key id are ' +
        `swapped in one of them; ${ASK}swap the two in a.key, and use a new key if a stream has used them swapped, or swap ` +
        'them in c.key.',
    ],
  ],
])('key and key id are reported as exchanged in %s', (_what, inputs, sentences) => {
  expect(said(inputs)).toEqual(sentences);
});

it.each<[what: string, inputs: Inputs, times?: number]>([
  ['in the other byte order', { ...RIGHT, ...packagedAs(swapKeyIdOrder(CONTENT_KEY)) }, 2],
  ['in boxes', { ...RIGHT, 'box.bin': buildPsshBox(COMMON_SYSTEM_ID, Buffer.alloc(0), [CONTENT_KEY]) }, 1],
  ['not of a key that is its own id', { 'news.key': keyFile(KEY_ID, KEY_ID), ...CENC }],
  ['not of placeholders', { 'news.key': keyFile(KEY_ID, ZEROS), ...packagedAs(ZEROS) }],
])('key and key id are reported as exchanged, %s', (_what, inputs, times = 0) => {
  expect(codes(inputs).filter((code) => code === 'E key_and_key_id_swapped')).toHaveLength(times);
});

describe('of a comparison, a content key is hidden', () => {
  it('in the place of the key id of a key file that shows nothing by itself', () => {
    const inputs = { ...EXCHANGED, ...CENC };
    expect(shown({ ...EXCHANGED })).toContain(formatUuid(CONTENT_KEY));
    expectHidden(CONTENT_KEY, shown(inputs));
    expectHidden(KEY_ID, shown(inputs));
    expect(shown(inputs, true)).toContain(formatUuid(CONTENT_KEY));
  });

  it.each<[where: string, inputs: Inputs]>([
    ['the media and manifest that have it as their key id', { ...RIGHT, ...packagedAs(CONTENT_KEY) }],
    ['those with the other byte order', { ...RIGHT, ...packagedAs(swapKeyIdOrder(CONTENT_KEY)) }],
    ['a key file of the same folder', { 'a.key': RIGHT['news.key'], 'b.key': EXCHANGED['news.key'] }],
    ['a value by itself', { ...EXCHANGED, 'the value': UUID }],
    [
      'media next to key files that are counted, not named',
      { ...RIGHT, ...numbered(3), ...packagedAs(CONTENT_KEY) },
    ],
  ])('in %s', (_where, inputs) => {
    expectHidden(CONTENT_KEY, shown(inputs));
  });

  it('but not a placeholder', () => {
    const inputs = { 'news.key': keyFile(KEY_ID, ZEROS), ...packagedAs(ZEROS) };
    expect(shown(inputs)).toContain(formatUuid(ZEROS));
  });

  it('from the sentences alone, too, whose inputs are shown elsewhere', () => {
    const other = Buffer.alloc(16, 7);
    const inputs = { ...EXCHANGED, ...CENC, 'other.mpd': packagedAs(other)['stream.mpd'] ?? '' };
    const text = JSON.stringify(compareInputs(checkAll(inputs)));
    expect(text).toContain('********');
    expectHidden(CONTENT_KEY, text);
  });

  it('in an address of key files that are counted, not named', () => {
    const playready = { licenseUrl: 'https://a.example/?token=abcdefgh12345678', checksum: 'AAAAAAAAAAA=' };
    const header = `<WRMHEADER version="4.0.0.0"><DATA><LA_URL>https://b.example/</LA_URL></DATA></WRMHEADER>`;
    const text = shown({ ...numbered(4, { playready }), 'header.xml': header });
    expect(text).toContain('license_address_differs');
    expect(text).not.toContain('abcdefgh12345678');
  });

  it('in a content id, next to key files that are counted', () => {
    const data = buildWidevinePsshData({ keyIds: [], contentId: Buffer.from(CONTENT_KEY.toString('hex')) });
    const box = buildPsshBox(WIDEVINE_SYSTEM_ID, data);
    const text = JSON.stringify(compareInputs(checkAll({ ...RIGHT, ...numbered(3), 'box.bin': box })));
    expect(text).toContain('names content id ********');
    expectHidden(CONTENT_KEY, text);
  });

  it('however many keys there are', () => {
    const keys = Array.from({ length: 120 }, (_, index) => Buffer.alloc(16, index + 1).fill(0x5a, 0, 4));
    const keyFiles = Object.fromEntries(
      keys.map((key, index) => [`${index}.key`, keyFile(Buffer.alloc(16, 0xf0).fill(index, 8), key)]),
    );
    const elements = keys.map((key) => `<ContentProtection cenc:default_KID="${formatUuid(key)}"/>`);
    const text = shown({ ...keyFiles, 'stream.mpd': `<MPD>${elements.join('')}</MPD>` });
    for (const key of keys) expectHidden(key, text);
  });

  it('in every form and place of every other input', () => {
    const key = fc
      .uint8Array({ minLength: 16, maxLength: 16 })
      .map((value) => Buffer.from(value))
      .filter((value) => new Set(value).size > 8);
    const forms: readonly ((secret: Buffer) => string)[] = [
      (secret) => secret.toString('base64'),
      (secret) => secret.toString('base64url'),
      (secret) => secret.toString('hex').toUpperCase(),
      formatUuid,
      (secret) => encodeURIComponent(secret.toString('base64').replace(/=+$/, '')),
    ];
    const places: readonly ((text: string) => string)[] = [
      (text) => `https://a.example/${text}/x`,
      // A letter whose lower case is longer.
      (text) => `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${'İ'.repeat(40)}/${text}/x`,
      (text) => `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://${text}",KEYFORMAT="com.apple.streamingkeydelivery"`,
      (text) =>
        keyFile(KEY_ID, Buffer.alloc(16, 5), { fairplay: { ...FAIRPLAY, licenseUrl: `skd://${text}` } }),
      (text) => text,
    ];
    fc.assert(
      fc.property(key, (secret) => {
        const texts = forms.flatMap((write) => [write(secret), write(swapKeyIdOrder(secret))]);
        for (const other of places.flatMap((place) => texts.map(place)))
          expectHidden(secret, shown({ 'a.key': keyFile(Buffer.alloc(16, 7), secret), other }));
      }),
      // Every form in every place each time.
      { numRuns: 4 },
    );
  });
});

const FAIRPLAY = { key: 'CBF76BB43B9A54254A5FC20074A3A53B', iv: '1A3F2AA76D84742DD123E3E50E7BC681' };

it('a folder of hundreds of key files is compared in little time', async () => {
  const number = (index: number, byte: number) => {
    const bytes = Buffer.alloc(16, byte);
    bytes.writeUInt32BE(index, 4);
    return bytes;
  };
  const inputs = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [
      `${index}.key`,
      keyFile(number(index, 0xa1), number(index, 0xb2)),
    ]),
  );
  const checked = checkAll(inputs);
  const took = await processorMs(() =>
    expect(compareInputs(withoutAnswered(checked))).toEqual({ compared: [], faults: [] }),
  );
  expect(took).toBeLessThan(1000);
});
