import { join } from 'node:path';
import fs from 'fs-extra';
import { type CheckedKeyFile, checkKeyClashes, readFileKeys } from '../../../src/cli/doctor/key-files';
import { POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';
import { install, KEY_FILE, smil } from './installation';
import {
  asOtherUser,
  type DoctorSetting,
  listed,
  runDoctor,
  sectionsOf,
  sidecarOn,
  troubles,
} from './run-doctor';

const { keyid: ID, contentkey: KEY } = POST_MANUAL.cenc;
const ID_TEXT = '44da52ef-4523-098e-6854-777ee322681d';
const OTHER_ID = block(1);
const OTHER_KEY = block(2);
const ZERO = block(0);
const SHOW_BLACK = 'players that have one of the keys show black for the other';
const OWN_ID = 'give each content key its own id';
const ONE_ID = 'check whether the same key is intended, and then use one id for it';

/** The base64 of 16 bytes, different for each number. */
function block(number: number): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt32BE(number, 12);
  return bytes.toString('base64');
}

/** A key file without a fault of its own for any keys, as it has no checksum of them. */
function keyFile(keyId: string, contentKey: string): string {
  return POST_MANUAL_FILE.replace(KEY, contentKey)
    .replace(ID, keyId)
    .replaceAll(/^.*playready.*\n/gm, '');
}

/** The findings about keys in several files. */
async function clashes(files: Readonly<Record<string, string>>, setting: DoctorSetting = {}) {
  const found = await troubles(await install(files), [], setting);
  return found.filter(({ code }) => code.endsWith('_reused'));
}

test('finds a fault in one key id with different content keys, once, with the names of all files', async () => {
  const files = {
    'keys/radio.key': keyFile(ID, OTHER_KEY),
    'keys/site/sport.key': keyFile(ID, OTHER_KEY),
  };
  expect(await troubles(await install(files))).toEqual([
    {
      about: 'keys',
      severity: 'fault',
      code: 'key_id_reused',
      message: `Key id ${ID_TEXT} belongs to 2 content keys, one in camera.stream, news_360p, news_720p, one in radio, site/sport: ${SHOW_BLACK}`,
      todo: OWN_ID,
    },
  ]);
});

test('warns of one content key under different key ids', async () => {
  const files = { 'keys/radio.key': keyFile(OTHER_ID, KEY), 'keys/sport.key': keyFile(block(3), KEY) };
  expect(await troubles(await install(files))).toEqual([
    {
      about: 'keys',
      severity: 'warning',
      code: 'content_key_reused',
      message:
        'One content key has 3 key ids, one in camera.stream, news_360p, news_720p, one in radio, one in sport',
      todo: ONE_ID,
    },
  ]);
});

test.each<[what: string, files: Record<string, string>]>([
  ['a group has a key for each quality', { 'keys/news_720p.key': keyFile(OTHER_ID, OTHER_KEY) }],
  ['all files have one key', { 'keys/radio.key': keyFile(ID, KEY) }],
  [
    'a key id is written as UUID in one',
    { 'keys/radio.key': keyFile(`{${ID_TEXT.toUpperCase()}}`, KEY), 'keys/sport.key': KEY_FILE },
  ],
  ['a content key is missing', { 'keys/radio.key': keyFile(ID, OTHER_KEY).replace(/.*content-key.*\n/, '') }],
  ['keys are placeholders', { 'keys/a.key': keyFile(ID, ZERO), 'keys/b.key': keyFile(OTHER_ID, ZERO) }],
  ['ids are placeholders', { 'keys/a.key': keyFile(ZERO, KEY), 'keys/b.key': keyFile(ZERO, OTHER_KEY) }],
  [
    'a file is named after a group, which nobody reads',
    { 'content/news.smil': smil('news_360p', 'news_720p'), 'keys/news.key': keyFile(ID, OTHER_KEY) },
  ],
  ["a file is none of the packager's", { 'keys/radio.key.txt': keyFile(ID, OTHER_KEY) }],
])('reports no clash where %s', async (_what, files) => {
  expect(await clashes(files)).toEqual([]);
});

test('looks at the keys of the CMAF lines where there are no others', async () => {
  const cmaf = keyFile(ID, OTHER_KEY).replaceAll('mpegdashstreaming', 'cmafstreaming');
  expect((await clashes({ 'keys/radio.key': cmaf })).map(({ code }) => code)).toEqual(['key_id_reused']);
});

