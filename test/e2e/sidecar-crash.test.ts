import { type BuiltProgram, startBuilt, untilReady } from '../support/built-program';
import {
  API_KEY,
  inParallel,
  Ledger,
  SERIES,
  STREAMS,
  share,
  sidecarOn,
  temporariesIn,
} from '../support/kill-series';

const SIDECAR_KILLS = 8;

/** A request of the key-file API and the key file it makes; every version is another one. */
function requestOf(version: number) {
  const digit = version % 2 === 0 ? 'A' : 'B';
  const fairplay = { key: digit.repeat(32), iv: digit.repeat(32), laurl: `skd://license.example/${version}` };
  return { fairplay };
}

function shortText(version: number): string {
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

test(`finds no left-over of ${SIDECAR_KILLS} kills of a sidecar under load once it is ready again, and nothing torn or lost`, async () => {
  const results = await inParallel(async (series, folder) => {
    const ledger = new Ledger();
    const faults: string[] = [];
    let left = 0;
    for (let kill = 0; kill <= share(SIDECAR_KILLS, series); kill += 1) {
      left += (await temporariesIn(folder)).length;
      const sidecar = await startBuilt('sidecar', { cwd: folder, env: sidecarOn(folder) });
      await untilReady(sidecar.url);
      faults.push(...(await temporariesIn(folder)).map((name) => `start ${kill}: ${name} is left`));
      await loadUntilKilled(sidecar, ledger, kill * 1000, 5 + kill * SERIES + series);
      faults.push(...ledger.faults(folder, shortText).map((fault) => `kill ${kill}: ${fault}`));
    }
    return { faults, left };
  });
  expect(results.flatMap(({ faults }) => faults)).toEqual([]);
  expect(results.reduce((sum, series) => sum + series.left, 0)).toBeGreaterThan(0);
}, 120_000);

/** Writes all streams beside each other, and kills the sidecar when so many writes are acknowledged. */
async function loadUntilKilled(
  sidecar: BuiltProgram & { url: string },
  ledger: Ledger,
  firstVersion: number,
  writes: number,
): Promise<void> {
  let acknowledged = 0;
  const writeOn = async (stream: string) => {
    for (let version = firstVersion; ; version += 1) {
      ledger.begin(stream, version);
      const response = await fetch(`${sidecar.url}/api/keyfile/${encodeURIComponent(stream)}`, {
        method: 'POST',
        headers: { 'x-api-key': API_KEY, 'content-type': 'application/json' },
        body: JSON.stringify(requestOf(version)),
      });
      expect(response.status).toBe(200);
      ledger.acknowledge(stream, version);
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
