import { join } from 'node:path';
import fs from 'fs-extra';
import { applicationXml, install, SESSION_ID, smil } from './installation';
import { lineOf, runDoctor, sidecarOn, troubles } from './run-doctor';

/** Runs as a user who gets only what is open to all; root would get everything. */
async function asOtherUser<Result>(run: () => Promise<Result>): Promise<Result> {
  const { seteuid } = process;
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) seteuid?.(65534);
  try {
    return await run();
  } finally {
    if (isRoot) seteuid?.(0);
  }
}

/** A sound installation in which a path is closed to another user, and what the doctor says then. */
async function asOtherUserWithout<Result>(
  path: string,
  run: (packager: string) => Promise<Result>,
): Promise<[packager: string, result: Result]> {
  const packager = await install({ 'content/film.smil': smil('film') });
  // Loads all that is loaded on first use.
  await runDoctor(packager);
  await fs.chmod(join(packager, path), 0);
  const result = await asOtherUser(() => run(packager));
  await fs.chmod(join(packager, path), 0o755);
  return [packager, result];
}

async function troublesWithout(path: string) {
  const sidecar = () =>
    sidecarOn('', {
      ready: async () => ({ status: 'ready' }),
      list: async () => ({ keyfiles: [], cursor: null }),
    });
  const [, found] = await asOtherUserWithout(path, (packager) => troubles(packager, [], { sidecar }));
  return found;
}

test('does not blame a configuration that may not be read', async () => {
  const found = await troublesWithout('conf/live/Application.xml');
  expect(found.filter(({ about }) => about === 'live').map(lineOf)).toEqual([
    'fault unreadable_configuration: conf/live/Application.xml may not be read by you (EACCES) → run this as root',
  ]);
});

test('says that settings for all applications may have been passed over', async () => {
  const packager = await install({
    'conf/HTTPStreamers.xml': '<Root>',
    'conf/live/Application.xml': applicationXml('live', {
      httpStreamer: `<Properties>${SESSION_ID}</Properties>`,
    }),
  });
  expect((await troubles(packager)).map(lineOf)).toEqual([
    expect.stringMatching(/^fault ext_x_version: /),
    'warning unreadable_defaults: conf/HTTPStreamers.xml is not well-formed XML: see line 1, so its defaults are not checked → make it readable, or run this as root',
  ]);
});

test.each([
  [
    'content/film.smil',
    'warning unreadable_smil: content/film.smil may',
    'run this as root: its streams are not checked',
  ],
  ['content', 'warning unreadable_smil: content may', 'run this as root: its streams are not checked'],
  ['keys', 'fault key_folder: The key folder may', 'run this as root'],
])('says what is not checked when %s may not be read', async (path, what, todo) => {
  const found = await troublesWithout(path);
  expect(found.map(lineOf)).toContain(`${what} not be read by you (EACCES) → ${todo}`);
});

test('does not take an installation whose conf folder may not be read for none', async () => {
  const [packager, { code, problems }] = await asOtherUserWithout('conf', (path) => runDoctor(path));
  expect([code, problems]).toEqual([
    2,
    [`${packager}/conf may not be read by you (EACCES): run this as root.`],
  ]);
});

test.each([
  ['UTF-16, the low byte first', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  ['UTF-16, the high byte first', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ['UTF-8 with a mark', (text: string) => Buffer.from(`\ufeff${text}`)],
])('reads a configuration in %s', async (_encoding, encode) => {
  const packager = await install();
  const text = applicationXml('live').replace('encoding="UTF-8"', 'encoding="UTF-16"');
  await fs.writeFile(join(packager, 'conf/live/Application.xml'), encode(text));
  expect(await troubles(packager)).toEqual([]);
});
