import { join } from 'node:path';
import fs from 'fs-extra';
import { API_KEY } from '../support/api-key';
import { CLIENT, call, startBoth } from '../support/built-pair';
import { startBuilt, untilReady } from '../support/built-program';
import { until } from '../support/until';

/** The protocols that need no more than a content id, and where the emulator speaks them. */
const PROTOCOLS = {
  speke1: `/keyprovider/speke1/${CLIENT.name}`,
  speke2: `/keyprovider/speke2/${CLIENT.name}`,
  cpix: `/keyprovider/cpix/${CLIENT.name}/{contentId}`,
};

async function startBy(protocol: string, cwd: string, url: string) {
  const sidecar = await startBuilt('sidecar', {
    cwd,
    env: {
      PACKAGERDRMAPI_APIKEY: API_KEY,
      PACKAGERDRMAPI_KEYFILESPATH: join(cwd, protocol),
      PACKAGERDRMAPI_KEYPROVIDERPROTOCOL: protocol,
      PACKAGERDRMAPI_KEYPROVIDERURL: url,
      PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE: 'headers.txt',
    },
  });
  await untilReady(sidecar.url);
  return sidecar;
}

test('provisions the keys of the emulator by each protocol, with the headers of a file and a content id alone', async () => {
  const { cwd, emulator, sidecar: byJson } = await startBoth();
  const headersFile = join(cwd, 'headers.txt');
  await fs.writeFile(headersFile, `# of the emulator\nAPI-KEY: ${CLIENT.apiKey}\n`, { mode: 0o600 });
  const sidecars = await Promise.all(
    Object.entries(PROTOCOLS).map(([protocol, path]) => startBy(protocol, cwd, `${emulator.url}${path}`)),
  );
  const post = (url: string, body: object) => call(`${url}/api/keyfile/live`, 'POST', body);
  const named = { client: CLIENT.name, clientApiKey: CLIENT.apiKey, contentId: 'evening-show' };
  const expected = (await post(byJson.url, named)).text.toLowerCase();
  for (const { url } of sidecars) {
    const answer = await post(url, { contentId: 'evening-show' });
    expect([answer.status, answer.text.toLowerCase()]).toEqual([200, expected]);
  }
  await fs.writeFile(headersFile, 'API-KEY: another-key\n', { mode: 0o600 });
  for (const { url, stdout } of sidecars) {
    await until(async () => (await post(url, { contentId: 'evening-show' })).status === 502);
    expect(stdout()).not.toContain(CLIENT.apiKey);
  }
});
