import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { type BuiltProgram, startBuilt, untilReady } from '../support/built-program';

const SIDECAR_KILLS = 8;
/** How many series of kills run in parallel, each with a folder of its own: they wait for the disk most of the time. */
const SERIES = 4;
const STREAMS = ['live', 'other', 'site/event', 'site/deep/event'];
const API_KEY = 'key-of-the-crash-test';

/** What each stream's key file may hold: the version acknowledged last and the one under way. */
class Ledger {
  readonly #versions = new Map<string, { acknowledged?: number; begun?: number }>();

  begin(stream: string, version: number): void {
    this.#versions.set(stream, { ...this.#versions.get(stream), begun: version });
  }

  acknowledge(stream: string, version: number): void {
    this.#versions.set(stream, { ...this.#versions.get(stream), acknowledged: version });
  }

  /** The faults of what lies in the folder after a kill. What survived is what the next round starts from. */
  faults(folder: string, textOf: (version: number) => string): string[] {
    return STREAMS.flatMap((stream) => {
      const { acknowledged, begun } = this.#versions.get(stream) ?? {};
      const path = join(folder, `${stream}.key`);
      const text = fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : undefined;
      const found = [acknowledged, begun].find(
        (version) => text === (version === undefined ? undefined : textOf(version)),
      );
      this.#versions.set(stream, found === undefined ? {} : { acknowledged: found });
      const isFine = text === undefined ? acknowledged === undefined : found !== undefined;
      if (isFine) return [];
      const head = text === undefined ? 'nothing' : `${text.length} characters, ${text.slice(0, 60)}`;
      return [`${stream}: acknowledged ${acknowledged}, under way ${begun}, found ${head}`];
    });
  }
}

async function temporariesIn(folder: string): Promise<string[]> {
  const names = await fs.readdir(folder, { recursive: true });
  return names.map(String).filter((name) => name.endsWith('.tmp'));
}

function share(total: number, series: number): number {
  return Math.floor(total / SERIES) + (series < total % SERIES ? 1 : 0);
}

async function inParallel<T>(work: (series: number, folder: string) => Promise<T>): Promise<T[]> {
  return Promise.all(
    Array.from({ length: SERIES }, async (_, series) => work(series, await temporaryFolder())),
  );
}

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

function sidecarOn(folder: string): Record<string, string> {
  return {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: folder,
    PACKAGERDRMAPI_LOGLEVEL: 'info',
  };
}

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
