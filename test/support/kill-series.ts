import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from './after-test';

/** How many series of kills run in parallel, each with a folder of its own: they wait for the disk most of the time. */
export const SERIES = 4;
export const STREAMS = ['live', 'other', 'site/event', 'site/deep/event'];
export const API_KEY = 'key-of-the-crash-test';

/** What each stream's key file may hold: the version acknowledged last and the one under way. */
export class Ledger {
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

/** The paths of the temporary files below a folder, from it. */
export async function temporariesIn(folder: string): Promise<string[]> {
  const names = await fs.readdir(folder, { recursive: true });
  return names.map(String).filter((name) => name.endsWith('.tmp'));
}

/** How many of all kills a series has. */
export function share(total: number, series: number): number {
  return Math.floor(total / SERIES) + (series < total % SERIES ? 1 : 0);
}

export async function inParallel<T>(work: (series: number, folder: string) => Promise<T>): Promise<T[]> {
  return Promise.all(
    Array.from({ length: SERIES }, async (_, series) => work(series, await temporaryFolder())),
  );
}

/** The environment of a sidecar with its key files in a folder. */
export function sidecarOn(folder: string): Record<string, string> {
  return {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: folder,
    PACKAGERDRMAPI_LOGLEVEL: 'info',
  };
}
