import { join } from 'node:path';
import fs from 'fs-extra';
import { readManifest } from '../../../src/cli/manifest/read-manifest';
import { folderOfEachTest } from '../../support/after-test';
import { startFakeSidecar } from '../../support/fake-sidecar';
import { asUtf16, madeCpix, madeOfHd } from '../../support/made-cpix';
import { cli } from '../../support/run-cli';
import { problemsOf } from '../problems-of';

describe('CSV', () => {
  const ALL = { variable: () => true, file: () => true };
  const ACME = { client: 'acme', clientApiKey: 'k' };

  const cwd = folderOfEachTest();

  async function faults(name: string, text: string, given = {}): Promise<string[]> {
    await fs.writeFile(join(cwd, name), text);
    return problemsOf(() => readManifest({ cwd, env: {} }, name, { given, allowed: ALL }));
  }

  test("reports the faults of all rows that can't be read, else those of their values, in the order of the lines", async () => {
    const text = `\
streamid,contentId,cmaf,cenc.keyid,cenc.contentkey
live/a,a-1,,,
live/b,b-1
,c-1,,,
live/d,d-1,maybe,,
live//e,e-1,,,
live/f,,,,
live/a,a-1,,,
live/g,g-1,,SECRET,SECRET
"live/h,h-1,,,
`;
    expect(await faults('a.csv', text, ACME)).toEqual([
      'a.csv:3: has 2 cells, and the first row has 5.',
      'a.csv:4: streamid is missing.',
      'a.csv:5: cmaf must be true, false or cenc.',
      'a.csv:10: a quote is opened here or above, and never closed.',
    ]);
    const readable = text.split('\n').filter((_line, index) => ![2, 3, 4, 9].includes(index));
    expect(await faults('a.csv', readable.join('\n'), ACME)).toEqual([
      'a.csv:3: A part of the stream id is empty.',
      'a.csv:4: live/f: contentId missing; give it here or in defaults, or supply the keys with cenc, fairplay, aes or cpix.',
      'a.csv:5: live/a is already on line 2; give each stream once.',
      expect.stringMatching(/^a\.csv:6: cenc\.keyid /),
      expect.stringMatching(/^a\.csv:6: cenc\.contentkey /),
    ]);
  });

  test('goes on behind a quote amid a cell, and stops behind one that is closed there', async () => {
    expect(await faults('a.csv', 'streamid,members\na,b\n', ACME)).toEqual([
      'a.csv:2: has streamid and members; a row is for one stream, or for one group with members, smil or tracks.',
    ]);
    expect(await faults('a.csv', 'streamid,contentId\n2.02601E+11,c\nE+11,c\n', ACME)).toEqual([
      'a.csv:2: a number has lost its last digits in a spreadsheet; format its column as text, and enter it again.',
    ]);
    expect(await faults('a.csv', 'streamid,cmaf\na,b"SECRET"\nb,maybe\n', ACME)).toEqual([
      'a.csv:2: a quote is inside a cell; put the whole cell in quotes, and write its quotes twice.',
      'a.csv:3: cmaf must be true, false or cenc.',
    ]);
    expect(await faults('a.csv', 'streamid,cmaf\na,maybe\nb,"b"SECRET\nc,maybe\n', ACME)).toEqual([
      'a.csv:2: cmaf must be true, false or cenc.',
      'a.csv:3: a closing quote must be followed by the end of the cell; write a quote in a cell twice.',
    ]);
  });
});

