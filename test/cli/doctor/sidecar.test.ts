import { join } from 'node:path';
import { CliError, EXIT } from '../../../src/cli/cli-error';
import { createHttpCall, createSidecarApi } from '../../../src/cli/client';
import { POST_MANUAL } from '../../support/post-manual';
import { API_KEY, startSidecar } from '../../support/start-sidecar';
import { install } from './installation';
import { lineOf, sectionsOf, sidecarOn, troubles } from './run-doctor';

const NO_KEYS = {
  'keys/news_360p.key': undefined,
  'keys/news_720p.key': undefined,
  'keys/camera.stream.key': undefined,
};

/** A sidecar on a folder, and the client that the program talks to it with. */
async function startOn(keyFilesPath: string) {
  const { api, url } = await startSidecar({ keyFilesPath });
  const connection = {
    url: new URL(url),
    urlFrom: '--url',
    apiKey: API_KEY,
    apiKeyFrom: '--key',
    ca: undefined,
    cert: undefined,
    certKey: undefined,
    warnings: [],
  };
  const sidecar = createSidecarApi(connection, new AbortController().signal, createHttpCall(connection));
  return { api, sidecar: () => sidecar };
}

async function folderFindings(packager: string, sidecar: Awaited<ReturnType<typeof startOn>>['sidecar']) {
  const sections = await sectionsOf(packager, [], { sidecar });
  return sections.flatMap(({ kind, findings }) => (kind === 'key_folder' ? findings : []));
}

test('proves with a real sidecar that its folder is the packager’s, before and after the first key file', async () => {
  const packager = await install({
    ...NO_KEYS,
    'keys/.keep': '',
    'content/news.smil': undefined,
    'content/camera.stream': undefined,
  });
  const { api, sidecar } = await startOn(join(packager, 'keys'));
  const same = 'This is the sidecar’s folder, by device and inode';
  expect((await folderFindings(packager, sidecar))[0]).toEqual({
    severity: 'ok',
    code: 'same_folder',
    message: same,
  });
  await api.post('/api/keyfile/live%2Fnews').send(POST_MANUAL).expect(200);
  expect((await folderFindings(packager, sidecar)).map(({ message }) => message)).toEqual([
    `${same}, and the list agrees (1 key file)`,
    expect.stringMatching(/and read 1 key file$/),
    'The key file has no fault',
  ]);
});

test('checks the packager’s part when no sidecar answers, which is a fault of its own', async () => {
  const packager = await install();
  const problem = {
    code: 'sidecar_unreachable',
    description: 'No sidecar answers at http://127.0.0.1:9000.',
  };
  const away = async () => {
    throw new CliError(EXIT.unreachable, problem);
  };
  const found = await troubles(packager, [], { sidecar: () => sidecarOn('/', { ready: away, list: away }) });
  expect(found.map(({ about, code, message }) => [about, code, message])).toEqual([
    ['http://127.0.0.1:9000', 'sidecar_unreachable', problem.description],
    ['keys', 'same_folder_unknown', 'Whether the sidecar writes here is not known'],
  ]);
});

test.each([
  ['sidecar_unreachable', 'start the sidecar, or correct its address'],
  ['usage', 'give the address and the API key of the sidecar'],
  [
    'not_a_sidecar',
    'correct the address with --url or PACKAGERDRM_URL, or the proxy in front of the sidecar',
  ],
  ['unauthorized', 'give an API key of this sidecar with --key-file or PACKAGERDRM_APIKEY'],
  ['forbidden', 'give an API key that may list key files, with --key-file or PACKAGERDRM_APIKEY'],
  ['too_many_attempts', 'wait, give the right API key'],
  ['something_new', 'correct this'],
])('says what to do about the sidecar when the problem is %s', async (code, todo) => {
  const list = async () => {
    throw new CliError(EXIT.unreachable, { code, description: 'A sentence.' });
  };
  const packager = await install();
  const [found] = await troubles(packager, [], {
    sidecar: () => sidecarOn(join(packager, 'keys'), { list }),
  });
  const shown = `sidecar_${code}`.replace('sidecar_sidecar', 'sidecar');
  expect(found && lineOf(found)).toBe(
    `fault ${shown}: A sentence. → ${todo}, and run this again; the packager’s part is checked anyway`,
  );
});

test('shows what was unusual at the start of the sidecar', async () => {
  const packager = await install();
  const ready = async () => ({
    ...(await sidecarOn(join(packager, 'keys')).ready()),
    warnings: [{ code: 'short_api_key', description: 'A sentence.' }],
  });
  const found = await troubles(packager, [], {
    sidecar: () => sidecarOn(join(packager, 'keys'), { ready }),
  });
  expect(found.map(lineOf)).toContain(
    'warning sidecar_short_api_key: A sentence. → correct this, and restart the sidecar',
  );
});
