import { takes } from '../../api/stream-id';
import { keysIn } from '../../drm/key-file';
import { HttpError, systemCode } from '../../http/errors';
import { cached } from '../cached';
import { apiError } from '../errors';
import { keyIdOf } from '../key-files/changes';
import { indexedKeysIn } from '../key-files/survey';
import { toStorageError } from '../storage/open-file';
import type { FleetConfig } from './config';
import { type Engine, type EngineServer, toFleetError } from './engine/engine';
import { groupCalls } from './engine/grouped';
import { engineKeysUnder } from './engine-keys';
import { type Applied, type Apply, createApply } from './entries/apply';
import type { Entry, Seal } from './entries/entry';
import { createFleetStore } from './entries/fleet-store';
import { createOwnChanges, createVersions } from './entries/own-changes';
import { createReplication, type Replication } from './entries/replicate';
import { createSeal } from './entries/seal';
import { collectDeleted, createImport, createReseal, tryAgain } from './entries/steps';
import type { Fleet, FleetHooks, FleetProcess, OpenFleet } from './fleet';
import { createIdentity, type Identity } from './identity';
import { createFolderCheck } from './ledger/folder-check';
import { type Ledger, openLedger } from './ledger/ledger';
import type { Packager, Report } from './members/member-records';
import { createMembership, type Membership } from './members/membership';
import { createMembershipState } from './membership-state';
import { fleetFigures, fleetStatus, whereStream } from './status';

interface FleetOptions extends FleetProcess {
  readonly config: FleetConfig;
  readonly engine: Engine;
  /** Those in force: the first seals, all open. */
  readonly secrets: () => readonly string[];
  /** Sets the listener for changes of the secrets. */
  readonly onSecrets: (listener: () => void) => void;
  /** The key-file folder, where the ledger lies. */
  readonly folder: string;
  /** How often some of its files are compared with the ledger. */
  readonly folderMs?: number;
}

/** What needs the ledger. */
interface Member {
  readonly ledger: Ledger;
  readonly apply: Apply;
  readonly identity: Identity;
  readonly replication: Replication;
  readonly membership: Membership;
  readonly checkFolder: ReturnType<typeof createFolderCheck>;
}

/** In milliseconds. */
const RETRY_MS = 1000;
const FAILED_RETRY_MS = 2000;
/** All of 100,000 files are checked in 17 minutes; one step takes some milliseconds. */
const FOLDER_MS = 5000;
const FOLDER_STEP = 500;
const SERVERS_MS = 30_000;
const COLLECT_MS = 60 * 60_000;
const STATUS_KEPT_MS = 1000;
const MAX_PROPAGATION = 50;
const MAX_REPORTED_LACKS = 1000;

