import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../../support/after-test';
import { asUtf16, HD, madeCpix } from '../../support/made-cpix';
import { POST_MANUAL, POST_MANUAL_FILE, SWAPPED_KEY_ID } from '../../support/post-manual';
import { cli, jsonOf, refused } from '../../support/run-cli';
import { startSidecar } from '../../support/start-sidecar';
import { packagedManifest, packagedMedia } from '../../vectors/packaged-media';

const BOX = 'AAAAOHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAABgSEETaUu9FIwmOaFR3fuMiaB1I49yVmwY=';
const KEY = 'lnA03mLuxnL3toiRMxV4Zw==';
const FILE = `mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==\nmpegdashstreaming-cenc-content-key: ${KEY}\nmpegdashstreaming-cenc-algorithm: AESCTR\n`;
const BAD = '{"cenc":{"keyid":"44da52ef4523098e6854777ee322681d","contentkey":"lnA03mLuxnL3toiRMxV4Zw=="}}';

const { cenc } = POST_MANUAL;
const SWAPPED = POST_MANUAL_FILE.replace(cenc.keyid, SWAPPED_KEY_ID);

const cwd = folderOfEachTest();

beforeEach(async () => {
  await fs.writeFile(join(cwd, 'news.key'), POST_MANUAL_FILE);
  await fs.writeFile(join(cwd, 'init.mp4'), packagedMedia('cenc/v.mp4'));
  await fs.writeFile(join(cwd, 'stream.mpd'), packagedManifest('cenc/s.mpd'));
  await fs.writeFile(join(cwd, 'playlist.m3u8'), packagedManifest('fairplay/v.m3u8'));
});

function check(args: readonly string[], stdin: string | Buffer = '') {
  return cli(['check', ...args], { cwd, stdin });
}

test('decodes a value, offline and without an address', async () => {
  const { code, stdout, stderr } = await check([BOX]);
  expect({ code, stderr, lines: stdout.split('\n').slice(0, 2) }).toEqual({
    code: 0,
    stderr: 'No faults.\n',
    lines: [
      'This is a PSSH box.',
      expect.stringMatching(/^ {2}box\.system +edef8ba9-79d6-4ace-a3c8-27dcd51d21ed {2}Widevine$/),
    ],
  });
});

test.each<[string, string[], string]>([
  ['the file that is named', ['news.key'], ''],
  ['standard input', ['-'], FILE],
  ['standard input when nothing is named', [], FILE],
])('checks a key file from %s, with its key masked by default', async (_name, args, stdin) => {
  await fs.writeFile(join(cwd, 'news.key'), FILE);
  const { code, stdout, stderr } = await check(args, stdin);
  expect([code, stdout.split('\n')[0]]).toEqual([0, 'This is a key file.']);
  expect(stdout + stderr).not.toContain(KEY);
  expect((await check([...args, '--reveal'], stdin)).stdout).toContain(KEY);
});

test('ends with 1 when a fault is an error, and says what to do', async () => {
  expect(await check(['-'], BAD)).toEqual({
    code: 1,
    stdout: expect.stringMatching(/\nerror: cenc\.keyid looks like hex.*\n/),
    stderr: expect.stringMatching(/^1 error, \d+ warnings?\.\n$/),
  });
});

test('warns of what a body needs for some providers, as it does not know which one is asked', async () => {
  expect(await check(['-'], JSON.stringify({ contentId: 'news' }))).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\nwarning: client is missing.*\nwarning: clientApiKey is missing/),
  });
});

test('answers one JSON document with --json', async () => {
  const document = { kind: 'request', fields: expect.any(Array), faults: expect.any(Array) };
  expect(jsonOf(await check(['--json', '-'], BAD))).toEqual({ code: 1, stderr: '', document });
});

test.each(['', Buffer.from(FILE, 'utf16le'), Buffer.from(`${FILE}# f\xfcr\n`, 'latin1')])(
  'takes a file of the name for a key file, whatever is in it: %#',
  async (content) => {
    await fs.writeFile(join(cwd, 'news.key'), content);
    const { code, stdout } = await check(['news.key']);
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^This is a key file\.\n[\s\S]*error: The file /),
    ]);
  },
);

test('asks what to check where there is nothing to read', async () => {
  expect(await cli(['check'], { cwd, typed: '', env: { NO_COLOR: '1' } })).toEqual(
    refused(
      2,
      'There is nothing to check: give files, a folder, a value, --stream with a stream id, or - for standard input.',
    ),
  );
});

/** The report without the decoded inputs. */
function reported(stdout: string): string[] {
  return stdout.split('\n').filter((line) => line !== '' && !line.startsWith('  '));
}