test('shows no content key, not even in the place of a key id', async () => {
  const asId = (key: string) => Buffer.from(key, 'base64').toString('hex');
  const swappedKey = Buffer.from('BAMCAQYFCAcJCgsMDQ4PEA==', 'base64');
  const files = {
    // The keys of other files as key ids, one of them in the other byte order.
    'keys/a.key': keyFile(KEY, ID),
    'keys/b.key': keyFile(KEY, OTHER_ID),
    'keys/c.key': keyFile('AQIDBAUGBwgJCgsMDQ4PEA==', block(7)),
    'keys/d.key': keyFile('AQIDBAUGBwgJCgsMDQ4PEA==', block(8)),
    'keys/e.key': keyFile(block(9), swappedKey.toString('base64')),
    // Its own FairPlay key as key id.
    'keys/f.key': keyFile('y/drtDuaVCVKX8IAdKOlOw==', block(10)),
    'keys/g.key': keyFile('y/drtDuaVCVKX8IAdKOlOw==', block(11)),
  };
  const packager = await install(files);
  const found = (await troubles(packager)).filter(({ code }) => code === 'key_id_reused');
  expect(found.map(({ message }) => message.split(':')[0])).toEqual([
    'One key id belongs to 2 content keys, one in a, one in b',
    'One key id belongs to 2 content keys, one in c, one in d',
    'One key id belongs to 2 content keys, one in f, one in g',
  ]);
  const secrets = [KEY, swappedKey.toString('base64'), POST_MANUAL.fairplay.key, OTHER_KEY];
  for (const args of [[], ['--json'], ['--csv']]) {
    const text = (await runDoctor(packager, args)).stdout.toLowerCase().replaceAll('-', '');
    for (const secret of secrets) {
      expect(text).not.toContain(secret.toLowerCase());
      expect(text).not.toContain(asId(secret));
    }
    expect(text).not.toContain('0102030405060708');
  }
});

describe('with the word of the sidecar on files that the doctor may not read', () => {
  /** A folder in which some files are closed to the doctor, as the sidecar lists it. */
  async function closed(paths: readonly string[], words: Readonly<Record<string, string>>) {
    const packager = await install({ 'keys/radio.key': keyFile(ID, OTHER_KEY) });
    const keyfiles = (await listed(join(packager, 'keys'))).map((file) => {
      const code = words[file.streamid];
      const description = 'cenc.keyid is the key id of another content key in the key file of radio.';
      return {
        ...file,
        faults: code === undefined ? [] : [{ severity: 'warning' as const, code, description }],
      };
    });
    await runDoctor(packager);
    for (const path of paths) await fs.chmod(join(packager, 'keys', `${path}.key`), 0);
    const sidecar = () =>
      sidecarOn(join(packager, 'keys'), { list: async () => ({ keyfiles, cursor: null }) });
    const sections = await asOtherUser(() => sectionsOf(packager, [], { sidecar }));
    return sections
      .flatMap(({ findings }) => findings)
      .filter(({ code, severity }) => severity !== 'ok' && /reused|key_file/.test(code))
      .map(({ severity, code, message }) => [severity, code, message]);
  }
  const reused = (what: string, names: string) => `${what}, too, according to the sidecar, in ${names}`;

  test.each<[code: string, severity: string, message: string]>([
    [
      'key_id_reused',
      'fault',
      `${reused('Key ids have other content keys', 'news_360p, radio')}: ${SHOW_BLACK}`,
    ],
    ['content_key_reused', 'warning', reused('Content keys have other key ids', 'news_360p, radio')],
  ])('reports %s once, with the names of the files', async (code, severity, message) => {
    const found = await closed(['news_360p', 'radio'], { news_360p: code, radio: code });
    expect(found).toEqual([[severity, code, message]]);
  });
});

describe('checkKeyClashes', () => {
  const file = (id: string, keyId: number, contentKey: number): CheckedKeyFile => {
    const text = keyFile(block(keyId), block(contentKey));
    return { id, keys: readFileKeys(text) };
  };
  const many = (number: number, make: (index: number) => CheckedKeyFile) =>
    Array.from({ length: number }, (_item, index) => make(index));

  it('names some of many files, and of each key at least one', () => {
    const files = [file('odd', 1, 9), ...many(1000, (index) => file(`s${1000 + index}`, 1, 8))];
    expect(checkKeyClashes(files).map(({ description }) => description)).toEqual([
      `One key id belongs to 2 content keys, one in s1000, s1001, s1002 and 997 more, one in odd: ${SHOW_BLACK}`,
    ]);
  });

  it('names some of many keys, those of most files first', () => {
    const files = [...many(1000, (index) => file(`s${1000 + index}`, 10 + index, 9)), file('t', 10 + 999, 9)];
    expect(checkKeyClashes(files).map(({ description }) => description)).toEqual([
      'One content key has 1,000 key ids, one in s1999, t, one in s1000, one in s1001, and 997 more in 997 key files',
    ]);
  });

  it('reports some of many clashes, those of most files first, and how many more there are', () => {
    const files = many(120, (index) => file(`s${1000 + index}`, 1 + (index % 60), 100 + index));
    const found = checkKeyClashes([...files, file('z', 60, 500)]);
    expect(found).toHaveLength(51);
    expect(found[0]?.description).toContain('one in s1059, one in s1119, one in z');
    expect(found[50]).toEqual({
      severity: 'error',
      code: 'key_id_reused',
      description: '10 more key ids with several content keys',
      todo: 'correct those above, and run this again',
    });
  });
});
