import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onceForAll, temporaryFolder } from '../support/after-test';
import { DIST, runScript } from '../support/built-program';
import { processesNaming } from '../support/chain-processes';

const DEMO = join(DIST, 'demo/main.js');

async function newFolder(): Promise<string> {
  const made = await temporaryFolder();
  await mkdir(join(made, 'tmp'));
  return made;
}

/** Starts the demo without a PATH, and so without ffmpeg. */
const start = (cwd: string, args: readonly string[] = [], env: Record<string, string> = {}) =>
  runScript(DEMO, { cwd, args, env: { TMPDIR: join(cwd, 'tmp'), ...env } });

/** The checked parts of a document for players. */
interface Source {
  readonly file: string;
  readonly drm: { readonly clearkey: { readonly url: string; readonly keyIds?: readonly string[] } };
}

/** The leftovers of a demo: processes that know its folder, and temporary files. */
const leftOvers = async (folder: string): Promise<string[]> => [
  ...processesNaming(folder),
  ...(await readdir(join(folder, 'tmp'))),
];

test('packages the clip, shows the key file, tests both streams and ends with --once, whatever the surroundings set, on other ports where its own are taken', async () => {
  const ports = [9000, 8080, 8081, 8082, 1935];
  const servers = ports.map((port) =>
    createServer()
      .on('error', () => undefined)
      .listen(port, '127.0.0.1'),
  );
  const folder = await newFolder();
  await writeFile(join(folder, '.env'), 'PACKAGERDRMAPI_APIKEY_FILE=/nowhere\nEMULATOR_CLIENT=other\n');
  const demo = start(folder, ['--once'], {
    PACKAGERDRMAPI_CHECKS: 'bad',
    EMULATOR_PORT: 'bad',
    PACKAGER_PORT: 'bad',
  });
  const { code, stdout: out, stderr: err } = await demo.ended;
  for (const server of servers) server.close();
  const path = join(folder, 'keys', 'demo.key');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain(`\n\n${await readFile(path, 'utf8')}\nIt is ${path}\n`);
  for (const port of ports) expect(out).toContain(`Port ${port} is taken: the `);
  for (const mode of ['auto', 'manual']) {
    const channel = `Channel \\w{8} \\(${mode}: .*\\)\\n  watch       http.*/embed/channel.html\\?channelId=\\w{8}\\n`;
    expect(out).toMatch(new RegExp(`${channel}  stream key  \\w{40}\\n`));
  }
  expect(out).toMatch(/\n {2}ffmpeg .* rtmp:\/\/127\.0\.0\.1:\d+\/live\/\w{40}\n/);
  for (const ending of ['mpd', 'm3u8']) {
    const command = `\\nnode .+/main\\.js"? verify http://\\S+\\.${ending} keys/demo\\.key\\n\\n`;
    expect(out).toMatch(new RegExp(`${command}(?:.+\\n)*2 renditions: no faults\\. `));
  }
  expect(out.match(/ decrypts$/gm)).toHaveLength(4);
  expect(await leftOvers(folder)).toEqual([]);
});

