import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const DEMO = join(__dirname, '../../dist/emulator/demo.js');
const EMULATOR = join(__dirname, '../../dist/emulator/main.js');

const KEY_FILE = `mpegdashstreaming-cenc-key-id: Dlj11ea0QZepsUOGRu9HZQ==
mpegdashstreaming-cenc-content-key: SvEMxZMGndWHIqCMoD45YA==
mpegdashstreaming-cenc-algorithm: AESCTR
mpegdashstreaming-cenc-keyserver-widevine: true
mpegdashstreaming-cenc-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
mpegdashstreaming-cenc-keyserver-widevine-pssh-data: IgRkZW1vSOPclZsG
mpegdashstreaming-cenc-keyserver-playready: true
mpegdashstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
mpegdashstreaming-cenc-keyserver-playready-license-url: https://playready-license.example.com/rightsmanager.asmx
mpegdashstreaming-cenc-keyserver-playready-checksum: Dxfit8olywo=
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: skd://fairplay-license.example.com/license/demo
cupertinostreaming-aes128-key: E6B073C959B1C944FFDCEFF8200D8308
cupertinostreaming-aes128-iv: EC8180E2BD03752DD1D768E2705BBB3E
cupertinostreaming-aes128-iv-include-in-chunklist: false
cupertinostreaming-aes128-key-format: com.apple.streamingkeydelivery
cupertinostreaming-aes128-key-format-version: 1
`;

let folder: string;
const started: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'demo-'));
});

afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGTERM');
  await rm(folder, { recursive: true });
});

function start(program: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  return child;
}

async function run(program: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = start(program, args, env);
  const [[code], out, err] = await Promise.all([
    once(child, 'close'),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, out, err };
}

async function untilSaid(child: ReturnType<typeof start>, words: string): Promise<string> {
  let said = '';
  for await (const chunk of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += chunk;
    if (said.includes(words)) break;
  }
  return said;
}

test('provisions the stream, shows its key file and ends with --once, whatever the surroundings set', async () => {
  await writeFile(join(folder, '.env'), 'PACKAGERDRMAPI_APIKEY_FILE=/nowhere\nEMULATOR_CLIENT=other\n');
  const { code, out, err } = await run(DEMO, ['--once'], {
    PACKAGERDRMAPI_CHECKS: 'bad',
    EMULATOR_PORT: 'bad',
  });
  const path = join(folder, 'keys', 'demo.key');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain(`\n\n${KEY_FILE}\nIt lies at ${path}\n`);
  expect(await readFile(path, 'utf8')).toBe(KEY_FILE);
  for (const mode of ['auto', 'manual']) {
    expect(out).toMatch(
      new RegExp(
        `Channel \\w{8} \\(${mode}: .*\\)\\n  stream key  \\w{40}\\n  watch       http.*/embed/channel.html\\?channelId=\\w{8}\\n  stream      ffmpeg .* rtmp://127.0.0.1:\\d+/live/\\w{40}\\n`,
      ),
    );
  }
});

// Here and not beside other provisioning: two demos at a time, in two test files, would take each other's ports.
test('shows the key file that it provisioned, and ends with 0, as npm run demo -- --once', async () => {
  const { code, out, err } = await run(DEMO, ['--once']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const path = join(folder, 'keys', 'demo.key');
  const written = await readFile(path, 'utf8');
  expect(written.split('\n')).toHaveLength(18);
  expect(out).toContain(written);
  expect(out).toContain(path);
}, 30_000);

test('offers commands that work as they are printed: the simulated encoder, the channels, the pages', async () => {
  const demo = start(DEMO, []);
  const said = await untilSaid(demo, 'Both stay up until Ctrl-C.');
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

test('stays up, and takes both programs with it on SIGTERM', async () => {
  const demo = start(DEMO, []);
  const said = await untilSaid(demo, 'Both stay up until Ctrl-C.');
  const urls = said.match(/http:\/\/127\.0\.0\.1:\d+(?=[,.]\s)/g) ?? [];
  expect(urls).toHaveLength(2);
  for (const url of urls) expect((await fetch(`${url}/healthz`)).status).toBe(200);
  demo.kill('SIGTERM');
  expect(await once(demo, 'close')).toEqual([0, null]);
  for (const url of urls) await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
});

test('explains itself with --help, and ends with 2 on an unknown option', async () => {
  expect(await run(DEMO, ['--help'])).toEqual({
    code: 0,
    out: expect.stringContaining('Usage: npm run demo'),
    err: '',
  });
  expect(await run(DEMO, ['--onec'])).toEqual({ code: 2, out: '', err: expect.stringContaining("'--onec'") });
});

test('refuses to start the emulator on a faulty configuration, and quotes no value', async () => {
  const result = await run(EMULATOR, [], { EMULATOR_PORT: 'x', EMULATOR_CLIENT_SHARED_SECRET: 'short' });
  expect(result).toEqual({
    code: 2,
    out: '',
    err:
      'The configuration has 2 faults:\n  - EMULATOR_PORT: must be a port number\n' +
      '  - EMULATOR_CLIENT_SHARED_SECRET: must have at least 16 bytes\nSee docs/emulator.md.\n',
  });
});

test('starts the emulator on a misspelt variable with a warning, and ends it with 0 on SIGTERM', async () => {
  const emulator = start(EMULATOR, [], {
    EMULATOR_PORT: '0',
    EMULATOR_CONTROL_PORT: '0',
    EMULATOR_RTMP_PORT: 'off',
    EMULATOR_PROT: '1',
  });
  const said = await untilSaid(emulator, '"listening"');
  expect(said).toContain('EMULATOR_PROT (did you mean EMULATOR_PORT?)');
  emulator.kill('SIGTERM');
  expect(await once(emulator, 'close')).toEqual([0, null]);
});
