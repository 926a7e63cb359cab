import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { swapKeyIdOrder } from '../../src/drm/bytes';
import { widevinePsshDataOf } from '../../src/drm/widevine';
import { screenshot } from '../support/chromium';
import { startBrowser } from '../support/dashboard-browser';
import { chainForAll, type TestChannel } from '../support/real-chain';
import { decoded, licensedKeys, playerPages, said, told } from '../support/real-player';
import { type OwnBrowser, testsTogether } from '../support/tests-together';

jest.setTimeout(120_000);

const browser = startBrowser(true);
const chain = chainForAll({ rotate: true });
const CLIP = readFileSync(resolve(__dirname, '../../src/platform/demo/clip.mp4'));

// In neither byte order a UUID of version 4, so that nobody can suspect one of the two.
const KEY_ID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
const UUID = '00112233-4455-6677-8899-aabbccddeeff';
const SWAPPED_UUID = '33221100-5544-7766-8899-aabbccddeeff';
const CONTENT_KEY = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex');
const FAIRPLAY_KEY = '1a'.repeat(16);
const OTHER_KEY = '5c'.repeat(16);
const FAIRPLAY_URL = 'skd://license.example/news';

interface Keys {
  readonly keyId?: Buffer;
  readonly contentKey?: Buffer;
  readonly fairPlayKey?: string;
  readonly fairPlayUrl?: string;
}

/** The body of a request for a key file. */
function bodyOf({
  keyId = KEY_ID,
  contentKey = CONTENT_KEY,
  fairPlayKey: key = FAIRPLAY_KEY,
  fairPlayUrl: laurl = FAIRPLAY_URL,
}: Keys) {
  return {
    cenc: { keyid: keyId.toString('base64'), contentkey: contentKey.toString('base64') },
    widevine: { psshdata: widevinePsshDataOf(keyId, 'news') },
    fairplay: { key, iv: '2b'.repeat(16), laurl },
  };
}

/** What is packaged with, or undefined for nothing; the license server knows the keys above alone. */
const STREAMS: Readonly<Record<string, Keys | undefined>> = {
  right: {},
  wrong: { contentKey: Buffer.from(OTHER_KEY, 'hex'), fairPlayKey: OTHER_KEY },
  swapped: { keyId: swapKeyIdOrder(KEY_ID), fairPlayUrl: 'skd://license.example/other' },
  clear: undefined,
};

const media = new Map<string, string>();

beforeAll(async () => {
  const uploaded = Object.entries(STREAMS).map(async ([name, keys]) => {
    if (keys) await chain.supply(name, bodyOf(keys));
    media.set(name, await chain.upload(CLIP, keys && name));
  });
  await Promise.all(uploaded);
  await chain.tellLicenseServer(
    { key_id: UUID, content_key: CONTENT_KEY.toString('hex') },
    { fairplay: { license_url: FAIRPLAY_URL, key: FAIRPLAY_KEY } },
  );
}, 60_000);

const WRONG_KEY = 'The stream is encrypted with another key than the license has, so it cannot be decoded.';

interface Expected {
  /** What the page says in place of the picture. */
  readonly told?: RegExp;
  /** What it says of the picture. */
  readonly said: RegExp;
  readonly exitCode: 0 | 1;
  readonly codes: readonly string[];
  readonly states: readonly string[];
}

const PLAYS = { exitCode: 0, codes: [], states: ['decrypts', 'decrypts'] } as const;

