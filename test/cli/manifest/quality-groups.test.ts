import { join } from 'node:path';
import fs from 'fs-extra';
import { readManifest, readStreamIds } from '../../../src/cli/manifest/read-manifest';
import { folderOfEachTest } from '../../support/after-test';
import { CENC_ONLY } from '../../support/post-manual';
import { cli } from '../../support/run-cli';
import { API_KEY, startSidecar } from '../../support/start-sidecar';
import { problemsOf } from '../problems-of';

const SD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAQ==', contentkey: 'EREREREREREREREREREREQ==' };
const HD = CENC_ONLY.cenc;
const ALL = { variable: () => true, file: () => true };
const ACME = { client: 'acme', clientApiKey: 'acme-key' };

const cwd = folderOfEachTest();

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

test('a misspelt field, and a wrong value, of a quality are reported', async () => {
  const faultsOf = (sd: string) =>
    faults(`groups:\n  - { ${MEMBERS}, contentId: news, keys: { SD: ${sd}, HD: {} } }\n`);
  expect(await faultsOf('{ contentid: x }')).toEqual([
    'manifest.yaml:2: keys.SD: contentid is not a field; did you mean contentId?',
  ]);
  expect(await faultsOf(`{ cenc: { keyid: ${SD.keyid}, contentkey: short } }`)).toEqual([
    expect.stringMatching(/^manifest\.yaml:2: cenc\.contentkey is not complete base64/),
  ]);
});

test('a content id that is missing, or that is for single streams, is reported', async () => {
  const missing =
    'manifest.yaml:2: the group of n_360: contentId missing; give it here or in defaults, or supply the keys with cenc, fairplay, aes or cpix.';
  for (const more of ['', 'defaults: { contentId: "{streamid}" }\n'])
    expect(await faults(`groups:\n  - { ${MEMBERS}, keys: quality }\n${more}`)).toEqual([missing]);
});

test('apply writes nothing, even with --yes, when two qualities of a group have one key', async () => {
  const sidecar = await startSidecar();
  const keys = `{ SD: { cenc: { keyid: ${SD.keyid}, contentkey: ${SD.contentkey} } }, HD: { cenc: { keyid: ${SD.keyid}, contentkey: ${SD.contentkey} } } }`;
  const text = `streams: [{ streamid: x, cenc: { keyid: ${HD.keyid}, contentkey: ${HD.contentkey} } }]\ngroups:\n  - { ${MEMBERS}, keys: ${keys} }\n`;
  await fs.writeFile(join(cwd, 'manifest.yaml'), text);
  const argv = ['apply', 'manifest.yaml', '--yes', '--url', sidecar.url, '--key', API_KEY];
  const { code, stderr } = await cli(argv, { cwd });
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error: manifest\.yaml:3: n_1080: HD has the same key id as SD/);
  expect(await sidecar.files()).toEqual({});
});
