import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { temporaryFolder } from '../support/after-test';
import { runScript, startBuilt } from '../support/built-program';

const SECRET = 'a-secret-of-version-1';

/** The program of a user of the released client, apart from the address. */
const PROGRAM = `
const [client, address, secret, file] = process.argv.slice(2);
const JwPlatform = require(client);
const api = new JwPlatform({ apiKey: 'demosite', apiSecret: secret });
api._client.baseUrl = address + '/v1/';
(async () => {
  const uploaded = await api.upload({ title: 'Démo', 'custom.topic': 'a' }, file);
  const { key } = uploaded.video;
  let video;
  do {
    await new Promise((resolve) => setTimeout(resolve, 200));
    ({ video } = await api.videos.show({ video_key: key }));
  } while (video.status !== 'ready');
  const { total } = await api.videos.list({ search: 'démo' });
  await api.videos.delete({ video_key: key });
  const refused = await api.videos.show({ video_key: key }).catch(({ statusCode, error }) => [statusCode, error.code]);
  console.log(JSON.stringify({ file: uploaded.file, title: video.title, custom: video.custom, total, refused }));
})();
`;

test('a released client of v1 drives the built emulator over HTTPS, with the certificate that the emulator made', async () => {
  const folder = await temporaryFolder();
  const emulator = await startBuilt('emulator', {
    cwd: folder,
    env: {
      EMULATOR_TLS: 'self-signed',
      EMULATOR_TLSFOLDER: join(folder, 'tls'),
      EMULATOR_UPLOADSFOLDER: join(folder, 'uploads'),
      EMULATOR_V1_SECRET: SECRET,
    },
  });
  await writeFile(join(folder, 'program.js'), PROGRAM);
  await writeFile(join(folder, 'film.mp4'), 'a film');
  const client = createRequire(__filename).resolve('jwplatform');
  const { hostname, port } = new URL(emulator.url);
  expect(hostname).toBe('127.0.0.1');
  const { ended } = runScript(join(folder, 'program.js'), {
    cwd: folder,
    args: [client, `https://localhost:${port}`, SECRET, join(folder, 'film.mp4')],
    env: { NODE_EXTRA_CA_CERTS: join(folder, 'tls', 'ca.pem') },
  });
  const { stdout, stderr } = await ended;
  expect(JSON.parse(stdout || JSON.stringify(stderr))).toEqual({
    file: { md5: '4bb9c7ebce490264f7903f3b8c1bdbf3', size: '6' },
    title: 'Démo',
    custom: { topic: 'a' },
    total: 1,
    refused: [404, 'NotFound'],
  });
  expect(emulator.stdout()).not.toContain(SECRET);
});
