import { setTimeout as pause } from 'node:timers/promises';
import type { FleetAnswer } from '../../api/fleet-answers';
import { isWithinPrefixes } from '../../api/stream-id';
import { cached, memoized } from '../../http/cached';
import { HttpError, systemCode } from '../../http/errors';
import { ALL_ERRORS, apiError } from '../errors';
import type { KeyFileStore } from '../storage/key-file-store';
import { toStorageError } from '../storage/open-file';
import type { FleetConfig } from './config';
import { type Engine, EngineError, type EngineServer, toFleetError } from './engine/engine';
import { groupCalls } from './engine/grouped';
import { engineKeysUnder } from './engine-keys';
import { type Apply, createApply, createChangeLog } from './entries/apply';
import { createFleetStore } from './entries/fleet-store';
import { createReplication, type Replication } from './entries/replicate';
import { createSeal, createVersions } from './entries/seal';
import { collectDeleted, importStep, resealStep, retryFailed } from './entries/steps';
import type { Fleet, FleetHooks } from './fleet';
import { createIdentity, type Identity } from './identity';
import type { openFleetSecret } from './join';
import { createFolderCheck, type Ledger, openLedger } from './ledger/ledger';
import { createMembership, type Membership } from './members/membership';
import { createMembershipState } from './membership-state';
import { fleetFigures, fleetStatus, streamStatus } from './status';

type FleetSecret = Pick<ReturnType<typeof openFleetSecret>, 'secrets' | 'onSecrets'>;

export interface FleetOptions extends FleetHooks, FleetSecret {
  readonly config: Pick<FleetConfig, 'name' | 'streams' | 'prefix'>;
  readonly engine: Engine;
  readonly folderMs?: number;
}

export interface Member {
  readonly ledger: Ledger;
  readonly apply: Apply;
  readonly identity: Identity;
  readonly replication: Replication;
  readonly membership: Membership;
  readonly checkFolder: ReturnType<typeof createFolderCheck>;
}

const RETRY_MS = 1000;
const FAILED_RETRY_MS = 2000;
/** All of 100,000 files are checked in 17 minutes; one step takes some milliseconds. */
const FOLDER_MS = 5000;
const FOLDER_STEP = 500;
const SERVERS_MS = 30_000;
const COLLECT_MS = 60 * 60_000;
const STATUS_KEPT_MS = 1000;
const MAX_REPORTED_LACKS = 1000;
const MAX_SHOWN_SECRETS = 5;

