import { stat } from 'node:fs/promises';

const ROUNDS = 2;
const MAX_TRIES = 3;
/** Longer than the steps in which file systems tell the time. */
const PAUSE_MS = 30;

/**
 * Finds the folder in which a probe leaves its trace: a temporary file that comes and goes changes the folder's time.
 * Only a folder that changes with every probe, and never between two, counts. Nothing is written here.
 */
export async function findTouchedFolder(
  folders: readonly string[],
  probe: () => Promise<void>,
  pause: (ms: number) => Promise<void>,
): Promise<string | undefined> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    let touched = [...folders];
    for (let round = 0; round < ROUNDS && touched.length > 0; round += 1) {
      const start = await timesOf(touched);
      await pause(PAUSE_MS);
      const before = await timesOf(touched);
      await probe();
      const after = await timesOf(touched);
      touched = touched.filter(
        (folder) => start.get(folder) === before.get(folder) && before.get(folder) !== after.get(folder),
      );
    }
    if (touched.length > 0) return touched[0];
  }
  return undefined;
}

async function timesOf(folders: readonly string[]): Promise<Map<string, bigint | undefined>> {
  const times = folders.map(
    async (folder): Promise<[string, bigint | undefined]> => [
      folder,
      await stat(folder, { bigint: true }).then(
        ({ mtimeNs }) => mtimeNs,
        () => undefined,
      ),
    ],
  );
  return new Map(await Promise.all(times));
}
