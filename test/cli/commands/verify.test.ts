import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import fs from 'fs-extra';
import { formatUuid } from '../../../src/drm/bytes';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import { fairPlayKeyId } from '../../../src/drm/packaging';
import { type CliOptions, cli, refused } from '../../support/run-cli';
import { API_KEY, startSidecar } from '../../support/start-sidecar';
import {
  CONTENT_KEY,
  dashPackaging,
  FAIRPLAY_IV,
  FAIRPLAY_URL,
  hlsPackaging,
  KEY_FILE,
  keyFileText,
  type ServedStream,
  startStream,
} from '../../support/start-stream';
import { pem } from '../../support/tls';

const UUID = '4b6a75d3-8049-4edc-b82a-c7a2680c5781';
const OTHER = { cenc: { keyId: KEY_FILE.cenc?.keyId ?? '', contentKey: '/+7dzLuqmYh3ZlVEMyIRAA==' } };

const ENCRYPTED = `<pskc:EncryptedValue xmlns:enc="http://www.w3.org/2001/04/xmlenc#">
  <enc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc"/>
  <enc:CipherData><enc:CipherValue>${'A'.repeat(64)}</enc:CipherValue></enc:CipherData></pskc:EncryptedValue>`;

async function start(kind: 'dash' | 'hls' = 'dash') {
  const stream = await startStream(kind);
  await fs.writeFile(join(stream.folder, 'news.key'), keyFileText());
  await fs.writeFile(join(stream.folder, 'new.key'), keyFileText(OTHER));
  const address = `${stream.url}/${stream.manifest}`;
  const verify = (args: readonly string[], options = {}) =>
    cli(['verify', address, ...args], { cwd: stream.folder, ...options });
  return { stream, address, verify };
}

test('a stream that decrypts ends with 0, and shows renditions, systems and a sum', async () => {
  const { verify, address } = await start();
  const { code, stdout, stderr } = await verify(['news.key']);
  expect({ code, lines: stdout.split('\n').slice(0, 7), stderr }).toEqual({
    code: 0,
    lines: [
      `${address} is a DASH stream, on demand.`,
      expect.stringMatching(/^ {2}Rendition +Codec +Scheme +Key id +Segment +Samples$/),
      expect.stringMatching(
        `^  video 160x90 \\d+ kb/s +avc1\\S+ +cenc +${UUID} +v3\\.m4s, 2\\.0 s, 7 kB +decrypts$`,
      ),
      expect.stringMatching(
        `^  audio \\d+ kb/s +mp4a\\.40\\.2 +cenc +${UUID} +a3\\.m4s, 2\\.0 s, 6 kB +decrypts$`,
      ),
      expect.stringMatching(/^ {2}video 160x90 \d+ kb\/s: \S/),
      expect.stringMatching(/^ {2}audio \d+ kb\/s: \S/),
      'Widevine in m.mpd, v.mp4, a.mp4',
    ],
    stderr: expect.stringMatching(/^2 renditions: no faults\. \(7 requests, \d+ kB, \d+\.\d s\)\n$/),
  });
  expect(stdout + stderr).not.toContain(CONTENT_KEY);
});

test('without a key file it says that nothing was decrypted', async () => {
  const { verify } = await start();
  expect(await verify([])).toEqual({
    code: 0,
    stdout: expect.stringMatching(/ encrypted$/m),
    stderr: expect.stringContaining('Nothing was decrypted: give the key file'),
  });
});

