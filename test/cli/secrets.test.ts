import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { startFakeSidecar } from '../support/fake-sidecar';
import { startFakeUpstream } from '../support/fake-upstream';
import { cli } from '../support/run-cli';
import { API_KEY, startSidecar } from '../support/start-sidecar';

const CONTENT_KEY = 'lnA03mLuxnL3toiRMxV4Zw==';
const FAIRPLAY = { key: 'CBF76BB43B9A54254A5FC20074A3A53B', iv: '1A3F2AA76D84742DD123E3E50E7BC681' };
const CLIENT_API_KEY = 'client-api-key-that-is-secret';
const SECRETS = [API_KEY, CLIENT_API_KEY, CONTENT_KEY, FAIRPLAY.key, FAIRPLAY.iv];
// As hex and without its padding, too: a description may hold the bytes in another form.
const FORMS = [...SECRETS, CONTENT_KEY.slice(0, -2), Buffer.from(CONTENT_KEY, 'base64').toString('hex')];

const BODY = {
  cenc: { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: CONTENT_KEY },
  fairplay: { ...FAIRPLAY, laurl: 'skd://h/a' },
};
const AS_OPTIONS = [
  ...['--cenc-keyid', BODY.cenc.keyid, '--cenc-contentkey', CONTENT_KEY],
  ...['--fairplay-key', FAIRPLAY.key, '--fairplay-iv', FAIRPLAY.iv, '--fairplay-laurl', BODY.fairplay.laurl],
];
const CLIENT = ['--client', 'acme', '--client-api-key', CLIENT_API_KEY];

const FILES: Readonly<Record<string, string>> = {
  'body.json': JSON.stringify(BODY),
  'broken.json': `{"cenc": {"contentkey": "${CONTENT_KEY}" "${FAIRPLAY.key}"`,
  'unknown.json': JSON.stringify({
    ...BODY,
    [CONTENT_KEY]: 1,
    cenc: { ...BODY.cenc, keyid: CONTENT_KEY.slice(1) },
  }),
  'manifest.yaml': `streams: [{ streamid: a, cenc: { keyid: "${BODY.cenc.keyid}", contentkey: "${CONTENT_KEY}" } }]\n`,
  'broken.yaml': `streams:\n  - cenc: { contentkey: "${CONTENT_KEY}" "${FAIRPLAY.key}" }\n`,
  'wrong.yaml': `streams:\n  - { streamid: a, cenc: ${CONTENT_KEY}, clientApiKey: [${CLIENT_API_KEY}] }\n`,
  'manifest.csv': `streamid,cenc.keyid,cenc.contentkey\na,${BODY.cenc.keyid},${CONTENT_KEY}\n`,
  'broken.csv': `streamid,cenc.contentkey\na,"${CONTENT_KEY}"${FAIRPLAY.key}\n`,
  'headless.csv': `q/a,${BODY.cenc.keyid},${CONTENT_KEY}\n`,
  'odd-header.csv': `streamid,${CONTENT_KEY}\na,b\n`,
  'blank.yaml': `streams:\n  - { streamid: a, cenc: {keyid: ${BODY.cenc.keyid}, contentkey:${CONTENT_KEY}} }\n`,
  'blank-body.yaml': `cenc: {keyid: ${BODY.cenc.keyid}, contentkey:${CONTENT_KEY}}\n`,
  'twice.yaml': `{ ${CONTENT_KEY}: 1, ${CONTENT_KEY}: 2 }\n`,
  'wrong.csv': `streamid,cenc.contentkey\na,${CONTENT_KEY},${FAIRPLAY.key}\n`,
};

const COMMANDS: readonly (readonly string[])[] = [
  ['put', 'a', ...AS_OPTIONS],
  ['put', 'a', ...AS_OPTIONS, '--dry-run'],
  ['put', 'a', '--file', 'body.json'],
  ['put', 'a', '--file', 'broken.json'],
  ['put', 'a', '--content-id', 'c', ...CLIENT],
  ['put', 'a', `--clientapikey=${CLIENT_API_KEY}`],
  ['put', 'a', '--cenc-keyid', CONTENT_KEY, '--cenc-contentkey', FAIRPLAY.key],
  ['get', 'a'],
  ['get', 'odd'],
  ['list'],
  ['check', 'body.json'],
  ['check', 'unknown.json'],
  ['check', 'broken.json'],
  ['put', 'a', '--file', 'blank-body.yaml'],
  ['put', 'a', '--file', 'twice.yaml'],
  ...Object.keys(FILES)
    .filter((name) => !name.endsWith('.json'))
    .map((name) => ['apply', name, '--yes', ...CLIENT]),
  ...['manifest.yaml', 'blank.yaml', 'wrong.csv'].flatMap((name) => [
    ['rotate', name, '--yes', '--verbose', ...CLIENT],
    ['delete', '--not-in', name, '--yes'],
  ]),
  ['list', '--csv'],
  ['delete', 'a'],
  ['delete', 'a', 'odd', '--yes'],
  ['get', 'a', '--key', `${API_KEY} with a space`],
  ['get', 'a', '--key', CLIENT_API_KEY],
];

let cwd: string;

beforeEach(async () => {
  cwd = await temporaryFolder();
  for (const [name, text] of Object.entries(FILES)) await fs.writeFile(join(cwd, name), text);
});

async function leaks(url: string, args: readonly string[]): Promise<string[]> {
  const env = { PACKAGERDRM_URL: url, PACKAGERDRM_APIKEY: API_KEY };
  const found: string[] = [];
  for (const json of [[], ['--json']]) {
    const { stdout, stderr } = await cli([...args, ...json], { cwd, env });
    const text = `${stdout}${stderr}`.toLowerCase();
    expect(text).not.toBe('');
    found.push(...FORMS.filter((form) => text.includes(form.toLowerCase())));
  }
  return found;
}

test.each(COMMANDS.map((args) => [args.slice(0, 4).join(' '), args] as const))(
  'shows no secret with a real sidecar: %s',
  async (_name, args) => {
    const sidecar = await startSidecar();
    await sidecar.api.post('/api/keyfile/a').send(BODY);
    const odd = `${CONTENT_KEY}\n# ${CONTENT_KEY}\nmy-key: ${CONTENT_KEY}\nmpegdashstreaming-cenc-content-key:${CONTENT_KEY}\n`;
    await fs.writeFile(join(sidecar.folder, 'odd.key'), odd);
    expect(await leaks(sidecar.url, args)).toEqual([]);
  },
);

test.each(['manifest.yaml', 'manifest.csv'])('shows no secret while it applies %s', async (name) => {
  const { url } = await startFakeSidecar();
  expect(await leaks(url, ['apply', name, '--yes', ...CLIENT])).toEqual([]);
});

test('shows no secret when something else answers', async () => {
  const { url } = await startFakeUpstream();
  expect(await leaks(url, ['put', 'a', ...AS_OPTIONS])).toEqual([]);
});
