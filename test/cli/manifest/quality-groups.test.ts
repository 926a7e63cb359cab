import { join } from 'node:path';
import fs from 'fs-extra';
import { CliError } from '../../../src/cli/cli-error';
import { readManifest, readStreamIds } from '../../../src/cli/manifest/read-manifest';
import { CENC_ONLY } from '../../support/post-manual';
import { cli } from '../../support/run-cli';
import { API_KEY, startSidecar, temporaryFolder } from '../../support/start-sidecar';

const SD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAQ==', contentkey: 'EREREREREREREREREREREQ==' };
const HD = CENC_ONLY.cenc;
const ALL = { variable: () => true, file: () => true };
const ACME = { client: 'acme', clientApiKey: 'acme-key' };
const GIVEN = { ...ACME };

let cwd: string;

beforeEach(async () => {
  cwd = await temporaryFolder();
});

async function read(name: string, text: string, given: object = GIVEN) {
  await fs.writeFile(join(cwd, name), text);
  const items = readManifest({ cwd, env: {} }, name, { given, allowed: ALL });
  const streams = items.filter(({ kind }) => kind === 'streams').map(({ body }) => body);
  return { streams, groups: items.filter(({ kind }) => kind === 'groups') };
}

async function bodies(name: string, text: string, given: object = GIVEN) {
  return (await read(name, text, given)).groups.map(({ body }) => body);
}

async function faults(name: string, text: string, given: object = GIVEN): Promise<string[]> {
  try {
    await read(name, text, given);
  } catch (thrown) {
    if (thrown instanceof CliError) return thrown.problems.map(({ description }) => description);
    throw thrown;
  }
  return [];
}

const MEMBERS =
  'members: [{ streamid: n_360, quality: SD }, { streamid: n_480, quality: SD }, { streamid: n_1080, quality: HD }]';
const BY_QUALITY = [
  { members: ['n_360', 'n_480'], folder: 'live', ...ACME, contentId: 'news-sd' },
  { members: ['n_1080'], folder: 'live', ...ACME, contentId: 'news-hd' },
];

