import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { widevinePsshDataOf } from '../../src/drm/widevine';
import { screenshot } from '../support/chromium';
import { startBrowser } from '../support/dashboard-browser';
import { chainForAll, type TestChannel } from '../support/real-chain';
import { decoded, licensedKeys, messageOf, playerPages, said } from '../support/real-player';
import { type OwnBrowser, testsTogether } from '../support/tests-together';

jest.setTimeout(120_000);

const browser = startBrowser(true);
const chain = chainForAll({ rotate: true });
const CLIP = readFileSync(resolve(__dirname, '../../src/platform/demo/clip.mp4'));

// In neither byte order a UUID of version 4, so that neither is more likely.
const KEY_ID = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
const UUID = '00112233-4455-6677-8899-aabbccddeeff';
const CONTENT_KEY = Buffer.from('0f0e0d0c0b0a09080706050403020100', 'hex').toString('base64');
const FAIRPLAY_KEY = '1a'.repeat(16);
const OTHER_KEY = Buffer.alloc(16, 0x5c).toString('base64');
const FAIRPLAY_URL = 'skd://license.example/news';

const SUPPLIED = {
  cenc: { keyid: KEY_ID.toString('base64'), contentkey: CONTENT_KEY },
  widevine: { psshdata: widevinePsshDataOf(KEY_ID, 'news') },
  fairplay: { key: FAIRPLAY_KEY, iv: '2b'.repeat(16), laurl: FAIRPLAY_URL },
};

/** The license server knows the keys above alone. */
const STREAMS = {
  right: SUPPLIED,
  wrong: { ...SUPPLIED, cenc: { ...SUPPLIED.cenc, contentkey: OTHER_KEY } },
};

const media = new Map<string, string>();

beforeAll(async () => {
  const uploaded = Object.entries(STREAMS).map(async ([name, keys]) => {
    await chain.supply(name, keys);
    media.set(name, await chain.upload(CLIP, name));
  });
  await Promise.all(uploaded);
  await chain.tellLicenseServer(
    { key_id: UUID, content_key: Buffer.from(CONTENT_KEY, 'base64').toString('hex') },
    { fairplay: { license_url: FAIRPLAY_URL, key: FAIRPLAY_KEY } },
  );
}, 60_000);

interface Expected {
  /** The page's text about the picture. */
  readonly said: RegExp;
  /** Its text in place of one. */
  readonly message?: string;
  readonly exitCode: 0 | 1;
  readonly codes: readonly string[];
  readonly states: readonly string[];
}

const PLAYS = { exitCode: 0, codes: [], states: ['decrypts', 'decrypts'] } as const;
const WRONG = {
  said: /^DASH does not play\./,
  message: 'The stream is encrypted with another key than the license has, so it cannot be decoded.',
  exitCode: 1,
  codes: ['content_key_wrong'],
  states: ['garbage', 'garbage'],
} as const;

const EXPECTED: readonly [name: string, format: 'dash' | 'hls', Expected][] = [
  ['right', 'dash', { ...PLAYS, said: new RegExp(`^DASH, decrypted with ClearKey, key id ${UUID}\\.$`) }],
  ['right', 'hls', { ...PLAYS, said: /^HLS, decrypted with ClearKey, key id e00cc4a0-/ }],
  ['wrong', 'dash', WRONG],
];

async function isReported(own: OwnBrowser, name: string, format: 'dash' | 'hls', expected: Expected) {
  const id = media.get(name) ?? '';
  const page = await playerPages(own, chain).open(`/embed/media.html?mediaId=${id}&format=${format}`);
  await chain.until(
    'the page to say it',
    async () => expected.said.test(await said(page)),
    () => name,
  );
  if (expected.message === undefined) {
    await chain.until('pictures', async () => (await decoded(page)).frames > 25);
  } else {
    expect(await messageOf(page)).toContain(expected.message);
    expect(await decoded(page)).toMatchObject({ frames: 0 });
  }
  await screenshot(page, `chain-pictures/keys-${name}-${format}`);
  const url = `${chain.url('emulator')}/manifests/${id}.${format === 'dash' ? 'mpd' : 'm3u8'}`;
  const { exitCode, codes, report } = await chain.verify(url, chain.keyFilePath('right'));
  const states = report.renditions.map(({ judgement }) => judgement?.state);
  const { said: _said, message: _message, ...verdict } = expected;
  expect({ exitCode, codes: [...new Set(codes)], states }).toEqual(verdict);
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
      `a stream with ${name} keys in ${format} is reported by the player and by verify`,
      (own: OwnBrowser) => isReported(own, name, format, expected),
    ]),
  ),
});
