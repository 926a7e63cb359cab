import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../../support/after-test';
import { cli } from '../../support/run-cli';
import { CONTENT_ID, dashLines, hlsLines, startSpeke } from '../../support/start-speke';

/** Runs a command with a sidecar whose key provider speaks SPEKE, and so needs no client. */
async function start() {
  const cwd = await temporaryFolder();
  const { sidecar } = await startSpeke();
  return { sidecar, cwd, run: (...argv: string[]) => cli(argv, { cwd, sidecar }) };
}

const ALL = `${dashLines()}${hlsLines()}`;

test('put writes the keys of a content id alone, and of the systems that are named', async () => {
  const { sidecar, run } = await start();
  expect(await run('put', 'a', '--content-id', CONTENT_ID)).toMatchObject({ code: 0 });
  const named = await run('put', 'b', '--content-id', CONTENT_ID, '--systems', 'widevine,playready');
  expect(named).toMatchObject({ code: 0 });
  expect(await sidecar.files()).toEqual({ 'a.key': ALL, 'b.key': dashLines() });
});

test('put and apply give each track of a content its key', async () => {
  const { sidecar, cwd, run } = await start();
  const named = ['--content-id', CONTENT_ID, '--systems', 'fairplay'];
  expect(await run('put', ...named, '--tracks', 'SD=a,HD=b')).toMatchObject({
    code: 0,
    stderr: `${CONTENT_ID}: 2 created.\n`,
  });
  expect(await run('put', 'c', ...named, '--track', 'HD')).toMatchObject({ code: 0 });
  const group = `{ folder: live, contentId: ${CONTENT_ID}, systems: [fairplay], tracks: { SD: d, HD: [e, f] } }`;
  await fs.writeFile(join(cwd, 'line-up.yaml'), `groups:\n  - ${group}\n`);
  expect(await run('apply', 'line-up.yaml', '--yes')).toMatchObject({ code: 0 });
  const [sd, hd] = [hlsLines(CONTENT_ID, 'SD'), hlsLines(CONTENT_ID, 'HD')];
  expect(await sidecar.files()).toEqual({
    ...{ 'a.key': sd, 'b.key': hd, 'c.key': hd, live: 'folder' },
    ...{ 'live/d.key': sd, 'live/e.key': hd, 'live/f.key': hd },
  });
});
