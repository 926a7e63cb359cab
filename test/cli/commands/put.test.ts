import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fs from 'fs-extra';
import { folderOfEachTest } from '../../support/after-test';
import {
  asUtf16,
  FAIRPLAY,
  FAIRPLAY_URL,
  HD,
  MADE,
  madeCpix,
  madeOfHd,
  PLAYREADY_URL,
  SD,
} from '../../support/made-cpix';
import { POST_MANUAL_FILE } from '../../support/post-manual';
import { type CliOptions, cli, refused } from '../../support/run-cli';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { CONTENT_ID, dashLines, hlsLines, startSpeke } from '../../support/start-speke';

let sidecar: TestSidecar;
const cwd = folderOfEachTest();

beforeEach(async () => {
  sidecar = await startSidecar();
  await fs.writeFile(join(cwd, 'film.xml'), madeCpix());
});

const put = (args: readonly string[], options: Partial<CliOptions> = {}) =>
  cli(['put', ...args], { cwd, sidecar, ...options });

/** The lines of a key file that identify its keys. */
async function keysOf(streamId: string): Promise<string[]> {
  const text = (await sidecar.files())[`${streamId}.key`] ?? '';
  return [
    ...text.matchAll(/^(?:\S*-key-id|\S*-content-key|\S*-license-url|\S*-aes128-(?:url|key|iv)): (.*)$/gm),
  ].map(([, value = '']) => value);
}

const keysFor = ({ keyId, key }: typeof HD) => [
  keyId.toString('base64'),
  key.toString('base64'),
  PLAYREADY_URL,
];
const OF_FAIRPLAY = [
  FAIRPLAY_URL,
  ...[FAIRPLAY.key, FAIRPLAY.iv].map((bytes) => bytes.toString('hex').toUpperCase()),
];
const UUID = '0e58f5d7-4684-4199-a9b1-438646ef4775';

/** Both keys are for the same track, each in a period. */
const OF_PERIODS = madeCpix({
  periods: ['1', '2'].map((index) => ({ id: `p${index}`, index })),
  rules: MADE.rules.map((rule, at) => ({
    ...rule,
    intendedTrackType: 'HD',
    periods: at === 2 ? [] : [`p${at + 1}`],
  })),
});

