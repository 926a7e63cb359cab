import { type StreamId, takes } from '../../api/stream-id';
import { keysIn } from '../../drm/key-file';
import { HttpError, systemCode } from '../../http/errors';
import { cached } from '../cached';
import { apiError } from '../errors';
import { keyIdOf } from '../key-files/changes';
import { indexedKeysIn } from '../key-files/key-index';
import { toStorageError } from '../storage/key-file-store';
import { createChores } from './chores';
import type { FleetConfig } from './config';
import { type Engine, type EngineServer, toFleetError } from './engine/engine';
import { groupCalls } from './engine/grouped';
import { type Applied, type Apply, createApply } from './entries/apply';
import type { Entry, Seal } from './entries/entry';
import { createFleetStore } from './entries/fleet-store';
import { createFollow, type Follow } from './entries/follow';
import { createSeal } from './entries/seal';
import { collectDeleted, createImport, createReseal, tryAgain } from './entries/steps';
import type { Fleet, FleetProcess, OpenFleet } from './fleet';
import { createIdentity, type Identity } from './identity';
import { createFolderLook } from './ledger/folder-look';
import { type Ledger, openLedger } from './ledger/ledger';
import type { Packager, Report } from './members/member-records';
import { createMembership, type Membership } from './members/membership';
import { placesUnder } from './places';
import { createStanding } from './standing';
import { fleetFigures, fleetStatus, whereStream } from './status';

interface FleetOptions extends FleetProcess {
  readonly config: FleetConfig;
  readonly engine: Engine;
  /** Those in force: the first seals, all open. */
  readonly secrets: () => readonly string[];
  /** Has a listener hear of each change of the secrets. */
  readonly onSecrets: (listener: () => void) => void;
  /** The key-file folder, where the ledger lies. */
  readonly folder: string;
  /** How often some of its files are compared with the ledger. */
  readonly folderMs?: number;
}

/** What there is once the ledger is open. */
interface Parts {
  readonly ledger: Ledger;
  readonly apply: Apply;
  readonly identity: Identity;
  readonly follow: Follow;
  readonly membership: Membership;
  readonly lookAtFolder: ReturnType<typeof createFolderLook>;
}

/** In milliseconds. */
const RETRY_MS = 1000;
const FAILED_RETRY_MS = 2000;
/** Of a folder of 100,000 files, all are looked at in 17 minutes; a step takes some milliseconds. */
const FOLDER_MS = 5000;
const FOLDER_STEP = 500;
const SERVERS_MS = 30_000;
const COLLECT_MS = 60 * 60_000;
const STATUS_KEPT_MS = 1000;
const MAX_PROPAGATION = 50;
const MAX_REPORTED_LACKS = 1000;
/** Of changes made here whose return from the engine is still to come. */
const MAX_OWN = 10_000;