describe('several inputs', () => {
  test('are checked each, and compared with each other', async () => {
    const { code, stdout, stderr } = await check(['news.key', 'init.mp4', 'stream.mpd', 'playlist.m3u8']);
    expect({ code, stderr, reported: reported(stdout) }).toEqual({
      code: 0,
      stderr: '4 inputs: no faults.\n',
      reported: [
        'news.key is a key file.',
        'init.mp4 is an init segment.',
        'stream.mpd is a DASH MPD.',
        'playlist.m3u8 is an HLS media playlist.',
        'Compared: key id, scheme, protection, checksum, license address.',
        'They agree.',
      ],
    });
  });

  test('are one JSON document with --json, without a content key', async () => {
    await fs.writeFile(join(cwd, 'news.key'), SWAPPED);
    const { code, stdout, stderr } = await check(['news.key', 'init.mp4', '--json']);
    expect(stdout).not.toContain(cenc.contentkey);
    const fields = expect.any(Array);
    const found = { severity: 'error', code: 'key_id_byte_order', inputs: ['init.mp4', 'news.key'] };
    expect([code, stderr]).toEqual([1, '']);
    expect(JSON.parse(stdout)).toEqual({
      inputs: [
        { name: 'news.key', kind: 'key_file', fields, faults: [expect.any(Object)] },
        { name: 'init.mp4', kind: 'init_segment', fields, faults: [] },
      ],
      comparison: {
        compared: ['key_id', 'scheme', 'protection'],
        faults: [{ ...found, description: expect.any(String) }],
      },
    });
  });

  test('may be standard input and a value among them', async () => {
    const { code, stdout } = await check(['-', cenc.keyid, 'init.mp4'], POST_MANUAL_FILE);
    expect([code, ...reported(stdout).slice(0, 2)]).toEqual([
      0,
      'standard input is a key file.',
      'the value is a key id.',
    ]);
    expect(await check(['-', '-'])).toEqual(refused(2, 'Standard input (-) can be read once only.'));
  });

  test('that can not be used are reported all at once', async () => {
    await fs.writeFile(join(cwd, 'lines.txt'), Buffer.from(`\ufeff${POST_MANUAL_FILE}`, 'utf16le'));
    const paths = ['a.key', '/no/such/Keys', 'keys/sports', 'C:\\my keys\\é (1).key'];
    expect(await check([...paths, 'news.key', 'lines.txt'])).toEqual(
      refused(
        2,
        ...paths.map((path) => `There is no file ${path}, and it is not a value that can be checked.`),
        'lines.txt is UTF-16; save it as UTF-8.',
      ),
    );
  });
});

describe('a folder', () => {
  beforeEach(async () => {
    await fs.outputFile(join(cwd, 'keys/news.key'), POST_MANUAL_FILE);
    await fs.outputFile(join(cwd, 'keys/live/sport.key'), SWAPPED);
    await fs.outputFile(
      join(cwd, 'keys/live/talk.key'),
      POST_MANUAL_FILE.replace(cenc.contentkey, 'SvEMxZMGndWHIqCMoD45YA==').replace(/.*checksum.*\n/, ''),
    );
    await fs.outputFile(join(cwd, 'keys/.news.key.123'), 'left over');
    await fs.outputFile(join(cwd, 'keys/.hidden.key'), 'left over');
    await fs.outputFile(join(cwd, 'keys/notes.txt'), 'no key file');
    await fs.symlink('/etc/hostname', join(cwd, 'keys/link.key'));
    await fs.symlink('.', join(cwd, 'keys/live/circle'));
  });

  test('has its key files checked, of which those with faults are shown', async () => {
    const { code, stdout, stderr } = await check(['keys']);
    expect({ code, stderr, reported: reported(stdout) }).toEqual({
      code: 1,
      stderr: '3 inputs: 2 errors, 1 warning.\n',
      reported: [
        'keys/live/sport.key',
        expect.stringMatching(/^error: .*in the other byte order/),
        'keys/live/talk.key',
        expect.stringMatching(/^warning: .*checksum is missing/),
        'Compared: key.',
        'error: keys/news.key and keys/live/talk.key share a key id but have different content keys; give each key its ' +
          'own id, or both the same key.',
      ],
    });
  });

  test('without a key file is reported', async () => {
    await fs.mkdir(join(cwd, 'empty'));
    expect(await check(['empty'])).toEqual(
      refused(2, 'There is no .key file in empty; name the files to check.'),
    );
  });

  test('reports a file that is no key file at all next to the others', async () => {
    await fs.writeFile(join(cwd, 'keys/live/sport.key'), Buffer.alloc(2 * 1024 * 1024, 'x'));
    const { code, stdout } = await check(['keys']);
    expect([code, ...reported(stdout).slice(0, 3)]).toEqual([
      1,
      'keys/live/sport.key',
      'error: keys/live/sport.key is larger than 1 MiB, and neither media nor a manifest or playlist.',
      'keys/live/talk.key',
    ]);
  });
});