describe('keys by quality in a manifest', () => {
  it.each([
    ['manifest.yaml', `groups:\n  - { ${MEMBERS}, folder: live/, keys: quality, contentId: news }\n`],
    ['manifest.csv', 'members;folder;keys;contentId\nn_360:SD n_480:SD n_1080:HD;live;quality;news\n'],
    ['quoted.csv', 'members,folder,keys,contentId\n"n_360:SD, n_480:SD, n_1080:HD",live,quality,news\n'],
    [
      'manifest.json',
      JSON.stringify({
        defaults: { contentId: 'news' },
        groups: [
          {
            members: [
              { streamid: 'n_360', quality: 'SD' },
              { streamid: 'n_480', quality: 'SD' },
              { streamid: 'n_1080', quality: 'HD' },
            ],
            folder: 'live',
            keys: { SD: {}, HD: {} },
          },
        ],
      }),
    ],
  ])('are one line of %s, and one request for each quality', async (name, text) => {
    expect(await bodies(name, text)).toEqual(BY_QUALITY);
  });

  it('tell a group of each quality by its name, its line and its streams', async () => {
    const { groups } = await read(
      'manifest.yaml',
      `groups:\n  - { ${MEMBERS}, folder: live, keys: quality, contentId: news }\n`,
    );
    expect(groups.map(({ name, line, streamIds }) => [name, line, streamIds])).toEqual([
      ['the group of n_360, SD', 2, ['live/n_360', 'live/n_480']],
      ['the group of n_360, HD', 2, ['live/n_1080']],
    ]);
    expect(readStreamIds({ cwd }, 'manifest.yaml')).toEqual(['live/n_360', 'live/n_480', 'live/n_1080']);
  });

  it('can be given, with what the group and the defaults have in common', async () => {
    const text = `\
defaults:
  playready: { laurl: "https://pr.example.com/{contentId}" }
  widevine: {}
groups:
  - ${MEMBERS.replaceAll('members', 'members')}
    contentId: news
    keys:
      SD: { cenc: { keyid: ${SD.keyid}, contentkey: ${SD.contentkey} }, widevine: null }
      HD: { cenc: { keyid: ${HD.keyid}, contentkey: ${HD.contentkey} }, contentId: high, cmaf: cenc }
`;
    expect(await bodies('manifest.yaml', text, {})).toEqual([
      {
        members: ['n_360', 'n_480'],
        contentId: 'news',
        cenc: SD,
        playready: { laurl: 'https://pr.example.com/news' },
      },
      {
        members: ['n_1080'],
        contentId: 'high',
        cmaf: 'cenc',
        cenc: HD,
        playready: { laurl: 'https://pr.example.com/high' },
        widevine: {},
      },
    ]);
  });

  it('take the qualities of a SMIL document from its pictures', async () => {
    await fs.writeFile(
      join(cwd, 'show.smil'),
      '<smil><body><switch><video src="mp4:a.mp4" height="360"/><video src="b" height="720"/><audio src="c"/></switch></body></smil>',
    );
    const yaml = 'groups: [{ smil: show.smil, keys: quality, contentId: s }]';
    const csv = 'smil,keys,contentId\nshow.smil,quality,s\n';
    const expected = [
      { members: ['a.mp4'], ...ACME, contentId: 's-sd' },
      { members: ['b'], ...ACME, contentId: 's-hd' },
      { members: ['c'], ...ACME, contentId: 's-audio' },
    ];
    expect(await bodies('manifest.yaml', yaml)).toEqual(expected);
    expect(await bodies('manifest.csv', csv)).toEqual(expected);
    const heights =
      'groups: [{ smil: show.smil, keys: quality, contentId: s, heights: { SD: 720, HD: 1080 } }]';
    expect((await bodies('manifest.yaml', heights)).map(({ members }) => members)).toEqual([
      ['a.mp4', 'b'],
      ['c'],
    ]);
  });

  it('stand beside streams and groups of one key in a CSV file, each fault with its line', async () => {
    const text = 'streamid,members,keys,contentId\na,,,a-1\n,b c,,b-1\n,d:SD e:HD,quality,d\n';
    const { streams, groups } = await read('manifest.csv', text);
    expect(streams).toEqual([{ streamid: 'a', ...ACME, contentId: 'a-1' }]);
    expect(groups.map(({ body, line }) => [body, line])).toEqual([
      [{ members: ['b', 'c'], ...ACME, contentId: 'b-1' }, 3],
      [{ members: ['d'], ...ACME, contentId: 'd-sd' }, 4],
      [{ members: ['e'], ...ACME, contentId: 'd-hd' }, 4],
    ]);
    expect(await faults('manifest.csv', `${text},f:SD g,quality,f\nh,i,quality,h\n,j:SD,none,j\n`)).toEqual([
      'manifest.csv:5: g has no quality; give it as streamid and quality.',
      'manifest.csv:6: has streamid and members; a row is of one stream, or of one group by members, smil or tracks.',
      'manifest.csv:7: keys must be same, each, quality, or the keys of each quality.',
    ]);
  });

  it('are written by apply, each quality with its key', async () => {
    const sidecar = await startSidecar();
    const text = `groups:
  - ${MEMBERS}
    keys:
      SD: { cenc: { keyid: ${SD.keyid}, contentkey: ${SD.contentkey} } }
      HD: { cenc: { keyid: ${HD.keyid}, contentkey: ${HD.contentkey} } }
`;
    await fs.writeFile(join(cwd, 'manifest.yaml'), text);
    const env = { PACKAGERDRM_URL: sidecar.url, PACKAGERDRM_APIKEY: API_KEY };
    const { code, stderr } = await cli(['apply', 'manifest.yaml', '--yes'], { cwd, env });
    expect([code, stderr]).toEqual([0, expect.stringContaining('3 created')]);
    const files = await sidecar.files();
    const keys = Object.entries(files).map(([name, file]) => [
      name,
      file.includes(SD.contentkey),
      file.includes(HD.contentkey),
    ]);
    expect(keys).toEqual([
      ['n_1080.key', false, true],
      ['n_360.key', true, false],
      ['n_480.key', true, false],
    ]);
  });
});

