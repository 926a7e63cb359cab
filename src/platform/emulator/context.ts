import { createClock } from './clock';
import type { EmulatorConfig } from './config';
import { FaultSwitches } from './control/faults';
import { Journal } from './control/journal';
import type { EmulatorDependencies } from './dependencies';
import { createBroadcast } from './live/broadcast';
import { PACKAGING_SETTINGS, Packaging, type PackagingSettings } from './packaging/packaging';
import { Recordings } from './packaging/recordings';
import { createLibrary } from './resources/library';
import { SEEDED_TIME, SeededSource } from './seeded-source';
import { createState, seedState } from './state';
import { UPLOAD_SETTINGS, Uploads } from './uploads/uploads';
import { IssuedKeys } from './upstreams/clearkey-license';
import { WEBHOOK_SETTINGS, Webhooks } from './webhooks/webhooks';

export type EmulatorContext = ReturnType<typeof createContext>;

/** The shared state of the routes. It lives as long as the process and starts with the seeds only. */
export function createContext(
  seeds: EmulatorConfig,
  given: EmulatorDependencies,
  packagingSettings: PackagingSettings = PACKAGING_SETTINGS,
) {
  const source = seeds.seed === undefined ? undefined : new SeededSource(seeds.seed);
  const dependencies: EmulatorDependencies = { ...given, ...source?.dependencies };
  const clock = createClock(source ? () => SEEDED_TIME : dependencies.wallClock);
  const state = createState(clock.now);
  seedState(state, seeds, clock.now());
  const faults = new FaultSwitches(dependencies.newBytes, clock, source !== undefined);
  const journal = new Journal();
  const { allowHttpWebhooks: allowHttp, packager, uploadsFolder } = seeds;
  const webhookSettings = { ...WEBHOOK_SETTINGS, allowHttp };
  const webhooks = new Webhooks({ ...dependencies, state, clock, faults }, webhookSettings);
  const { notify } = webhooks;
  const uploads = new Uploads(
    { ...dependencies, clock },
    {
      ...UPLOAD_SETTINGS,
      allowHttp,
      folder: uploadsFolder,
      ownFolder: seeds.stateFile && `${seeds.stateFile}.files`,
      maxBytes: seeds.uploadsMaxBytes,
    },
  );
  const broadcast = createBroadcast({ ...dependencies, state, clock, notify });
  const packaging = new Packaging(
    { ...dependencies, state, broadcast, packager, notesFolder: uploadsFolder },
    packagingSettings,
  );
  const recordings = new Recordings(packaging, uploads);
  const issuedKeys = new IssuedKeys();
  const parts = { ...dependencies, clock, state, notify, uploads, packaging, recordings };
  return {
    ...parts,
    seeds,
    broadcast,
    faults,
    journal,
    webhooks,
    library: createLibrary({ ...parts, broadcast, webhooks }),
    clients: new Map([[seeds.client.name, seeds.client]]),
    issuedKeys,
    source,
    /** Back to the seeds, real time, no encoder, no fault. With `restore`, journal, files and keys stay. */
    reset(restore?: () => void): void {
      if (!restore) {
        source?.reset();
        journal.clear(0);
        uploads.reset();
        issuedKeys.clear();
      }
      broadcast.reset();
      recordings.reset();
      clock.reset();
      seedState(state, seeds, clock.now());
      webhooks.reset();
      restore?.();
      packaging.reset();
      // Last, as calls that are held back continue at once and must meet the new start.
      faults.clear();
    },
  };
}
