import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../../support/after-test';
import { type FakeSidecar, startFakeSidecar } from '../../support/fake-sidecar';
import { type CliOptions, cli, refused } from '../../support/run-cli';

const SECRET = 'secret-of-this-machine';
const OF_FILE = 'secret-of-the-file';

const outside = folderOfEachTest();
const cwd = join(outside, 'work');
let sidecar: FakeSidecar;

beforeEach(async () => {
  sidecar = await startFakeSidecar();
  await fs.outputFile(join(cwd, 'keys', 'client.txt'), `${OF_FILE}\n`);
  await fs.outputFile(join(outside, 'home.txt'), `${OF_FILE}\n`);
});

async function apply(source: string, args: readonly string[], options: Partial<CliOptions> = {}) {
  const text = `streams:\n  - { streamid: a, contentId: c, client: acme, ${source} }\n`;
  await fs.writeFile(join(cwd, 'manifest.yaml'), text);
  return run(['apply', 'manifest.yaml', ...args], options);
}

function run(argv: readonly string[], options: Partial<CliOptions> = {}) {
  const env = { PROVIDER_KEY: SECRET, PROVIDER_OTHER: `${SECRET}-2`, AWS_SECRET: SECRET, ...options.env };
  return cli([...argv, '--url', sidecar.url, '--key', 'k'], { cwd, ...options, env });
}

/** The clients' keys that came to the sidecar. */
function keysSent(): unknown[] {
  return sidecar.batches.flatMap(({ body }) => body.streams ?? []).map(({ clientApiKey }) => clientApiKey);
}

const notAllowed = (field: string, what: string, option: string) =>
  refused(
    2,
    `manifest.yaml:2: ${field} names ${what} would be sent as clientApiKey; add ${option} to allow it.`,
  );
const VARIABLE = notAllowed('clientApiKeyEnv', 'PROVIDER_KEY, whose value', '--allow-env PROVIDER_KEY');

describe('a variable that a manifest names', () => {
  test.each([
    ['--yes', []],
    ['--yes', ['--allow-env', 'PROVIDER_KE']],
    ['--yes', ['--allow-env', 'AWS_*', '--allow-env', 'PROVIDER_KEY_*']],
    ['--dry-run', ['--allow-file', 'PROVIDER_KEY']],
  ])('is not read, and nothing is sent, unless it is allowed: %s %j', async (mode, args) => {
    expect(await apply('clientApiKeyEnv: PROVIDER_KEY', [mode, ...args])).toEqual(VARIABLE);
    expect(sidecar.batches).toEqual([]);
  });

  test.each<[string, readonly string[], Record<string, string>]>([
    ['by its name', ['--allow-env', 'PROVIDER_KEY'], {}],
    ['by the prefix of its name', ['--allow-env', 'PROVIDER_*'], {}],
    ['among others', ['--allow-env', 'A', '--allow-env', 'PROVIDER_KEY', '--allow-env', 'B'], {}],
    ['by the environment', [], { PACKAGERDRM_ALLOW_ENV: 'A_*, PROVIDER_KEY' }],
  ])('is sent when the call allows it %s', async (_name, args, env) => {
    const { code } = await apply('clientApiKeyEnv: PROVIDER_KEY', ['--yes', ...args], { env });
    expect({ code, sent: keysSent() }).toEqual({ code: 0, sent: [SECRET] });
  });

  test('is none of the language', async () => {
    const args = ['--yes', '--allow-env', 'constructor'];
    expect(await apply('clientApiKeyEnv: constructor', args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('manifest.yaml:2: clientApiKeyEnv names a variable that is not set.\n'),
    });
  });
});

test.each(['*', 'A B', 'PROVIDER_KEY=x', 'A*B'])(
  'refuses to allow %j, which is no name of a variable',
  async (name) => {
    expect(await apply('clientApiKeyEnv: PROVIDER_KEY', ['--yes', `--allow-env=${name}`])).toEqual(
      refused(2, '--allow-env takes the name of a variable, or a prefix of names and a * (PROVIDER_*).'),
    );
  },
);