describe('put with a CPIX document', () => {
  it.each<[how: string, args: readonly string[], file: Buffer | string]>([
    ['by its track', ['--cpix', 'doc', '--track', 'HD'], madeCpix()],
    ['by its key id', ['--cpix', 'doc', '--kid', UUID.toUpperCase()], madeCpix()],
    ['by its track and period', ['--cpix', 'doc', '--track', 'HD', '--period', '2'], OF_PERIODS],
    ['in UTF-16', ['--cpix', 'doc', '--track', 'HD'], asUtf16(madeCpix())],
    ['with --file, too', ['--file', 'doc', '--track', 'HD'], `\ufeff${madeCpix()}`],
    ['from standard input', ['--cpix', '-', '--track', 'HD'], ''],
  ])('writes the key file of the key that is chosen, %s', async (_how, args, file) => {
    await fs.writeFile(join(cwd, 'doc'), file);
    const { code, stdout, stderr } = await put(['live/film', ...args], { stdin: madeCpix() });
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^Wrote the key file of live\/film, ETag /),
    });
    expect(stdout).not.toContain(HD.key.toString('base64'));
    expect(await keysOf('live/film')).toEqual([...keysFor(HD), ...OF_FAIRPLAY]);
  });

  it('needs no choice where there is one key, and takes the systems and the address that are named', async () => {
    await fs.writeFile(join(cwd, 'hd.xml'), madeOfHd());
    await put(['a', '--cpix', 'hd.xml', '--systems', 'Widevine']);
    expect(await keysOf('a')).toEqual(keysFor(HD).slice(0, 2));
    await put(['b', '--cpix', 'hd.xml', '--playready-laurl', 'https://mine.example']);
    expect(await keysOf('b')).toEqual([...keysFor(HD).slice(0, 2), 'https://mine.example']);
  });

  it.each(
    Object.entries({
      '--cpix news.key':
        'news.key is not a CPIX document; give a key file or the body of a request with --file.',
      '--cpix cut.xml': 'cut.xml is not well-formed XML: see line 56.',
      '--cpix film.xml.gz': 'film.xml.gz is compressed by gzip; unpack it first.',
      '--cpix latin.xml': 'latin.xml is neither UTF-8 nor UTF-16; save it as UTF-8.',
      '--cpix none.xml': "The file none.xml can't be read; check the path and who may read it.",
      '--cpix film.xml --cenc-keyid x':
        'film.xml is a CPIX document, which holds the keys; leave --cenc-keyid out.',
      '--file film.xml --keep-unknown':
        'film.xml is a CPIX document, so --keep-unknown keeps nothing; leave it out.',
      '--file news.key --track HD':
        '--track chooses in a CPIX document; give one with --cpix, or leave it out.',
      '--kid abc': '--kid chooses in a CPIX document; give one with --cpix, or leave it out.',
      '--file film.xml --cpix film.xml': "option '--cpix <file>' cannot be used with option '--file <file>'",
    }),
  )('refuses %s, and sends nothing', async (args, sentence) => {
    await fs.writeFile(join(cwd, 'news.key'), POST_MANUAL_FILE);
    await fs.writeFile(join(cwd, 'cut.xml'), madeCpix().slice(0, -20));
    await fs.writeFile(join(cwd, 'film.xml.gz'), gzipSync(madeCpix()));
    await fs.writeFile(join(cwd, 'latin.xml'), Buffer.from(madeCpix({ contentId: 'é' }), 'latin1'));
    expect(await put(['a', ...args.split(' ')])).toEqual(refused(2, sentence));
    expect(await sidecar.files()).toEqual({});
  });
});

describe('put with the tracks of a CPIX document', () => {
  it('writes the key files of all of them in one request', async () => {
    const tracks = ['--tracks', 'SD=news_sd, HD=news_720p', '--tracks', 'HD=news_1080p'];
    expect(await put(['--cpix', 'film.xml', '--systems', 'widevine,playready', ...tracks])).toEqual({
      code: 0,
      stdout: '3 streams created\n  + news_sd\n  + news_720p\n  + news_1080p\n',
      stderr: 'film.xml: 3 created.\n',
    });
    expect(await Promise.all(['news_sd', 'news_720p', 'news_1080p'].map(keysOf))).toEqual([
      keysFor(SD),
      keysFor(HD),
      keysFor(HD),
    ]);
    const requests = (await sidecar.logEntries()).filter((entry) =>
      JSON.stringify(entry).includes('/api/keyfile'),
    );
    expect(requests).toHaveLength(1);
  });

  it('says which track there is no key for, and writes the others', async () => {
    const args = ['--cpix', 'film.xml', '--systems', 'widevine', '--tracks', 'SD=news_sd,UHD=news_uhd'];
    const { code, stdout } = await put(args);
    expect([code, Object.keys(await sidecar.files())]).toEqual([1, ['news_sd.key']]);
    expect(stdout).toMatch(/ ! news_uhd\n {6}The CPIX document has no such track; it has SD, HD\.\n$/);
  });

  it('shows what would be written with --dry-run, also as JSON', async () => {
    const args = ['--cpix', 'film.xml', '--systems', 'widevine', '--tracks', 'HD=news_hd', '--dry-run'];
    expect(await put(args)).toEqual({
      code: 0,
      stdout: '1 stream would be created\n  + news_hd\n',
      stderr: 'Nothing was written.\n',
    });
    expect(JSON.parse((await put([...args, '--json'])).stdout)).toMatchObject({ dry_run: true });
    expect(await sidecar.files()).toEqual({});
  });

  it.each(
    Object.entries({
      'a --cpix film.xml --tracks HD=b': '--tracks names the streams; leave the stream id out.',
      '--cpix film.xml --tracks HD=b --track SD':
        "option '--tracks <track=streamid>' cannot be used with option '--track <name>'",
      '--cpix film.xml --tracks HD=b --create-only':
        "option '--tracks <track=streamid>' cannot be used with option '--create-only'",
      '--cpix film.xml --tracks HD=b --reveal':
        "option '--reveal' cannot be used with option '--tracks <track=streamid>'",
      '--tracks HD=b': '--tracks goes with a CPIX document or a content; give --cpix or --content-id.',
      '--file news.key --tracks HD=b': '--tracks goes with a CPIX document, which news.key is not.',
      '--cpix film.xml --tracks HD':
        "option '--tracks <track=streamid>' argument 'HD' is invalid. It must be a track and a stream id, such as SD=news_sd.",
      '--cpix film.xml':
        'The stream is missing: give its id, or, with --cpix or --content-id, --tracks SD=news_sd,HD=news_hd.',
    }),
  )('refuses %s, and sends nothing', async (args, sentence) => {
    await fs.writeFile(join(cwd, 'news.key'), POST_MANUAL_FILE);
    expect(await put(args.split(' '))).toEqual(refused(2, sentence));
    expect(await sidecar.files()).toEqual({});
  });
});

