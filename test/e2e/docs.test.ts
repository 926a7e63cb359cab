import { spawn, spawnSync } from 'node:child_process';
import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { folderOfEachTest } from '../support/after-test';
import { startBoth } from '../support/built-pair';
import { DIST } from '../support/built-program';
import { SHAKA_PACKAGER } from '../support/package-stream';

const CLIP = resolve(__dirname, '../../src/platform/demo/clip.mp4');
const DOCS = resolve(__dirname, '../../docs');
/** The addresses in the pages for the demo's sidecar, its emulator, and the control port of that. */
const DEMO_URL = 'http://127.0.0.1:9000';
const DEMO_PLATFORM = 'http://127.0.0.1:8080';
const DEMO_CONTROL = 'http://127.0.0.1:8081';

/** A file that a page shows, with its name before it: `manifest.yaml`: */
const FILE = /^`([\w.-]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm;

interface Step {
  readonly commands: string;
  /** Their output in the page; `…` matches anything. Undefined: the page shows none. */
  readonly output: string | undefined;
}

const BLOCK = /^( *)```([^\n]*)\n([\s\S]*?)^\1```$(?:\n\n\1```(|json|text)\n([\s\S]*?)^\1```$)?/gm;

/** The commands of a page, in order: its blocks marked `sh`, each with the plain or JSON block right behind it. */
function stepsOf(page: string): Step[] {
  return [...page.matchAll(BLOCK)].flatMap(([, indent = '', info, commands = '', , output]) => {
    const outdented = (text: string) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), '');
    if (info !== 'sh') return [];
    return [{ commands: outdented(commands), output: output && outdented(output) }];
  });
}

/** How a page breaks long lines is its own affair. */
function withoutSpace(text: string): string {
  return text.replaceAll(/\s+/g, '');
}

function patternOf(output: string): RegExp {
  const escaped = withoutSpace(output)
    .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('…', '.*?');
  return new RegExp(`^${escaped}$`);
}

// A page starts some thirty programs, one after another.
jest.setTimeout(120_000);

const folder = folderOfEachTest();

/** The mark that a page's shell prints behind each step. */
const END_OF_STEP = '\x1e';

/** Runs the steps of a page in one shell, which stops at the first failure, and answers what each printed. */
async function run(steps: readonly Step[], env: Record<string, string>): Promise<string[]> {
  const script = steps.map(({ commands }) => `${commands}\nprintf '${END_OF_STEP}'\n`).join('');
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = new Promise<number | null>((done) => child.once('close', done));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  const printed = stdout.split(END_OF_STEP);
  if (code === 0) return printed;
  const failed = steps[printed.length - 1]?.commands;
  throw new Error(`${failed}\nended with ${code}:\n${printed.at(-1)}\n${stderr}`);
}

/** Starts what `npm run demo` starts, with its keys, on free ports; answers what the pages write for its addresses, and these. */
async function startAsDemo(): Promise<readonly (readonly [shown: string, url: string])[]> {
  const secrets = { apiKey: 'demo-client-api-key', sharedSecret: 'demo-shared-secret-0123456789' };
  const client = { name: 'demo', ...secrets };
  const { emulator, sidecar } = await startBoth({ client, apiKey: 'demo-sidecar-api-key', folder });
  const [, control = ''] = await emulator.until(/"service":"control","url":"([^"]+)"/);
  return [
    [DEMO_URL, sidecar.url],
    [DEMO_PLATFORM, emulator.url],
    [DEMO_CONTROL, control],
  ];
}

/** Writes the files that a page shows, and answers its steps. */
async function readPage(name: string): Promise<Step[]> {
  const page = await readFile(join(DOCS, name), 'utf8');
  for (const [, file = '', content = ''] of page.matchAll(FILE)) await writeFile(join(folder, file), content);
  return stepsOf(page);
}

// The pages speak curl, which is no part of npm.
const hasCurl = spawnSync('curl', ['--version']).status === 0;

(hasCurl ? test : test.skip).each([
  'provision-by-hand.md',
  'provision-from-the-provider.md',
  'provision-from-cpix.md',
  'rotate-keys.md',
  'manifest.md',
  'my-player-says.md',
  'command-line.md',
  'export.md',
  'pull.md',
  'migrate-to-v2.md',
  'test-your-integration.md',
])('the commands of docs/%s do what it says, run one after another against the demo', async (name) => {
  const addresses = await startAsDemo();
  for (const [program, house] of [
    ['packager-drm', 'cli'],
    ['platform-migrate', 'migration'],
  ]) {
    const path = join(folder, `${program}`);
    await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${DIST}/${house}/main.js' "$@"\n`);
    await chmod(path, 0o755);
  }
  // The package that tests import, as npm would install it.
  const library = join(folder, 'node_modules', 'packager-drm-platform');
  await mkdir(library, { recursive: true });
  await symlink(DIST, join(library, 'dist'));
  const exports = { './testing': './dist/emulator/testing.js' };
  await writeFile(join(library, 'package.json'), JSON.stringify({ exports }));
  // The film and the packager of docs/export.md.
  await copyFile(CLIP, join(folder, 'film.mp4'));
  await symlink(SHAKA_PACKAGER, join(folder, 'packager'));
  if (spawnSync('ffmpeg', ['-version']).status !== 0) await symlink('/bin/true', join(folder, 'ffmpeg'));
  const env = { PATH: `${folder}:${process.env.PATH}`, HOME: folder, LANG: 'C.UTF-8' };
  const steps = await readPage(name);
  expect(steps.length).toBeGreaterThan(0);
  const printed = await run(
    steps.map(({ commands, output }) => ({
      commands: addresses.reduce((text, [shown, url]) => text.replaceAll(shown, url), commands),
      output,
    })),
    env,
  );
  for (const [index, { output }] of steps.entries()) {
    if (output !== undefined)
      expect(
        withoutSpace(
          addresses.reduce((text, [shown, url]) => text.replaceAll(url, shown), printed[index] ?? ''),
        ),
      ).toMatch(patternOf(output));
  }
});