test('a key in the playlist decrypts, without a report that nothing was decrypted', async () => {
  const stream = await startStream('hls', { packaging: dashPackaging(), flags: [] });
  const key = Buffer.from(CONTENT_KEY, 'hex').toString('base64');
  const line = `#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,${key}",KEYFORMAT="identity"`;
  await stream.change('v.m3u8', (text) => text.replace(/#EXT-X-KEY:.*/, line));
  const { stdout, stderr } = await cli(['verify', `${stream.url}/v.m3u8`], { cwd: stream.folder });
  expect(stdout).toMatch(/ decrypts$/m);
  expect(stderr).not.toContain('Nothing was decrypted');
});

test('how a rendition is encrypted is unknown without a segment, unless its init segment says it', async () => {
  const { verify, stream } = await start();
  for (const file of ['v.mp4', 'a1.m4s', 'a2.m4s', 'a3.m4s']) await fs.remove(join(stream.folder, file));
  await stream.change('m.mpd', (text) =>
    text.replaceAll(/<ContentProtection[\s\S]*?<\/ContentProtection>/g, ''),
  );
  const { stdout } = await verify([]);
  expect(stdout).toMatch(/^ {2}video .* unknown +- +- +-$/m);
  expect(stdout).toMatch(/^ {2}audio .* cenc .* +- +-$/m);
});

test('a former key file identifies a packager that was not restarted', async () => {
  const { verify } = await start();
  const { code, stdout } = await verify(['new.key', '--former', 'news.key', '--json']);
  const { faults, renditions } = JSON.parse(stdout);
  expect([code, faults.map(({ code: each }: { code: string }) => each)]).toEqual([1, ['former_key']]);
  const [{ keyIds, judgement }] = renditions;
  expect(judgement.tracks[0].keyId).toBe(keyIds[0]);
});

test('the former key file is blamed for a newer one of the sidecar, and for no copy on this machine', async () => {
  const { verify, stream } = await start('hls');
  for (const file of ['v.m3u8', 'a.m3u8'])
    await stream.change(file, (text) =>
      text
        .replaceAll(/#EXT-X-(?:ENDLIST|PLAYLIST-TYPE:VOD)\n?/g, '')
        .replace('#EXTINF', '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T12:00:00Z\n#EXTINF'),
    );
  const fairplay = { licenseUrl: FAIRPLAY_URL, key: 'ff'.repeat(16), iv: FAIRPLAY_IV };
  await fs.writeFile(join(stream.folder, 'copy.key'), keyFileText({ fairplay }));
  const sidecar = await startSidecar();
  await fs.writeFile(join(sidecar.folder, 'news.key'), keyFileText({ fairplay }));
  const blame = 'most likely the packager still uses the former';
  expect((await verify(['copy.key'])).stdout).not.toContain(blame);
  expect((await verify(['--stream', 'news'], { sidecar })).stdout).toContain(blame);
});

test('a stream that the sidecar has no key file of is named, and nothing is fetched', async () => {
  const { verify, stream } = await start();
  const sidecar = await startSidecar();
  expect(await verify(['--stream', 'live/nwes'], { sidecar })).toEqual(
    refused(1, 'The sidecar has no key file of live/nwes: provision it, or correct --stream.'),
  );
  expect(stream.requests).toEqual([]);
});

test('a key file that is given where the API key belongs is taken as what it is', async () => {
  const { verify } = await start();
  const { code, stdout } = await verify(['--key-file', 'news.key']);
  expect([code, stdout.match(/ decrypts$/gm)?.length]).toEqual([0, 2]);
});

test('API key and authority of pipes, which are empty the second time, are read once', async () => {
  const { verify, stream } = await start();
  const sidecar = await startSidecar();
  await fs.copy(join(stream.folder, 'news.key'), join(sidecar.folder, 'news.key'));
  const texts = { key: API_KEY, ca: pem('authority') };
  const writers = Object.entries(texts).map(([name, text]) => {
    const pipe = join(stream.folder, name);
    execFileSync('mkfifo', [pipe]);
    const script = `printf %s '${text}' > '${pipe}'; while :; do : > '${pipe}'; done`;
    return spawn('sh', ['-c', script], { stdio: 'ignore' });
  });
  const { code } = await verify(['--stream', 'news', '--key-file', 'key', '--ca', 'ca'], { sidecar });
  for (const writer of writers) writer.kill('SIGKILL');
  expect(code).toBe(0);
});

test.each(
  Object.entries({
    '--key-file news.key --key-file new.key': "error: option '--key-file <file>' argument",
    'body.txt': 'error: body.txt is not a key file',
    'missing.key': "error: The file missing.key can't be read",
  }),
)('%j is refused before anything is fetched', async (args, message) => {
  const { verify, stream } = await start();
  await fs.writeFile(join(stream.folder, 'body.txt'), 'hello');
  const { code, stderr } = await verify(args.split(' '));
  expect([code, stderr.slice(0, message.length), stream.requests]).toEqual([2, message, []]);
});

test('an address that is none is refused', async () => {
  const { code, stderr } = await cli(['verify', 'init.mp4'], { cwd: '/' });
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: There is no/)]);
});

test('a stream that is not there ends with 1, as JSON too', async () => {
  const { stream } = await start();
  const { code, stdout } = await cli(['verify', `${stream.url}/none.mpd`, '--json'], { cwd: stream.folder });
  const description = `${stream.url}/none.mpd is not there (404); check the path, and whether the stream is running.`;
  expect(code).toBe(1);
  expect(JSON.parse(stdout).faults).toEqual([{ severity: 'error', code: 'not_found', description }]);
});