describe('a manifest says what is wrong with keys by quality', () => {
  const line = (description: string) => `manifest.yaml:2: ${description}.`;
  const keys = (text: string) => `groups:\n  - { ${MEMBERS}, contentId: news, ${text} }\n`;

  it.each<[what: string, text: string, expected: string[]]>([
    [
      'a quality that has no keys',
      keys('keys: { SD: {} }'),
      [line('n_1080 is of the quality HD, and keys has SD')],
    ],
    [
      'a member without a quality, and one that is none',
      'groups:\n  - { members: [a, { streamid: b, quality: H D }], keys: quality, contentId: x }\n',
      [
        line('a has no quality; give it as streamid and quality'),
        line('the quality of b must be 1 to 20 letters, digits and _ - (SD, HD, UHD, AUDIO)'),
      ],
    ],
    [
      'a member with a content id',
      'groups:\n  - { members: [{ streamid: a, quality: SD, contentId: y }], keys: quality, contentId: x }\n',
      [line('a has a contentId; put it into keys, beside the quality that has it')],
    ],
    [
      'a misspelt field of a quality',
      keys('keys: { SD: { contentid: x }, HD: {} }'),
      ['manifest.yaml:2: keys.SD: contentid is not a field; did you mean contentId?'],
    ],
    [
      'a wrong value of a quality',
      keys(`keys: { SD: { cenc: { keyid: ${SD.keyid}, contentkey: short } }, HD: {} }`),
      [
        line(
          'cenc.contentkey is not whole base64: its length is not a multiple of 4 (is the = padding missing?)',
        ),
      ],
    ],
    [
      'two qualities of one content',
      keys('keys: { SD: { contentId: one }, HD: { contentId: one } }'),
      [
        line(
          'HD has the same content id as SD; give each quality a key of its own, or the members of both one quality',
        ),
      ],
    ],
    [
      'keys that all would have',
      keys(`keys: quality, cenc: { keyid: ${SD.keyid}, contentkey: ${SD.contentkey} }`),
      [line('cenc would be that of every quality; put it into keys, beside the quality that has it')],
    ],
    [
      'a quality where the group has one key',
      keys('keys: same'),
      ['n_360', 'n_480', 'n_1080'].map((name) =>
        line(`${name} has a quality, and the group no keys by quality`),
      ),
    ],
    [
      'heights without a SMIL document, and without keys by quality',
      `${keys('keys: quality, heights: { SD: 576 }')}  - { members: [x], contentId: y, heights: { SD: 576 } }\n`,
      [line('heights goes with smil'), 'manifest.yaml:3: heights goes with keys by quality.'],
    ],
    [
      'a content id that is for single streams',
      `groups:\n  - { ${MEMBERS}, keys: quality }\ndefaults: { contentId: "{streamid}" }\n`,
      [
        line('the group of n_360, SD lacks contentId; that of defaults is for single streams'),
        line('the group of n_360, HD lacks contentId; that of defaults is for single streams'),
      ],
    ],
    [
      'a content id that is missing',
      `groups:\n  - { ${MEMBERS}, keys: quality }\n`,
      ['SD', 'HD'].map((quality) =>
        line(
          `the group of n_360, ${quality} lacks contentId; give it here or in defaults, or supply the keys by cenc, fairplay or cpix`,
        ),
      ),
    ],
  ])('%s', async (_what, text, expected) => {
    expect(await faults('manifest.yaml', text)).toEqual(expected);
  });
});
