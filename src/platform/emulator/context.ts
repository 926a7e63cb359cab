import type { Log } from '../../http/log';
import type { Fence } from '../../verify/fenced-tester';
import type { Listening } from './addresses';
import { type Clock, createClock } from './clock';
import { FaultSwitches } from './control/faults';
import { Journal } from './control/journal';
import { type Broadcast, createBroadcast } from './live/broadcast';
import type { PackagerAddress } from './packaging/packager-client';
import { PACKAGING_SETTINGS, Packaging, type PackagingSettings } from './packaging/packaging';
import { Recordings } from './packaging/recordings';
import { createLibrary, type Library } from './resources/library';
import { SEEDED_TIME, SeededSource } from './seeded-source';
import { createState, type EmulatorState, type StateSeeds, seedState } from './state';
import { UPLOAD_SETTINGS, Uploads } from './uploads/uploads';
import { IssuedKeys } from './upstreams/clearkey-license';
import { type Client, type Clients, clientsOf } from './upstreams/config-service';
import type { Notify } from './webhooks/notification';
import { WEBHOOK_SETTINGS, Webhooks } from './webhooks/webhooks';

/** Handed in by the process; no route uses the real ones. */
export interface Surroundings {
  readonly log: Log;
  /** Real time. Everything on the platform uses the context's `clock`. */
  readonly wallClock: () => Date;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** A new, unguessable request id. */
  readonly newId: () => string;
  /** A new id of 8 letters and digits, for what the platform makes. */
  readonly newResourceId: () => string;
  /** A new secret of 40 letters and digits, for credentials, webhooks and stream keys. */
  readonly newSecret: () => string;
  /** So many unguessable bytes. */
  readonly newBytes: (count: number) => Buffer;
  /** The folder of the pages, style sheets and scripts that the emulator serves. */
  readonly publicFolder: string;
  /** What a test of a stream may take; without it, it runs in this process. */
  readonly fence?: Fence;
}

/** The behaviour of the emulator. */
interface Behaviour {
  /** Whether requests over the rate limit are refused; the headers are sent in any case. */
  readonly rateLimit: boolean;
  /** Whether webhooks may call plain http addresses beyond loopback. */
  readonly allowHttpWebhooks: boolean;
  /** Where uploads make a folder of their own. */
  readonly uploadsFolder: string;
  /** The most that the files of all uploads together may have, in bytes. */
  readonly uploadsMaxBytes: number;
  /** Undefined: nothing is packaged, and the playlists are empty. */
  readonly packager: PackagerAddress | undefined;
  /** Where the state is kept between runs. */
  readonly stateFile: string | undefined;
  /** With one, ids, secrets, keys and clock are the same in each run. */
  readonly seed: number | undefined;
}

export interface Seeds extends StateSeeds, Behaviour, Listening {
  readonly client: Client;
  /** The secret that signs calls of Management API v1, for every site. */
  readonly v1Secret: string;
}

/** Everything the routes share. It lives as long as the process and starts empty but for the seeds. */
export interface EmulatorContext extends Surroundings {
  readonly seeds: Seeds;
  readonly clock: Clock;
  readonly state: EmulatorState;
  readonly broadcast: Broadcast;
  readonly notify: Notify;
  readonly faults: FaultSwitches;
  readonly journal: Journal;
  readonly webhooks: Webhooks;
  readonly uploads: Uploads;
  readonly library: Library;
  readonly clients: Clients;
  readonly issuedKeys: IssuedKeys;
  readonly packaging: Packaging;
  readonly recordings: Recordings;
  /** In a run with a seed. */
  readonly source: SeededSource | undefined;
  /**
   * Back to the start of the process: the seeds, real time, no encoder, no fault.
   * @param restore puts another state in the place of that of the start; journal, files and keys stay.
   */
  reset(restore?: () => void): void;
}

const KEYS_REMEMBERED = 100_000;

export function createContext(
  seeds: Seeds,
  given: Surroundings,
  packagingSettings: PackagingSettings = PACKAGING_SETTINGS,
): EmulatorContext {
  const source = seeds.seed === undefined ? undefined : new SeededSource(seeds.seed);
  const surroundings = { ...given, ...source?.surroundings };
  const clock = createClock(source ? () => SEEDED_TIME : surroundings.wallClock);
  const state = createState();
  seedState(state, seeds, clock.now());
  const faults = new FaultSwitches(surroundings.newBytes);
  const journal = new Journal();
  const { allowHttpWebhooks: allowHttp, packager, uploadsFolder } = seeds;
  const webhooks = new Webhooks({ ...surroundings, clock, faults }, { ...WEBHOOK_SETTINGS, allowHttp });
  const { notify } = webhooks;
  const uploads = new Uploads(
    { ...surroundings, clock },
    {
      ...UPLOAD_SETTINGS,
      allowHttp,
      folder: uploadsFolder,
      ownFolder: seeds.stateFile && `${seeds.stateFile}.files`,
      maxBytes: seeds.uploadsMaxBytes,
    },
  );
  const broadcast = createBroadcast({ ...surroundings, state, clock, notify });
  const packaging = new Packaging(
    { ...surroundings, state, broadcast, packager, notesFolder: uploadsFolder },
    packagingSettings,
  );
  const recordings = new Recordings(packaging, uploads);
  const issuedKeys = new IssuedKeys(KEYS_REMEMBERED);
  const parts = { ...surroundings, clock, state, notify, uploads, packaging, recordings };
  return {
    ...parts,
    seeds,
    broadcast,
    faults,
    journal,
    webhooks,
    library: createLibrary(parts),
    clients: clientsOf(seeds.client),
    issuedKeys,
    source,
    reset(restore) {
      if (!restore) {
        source?.reset();
        journal.reset();
        uploads.reset();
        issuedKeys.clear();
      }
      broadcast.reset();
      webhooks.reset();
      recordings.reset();
      clock.reset();
      seedState(state, seeds, clock.now());
      restore?.();
      packaging.reset();
      // Last, as calls that are held back continue at once and must meet the new start.
      faults.clear();
    },
  };
}
