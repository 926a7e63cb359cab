import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { API_KEY, callWithKey } from '../support/api-key';
import { type BuiltProgram, startBuilt, untilReady } from '../support/built-program';

/** How many series of kills run in parallel, each with a folder of its own: they wait for the disk most of the time. */
const SERIES = 4;
const KILLS = 3;
const STREAMS = ['live', 'other', 'site/event', 'site/deep/event'];

/** A request of the key-file API; every version is another one. */
function requestOf(version: number) {
  const digit = version % 2 === 0 ? 'A' : 'B';
  const fairplay = { key: digit.repeat(32), iv: digit.repeat(32), laurl: `skd://license.example/${version}` };
  return { fairplay };
}

/** The key file that it makes. */
function textOf(version: number): string {
  const { key, iv, laurl } = requestOf(version).fairplay;
  return `\
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: ${laurl}
cupertinostreaming-aes128-key: ${key}
cupertinostreaming-aes128-iv: ${iv}
cupertinostreaming-aes128-iv-include-in-chunklist: false
cupertinostreaming-aes128-key-format: com.apple.streamingkeydelivery
cupertinostreaming-aes128-key-format-version: 1
`;
}

/** The possible versions of a stream's key file: the one acknowledged last and the one under way. */
interface Versions {
  acknowledged?: number | undefined;
  begun?: number;
}

/** The faults of the folder after a kill. The next round starts from its surviving files. */
function faultsOf(folder: string, versions: Record<string, Versions>): string[] {
  return STREAMS.flatMap((stream) => {
    const { acknowledged, begun } = versions[stream] ?? {};
    const path = join(folder, `${stream}.key`);
    const text = fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : undefined;
    const found = [acknowledged, begun].find((each) => each !== undefined && text === textOf(each));
    versions[stream] = { acknowledged: found };
    const isFine = text === undefined ? acknowledged === undefined : found !== undefined;
    return isFine ? [] : [`${stream}: acknowledged ${acknowledged}, under way ${begun}, found ${text}`];
  });
}

/** The paths of the temporary files below a folder, from it. */
async function temporariesIn(folder: string): Promise<string[]> {
  return (await fs.readdir(folder, { recursive: true })).map(String).filter((name) => name.endsWith('.tmp'));
}

/** Writes all streams concurrently, and kills the sidecar when so many writes are acknowledged. */
async function loadUntilKilled(
  sidecar: BuiltProgram & { url: string },
  versions: Record<string, Versions>,
  firstVersion: number,
  writes: number,
): Promise<void> {
  let acknowledged = 0;
  const writeOn = async (stream: string) => {
    for (let version = firstVersion; ; version += 1) {
      versions[stream] = { ...versions[stream], begun: version };
      const url = `${sidecar.url}/api/keyfile/${encodeURIComponent(stream)}`;
      const response = await callWithKey(url, 'POST', requestOf(version));
      expect(response.status).toBe(200);
      versions[stream] = { acknowledged: version };
      acknowledged += 1;
      if (acknowledged === writes) sidecar.send('SIGKILL');
    }
  };
  const failures = await Promise.all(
    STREAMS.map((stream) => writeOn(stream).catch((thrown: unknown) => thrown)),
  );
  await sidecar.ended;
  for (const failure of failures) expect(failure).toMatchObject({ name: 'TypeError' });
}

test(`finds each key file whole, no acknowledged write lost, and no left-over once ready, after each of ${SERIES * KILLS} kills of a sidecar under load`, async () => {
  let left = 0;
  const series = Array.from({ length: SERIES }, async (_, number) => {
    const folder = await temporaryFolder();
    const env = { PACKAGERDRMAPI_APIKEY: API_KEY, PACKAGERDRMAPI_KEYFILESPATH: folder };
    const versions: Record<string, Versions> = {};
    const faults: string[] = [];
    // All kills may come between the writes, and then nothing is tried: a few more follow.
    for (let kill = 0; kill < KILLS || (left === 0 && kill < 4 * KILLS); kill += 1) {
      const sidecar = await startBuilt('sidecar', { cwd: folder, env });
      await untilReady(sidecar.url);
      faults.push(...(await temporariesIn(folder)).map((name) => `start ${kill}: ${name} is left`));
      // Killed after another number of writes each time: in the middle of another step.
      await loadUntilKilled(sidecar, versions, kill * 1000, 5 + kill * SERIES + number);
      const temporaries = await temporariesIn(folder);
      left += temporaries.length;
      faults.push(...faultsOf(folder, versions).map((fault) => `kill ${kill}: ${fault}`));
    }
    return faults;
  });
  expect((await Promise.all(series)).flat()).toEqual([]);
  expect(left).toBeGreaterThan(0);
}, 120_000);