const EXPECTED: readonly [name: string, format: 'dash' | 'hls', Expected][] = [
  ['right', 'dash', { ...PLAYS, said: new RegExp(`^DASH, decrypted with ClearKey, key id ${UUID}\\.$`) }],
  ['right', 'hls', { ...PLAYS, said: /^HLS, decrypted with ClearKey, key id e00cc4a0-/ }],
  [
    'wrong',
    'dash',
    {
      said: /^DASH does not play\./,
      told: new RegExp(WRONG_KEY),
      exitCode: 1,
      codes: ['content_key_wrong'],
      states: ['garbage', 'garbage'],
    },
  ],
  [
    'wrong',
    'hls',
    {
      said: /^HLS does not play\./,
      told: new RegExp(WRONG_KEY),
      exitCode: 1,
      codes: ['content_key_wrong'],
      states: ['garbage', 'garbage'],
    },
  ],
  [
    'swapped',
    'dash',
    {
      said: /^DASH does not play\./,
      told: new RegExp(`There is no license for the key id ${SWAPPED_UUID}`),
      exitCode: 1,
      codes: ['key_id_byte_order'],
      states: ['no_key', 'no_key'],
    },
  ],
  [
    'swapped',
    'hls',
    {
      said: /^HLS does not play\./,
      told: /There is no license for the key id \w{8}-/,
      exitCode: 1,
      codes: ['license_address_differs'],
      states: ['decrypts', 'decrypts'],
    },
  ],
  [
    'clear',
    'dash',
    { said: /^DASH, not encrypted\.$/, exitCode: 1, codes: ['not_protected'], states: ['clear', 'clear'] },
  ],
  [
    'clear',
    'hls',
    { said: /^HLS, not encrypted\.$/, exitCode: 1, codes: ['not_protected'], states: ['clear', 'clear'] },
  ],
];

async function isTold(own: OwnBrowser, name: string, format: 'dash' | 'hls', expected: Expected) {
  const id = media.get(name) ?? '';
  const page = await playerPages(own, chain).open(`/embed/media.html?mediaId=${id}&format=${format}`);
  await chain.until(
    'the page to say it',
    async () => expected.said.test(await said(page)),
    () => name,
  );
  if (expected.told) {
    expect(await told(page)).toMatch(expected.told);
    expect(await decoded(page)).toMatchObject({ frames: 0 });
  } else {
    await chain.until('pictures', async () => (await decoded(page)).frames > 25);
  }
  await screenshot(page, `chain-pictures/keys-${name}-${format}`);
  const url = `${chain.url('emulator')}/manifests/${id}.${format === 'dash' ? 'mpd' : 'm3u8'}`;
  const { exitCode, codes, report } = await chain.verify(url, chain.keyFilePath('right'));
  const states = report.renditions.map(({ judgement }) => judgement?.state);
  expect({ exitCode, codes: [...new Set(codes)], states }).toEqual({
    exitCode: expected.exitCode,
    codes: expected.codes,
    states: expected.states,
  });
}

/** In the embed, with the player that was there before the first change. */
async function playsOn(own: OwnBrowser, format: 'dash' | 'hls', { id }: TestChannel) {
  const page = await playerPages(own, chain).channelPage(id, format);
  const licensed = licensedKeys(page);
  const untilFrames = (count: number) =>
    chain.until(`${count} frames`, async () => (await decoded(page)).frames > count);
  await untilFrames(5);
  await page.evaluate("document.querySelector('video').dataset.isFirst = 'true'");
  // On a busy machine, two changes may come before one key frame.
  await chain.until('the licenses of three keys', () => licensed.size > 2);
  await untilFrames((await decoded(page)).frames + 90);
  expect(await page.evaluate("document.querySelector('video').dataset.isFirst")).toBe('true');
}

testsTogether(browser, {
  async 'viewers of DASH and HLS play on while the command line changes the key of a channel three times'(
    own,
  ) {
    const channel = await chain.channel({ title: 'Rotating' });
    await chain.provision(channel.id);
    chain.encoder(channel);
    const event = await chain.event(channel);
    await chain.untilPackaged(event, ({ state }) => state === 'running');
    const viewers = (['dash', 'hls'] as const).map((format) => playsOn(own, format, channel));
    await Promise.all([chain.rotate(channel.id, 3, 3), ...viewers]);
  },
  ...Object.fromEntries(
    EXPECTED.map(([name, format, expected]) => [
      `a stream with ${name} keys in ${format} is told by the player and by verify`,
      (own: OwnBrowser) => isTold(own, name, format, expected),
    ]),
  ),
});