describe('while it is up', () => {
  const started = onceForAll(async () => {
    const own = await newFolder();
    const demo = start(own);
    await demo.until(/All programs stay up until Ctrl-C\./);
    return { own, demo, said: demo.stdout() };
  });

  // A kill, which comes after all tests, would leave the programs that it has started.
  afterAll(async () => {
    const { demo } = await started();
    demo.send('SIGTERM');
    await demo.ended;
  });

  test('offers a player whose manifest, segments and license fit together', async () => {
    const { said, own } = await started();
    expect(said).toMatch(/\n\nFor a live test picture, install ffmpeg .*, and start the demo again\.\n\n/);
    const [, player = '', mediaId = ''] = /DASH, cenc {3}(\S+mediaId=(\w+))\n/.exec(said) ?? [];
    expect(said).toContain(`  HLS, cbcs    ${player}&format=hls\n`);
    expect((await fetch(player)).status).toBe(200);
    const { origin } = new URL(player);
    const manifest = await fetch(`${origin}/manifests/${mediaId}.mpd`);
    const [, keyId = ''] = /cenc:default_KID="([^"]+)"/.exec(await manifest.text()) ?? [];
    const kid = Buffer.from(keyId.replaceAll('-', ''), 'hex').toString('base64url');
    const document = await fetch(`${origin}/v2/media/${mediaId}`);
    const { playlist } = (await document.json()) as { playlist: { sources: Source[] }[] };
    const [dash, hls] = playlist[0]?.sources ?? [];
    const licenses = await fetch(dash?.drm.clearkey.url ?? '', {
      method: 'POST',
      body: JSON.stringify({ kids: [kid, ...(hls?.drm.clearkey.keyIds ?? [])] }),
    });
    const keyFile = await readFile(join(own, 'keys/demo.key'), 'utf8');
    const keyOf = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(keyFile)?.[1] ?? '';
    const issued = [
      Buffer.from(keyOf('mpegdashstreaming-cenc-content-key'), 'base64'),
      Buffer.from(keyOf('cupertinostreaming-aes128-key'), 'hex'),
    ];
    const { keys } = (await licenses.json()) as { keys: { k: string }[] };
    expect(keys.map(({ k }) => k)).toEqual(issued.map((key) => key.toString('base64url')));
    const playlistOf = await fetch(hls?.file ?? '');
    const [line = ''] = /^video.*$/m.exec(await playlistOf.text()) ?? [];
    expect(await (await fetch(new URL(line, playlistOf.url))).text()).toContain(
      '#EXT-X-KEY:METHOD=SAMPLE-AES',
    );
  });

  test('offers commands that work as they are printed: the simulated encoder, the channels, the pages', async () => {
    const { said } = await started();
    const [, encoder = '', streamKey = ''] =
      /(http:\/\/\S+\/encoder\/connect) -d '{"stream_key":"(\w+)"}'/.exec(said) ?? [];
    const connected = await fetch(encoder, {
      method: 'POST',
      body: JSON.stringify({ stream_key: streamKey }),
    });
    expect(connected.status).toBe(200);
    const [, list = '', secret = ''] = /curl -sS (\S+) -H 'Authorization: Bearer ([^']+)'/.exec(said) ?? [];
    const channels = await fetch(list, { headers: { authorization: `Bearer ${secret}` } });
    expect(await channels.json()).toMatchObject({ total: 2 });
    const pages = said.match(/http:\S+(?:\/dashboard|channelId=\w+)$/gm) ?? [];
    expect(pages).toHaveLength(3);
    for (const page of pages) expect((await fetch(page)).status).toBe(200);
  });

  test('stays up, and takes all programs and files with it on SIGTERM', async () => {
    const { demo, own, said } = await started();
    const urls = said.match(/http:\/\/127\.0\.0\.1:\d+(?=[,.]\s)/g) ?? [];
    expect(urls).toHaveLength(2);
    for (const url of urls) expect((await fetch(`${url}/healthz`)).status).toBe(200);
    demo.send('SIGTERM');
    expect(await demo.ended).toMatchObject({ code: 0, signal: null });
    for (const url of urls) await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
    expect(await leftOvers(own)).toEqual([]);
  });
});

test('leaves no process and no file behind after a Ctrl-C, at whichever moment of the start it comes', async () => {
  const delays = [150, 300, 600, 1200];
  const left = await Promise.all(
    delays.map(async (delay) => {
      const own = await newFolder();
      const demo = start(own);
      await sleep(delay);
      demo.send('SIGINT');
      await sleep(20);
      demo.send('SIGINT');
      await demo.ended;
      return leftOvers(own);
    }),
  );
  expect(left).toEqual(delays.map(() => []));
});