describe('--watch', () => {
  /** A playlist that grows by a segment with each pause, until Ctrl-C. */
  async function watch(
    atPause: (pause: number, stream: ServedStream) => unknown = () => undefined,
    args: readonly string[] = ['news.key'],
    { before, ...options }: { before?: (stream: ServedStream) => Promise<void> } & Partial<CliOptions> = {},
  ) {
    const { stream, verify } = await start('hls');
    await before?.(stream);
    const whole = new Map<string, string>();
    const show = async (segments: number) => {
      for (const file of ['v.m3u8', 'a.m3u8']) {
        const text = whole.get(file) ?? (await fs.readFile(join(stream.folder, file), 'utf8'));
        whole.set(file, text);
        const parts = text.replace(/#EXT-X-(?:ENDLIST|PLAYLIST-TYPE:VOD)\n?/g, '').split(/(?=#EXTINF)/);
        await fs.writeFile(join(stream.folder, file), parts.slice(0, segments + 1).join(''));
      }
    };
    await show(1);
    const interrupt = new AbortController();
    let pause = 0;
    const onWait = async () => {
      pause += 1;
      if (pause === 3) interrupt.abort();
      await show(pause + 1);
      await atPause(pause, stream);
    };
    const run = await verify([...args, '--watch'], { ...options, interrupt: interrupt.signal, onWait });
    return { ...run, stream };
  }

  test('tests each new segment once, until Ctrl-C', async () => {
    const { code, stderr, stream } = await watch();
    expect(code).toBe(0);
    expect(stderr).toMatch(/^6 segments in 0 s: no faults\.$/m);
    const segments = stream.requests.filter((path) => path.endsWith('.m4s'));
    expect(segments.sort()).toEqual(['/a1.m4s', '/a2.m4s', '/a3.m4s', '/v1.m4s', '/v2.m4s', '/v3.m4s']);
    expect(stream.requests.filter((path) => path === '/v.mp4')).toEqual(['/v.mp4']);
  });

  test('reports each fault with its time, and ends with 1 although it is over', async () => {
    const { code, stdout, stderr } = await watch((pause, { answers }) => {
      if (pause === 1) answers.set('/v.m3u8', (_request, response) => response.writeHead(404).end());
      else answers.clear();
    });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^1970-01-01 00:00:00 error: \S+\/v\.m3u8 is not there \(404\)/m);
    expect(stdout).toMatch(/^1970-01-01 00:00:00 over: playlist_not_found$/m);
    expect(stderr).toMatch(
      / segments in 0 s: 1 error, 0 warnings\.\n {2}1970-01-01 00:00:00 to 1970-01-01 00:00:00: playlist_not_found\n$/,
    );
  });

  test('a fault of the segments is not over while the stream is away', async () => {
    const { stdout } = await watch((pause, { answers }) => {
      if (pause === 1) answers.set('/v2.m4s', (_request, response) => response.end('<html>'));
      if (pause === 2) answers.set('/master.m3u8', (_request, response) => response.writeHead(500).end());
    });
    expect(stdout.match(/(?<=^1970\S+ \S+ )(?:over: .*|error: .*(?=: The| answers))/gm)).toEqual([
      'error: In v2.m4s',
      expect.stringMatching(/^error: \S+\/master\.m3u8$/),
    ]);
  });

  test('a fault of the picture is not over with a new segment of the sound alone', async () => {
    const { stdout } = await watch((pause, { answers, folder }) => {
      if (pause === 1) answers.set('/v2.m4s', (_request, response) => response.end('<html>'));
      if (pause !== 2) return;
      // The playlist of the picture does not change for one look.
      const parts = fs.readFileSync(join(folder, 'v.m3u8'), 'utf8').split(/(?=#EXTINF)/);
      answers.set('/v.m3u8', (_request, response) => response.end(parts.slice(0, -1).join('')));
    });
    expect(stdout).toMatch(/ error: In v2\.m4s: The segment is a web page/);
    expect(stdout).not.toContain(' over: ');
  });

  test('names each change of keys that the sidecar has, and a segment that has the next or the former key', async () => {
    const sidecar = await startSidecar();
    const fairplay = { licenseUrl: 'skd://fairplay.example.com/next', key: '5a'.repeat(16), iv: FAIRPLAY_IV };
    const next = keyFileText({ fairplay });
    const flags = ['--protection_systems=FairPlay', `--hls_key_uri=${fairplay.licenseUrl}`];
    const other = await startStream('hls', { packaging: hlsPackaging(next), flags });
    const put = async ({ folder }: ServedStream, name: string, text: string) => {
      await fs.writeFile(join(folder, name), text);
      expect((await cli(['put', 'live/news', '--file', name], { cwd: folder, sidecar })).code).toBe(0);
    };
    const before = async (stream: ServedStream) => {
      await put(stream, 'first.key', keyFileText());
      for (const kind of ['v', 'a']) {
        await fs.copy(join(other.folder, `${kind}.mp4`), join(stream.folder, `${kind}-next.mp4`));
        const theirs = await fs.readFile(join(other.folder, `${kind}.m3u8`), 'utf8');
        const [key = ''] = theirs.match(/^#EXT-X-KEY:.*streamingkeydelivery.*$/m) ?? [];
        const map = `${key}\n#EXT-X-MAP:URI="${kind}-next.mp4"`;
        await stream.change(`${kind}.m3u8`, (text) => {
          const parts = text.split(/(?=#EXTINF)/);
          // The second one names the former key, and the third one the next.
          return [...parts.slice(0, 3), `${map}\n`, ...parts.slice(3)].join('');
        });
      }
      // The picture changes its key a segment too early, and the sound one too late.
      await fs.copy(join(other.folder, 'v2.m4s'), join(stream.folder, 'v2.m4s'));
      await fs.copy(join(other.folder, 'v3.m4s'), join(stream.folder, 'v3.m4s'));
    };
    const change = (pause: number, stream: ServedStream) =>
      pause === 1 ? put(stream, 'next.key', next) : undefined;
    const { code, stdout } = await watch(change, ['--stream', 'live/news'], { before, sidecar });
    expect(code).toBe(1);
    const lines = stdout.match(/^1970.*$/gm);
    const [id, nextId] = [FAIRPLAY_URL, fairplay.licenseUrl].map((url) => formatUuid(fairPlayKeyId(url)));
    expect(lines).toEqual([
      expect.stringMatching(
        /error: v2\.m4s is already encrypted with the key of the key file of live\/news, but it names the key of the key file of live\/news until 1970-01-01 00:00:00/,
      ),
      expect.stringMatching(`new key: video 160x90 has ${nextId} from /v3.m4s on, ${id} before$`),
      expect.stringMatching(`new key: audio \\S.* has ${nextId} from /a3.m4s on, ${id} before$`),
      expect.stringMatching(
        /error: a3\.m4s is still encrypted with the key of the key file of live\/news until .*, but it names the key of the key file of live\/news,/,
      ),
      expect.stringMatching(/over: next_key$/),
    ]);
    expect(stdout).not.toContain(fairplay.key);
  });

  test('ends when the reader of its output is gone', async () => {
    const output = new Writable({ write: () => void output.destroy() });
    const { code, stderr } = await watch(undefined, ['news.key'], { output });
    expect(code).toBe(0);
    expect(stderr).toMatch(/^2 segments in 0 s: no faults\.$/m);
  });

  test('with --json, each look that brought something is one line', async () => {
    const { stdout } = await watch(undefined, ['news.key', '--json']);
    const looks = stdout.match(/^.+$/gm)?.map((line) => JSON.parse(line));
    expect(looks?.map(({ renditions }) => renditions[0].segment.number)).toEqual([0, 1, 2]);
  });
});

test('a CPIX document decrypts in place of a key file; one without plain keys is refused with what to do', async () => {
  const { verify, stream } = await start();
  const exported = exportKeyFile(keyFileText(), 'cpix', undefined);
  const text = exported.ok ? exported.text : '';
  const give = (name: string, content: string | Buffer) => fs.writeFile(join(stream.folder, name), content);
  await give('show.cpix', Buffer.from(`\ufeff${text}`, 'utf16le'));
  expect(await verify(['show.cpix'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/ decrypts\n/),
    stderr: expect.stringContaining('2 renditions: no faults'),
  });
  expect((await verify(['show.cpix', '--watch'])).stderr).toMatch(/^The stream is finished: /m);
  expect((await verify(['show.cpix'], { typed: '' })).stderr).toMatch(/Tested 2 of 2 █/);
  const stopped = { code: 130, stdout: '', stderr: 'Stopped.\n' };
  expect(await verify(['show.cpix'], { interrupt: AbortSignal.abort() })).toEqual(stopped);
  await give('sealed.cpix', text.replaceAll(/<pskc:PlainValue>[^<]+<\/pskc:PlainValue>/g, ENCRYPTED));
  await give('request.cpix', text.replaceAll(/<cpix:Data>.*?<\/cpix:Data>/gs, ''));
  await give('broken.cpix', text.slice(0, 500));
  for (const [name, problem] of Object.entries({
    'sealed.cpix': 'has encrypted content keys',
    'request.cpix': 'has no content keys',
    'broken.cpix': 'broken.cpix ',
  }))
    expect(await verify([name])).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(problem) });
});