/** Returns the function that puts a fleet in front of the sidecar's key-file store. */
export function openFleet(options: FleetOptions): OpenFleet {
  return (local, hooks) => {
    const { config, engine, folder, log, newId, random, now, clock } = options;
    const keys = engineKeysUnder(config.prefix);
    const grouped = groupCalls(engine);
    const isTaken = (streamId: string) => takes(config.streams, streamId);
    const levelledStreams = (config.streams ?? []).join(',');
    const state = createMembershipState({ log, now, clock });
    const versions = createVersions(clock);
    const ownChanges = createOwnChanges();
    const arrivals = createArrivals(hooks, clock);
    const ending = new AbortController();
    let sealNow: Seal = createSeal(options.secrets(), random);
    const seal = () => sealNow;
    /** Ends the present round; the next one reads the fleet again. */
    let round = new AbortController();
    const restart = () => round.abort();

    const onApplied = (entry: Entry, applied: Applied, isNews: boolean): void => {
      // The request of a pending change writes its audit line itself.
      const isOwn = ownChanges.takePending(entry.id);
      if (applied.result !== 'written' && applied.result !== 'removed') return;
      const { bytes } = entry;
      if (bytes) hooks.index.set(entry.streamId, indexedKeysIn(keysIn(bytes.toString('latin1'))));
      if (!isOwn) audit(hooks, entry, applied);
      if (isNews) arrivals.add(entry);
    };

    const openMember = async (): Promise<Member> => {
      const ledger = await openLedger(folder, { newId, log });
      versions.see(ledger.head.highest);
      const hasLevelled = () => ledger.head.levelled === levelledStreams;
      const apply = createApply({ local, ledger, hasLevelled, log });
      const identity = createIdentity({ engine, keys, seal, ledger, newId });
      const report = (): Report => ({
        state: state.state,
        applied: replication.applied,
        lacks: Object.fromEntries([...apply.lacks].slice(0, MAX_REPORTED_LACKS)),
        lacking: apply.lacks.size,
        clockAhead: engine.clockAhead(),
        propagation: arrivals.propagation,
      });
      const membership = createMembership({
        ...options,
        keys,
        name: config.name,
        streams: config.streams,
        id: () => ledger.head.id,
        report,
        onNameTaken: state.setNameTaken,
      });
      const replication = createReplication({
        engine,
        keys,
        seal,
        apply,
        ledger,
        versions,
        ownChanges,
        ranges: keys.entries(config.streams),
        isTaken,
        onApplied,
        onResult: hooks.observer.entry,
        onFleetChanged() {
          identity.doubt();
          // A resealed fleet is the same one, and everything of it is here.
          identity.guard().catch(restart);
        },
        onHeartbeat: state.engineReached,
        onLost: state.engineLost,
        onAwaited: membership.reportSoon,
      });
      const checkFolder = createFolderCheck(ledger, local);
      return { ledger, apply, identity, replication, membership, checkFolder };
    };
    const member = createOnce(openMember);

    const runRound = async (signal: AbortSignal): Promise<void> => {
      const { ledger, apply, identity, replication, membership } = await member.get();
      identity.doubt();
      await identity.guard();
      state.admitted();
      await membership.join();
      await replication.level();
      // A file that is neither readable nor in the ledger would seem to be new to the fleet later.
      if (ledger.head.levelled !== levelledStreams && apply.hasUnseen())
        throw apiError('key_files_not_writable', 'The ledger of the fleet cannot be written.');
      await ledger.noteHead({ levelled: levelledStreams, highest: versions.highest });
      state.setLevel(true);
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
        state.setLevel(false);
        // A round may also end at once without a fault, for example with servers of two clusters.
        if ((hasFailed || now() - began < RETRY_MS) && !round.signal.aborted)
          await pause(RETRY_MS, round.signal);
      }
    };

    /** Runs a task again and again, each time so many milliseconds after the last; a failed one is run again then. */
    const repeat = async (ms: number, task: () => unknown): Promise<void> => {
      while (!ending.signal.aborted) {
        await pause(ms, ending.signal);
        if (!ending.signal.aborted) await Promise.resolve(task()).catch(() => undefined);
      }
    };
    const whileLevel = (task: (present: Member) => Promise<unknown>) => async () => {
      if (member.present && state.isLevel) await task(member.present);
    };
    const retryFailed = whileLevel(({ apply, replication }) => tryAgain(apply, replication));
    const checkFolder = whileLevel(async ({ checkFolder, replication }) => {
      const streams = checkFolder(FOLDER_STEP).filter(isTaken);
      if (streams.length > 0) await replication.again(streams);
    });
    const collect = whileLevel((present) => collectDeleted({ ...present, engine, keys, seal, clock }));

    const store = createFleetStore({
      name: config.name,
      local,
      keys,
      grouped,
      seal,
      identity: async () => (await member.get()).identity,
      newId,
      versions,
      ownChanges,
      clock,
      isTaken,
      apply: async (entry, revision) => {
        const applied = await (await member.get()).apply.entry(entry, revision, 'made');
        hooks.observer.entry(applied.result);
        ownChanges.applied(entry.id, applied.result === 'failed');
        if (applied.result === 'written' || applied.result === 'removed') arrivals.add(entry);
        return applied;
      },
      onConflict: hooks.observer.conflict,
    });
    const importStep = createImport({ folder, local, offer: store.offer, isTaken, now });
    const resealStep = createReseal({ engine, keys, seal, grouped });

    /** Runs what asks the engine, and turns its errors into those of the API. */
    const asked = async <Answer>(ask: (present: Member) => Promise<Answer>): Promise<Answer> => {
      try {
        return await ask(await member.get());
      } catch (thrown) {
        throw toFleetError(thrown);
      }
    };

    let servers: readonly EngineServer[] = [];
    const readServers = async () => {
      servers = await engine.servers();
    };
    let listed: readonly Packager[] = [];
    /** The packagers as last known. While the engine is away, asking it would only wait for the time limit. */
    const list = async (): Promise<readonly Packager[]> => {
      if (member.present && state.state !== 'away')
        listed = await member.present.membership.list().catch(() => listed);
      return listed;
    };

    return {
      store,
      start() {
        options.onSecrets(() => {
          sealNow = createSeal(options.secrets(), random);
          restart();
        });
        void run();
        void readServers();
        void repeat(FAILED_RETRY_MS, retryFailed);
        void repeat(options.folderMs ?? FOLDER_MS, checkFolder);
        void repeat(SERVERS_MS, readServers);
        void repeat(COLLECT_MS, collect);
      },
      checkReady: () => state.checkReady(member.present?.ledger.head.levelled !== undefined),
      status: cached(STATUS_KEPT_MS, now, () =>
        fleetStatus({
          name: config.name,
          streams: config.streams,
          engine,
          state,
          ledger: member.present?.ledger,
          list,
          missing: member.present?.replication.missing ?? 0,
          time: clock().getTime(),
        }),
      ),
      whereIs: (streamId) =>
        asked(({ membership }) => whereStream({ streamId, keys, grouped, seal: sealNow, membership })),
      waitFor: (changes, seconds) => asked(({ membership }) => membership.waitFor(changes, seconds)),
      importStep: (step, by) => asked(({ ledger }) => importStep(step, by, ledger)),
      found: () =>
        asked(async ({ identity }) => {
          await identity.found();
          restart();
        }),
      resealStep: (step) => asked(({ identity }) => resealStep(step, identity)),
      retire: (name) => asked(({ membership }) => membership.retire(name)),
      figures: () => fleetFigures(state, member.present?.apply.lacks.values() ?? [], servers),
      async close() {
        ending.abort();
        restart();
        await member.present?.membership.close();
        engine.close();
        await member.present?.ledger.close();
      },
    } satisfies Fleet;
  };
}