test('a key for AES-128 comes as options, and in a manifest of YAML or CSV', async () => {
  const [key, iv, url] = ['0F1E2D3C4B5A69788796A5B4C3D2E1F0', 'A'.repeat(32), 'https://keys.example/a'];
  await fs.writeFile(join(cwd, 'a.yaml'), `streams: [{ streamid: b, aes: { key: ${key}, url: "${url}" } }]`);
  await fs.writeFile(join(cwd, 'a.csv'), `streamid,aes.key,aes.url,aes.iv\nc,${key},${url},${iv}\n`);
  await put(['a', '--aes-key', key, '--aes-url', url, '--aes-iv', iv]);
  for (const name of ['a.yaml', 'a.csv']) await cli(['apply', name, '--yes'], { cwd, sidecar });
  expect(await Promise.all(['a', 'b', 'c'].map(keysOf))).toEqual([
    [url, key, iv],
    [url, key],
    [url, key, iv],
  ]);
});

describe('with a sidecar whose key provider speaks SPEKE, and so needs no client', () => {
  beforeEach(async () => {
    ({ sidecar } = await startSpeke());
  });

  it('writes the keys of a content id alone, and of the systems that are named', async () => {
    expect(await put(['a', '--content-id', CONTENT_ID])).toMatchObject({ code: 0 });
    const named = ['b', '--content-id', CONTENT_ID, '--systems', 'widevine,playready'];
    expect(await put(named)).toMatchObject({ code: 0 });
    const all = `${dashLines()}${hlsLines()}`;
    expect(await sidecar.files()).toEqual({ 'a.key': all, 'b.key': dashLines() });
  });

  it('gives each track of a content its key, as apply does', async () => {
    const named = ['--content-id', CONTENT_ID, '--systems', 'fairplay'];
    const stderr = `${CONTENT_ID}: 2 created.\n`;
    expect(await put([...named, '--tracks', 'SD=a,HD=b'])).toMatchObject({ code: 0, stderr });
    expect(await put(['c', ...named, '--track', 'HD'])).toMatchObject({ code: 0 });
    const group = `{ folder: live, contentId: ${CONTENT_ID}, systems: [fairplay], tracks: { SD: d, HD: [e, f] } }`;
    await fs.writeFile(join(cwd, 'line-up.yaml'), `groups:\n  - ${group}\n`);
    expect(await cli(['apply', 'line-up.yaml', '--yes'], { cwd, sidecar })).toMatchObject({ code: 0 });
    const [sd, hd] = [hlsLines(CONTENT_ID, 'SD'), hlsLines(CONTENT_ID, 'HD')];
    expect(await sidecar.files()).toEqual({
      ...{ 'a.key': sd, 'b.key': hd, 'c.key': hd, live: 'folder' },
      ...{ 'live/d.key': sd, 'live/e.key': hd, 'live/f.key': hd },
    });
  });
});