/** Answers what makes the sidecar's store that of a fleet. */
export function openFleet(options: FleetOptions): OpenFleet {
  const { config, engine, folder, log, newId, random, now, clock, version } = options;
  const places = placesUnder(config.prefix);
  const ranges = places.entries(config.streams);
  const streamsText = (config.streams ?? []).join(',');
  const grouped = groupCalls(engine);
  const isTaken = (streamId: string) => takes(config.streams, streamId);

  return (local, hooks): Fleet => {
    let seal: Seal = createSeal(options.secrets(), random);
    let opened: Promise<Parts> | undefined;
    let parts: Parts | undefined;
    let highest = 0;
    let servers: readonly EngineServer[] = [];
    let round = new AbortController();
    let closing = false;
    const chores = createChores();
    /** What became here of the entries that were made here, by id, until they come back from the engine. */
    const own = new Map<string, 'pending' | 'applied' | 'failed'>();
    const missing = new Set<StreamId>();
    const propagation: number[] = [];

    const standing = createStanding({ log, now, clock });

    const seen = (value: number) => {
      highest = Math.max(highest, value);
    };

    const report = (): Report => {
      const lacks = parts?.apply.lacks ?? new Map();
      return {
        state: standing.state,
        applied: parts?.follow.applied ?? [],
        lacks: Object.fromEntries([...lacks].slice(0, MAX_REPORTED_LACKS)),
        lacking: lacks.size,
        clockAhead: engine.clockAhead(),
        propagation: [...propagation],
      };
    };

    const audit = ({ streamId, bytes, by, from }: Entry, { former, result }: Applied): void => {
      const isPut = bytes !== undefined;
      hooks.audit({
        action: isPut ? 'put' : 'delete',
        key: by.key,
        address: by.address,
        requestId: by.requestId,
        streamId,
        result: result === 'removed' ? 'deleted' : former ? 'changed' : 'created',
        oldKeyId: keyIdOf(former),
        newKeyId: keyIdOf(bytes),
        from,
      });
    };

    const onApplied = (entry: Entry, applied: Applied, isNews: boolean): void => {
      // Of a change that failed here at first, its request has noted that it is made elsewhere.
      const isOwn = own.get(entry.id) === 'pending';
      own.delete(entry.id);
      if (applied.result !== 'written' && applied.result !== 'removed') return;
      const { bytes } = entry;
      if (bytes) hooks.index.set(entry.streamId, indexedKeysIn(keysIn(bytes.toString('latin1'))));
      if (!isOwn) audit(entry, applied);
      if (isNews) arrived(entry);
    };

    /** Notes how long a change took from its acceptance to its file here. */
    const arrived = ({ at }: Entry): void => {
      const ms = Math.max(0, clock().getTime() - at);
      hooks.observer.applied(ms / 1000);
      propagation.push(ms);
      if (propagation.length > MAX_PROPAGATION) propagation.shift();
    };

    const open = async (): Promise<Parts> => {
      const ledger = await openLedger(folder, { newId, log });
      seen(ledger.head.highest);
      for (const [, record] of ledger.records()) seen(record.version);
      const apply = createApply({
        local,
        ledger,
        hasLevelled: () => ledger.head.levelled === streamsText,
        log,
      });
      const identity = createIdentity({ engine, places, seal: () => seal, ledger, newId });
      const membership = createMembership({
        engine,
        places,
        name: config.name,
        streams: config.streams,
        version,
        id: () => ledger.head.id,
        report,
        log,
        clock,
        now,
        onNameTaken: standing.nameTaken,
      });
      const follow = createFollow({
        engine,
        places,
        seal: () => seal,
        apply,
        ranges,
        isOwn: ({ id }) => own.get(id) === 'applied' && own.delete(id),
        onApplied,
        onResult: hooks.observer.entry,
        onVersion: seen,
        onPresence(streamId, isThere) {
          if (isThere) missing.delete(streamId);
          else if (ledger.get(streamId)?.tag !== undefined) missing.add(streamId);
        },
        onFleetChanged() {
          identity.doubt();
          // Sealed anew it is the same fleet, of which all is here.
          identity.guard().catch(begin);
        },
        onPulse: standing.heard,
        onLost: standing.lost,
        onProgress: (isAwaited) => isAwaited && membership.reportSoon(),
      });
      parts = { ledger, apply, identity, follow, membership, lookAtFolder: createFolderLook(ledger, local) };
      return parts;
    };

    /** The parts, once the folder can be used. @throws HttpError */
    const whenOpen = (): Promise<Parts> => {
      opened ??= open().catch((thrown: unknown) => {
        opened = undefined;
        throw toLedgerError(thrown);
      });
      return opened;
    };

    /** Has the round end, so that the next one begins with a look at which fleet it is. */
    const begin = (): void => round.abort();

    const goRound = async (): Promise<void> => {
      const { ledger, apply, identity, follow, membership } = await whenOpen();
      identity.doubt();
      await identity.guard();
      standing.admitted();
      await membership.join();
      const there = await follow.level();
      missing.clear();
      // What is neither here nor noted would seem to be new to the fleet later.
      if (ledger.head.levelled !== streamsText && apply.hasUnseen())
        throw apiError('key_files_not_writable', 'The ledger of the fleet cannot be written.');
      for (const [streamId, { tag }] of ledger.records())
        if (tag !== undefined && isTaken(streamId) && !there.has(streamId)) missing.add(streamId);
      await ledger.noteHead({ levelled: streamsText, highest });
      standing.level(true);
      await follow.changes(round.signal);
    };

    const run = async (): Promise<void> => {
      while (!closing) {
        round = new AbortController();
        const began = now();
        let isRest = true;
        try {
          await goRound();
          // Rounds end at once by themselves, too, as with servers of two clusters.
          isRest = now() - began < RETRY_MS;
        } catch (thrown) {
          if (closing) return;
          standing.failed(thrown);
        }
        standing.level(false);
        if (isRest && !round.signal.aborted) await rest(RETRY_MS, round.signal);
      }
    };

    const retryFailed = async (): Promise<void> => {
      if (parts && standing.isLevel) await tryAgain(parts.apply, parts.follow);
    };

    const lookAtFolder = async (): Promise<void> => {
      if (!parts || !standing.isLevel) return;
      const streams = parts.lookAtFolder(FOLDER_STEP).filter(isTaken);
      if (streams.length > 0) await parts.follow.again(streams);
    };

    const lookAtServers = async (): Promise<void> => {
      servers = await engine.servers();
    };

    const collect = async (): Promise<void> => {
      if (parts && standing.isLevel)
        await collectDeleted({ ...parts, engine, places, seal: () => seal, clock });
    };

    const store = createFleetStore({
      name: config.name,
      local,
      places,
      grouped,
      seal: () => seal,
      identity: async () => (await whenOpen()).identity,
      newId: () => {
        const id = newId();
        own.set(id, 'pending');
        if (own.size > MAX_OWN) own.delete(own.keys().next().value ?? '');
        return id;
      },
      nextVersion: () => {
        highest = Math.max(highest + 1, clock().getTime());
        return highest;
      },
      seen,
      clock,
      isTaken,
      apply: async (entry, revision) => {
        const applied = await (await whenOpen()).apply.entry(entry, revision, 'made');
        hooks.observer.entry(applied.result);
        if (own.has(entry.id)) own.set(entry.id, applied.result === 'failed' ? 'failed' : 'applied');
        if (applied.result === 'written' || applied.result === 'removed') arrived(entry);
        return applied;
      },
      onConflict: hooks.observer.conflict,
    });

    const importStep = createImport({
      folder,
      local,
      offer: store.offer,
      isTaken,
      now,
    });
    const resealStep = createReseal({ engine, places, seal: () => seal, grouped });

    /** Runs what asks the engine, and answers its errors as those of the API. */
    const asked = async <Answer>(ask: (parts: Parts) => Promise<Answer>): Promise<Answer> => {
      try {
        return await ask(await whenOpen());
      } catch (thrown) {
        throw toFleetError(thrown);
      }
    };

    let listed: readonly Packager[] = [];
    /** While the engine is away, its limit of time would be waited for in vain. */
    const list = async (): Promise<readonly Packager[]> => {
      if (parts && standing.state !== 'away') listed = await parts.membership.list().catch(() => listed);
      return listed;
    };

    const status = cached(STATUS_KEPT_MS, now, () =>
      fleetStatus({
        name: config.name,
        streams: config.streams,
        engine,
        standing,
        ledger: parts?.ledger,
        list,
        missing: missing.size,
        time: clock().getTime(),
      }),
    );

    return {
      store,
      start() {
        options.onSecrets(() => {
          seal = createSeal(options.secrets(), random);
          begin();
        });
        void run();
        chores.every(FAILED_RETRY_MS, retryFailed);
        chores.every(options.folderMs ?? FOLDER_MS, lookAtFolder);
        void lookAtServers();
        chores.every(SERVERS_MS, lookAtServers);
        chores.every(COLLECT_MS, collect);
      },
      checkReady: () => standing.checkReady(parts?.ledger.head.levelled !== undefined),
      status,
      whereIs: (streamId) =>
        asked(({ membership }) => whereStream({ streamId, places, grouped, seal, membership })),
      waitFor: (changes, seconds) => asked(({ membership }) => membership.waitFor(changes, seconds)),
      importStep: (step, by) => asked(({ ledger }) => importStep(step, by, ledger)),
      found: () =>
        asked(async ({ identity }) => {
          await identity.found();
          begin();
        }),
      resealStep: (step) => asked(({ identity }) => resealStep(step, identity)),
      retire: (name) => asked(({ membership }) => membership.retire(name)),
      figures: () => fleetFigures(standing, parts?.apply.lacks.values() ?? [], servers),
      async close() {
        closing = true;
        chores.close();
        round.abort();
        await parts?.membership.close();
        engine.close();
        await parts?.ledger.close();
      },
    };
  };
}

/** Waits, but not when the signal says that it is no use. */
function rest(ms: number, signal: AbortSignal): Promise<void> {
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

/** What a client is told when the ledger can't be opened. */
function toLedgerError(thrown: unknown): unknown {
  const error = toStorageError('write', thrown);
  if (error instanceof HttpError || systemCode(error) !== undefined || !(error instanceof Error))
    return error;
  const description = `The ledger of the fleet cannot be used: ${error.message}. No key file was changed.`;
  return apiError('key_files_not_writable', description, { cause: thrown });
}
