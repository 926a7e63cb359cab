import { temporaryFolder } from '../support/after-test';
import { startBuilt, untilReady } from '../support/built-program';
import { CENC_ONLY, CENC_ONLY_FILE } from '../support/post-manual';

const API_KEY = 'key-of-two-sidecars';
const STREAMS = ['live', 'other', 'site%2Fevent', 'site%2Fdeep%2Fevent'];

test('fails no write and no probe while others start on the same folder and sweep it', async () => {
  const folder = await temporaryFolder();
  const env = { PACKAGERDRMAPI_APIKEY: API_KEY, PACKAGERDRMAPI_KEYFILESPATH: folder };
  const { url } = await startBuilt('sidecar', { cwd: folder, env });
  await untilReady(url);
  const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
  const bad: string[] = [];
  let writes = 0;
  let starting = true;

  const writeOn = async (stream: string) => {
    while (starting) {
      const response = await fetch(`${url}/api/keyfile/${stream}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(CENC_ONLY),
      });
      const text = await response.text();
      if (text !== CENC_ONLY_FILE) bad.push(`${response.status} ${text}`);
      writes += 1;
    }
  };
  const probeOn = async () => {
    while (starting) {
      const response = await fetch(`${url}/readyz`);
      const text = await response.text();
      if (response.status !== 200) bad.push(`${response.status} ${text}`);
    }
  };
  const load = Promise.all([...STREAMS.map(writeOn), probeOn()]);
  for (let start = 0; start < 5; start += 1) {
    const other = await startBuilt('sidecar', { cwd: folder, env });
    await untilReady(other.url);
    other.send('SIGTERM');
    expect(await other.ended).toMatchObject({ code: 0 });
  }
  starting = false;
  await load;
  expect(bad).toEqual([]);
  expect(writes).toBeGreaterThan(STREAMS.length);
}, 30_000);