describe('a file that a manifest names', () => {
  test.each([
    ['--dry-run', 'keys/client.txt', 'keys/client.txt', []],
    ['--yes', 'keys/../keys/client.txt', 'keys/client.txt', ['--allow-env', 'keys/*']],
    ['--yes', 'keys/client.txt', 'keys/client.txt', ['--allow-file', 'key']],
    ['--yes', 'keys/../../home.txt', 'OUTSIDE/home.txt', ['--allow-file', 'keys']],
  ])('is not read, and nothing is sent, unless it is allowed: %s %s', async (mode, path, named, args) => {
    const shown = named.replace('OUTSIDE', outside);
    expect(await apply(`clientApiKeyFile: ${path}`, [mode, ...args])).toEqual(
      notAllowed('clientApiKeyFile', `${shown}, which`, `--allow-file ${shown}`),
    );
    expect(sidecar.batches).toEqual([]);
  });

  test.each<[string, string, readonly string[], Record<string, string>]>([
    ['itself', 'keys/client.txt', ['--allow-file', 'keys/client.txt'], {}],
    ['its folder, with a slash', 'keys/client.txt', ['--allow-file', './keys/'], {}],
    ['a folder above', 'keys/client.txt', ['--allow-file', 'none', '--allow-file', '.'], {}],
    ['its folder in the environment', '../home.txt', [], { PACKAGERDRM_ALLOW_FILE: 'none:..' }],
  ])('is sent when the call allows %s', async (_name, path, args, env) => {
    const { code } = await apply(`clientApiKeyFile: ${path}`, ['--yes', ...args], { env });
    expect({ code, sent: keysSent() }).toEqual({ code: 0, sent: [OF_FILE] });
  });

  test('counts as what it links to: a link in the folder does not lead out', async () => {
    await fs.symlink(join(outside, 'home.txt'), join(cwd, 'keys', 'link.txt'));
    await fs.symlink(outside, join(cwd, 'keys', 'folder'));
    const shown = join(outside, 'home.txt');
    for (const path of ['keys/link.txt', 'keys/folder/home.txt']) {
      expect(await apply(`clientApiKeyFile: ${path}`, ['--yes', '--allow-file', 'keys'])).toEqual(
        notAllowed('clientApiKeyFile', `${shown}, which`, `--allow-file ${shown}`),
      );
    }
    expect(sidecar.batches).toEqual([]);
    await fs.symlink(join(cwd, 'keys'), join(outside, 'linked'));
    await apply('clientApiKeyFile: keys/client.txt', ['--yes', '--allow-file', '../linked']);
    expect(keysSent()).toEqual([OF_FILE]);
  });

  test('is named so that a shell takes it for one word', async () => {
    await fs.writeFile(join(cwd, 'x; reboot'), OF_FILE);
    const { stderr } = await apply('clientApiKeyFile: "x; reboot"', ['--yes']);
    expect(stderr).toContain(" add --allow-file 'x; reboot' to allow it.");
  });

  test('is no pipe and no device, which would not end', async () => {
    const groups = 'groups: [{ smil: /dev/null, contentId: c, client: c, clientApiKey: k }]\n';
    await fs.writeFile(join(cwd, 'groups.yaml'), groups);
    expect(await run(['apply', 'groups.yaml', '--yes'])).toEqual(
      refused(2, "groups.yaml:1: smil names a file that can't be read, or is not UTF-8."),
    );
  });
});

test('names at once all that a manifest asks for, and quotes no secret', async () => {
  const text = `\
streamid,contentId,client,clientApiKeyEnv,clientApiKeyFile
a,c,acme,PROVIDER_KEY,
b,c,acme,,keys/client.txt
c,c,acme,AWS_SECRET,
d,c,acme,PROVIDER_KEY,
`;
  await fs.writeFile(join(cwd, 'manifest.csv'), text);
  const end = 'would be sent as clientApiKey; add';
  expect(await run(['apply', 'manifest.csv', '--yes', '--allow-env', 'OTHER'])).toEqual(
    refused(
      2,
      `manifest.csv:2: clientApiKeyEnv names PROVIDER_KEY, whose value ${end} --allow-env PROVIDER_KEY to allow it.`,
      `manifest.csv:3: clientApiKeyFile names keys/client.txt, which ${end} --allow-file keys/client.txt to allow it.`,
      `manifest.csv:4: clientApiKeyEnv names AWS_SECRET, whose value ${end} --allow-env AWS_SECRET to allow it.`,
      `manifest.csv:5: clientApiKeyEnv names PROVIDER_KEY, whose value ${end} --allow-env PROVIDER_KEY to allow it.`,
      'manifest.csv: to allow all of them, add --allow-env PROVIDER_KEY --allow-file keys/client.txt --allow-env AWS_SECRET',
    ),
  );
  expect(sidecar.batches).toEqual([]);
});

describe('a configuration file', () => {
  const CONFIG = 'allowEnv: [A, PROVIDER_*]\nallowFile: keys\n';

  test('allows what it names, its paths from its own folder on, and the options add to it', async () => {
    await fs.writeFile(join(cwd, 'mine.yaml'), CONFIG);
    const config = ['--config', 'mine.yaml', '--yes'];
    await apply('clientApiKeyEnv: PROVIDER_KEY', config);
    await apply('clientApiKeyFile: keys/client.txt', [...config, '--allow-env', 'B']);
    await apply('clientApiKeyEnv: AWS_SECRET', [...config, '--allow-env', 'AWS_SECRET']);
    expect(new Set(keysSent())).toEqual(new Set([SECRET, OF_FILE]));
    const { code } = await apply('clientApiKeyEnv: AWS_SECRET', config);
    expect(code).toBe(2);
  });

  test('of the user is read without being named', async () => {
    await fs.outputFile(join(outside, '.config', 'packager-drm', 'config.yaml'), 'allowEnv: PROVIDER_KEY\n');
    await apply('clientApiKeyEnv: PROVIDER_KEY', ['--yes'], { env: { HOME: outside } });
    expect(keysSent()).toEqual([SECRET]);
  });

  test.each(['allowEnv: PROVIDER_KEY\n', 'allowFile: [keys]\n'])(
    'that merely lies in the working folder allows nothing: %j',
    async (text) => {
      const path = join(cwd, 'packager-drm.yaml');
      await fs.writeFile(path, text);
      const sentence = `${path} can't allow anything, because it is in the working folder; give --config ${path} to use it anyway, or use --allow-env and --allow-file.`;
      expect(await apply('clientApiKeyEnv: PROVIDER_KEY', ['--yes'])).toEqual(refused(2, sentence));
    },
  );
});

test('a manifest has no field that allows something', async () => {
  await fs.writeFile(join(cwd, 'manifest.yaml'), 'allowEnv: [PROVIDER_KEY]\nstreams: [a]\n');
  expect(await run(['apply', 'manifest.yaml', '--yes'])).toEqual(
    refused(2, 'manifest.yaml:1: an unknown field; the fields are defaults, streams, groups.'),
  );
});
