import { bundledScript, runScript, startBuilt, untilReady } from '../support/built-program';
import { inParallel, Ledger, SERIES, share, sidecarOn, temporariesIn } from '../support/kill-series';

const CRASH_WRITER = bundledScript('crash-writer');
const WRITER_KILLS = 32;

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
