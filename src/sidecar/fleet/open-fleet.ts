import { setTimeout as pause } from 'node:timers/promises';
import { takes } from '../../api/stream-id';
import { cached, kept } from '../../http/cached';
import { HttpError, systemCode } from '../../http/errors';
import { apiError, sentenceOf } from '../errors';
import { keyIdOf } from '../key-files/changes';
import type { KeyFileStore } from '../storage/key-file-store';
import { toStorageError } from '../storage/open-file';
import type { FleetConfig } from './config';
import { type Engine, EngineError, type EngineServer, toFleetError } from './engine/engine';
import { groupCalls } from './engine/grouped';
import { engineKeysUnder } from './engine-keys';
import { type Applied, type Apply, createApply, type Origin } from './entries/apply';
import { createFleetStore } from './entries/fleet-store';
import { createReplication, type Replication } from './entries/replicate';
import { createSeal, createVersions, type Entry } from './entries/seal';
import { collectDeleted, importStep, resealStep, tryAgain } from './entries/steps';
import type { Fleet, FleetHooks } from './fleet';
import { createIdentity, type Identity } from './identity';
import type { openFleetSecret } from './join';
import { createFolderCheck, type Ledger, openLedger } from './ledger/ledger';
import { createMembership, type Membership } from './members/membership';
import type { Packager } from './members/packagers';
import { createMembershipState } from './membership-state';
import { fleetFigures, fleetStatus, whereStream } from './status';

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
  const { engine, folder, log, newId, random, now, clock, observer } = options;
  const { name, streams, prefix } = options.config;
  const keys = engineKeysUnder(prefix);
  const grouped = groupCalls(engine);
  const isTaken = (streamId: string) => takes(streams, streamId);
  const levelledStreams = (streams ?? []).join(',');
  const state = createMembershipState({ log, now, clock });
  const versions = createVersions(clock);
  const changes = createChangeLog(options);
  let sealNow = createSeal(options.secrets(), random);
  const seal = () => sealNow;
  const ending = new AbortController();
  /** Ends the present round; the next one reads the fleet again. */
  let round = new AbortController();
  const restart = () => round.abort();

  const openMember = async (): Promise<Member> => {
    const ledger = await openLedger(folder, { newId, log });
    versions.see(ledger.head.highest);
    const hasLevelled = () => ledger.head.levelled === levelledStreams;
    const isEnding = () => ending.signal.aborted;
    const apply = createApply({ local, ledger, hasLevelled, isEnding, log });
    const identity = createIdentity({ engine, keys, seal, ledger, newId });
    const membership = createMembership({
      ...options,
      keys,
      name,
      streams,
      id: () => ledger.head.id,
      report: () => ({
        state: state.state,
        applied: replication.applied,
        lacks: Object.fromEntries([...apply.lacks].slice(0, MAX_REPORTED_LACKS)),
        lacking: apply.lacks.size,
        clockAhead: engine.clockAhead(),
        propagation: changes.propagation,
      }),
      onNameTaken: state.setNameTaken,
    });
    const replication = createReplication({
      engine,
      keys,
      seal,
      apply,
      ledger,
      versions,
      ranges: keys.entries(streams),
      isTaken,
      onApplied: changes.applied,
      onResult: observer.entry,
      onFleetChanged() {
        identity.doubt();
        // A resealed fleet is the same one, and everything of it is here.
        identity.guard().catch(restart);
      },
      onHeartbeat: state.engineReached,
      onLost: state.failed,
      onAwaited: membership.reportSoon,
    });
    return {
      ledger,
      apply,
      identity,
      replication,
      membership,
      checkFolder: createFolderCheck(ledger, local),
    };
  };
  let present: Member | undefined;
  let opening: Promise<Member> | undefined;
  /** A failed opening of the ledger is repeated with the next call. @throws HttpError */
  const member = kept(async () => {
    opening = openMember().catch((thrown: unknown) => {
      throw toLedgerError(thrown);
    });
    present = await opening;
    return present;
  });

  const runRound = async (signal: AbortSignal): Promise<void> => {
    const { ledger, apply, identity, replication, membership } = await member();
    identity.doubt();
    await identity.guard();
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
    void list();
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
    name,
    local,
    keys,
    grouped,
    seal,
    identity: async () => (await member()).identity,
    newId,
    versions,
    clock,
    isTaken,
    onAsked: changes.asked,
    async apply(entry, revision) {
      const applied = await (await member()).apply.entry(entry, revision, 'made');
      observer.entry(applied.result);
      changes.applied(entry, applied, 'made');
      return applied;
    },
    onConflict: observer.conflict,
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
  let listed: readonly Packager[] = [];
  /** The packagers as last known: while the engine is away, a request would only wait for the time limit. */
  const list = async (): Promise<readonly Packager[]> => {
    if (present && state.state !== 'away') listed = await present.membership.list().catch(() => listed);
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
      void repeat(SERVERS_MS, readServers);
      void repeatWhileLevel(FAILED_RETRY_MS, async ({ apply, ledger, replication }) => {
        await tryAgain(apply, replication);
        // The entries that could not be opened were sealed again elsewhere.
        if (ledger.head.levelled !== levelledStreams && replication.missingSecrets.size === 0) restart();
      });
      void repeatWhileLevel(options.folderMs ?? FOLDER_MS, async ({ checkFolder, replication }) => {
        const changed = checkFolder(FOLDER_STEP).filter(isTaken);
        if (changed.length > 0) await replication.again(changed);
      });
      void repeatWhileLevel(COLLECT_MS, (each) => collectDeleted({ ...each, engine, keys, seal, clock }));
    },
    checkReady() {
      state.checkReady(hasJoined(present?.ledger.head.levelled, streams));
      const secrets = present?.replication.missingSecrets;
      if (secrets?.size) throw missingSecret(secrets);
    },
    status: cached(STATUS_KEPT_MS, now, () => fleetStatus(options, state, present, list)),
    whereIs: (streamId) =>
      asked(({ membership: { list } }) =>
        whereStream(streamId, keys.entry(streamId), { grouped, seal: sealNow, list }),
      ),
    waitFor: (awaited, seconds) => asked(({ membership }) => membership.waitFor(awaited, seconds)),
    importStep: (step, by) =>
      asked(({ ledger }) => importStep(step, by, { folder, local, offer: store.offer, isTaken, ledger })),
    found: () =>
      asked(async ({ identity }) => {
        await identity.found();
        restart();
      }),
    resealStep: (step) =>
      asked(({ identity }) => resealStep(step, { engine, keys, seal, grouped, identity })),
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
  return apiError('fleet_missing_secret', `${found} ${sentenceOf('fleet_missing_secret')}`);
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

const MAX_PENDING = 10_000;
const MAX_PROPAGATION = 50;

function createChangeLog({ audit, observer, clock }: FleetHooks) {
  /** Ids of changes that this sidecar sent and has not applied yet: their requests write the audit lines. */
  const pending = new Set<string>();
  /** Milliseconds from the acceptance of the last changes anywhere to the file here. */
  const propagation: number[] = [];

  return {
    asked(id: string): void {
      pending.add(id);
      if (pending.size > MAX_PENDING) pending.delete(pending.values().next().value ?? '');
    },
    applied(entry: Entry, { result, former }: Applied, origin: Origin): void {
      const isOwn = pending.delete(entry.id) || origin === 'made';
      if (result !== 'written' && result !== 'removed') return;
      const { streamId, bytes, by, from } = entry;
      if (origin === 'made' || origin === 'news') {
        const ms = Math.max(0, clock().getTime() - entry.at);
        observer.applied(ms / 1000);
        propagation.push(ms);
        if (propagation.length > MAX_PROPAGATION) propagation.shift();
      }
      if (isOwn) return;
      audit({
        action: bytes ? 'put' : 'delete',
        ...by,
        streamId,
        result: result === 'removed' ? 'deleted' : former ? 'changed' : 'created',
        oldKeyId: keyIdOf(former),
        newKeyId: keyIdOf(bytes),
        from,
      });
    },
    get propagation(): readonly number[] {
      return [...propagation];
    },
  };
}

function toLedgerError(thrown: unknown): unknown {
  const error = toStorageError('write', thrown);
  if (error instanceof HttpError || systemCode(error) !== undefined || !(error instanceof Error))
    return error;
  const description = `The ledger of the fleet cannot be used: ${error.message}. No key file was changed.`;
  return apiError('key_files_not_writable', description, { cause: thrown });
}