export function openFleet(options: FleetOptions, local: KeyFileStore): Fleet {
  const { engine, random, now } = options;
  const { streams, prefix } = options.config;
  const keys = engineKeysUnder(prefix);
  const grouped = groupCalls(engine);
  const isTaken = (streamId: string) => isWithinPrefixes(streams, streamId);
  const levelledStreams = (streams ?? []).join(',');
  const state = createMembershipState(options);
  const versions = createVersions(options.clock);
  const changes = createChangeLog(options);
  let sealNow = createSeal(options.secrets(), random);
  const seal = () => sealNow;
  const parts = { ...options, ...options.config, local, keys, grouped, seal, versions, isTaken, changes };
  const ending = new AbortController();
  /** Ends the present round; the next one reads the fleet again. */
  let round = new AbortController();
  const restart = () => round.abort();
  options.onSecrets(() => {
    sealNow = createSeal(options.secrets(), random);
    restart();
  });

  const openMember = async (): Promise<Member> => {
    const ledger = await openLedger(options.folder, options);
    versions.see(ledger.head.highest);
    const hasLevelled = () => ledger.head.levelled === levelledStreams;
    const isEnding = () => ending.signal.aborted;
    const apply = createApply({ ...parts, ledger, hasLevelled, isEnding });
    const identity = createIdentity({ ...parts, ledger });
    const membership = createMembership({
      ...parts,
      id: () => ledger.head.id,
      report: () => ({
        state: state.state,
        applied: replication.applied,
        lacks: Object.fromEntries([...apply.lacks].slice(0, MAX_REPORTED_LACKS)),
        lacking: apply.lacks.size,
        clockAhead: engine.clockAhead(),
        propagation: changes.propagation,
      }),
      admit: identity.check,
      onNameTaken: state.setNameTaken,
    });
    const replication = createReplication({
      ...parts,
      apply,
      ledger,
      ranges: keys.entries(streams),
      onFleetChanged() {
        // A resealed fleet is the same one, and everything of it is here.
        identity.check().catch(restart);
      },
      onHeartbeat: state.engineReached,
      onLost: state.failed,
      onAwaited: membership.reportSoon,
    });
    const checkFolder = createFolderCheck(ledger, local);
    return { ledger, apply, identity, replication, membership, checkFolder };
  };
  let present: Member | undefined;
  let opening: Promise<Member> | undefined;
  /** A failed opening of the ledger is repeated with the next call. @throws HttpError */
  const member = memoized(async () => {
    opening = openMember().catch((thrown: unknown) => {
      throw toLedgerError(thrown);
    });
    present = await opening;
    return present;
  });

  const runRound = async (signal: AbortSignal): Promise<void> => {
    const { ledger, apply, identity, replication, membership } = await member();
    await identity.check();
    state.admitted();
    await membership.join().catch((thrown: unknown) => {
      // A full engine can be read. The heartbeat joins again.
      if (!(thrown instanceof EngineError && thrown.kind === 'full')) throw thrown;
    });
    await replication.level();
    // A file that is neither readable nor in the ledger would seem to be new to the fleet later.
    if (ledger.head.levelled !== levelledStreams && apply.hasUnseen())
      throw apiError('key_files_not_writable', 'The ledger of the fleet cannot be written.');
    // Without entries that it can't open, not all is here: files that were there before stay.
    const levelled = replication.missingSecrets.size === 0 ? { levelled: levelledStreams } : {};
    await ledger.noteHead({ ...levelled, highest: versions.highest });
    state.levelled();
    membership.reportSoon();
    // For the first who asks when the engine is away.
    void readStatus();
    void rest(RETRY_MS, signal).then(async () => {
      if (!signal.aborted) await readStatus();
    });
    await replication.follow(signal);
  };

  const run = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      round = new AbortController();
      const began = now();
      let hasFailed = false;
      try {
        await runRound(round.signal);
      } catch (thrown) {
        if (ending.signal.aborted) return;
        hasFailed = true;
        state.failed(thrown);
      }
      state.reading();
      // A round may also end at once without a fault, for example with servers of two clusters.
      if (hasFailed || now() - began < RETRY_MS) await rest(RETRY_MS, round.signal);
    }
  };

  const repeat = async (ms: number, task: () => Promise<unknown>): Promise<void> => {
    for (;;) {
      await rest(ms, ending.signal);
      if (ending.signal.aborted) return;
      await task().catch(() => undefined);
    }
  };
  const repeatWhileLevel = (ms: number, task: (member: Member) => Promise<unknown>) =>
    repeat(ms, async () => {
      if (present && state.isLevel) await task(present);
    });

  const store = createFleetStore({
    ...parts,
    identity: async () => (await member()).identity,
    apply: async (entry, revision) => (await member()).apply.entry(entry, revision, 'local'),
  });

  const asked = async <Answer>(ask: (member: Member) => Promise<Answer>): Promise<Answer> => {
    try {
      return await ask(await member());
    } catch (thrown) {
      throw toFleetError(thrown);
    }
  };

  let servers: readonly EngineServer[] = [];
  const readServers = async () => {
    servers = await engine.servers();
  };
  let lastKnown: FleetAnswer['packagers'] = [];
  const readStatus = async (): Promise<FleetAnswer> => {
    const answer = await fleetStatus(parts, state, present, lastKnown);
    lastKnown = answer.packagers;
    return answer;
  };

  return {
    store,
    start() {
      void run();
      void readServers();
      void repeat(SERVERS_MS, readServers);
      void repeatWhileLevel(FAILED_RETRY_MS, async ({ apply, ledger, replication }) => {
        await retryFailed(apply, replication);
        // The entries that could not be opened were sealed again elsewhere.
        if (ledger.head.levelled !== levelledStreams && replication.missingSecrets.size === 0) restart();
      });
      void repeatWhileLevel(options.folderMs ?? FOLDER_MS, async ({ checkFolder, replication }) => {
        const changed = checkFolder(FOLDER_STEP).filter(isTaken);
        if (changed.length > 0) await replication.reapply(changed);
      });
      void repeatWhileLevel(COLLECT_MS, (each) => collectDeleted({ ...parts, ...each }));
    },
    checkReady() {
      state.checkReady(hasJoined(present?.ledger.head.levelled, streams));
      const secrets = present?.replication.missingSecrets;
      if (secrets?.size) throw missingSecret(secrets);
    },
    status: cached(STATUS_KEPT_MS, now, readStatus),
    streamStatus: (streamId) =>
      asked(({ membership: { list } }) => streamStatus(streamId, { ...parts, list })),
    waitFor: (awaited, seconds) => asked(({ membership }) => membership.waitFor(awaited, seconds)),
    importStep: (step, by) =>
      asked(({ ledger }) => importStep(step, by, { ...parts, offer: store.offer, ledger })),
    found: () =>
      asked(async ({ identity }) => {
        await identity.found();
        restart();
      }),
    resealStep: (step) => asked(({ identity }) => resealStep(step, { ...parts, identity })),
    retire: (gone) => asked(({ membership }) => membership.retire(gone)),
    figures: () => fleetFigures(state, present?.apply.lacks.values() ?? [], servers),
    async close(busy) {
      ending.abort();
      restart();
      // A ledger that is being opened is closed, too.
      await opening?.catch(() => undefined);
      await present?.membership.close();
      engine.close();
      await busy;
      await present?.ledger.close();
      await present?.replication.idle();
    },
  };
}

/** Whether a packager that had all of `levelled`, prefixes joined by commas, had all that it takes now. */
function hasJoined(levelled: string | undefined, streams: readonly string[] = ['']): boolean {
  const former = levelled?.split(',') ?? [];
  return streams.every((prefix) => former.some((had) => prefix.startsWith(had)));
}

function missingSecret(secrets: ReadonlyMap<string, string>): HttpError {
  const ids = [...new Set(secrets.values())].sort().slice(0, MAX_SHOWN_SECRETS).join(', ');
  const entries = secrets.size === 1 ? '1 entry of the fleet is' : `${secrets.size} entries of the fleet are`;
  const found = `${entries} sealed with secrets that this sidecar does not have (ids ${ids}).`;
  return apiError('fleet_missing_secret', `${found} ${ALL_ERRORS.fleet_missing_secret.says}`);
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

function toLedgerError(thrown: unknown): unknown {
  const error = toStorageError('write', thrown);
  if (error instanceof HttpError || systemCode(error) !== undefined || !(error instanceof Error))
    return error;
  const description = `The ledger of the fleet cannot be used: ${error.message}. No key file was changed.`;
  return apiError('key_files_not_writable', description, { cause: thrown });
}
