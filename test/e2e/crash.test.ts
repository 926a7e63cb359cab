import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { bundledScript, runScript, startBuilt, untilReady } from '../support/built-program';

const CRASH_WRITER = bundledScript('crash-writer');
const WRITER_KILLS = 32;

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

/** The texts of `crash-writer.js`. */
function longText(version: number): string {
  const [letter, length] = version % 2 === 0 ? (['A', 60_000] as const) : (['B', 25_000] as const);
  return `version: ${version}\n${letter.repeat(length)}\nend: ${version}\n`;
}

test(`finds each key file whole and no acknowledged write lost after each of ${WRITER_KILLS} kills of a writer`, async () => {
  const results = await inParallel(async (series, folder) => {
    const ledger = new Ledger();
    const faults: string[] = [];
    let swept = 0;
    for (let kill = 0; kill < share(WRITER_KILLS, series); kill += 1) {
      const args = [folder, String(kill * 1000)];
      const writer = runScript(CRASH_WRITER, { args, cwd: folder });
      // Killed after another number of lines each time: in the middle of another step.
      await writer.until(new RegExp(`(?:.*\n){${2 + ((kill * SERIES + series) % 23)}}`));
      writer.send('SIGKILL');
      const { signal, stdout, stderr } = await writer.ended;
      expect({ signal, stderr }).toEqual({ signal: 'SIGKILL', stderr: '' });
      for (const [, what, stream = '', version] of stdout.matchAll(/^(begin|done) (\S+) (\d+)\n/gm)) {
        if (what === 'begin') ledger.begin(stream, Number(version));
        else ledger.acknowledge(stream, Number(version));
      }
      swept += Number(/^swept (\d+)/.exec(stdout)?.[1]);
      faults.push(...ledger.faults(folder, longText).map((fault) => `kill ${kill}: ${fault}`));
    }
    const { url } = await startBuilt('sidecar', { cwd: folder, env: sidecarOn(folder) });
    await untilReady(url);
    return { faults, swept, left: await temporariesIn(folder) };
  });
  expect(results.flatMap(({ faults }) => faults)).toEqual([]);
  expect(results.flatMap(({ left }) => left)).toEqual([]);
  // Else the kills came between the writes, and nothing was tried.
  expect(results.reduce((sum, { swept }) => sum + swept, 0)).toBeGreaterThan(WRITER_KILLS / 10);
}, 120_000);

function sidecarOn(folder: string): Record<string, string> {
  return {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: folder,
    PACKAGERDRMAPI_LOGLEVEL: 'info',
  };
}