test('--stream takes the key file from the sidecar, and holds it against media', async () => {
  const sidecar = await startSidecar();
  await sidecar.api.post('/api/keyfile/live%2Fnews').send(POST_MANUAL).expect(200);
  const one = await cli(['check', '--stream', 'live/news'], { cwd, sidecar });
  expect(reported(one.stdout)).toEqual(['This is a key file.']);
  const both = await cli(['check', 'stream.mpd', '--stream', 'live/news'], { cwd, sidecar });
  expect([both.code, ...reported(both.stdout)]).toEqual([
    0,
    'stream.mpd is a DASH MPD.',
    'stream live/news is a key file.',
    'Compared: key id, scheme, protection, checksum.',
    'They agree.',
  ]);
  expect(both.stdout).not.toContain(cenc.contentkey);
  const none = await cli(['check', '--stream', 'live/none'], { cwd, sidecar });
  expect([none.code, none.stdout]).toEqual([1, '']);
});

describe('a file of more than 1 MiB', () => {
  const MEDIA = Buffer.concat([box('mdat', 1100 * 1024), packagedMedia('rotation/v1.m4s')]);

  function box(type: string, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    bytes.writeUInt32BE(length);
    bytes.write(type, 4, 'latin1');
    return bytes;
  }

  test('is read as far as it shows its protection: media', async () => {
    const bytes = Buffer.concat([packagedMedia('rotation/v.mp4'), MEDIA, MEDIA]);
    await fs.writeFile(join(cwd, 'show.mp4'), bytes);
    const { code, stdout, stderr } = await check(['show.mp4']);
    expect([code, reported(stdout), stderr]).toEqual([0, ['This is an mp4 file.'], 'No faults.\n']);
    expect(stdout).toContain('fragment.key_id');
    expect((await check(['-'], bytes)).stdout).toBe(stdout);
  });

  test('is read from a pipe, too', async () => {
    await fs.writeFile(join(cwd, 'show.mp4'), Buffer.concat([packagedMedia('cenc/v.mp4'), MEDIA]));
    execFileSync('mkfifo', [join(cwd, 'pipe.mp4')]);
    const filled = fs
      .createReadStream(join(cwd, 'show.mp4'))
      .pipe(fs.createWriteStream(join(cwd, 'pipe.mp4')));
    filled.on('error', () => undefined);
    const { code, stdout } = await check(['pipe.mp4']);
    expect([code, reported(stdout)]).toEqual([0, ['This is an mp4 file.']]);
  });

  test('is not read when it is a transport stream, which is for verify', async () => {
    const packet = Buffer.alloc(188).fill(0x47, 0, 1);
    await fs.writeFile(join(cwd, 'segment.ts'), Buffer.alloc(188 * 6000, packet));
    const { code, stdout } = await check(['segment.ts']);
    expect([code, reported(stdout).at(-1)]).toEqual([
      1,
      'error: The value is a transport stream, which packager-drm verify tests by its playlist.',
    ]);
  });

  test('is not waited for from a pipe when it is none of these', async () => {
    execFileSync('mkfifo', [join(cwd, 'pipe.txt')]);
    const writer = fs.createWriteStream(join(cwd, 'pipe.txt'));
    const closed = new Promise<void>((resolve) => writer.once('close', () => resolve()));
    writer.on('error', () => undefined).write('x'.repeat(2 * 1024 * 1024));
    expect(await check(['pipe.txt'])).toEqual(
      refused(2, 'pipe.txt is larger than 1 MiB, and neither media nor a manifest or playlist.'),
    );
    await closed;
  });

  test('is read as far as it shows its protection: a manifest, a playlist', async () => {
    const timeline = '<S t="0" d="25600"/>'.repeat(55_000);
    const mpd = packagedManifest('cenc/s.mpd').replace('<SegmentTimeline>', `<SegmentTimeline>${timeline}`);
    await fs.writeFile(join(cwd, 'long.mpd'), mpd);
    const playlist = packagedManifest('fairplay/v.m3u8');
    await fs.writeFile(join(cwd, 'long.m3u8'), playlist + '#EXTINF:2.000,\nv1.m4s\n'.repeat(55_000));
    for (const name of ['long.mpd', 'long.m3u8']) {
      const { stdout } = await check([name, 'news.key']);
      expect(reported(stdout).slice(-1)).toEqual(['They agree.']);
    }
  });
});

test('a CPIX document is reported in any encoding, its keys masked by default', async () => {
  await fs.writeFile(join(cwd, 'film.xml'), madeCpix());
  await fs.writeFile(join(cwd, 'utf16.xml'), asUtf16(madeCpix()));
  const { code, stdout, stderr } = await check(['film.xml']);
  expect([code, stderr, reported(stdout)]).toEqual([0, 'No faults.\n', ['This is a CPIX document.']]);
  expect(stdout).not.toContain(HD.key.toString('base64'));
  expect((await check(['utf16.xml'])).stdout).toBe(stdout);
  expect((await check([], asUtf16(madeCpix(), 'BE'))).stdout).toBe(stdout);
  expect((await check(['utf16.xml', '--reveal'])).stdout).toContain(HD.key.toString('base64'));
  const misnamed = madeCpix().replace('"UTF-8"', '"windows-1252"').replace('film-1', 'fïlm-1');
  expect((await check([], misnamed)).stdout).toContain('names an encoding other than UTF-8 and UTF-16');
});