describe('CPIX documents', () => {
  const CPIX = madeCpix();
  const UUID = '0e58f5d7-4684-4199-a9b1-438646ef4775';
  const OUTSIDE = { variable: () => true, file: () => false };

  const cwd = folderOfEachTest();

  beforeEach(async () => {
    await fs.outputFile(join(cwd, 'lineup/film.xml'), CPIX);
    await fs.outputFile(join(cwd, 'lineup/cpix/hd.xml'), asUtf16(madeOfHd()));
    await fs.outputFile(join(cwd, 'other.xml'), CPIX);
  });

  async function bodies(name: string, text: string) {
    await fs.outputFile(join(cwd, 'lineup', name), text);
    const manifest = readManifest({ cwd, env: {} }, `lineup/${name}`, { given: {}, allowed: OUTSIDE });
    return manifest.map(({ body }) => body);
  }

  const faults = (text: string) => problemsOf(() => bodies('m.yaml', text));

  const YAML = `\
defaults: { client: acme, clientApiKey: k, contentId: "{name}", cmaf: false, playready: { laurl: "https://d.example" } }
streams:
  - { streamid: a, cpix: film.xml, track: HD, period: 1, systems: [widevine] }
  - { streamid: b, cpix: film.xml, kid: ${UUID.replaceAll('-', '').toUpperCase()}, systems: "Widevine, PlayReady", playready: { laurl: "https://mine.example" } }
  - { streamid: c, contentId: c-1 }
groups:
  - { members: [d, e], cpix: cpix/hd.xml }
  - { folder: live, cpix: film.xml, tracks: { SD: f_sd, HD: [f_720p, f_1080p] } }
`;

  const hdText = asUtf16(madeOfHd()).toString('utf16le').slice(1);
  const BODIES = [
    { streamid: 'a', cpix: CPIX, track: 'HD', period: '1', systems: ['widevine'], cmaf: false },
    {
      streamid: 'b',
      cpix: CPIX,
      kid: UUID,
      systems: ['widevine', 'playready'],
      playready: { laurl: 'https://mine.example' },
      cmaf: false,
    },
    { streamid: 'c', contentId: 'c-1', client: 'acme', clientApiKey: 'k', cmaf: false },
    { members: ['d', 'e'], cpix: hdText, cmaf: false },
    { tracks: { SD: ['f_sd'], HD: ['f_720p', 'f_1080p'] }, folder: 'live', cpix: CPIX, cmaf: false },
  ];

  test('streams and groups take their keys from CPIX documents, whose paths start at the manifest', async () => {
    expect(await bodies('m.yaml', YAML)).toEqual(BODIES);
  });

  test('a CSV file has columns for it', async () => {
    const csv = `streamid,cpix,track,systems,tracks,folder\na,film.xml,HD,widevine,,\n,film.xml,,,SD:f_sd HD:f_720p;HD:f_1080p,live\n`;
    expect(await bodies('m.csv', csv)).toEqual([
      { streamid: 'a', cpix: CPIX, track: 'HD', systems: ['widevine'] },
      { tracks: { SD: ['f_sd'], HD: ['f_720p', 'f_1080p'] }, folder: 'live', cpix: CPIX },
    ]);
  });

  const byQuality = (keys: string) =>
    `groups:\n  - { cpix: film.xml, systems: widevine, keys: ${keys}, members: [{ streamid: s, quality: SD }, { streamid: h, quality: HD }] }\n`;

  test('keys by quality share a document, or have one each', async () => {
    const members = [
      { streamid: 's', quality: 'SD' },
      { streamid: 'h', quality: 'HD' },
    ];
    const common = { cpix: CPIX, systems: ['widevine'] };
    expect(await bodies('m.yaml', byQuality('quality'))).toEqual([{ members, keys: 'quality', ...common }]);
    expect(await bodies('m.yaml', byQuality('{ SD: { track: HD }, HD: { cpix: cpix/hd.xml } }'))).toEqual([
      { members, keys: { SD: { ...common, track: 'HD' }, HD: { ...common, cpix: hdText } } },
    ]);
  });

  test.each(
    Object.entries({
      'streams:\n  - { streamid: a,\n      cpix: none.xml }':
        "3: cpix names a file that is empty or can't be read.",
      'streams: [{ streamid: a, cpix: m.yaml }]':
        '1: cpix names a document that is not XML; it must be the text of the document, which begins with <.',
      'streams: [{ streamid: a, cpix: ../other.xml }]':
        "1: cpix names other.xml, which is not in the manifest's folder; add --allow-file other.xml to allow it.",
      'streams: [{ streamid: a, track: HD, client: acme, clientApiKey: k }]\ndefaults: {}':
        '1: track chooses in a CPIX document; give one with cpix.',
      'streams: [{ streamid: a, cpix: film.xml, client: acme }]':
        "1: client can't be used with cpix, whose document holds the keys.",
      'streams: [{ streamid: a, cpix: film.xml, kid: abc }]': '1: kid is not a UUID (8-4-4-4-12 hex digits).',
      'groups: [{ tracks: { HD: a }, cenc: { keyid: DlhY5dF0QZlpqbFDhkbvRw==, contentkey: JC1s8W4A7IpnnWBwD5FlCQ== } }]':
        '1: tracks are for a CPIX document or a content; give cpix or contentId.',
      'groups: [{ tracks: { SD: a, HD: a }, cpix: film.xml }]':
        '1: a is already on line 1; give each stream once.',
    }),
  )('a manifest is refused with the line: %s', async (text, sentence) => {
    expect((await faults(text))[0]).toBe(`lineup/m.yaml:${sentence}`);
  });

  test('a manifest that is too long for one request goes in several', async () => {
    const sidecar = await startFakeSidecar();
    const long = madeOfHd().replace('<cpix:ContentKeyList>', `<!--${'x'.repeat(240_000)}-->$&`);
    await fs.writeFile(join(cwd, 'lineup/long.xml'), long);
    const streams = Array.from(
      { length: 40 },
      (_none, index) => `  - { streamid: s${index}, cpix: long.xml }\n`,
    );
    await fs.writeFile(join(cwd, 'lineup/m.yaml'), `streams:\n${streams.join('')}`);
    const { code } = await cli(['apply', 'lineup/m.yaml', '--yes'], { cwd, sidecar });
    const sizes = sidecar.batches.map(({ body }) => JSON.stringify(body).length);
    expect({ code, requests: sizes.length, isLarge: sizes.some((size) => size > 8.5e6) }).toEqual({
      code: 0,
      requests: 2,
      isLarge: false,
    });
  });
});
