import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../../support/after-test';
import { cli } from '../../support/run-cli';
import { API_KEY } from '../../support/start-sidecar';
import { CONTENT_ID, dashLines, hlsLines, startSpeke } from '../../support/start-speke';

/** Runs a command beside a sidecar whose key provider speaks SPEKE, and so needs no client. */
async function start() {
  const cwd = await temporaryFolder();
  const { sidecar } = await startSpeke();
  const env = { PACKAGERDRM_URL: sidecar.url, PACKAGERDRM_APIKEY: API_KEY };
  return { sidecar, cwd, run: (...argv: string[]) => cli(argv, { cwd, env }) };
}

const ALL = `${dashLines()}${hlsLines()}`;

test('put writes the keys of a content id alone, and of the systems that are named', async () => {
  const { sidecar, run } = await start();
  expect(await run('put', 'a', '--content-id', CONTENT_ID)).toMatchObject({ code: 0 });
  const named = await run('put', 'b', '--content-id', CONTENT_ID, '--systems', 'widevine,playready');
  expect(named).toMatchObject({ code: 0 });
  expect(await sidecar.files()).toEqual({ 'a.key': ALL, 'b.key': dashLines() });
});

test('put says what the sidecar says of a choice that its provider does not take', async () => {
  const { run } = await start();
  const { code, stderr } = await run('put', 'a', '--content-id', CONTENT_ID, '--track', 'HD');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining('track: needs cpix; give the text of a CPIX document with it'),
  });
});

test('apply provisions the streams of a manifest without a client', async () => {
  const { sidecar, cwd, run } = await start();
  const manifest = `\
defaults: { contentId: ${CONTENT_ID}, systems: [fairplay] }
streams:
  - live/a
  - { streamid: live/b, systems: [widevine, playready] }
groups:
  - { members: [c], contentId: ${CONTENT_ID} }
`;
  await fs.writeFile(join(cwd, 'line-up.yaml'), manifest);
  expect(await run('apply', 'line-up.yaml', '--yes')).toMatchObject({ code: 0 });
  expect(await sidecar.files()).toEqual({
    live: 'folder',
    'live/a.key': hlsLines(),
    'live/b.key': dashLines(),
    'c.key': hlsLines(),
  });
});

test('check warns of a body without a client, which some services take and others refuse', async () => {
  const { cwd, run } = await start();
  await fs.writeFile(join(cwd, 'body.json'), JSON.stringify({ contentId: CONTENT_ID }));
  const { code, stdout } = await run('check', 'body.json', '--json');
  const [{ faults }] = JSON.parse(stdout).checked ?? [JSON.parse(stdout)];
  expect([code, faults.map(({ severity, field }: Record<string, string>) => `${severity} ${field}`)]).toEqual(
    [0, ['warning client', 'warning clientApiKey']],
  );
});
