import { join } from 'node:path';
import fs from 'fs-extra';
import { readManifest, readStreamIds } from '../../../src/cli/manifest/read-manifest';
import { temporaryFolder } from '../../support/after-test';
import { CENC_ONLY } from '../../support/post-manual';
import { cli } from '../../support/run-cli';
import { API_KEY, startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { problemsOf } from '../problems-of';

const SD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAQ==', contentkey: 'EREREREREREREREREREREQ==' };
const HD = CENC_ONLY.cenc;
const ALL = { variable: () => true, file: () => true };
const ACME = { client: 'acme', clientApiKey: 'acme-key' };

let cwd: string;

beforeEach(async () => {
  cwd = await temporaryFolder();
});

async function read(name: string, text: string, given: object = ACME) {
  await fs.writeFile(join(cwd, name), text);
  return readManifest({ cwd, env: {} }, name, { given, allowed: ALL });
}

const faults = (text: string) => problemsOf(() => read('manifest.yaml', text));

const MEMBERS =
  'members: [{ streamid: n_360, quality: SD }, { streamid: n_480, quality: SD }, { streamid: n_1080, quality: HD }]';
const NAMED = [
  { streamid: 'n_360', quality: 'SD' },
  { streamid: 'n_480', quality: 'SD' },
  { streamid: 'n_1080', quality: 'HD' },
];

test.each([
  ['manifest.yaml', `groups:\n  - { ${MEMBERS}, folder: live/, keys: quality, contentId: news }\n`],
  ['manifest.csv', 'members;folder;keys;contentId\nn_360:SD n_480:SD n_1080:HD;live;quality;news\n'],
  ['quoted.csv', 'members,folder,keys,contentId\n"n_360:SD, n_480:SD, n_1080:HD",live,quality,news\n'],
])('a group with keys by quality of %s is one entry of a batch', async (name, text) => {
  expect(await read(name, text)).toEqual([
    {
      kind: 'groups',
      name: 'the group of n_360',
      line: 2,
      streamIds: ['live/n_360', 'live/n_480', 'live/n_1080'],
      body: { members: NAMED, folder: 'live', keys: 'quality', ...ACME, contentId: 'news' },
    },
  ]);
  expect(readStreamIds({ cwd }, name)).toEqual(['live/n_360', 'live/n_480', 'live/n_1080']);
});

test('each quality has its own keys with the fields of the group and of the defaults', async () => {
  const text = `\
defaults:
  playready: { laurl: "https://pr.example.com/{contentId}" }
  widevine: {}
groups:
  - ${MEMBERS}
    contentId: news
    keys:
      SD: { cenc: { keyid: ${SD.keyid}, contentkey: ${SD.contentkey} }, widevine: null }
      HD: { cenc: { keyid: ${HD.keyid}, contentkey: ${HD.contentkey} }, contentId: high, cmaf: cenc }
      UHD: {}
`;
  const [item] = await read('manifest.yaml', text);
  expect(item?.body).toEqual({
    members: NAMED,
    keys: {
      SD: { contentId: 'news', cenc: SD, playready: { laurl: 'https://pr.example.com/news' } },
      HD: {
        contentId: 'high',
        cmaf: 'cenc',
        cenc: HD,
        playready: { laurl: 'https://pr.example.com/high' },
        widevine: {},
      },
      UHD: { ...ACME, contentId: 'news-uhd' },
    },
  });
});

test('a SMIL document is sent as it is, with the limits of the qualities as numbers', async () => {
  const smil = '<smil><body><switch><video src="mp4:a.mp4" height="360"/></switch></body></smil>';
  await fs.writeFile(join(cwd, 'show.smil'), smil);
  const text =
    'groups: [{ smil: show.smil, keys: quality, contentId: s, heights: { SD: 720 }, bitrates: { SD: 1000 } }]';
  const [item] = await read('manifest.yaml', text);
  expect(item).toMatchObject({
    streamIds: ['a.mp4'],
    body: { smil, keys: 'quality', contentId: 's', heights: { SD: 720 }, bitrates: { SD: 1000 } },
  });
});

test.each<[what: string, text: string, expected: string]>([
  [
    'a misspelt field of a quality',
    'keys: { SD: { contentid: x }, HD: {} }',
    'keys.SD: contentid is not a field; did you mean contentId?',
  ],
  [
    'a wrong value of a quality',
    `keys: { SD: { cenc: { keyid: ${SD.keyid}, contentkey: short } }, HD: {} }`,
    'cenc.contentkey is not complete base64: its length is not a multiple of 4; look for missing padding (=).',
  ],
])('a manifest with %s is refused before anything is sent', async (_what, text, expected) => {
  const found = await faults(`groups:\n  - { ${MEMBERS}, contentId: news, ${text} }\n`);
  expect(found).toEqual([`manifest.yaml:2: ${expected}`]);
});

test('a content id that is missing, or that is for single streams, is reported', async () => {
  const missing =
    'the group of n_360: contentId missing; give it here or in defaults, or supply the keys with cenc, fairplay, aes or cpix.';
  const [one] = await faults(`groups:\n  - { ${MEMBERS}, keys: quality }\n`);
  const perStream = `groups:\n  - { ${MEMBERS}, keys: quality }\ndefaults: { contentId: "{streamid}" }\n`;
  const [other] = await faults(perStream);
  expect([one, other]).toEqual([`manifest.yaml:2: ${missing}`, `manifest.yaml:2: ${missing}`]);
});

describe('apply', () => {
  let sidecar: TestSidecar;

  beforeEach(async () => {
    sidecar = await startSidecar();
  });

  async function apply(text: string) {
    await fs.writeFile(join(cwd, 'manifest.yaml'), text);
    const env = { PACKAGERDRM_URL: sidecar.url, PACKAGERDRM_APIKEY: API_KEY };
    return cli(['apply', 'manifest.yaml', '--yes'], { cwd, env });
  }

  const keysOf = (hd: typeof SD) =>
    `{ SD: { cenc: { keyid: ${SD.keyid}, contentkey: ${SD.contentkey} } }, HD: { cenc: { keyid: ${hd.keyid}, contentkey: ${hd.contentkey} } } }`;

  test('writes each quality with its key', async () => {
    const { code, stderr } = await apply(`groups:\n  - { ${MEMBERS}, keys: ${keysOf(HD)} }\n`);
    expect([code, stderr]).toEqual([0, 'manifest.yaml: 3 created.\n']);
    const files = Object.entries(await sidecar.files());
    expect(files.map(([name, file]) => [name, file.includes(SD.contentkey)])).toEqual([
      ['n_1080.key', false],
      ['n_360.key', true],
      ['n_480.key', true],
    ]);
  });

  test('writes nothing, even with --yes, when two qualities of a group have one key', async () => {
    const { code, stderr } = await apply(
      `streams: [{ streamid: x, cenc: { keyid: ${HD.keyid}, contentkey: ${HD.contentkey} } }]\ngroups:\n  - { ${MEMBERS}, keys: ${keysOf(SD)} }\n`,
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: manifest\.yaml:3: n_1080: HD has the same key id as SD/);
    expect(await sidecar.files()).toEqual({});
  });
});