/** Opens something once; a failed attempt is repeated with the next call. @throws HttpError */
function createOnce(open: () => Promise<Member>) {
  let opening: Promise<Member> | undefined;
  let present: Member | undefined;
  return {
    get present() {
      return present;
    },
    get(): Promise<Member> {
      opening ??= open().then(
        (opened) => {
          present = opened;
          return opened;
        },
        (thrown: unknown) => {
          opening = undefined;
          throw toLedgerError(thrown);
        },
      );
      return opening;
    },
  };
}

/** The propagation times of the last changes: from their acceptance anywhere to the file here. */
function createArrivals({ observer }: FleetHooks, clock: () => Date) {
  const times: number[] = [];
  return {
    add({ at }: Entry): void {
      const ms = Math.max(0, clock().getTime() - at);
      observer.applied(ms / 1000);
      times.push(ms);
      if (times.length > MAX_PROPAGATION) times.shift();
    },
    get propagation(): readonly number[] {
      return [...times];
    },
  };
}

function audit(hooks: FleetHooks, entry: Entry, { former, result }: Applied): void {
  const { streamId, bytes, by, from } = entry;
  hooks.audit({
    action: bytes ? 'put' : 'delete',
    ...by,
    streamId,
    result: result === 'removed' ? 'deleted' : former ? 'changed' : 'created',
    oldKeyId: keyIdOf(former),
    newKeyId: keyIdOf(bytes),
    from,
  });
}

/** Waits, unless the signal ends it. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms).unref();
    signal.addEventListener('abort', end);
  });
}

/** The error that a client gets while the ledger can't be opened. */
function toLedgerError(thrown: unknown): unknown {
  const error = toStorageError('write', thrown);
  if (error instanceof HttpError || systemCode(error) !== undefined || !(error instanceof Error))
    return error;
  const description = `The ledger of the fleet cannot be used: ${error.message}. No key file was changed.`;
  return apiError('key_files_not_writable', description, { cause: thrown });
}
