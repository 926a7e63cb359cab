import { randomUUID } from 'node:crypto';
import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import type { StreamId } from '../../src/api/stream-id';
import { openLedger } from '../../src/sidecar/fleet/ledger/ledger';
import { temporaryFolder } from '../support/after-test';
import { bundledScript, runScript } from '../support/built-program';
import { recordedLog } from '../support/recorded-log';

const KILLS = 6;
const SERIES = 2;
const STREAMS = ['live', 'other', 'site/event', 'site/deep/event'] as const;

/** Resolves when the file that is to replace the ledger is there. */
const rewriteBegins = (folder: string) =>
  new Promise<void>((resolve) => {
    const watcher = watch(folder, (_event, name) => {
      if (name !== 'ledger.new') return;
      watcher.close();
      resolve();
    });
  });

test(`has every acknowledged record, and nothing that was not asked for, after each of ${KILLS * SERIES} kills of a process that notes them`, async () => {
  const script = bundledScript('ledger-writer');
  const series = Array.from({ length: SERIES }, async (_, number) => {
    const folder = await temporaryFolder();
    const fleetFolder = join(folder, '.packagerdrmapi-fleet');
    const faults: string[] = [];
    let id: string | undefined;
    const acknowledged = new Map<string, number>();
    let rewritesHit = 0;
    // Every other kill is aimed at a rewrite of the file, and one must hit.
    for (let kill = 0; kill < KILLS || rewritesHit === 0; kill += 1) {
      const begun = new Map<string, number>();
      const writer = runScript(script, { args: [folder, String((kill + 1) * 10_000)], cwd: folder });
      // Killed after another number of lines each time: in the middle of another step.
      await writer.until(new RegExp(`(?:.*\n){${1 + ((kill * 37 + number * 11) % 150)}}`));
      if (kill % 2 === 1) await rewriteBegins(fleetFolder);
      writer.send('SIGKILL');
      const { signal, stdout, stderr } = await writer.ended;
      if (existsSync(join(fleetFolder, 'ledger.new'))) rewritesHit += 1;
      expect({ signal, stderr }).toEqual({ signal: 'SIGKILL', stderr: '' });
      for (const [, what, stream = '', version] of stdout.matchAll(/^(begin|done) (\S+) (\d+)\n/gm))
        (what === 'begin' ? begun : acknowledged).set(stream, Number(version));
      const { log, lines } = recordedLog();
      const ledger = await openLedger(folder, { newId: randomUUID, log });
      id ??= ledger.head.id;
      if (ledger.head.id !== id || lines.length > 0) faults.push(`kill ${kill}: ${JSON.stringify(lines)}`);
      for (const stream of STREAMS) {
        const found = ledger.get(stream as StreamId);
        const allowed = [acknowledged.get(stream), begun.get(stream)];
        if (!allowed.includes(found?.version) || (found && found.tag !== `"${found.version}"`))
          faults.push(`kill ${kill}: ${stream} is ${JSON.stringify(found)}, and may be ${allowed}`);
        if (found) acknowledged.set(stream, found.version);
      }
      await ledger.close();
    }
    return faults;
  });
  const results = await Promise.all(series);
  expect(results.flat()).toEqual([]);
}, 120_000);
