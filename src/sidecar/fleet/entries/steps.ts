import type { FleetImportAnswer, FleetResealAnswer } from '../../../api/fleet-answers';
import type { StreamId } from '../../../api/stream-id';
import { etagOf } from '../../../drm/bytes';
import { parseKeyFile } from '../../../drm/key-file';
import { HttpError, systemCode } from '../../../http/errors';
import { yieldToEventLoop } from '../../../http/semaphore';
import { apiError } from '../../errors';
import { MAX_KEY_FILE_BYTES } from '../../key-files/changes';
import { listStreamIds } from '../../listing/folder';
import type { ChangedBy, KeyFileStore } from '../../storage/key-file-store';
import { MAX_CHANGES, type Page, type StoredValue } from '../engine/engine';
import type { FleetParts, Step } from '../fleet';
import type { Identity } from '../identity';
import type { Ledger } from '../ledger/ledger';
import type { Apply } from './apply';
import type { Offer } from './fleet-store';
import type { Replication } from './replicate';

interface ImportOptions extends Pick<FleetParts, 'folder' | 'local' | 'isTaken'> {
  readonly offer: Offer;
  readonly ledger: Ledger;
}

export async function importStep(
  { after, limit }: Step,
  by: ChangedBy,
  options: ImportOptions,
): Promise<FleetImportAnswer> {
  const all = await listStreamIds(options.folder);
  const rest = after === undefined ? all : all.filter((streamId) => streamId > after);
  const chosen = rest.slice(0, limit);
  const results = await Promise.all(chosen.map((streamId) => importOne(streamId, by, options)));
  const count = (wanted: string) => results.filter((result) => result === wanted).length;
  return {
    imported: count('imported'),
    same: count('same'),
    refused: results.flatMap((code, index) =>
      code === 'imported' || code === 'same'
        ? []
        : [{ streamid: chosen[index] ?? '', code, description: REFUSALS[code] }],
    ),
    next: rest.length > limit ? (chosen.at(-1) ?? null) : null,
    total: all.length,
  };
}

async function importOne(
  streamId: StreamId,
  by: ChangedBy,
  { local, offer, isTaken, ledger }: ImportOptions,
): Promise<'imported' | 'same' | keyof typeof REFUSALS> {
  if (!isTaken(streamId)) return 'not_taken';
  const bytes = readPlain(local, streamId);
  if (!bytes || !isKeyFile(bytes)) return 'not_a_key_file';
  const record = ledger.get(streamId);
  const isOurs = record !== undefined && !record.kept && record.tag === etagOf(bytes);
  // The engine was restored from a backup that is older than what this packager has had from the fleet.
  return offer(streamId, bytes, by, ({ version }) => isOurs && version < record.version);
}

const REFUSALS = {
  differs:
    "The fleet has another key file of this stream. POST the right one, or remove the file from this packager's folder: the fleet's file then arrives automatically. A DELETE would delete the stream in the whole fleet.",
  deleted:
    "The fleet has noted this stream as deleted. POST it again if it is needed; otherwise remove the file from this packager's folder.",
  unreadable: "The fleet's entry for this stream cannot be opened here. A POST replaces it.",
  not_a_key_file: 'This is not a readable key file. Examine it with packager-drm check.',
  not_taken: 'This packager does not take this stream: PACKAGERDRMAPI_FLEET_STREAMS.',
} as const;

/** Undefined: there is no plain file, or this user may not read it. */
function readPlain({ read }: KeyFileStore, streamId: StreamId): Buffer | undefined {
  try {
    return read(streamId);
  } catch (thrown) {
    if (thrown instanceof HttpError && (thrown.status === 409 || systemCode(thrown.cause) === 'EACCES'))
      return undefined;
    throw thrown;
  }
}

function isKeyFile(bytes: Buffer): boolean {
  if (bytes.length > MAX_KEY_FILE_BYTES) return false;
  const { lines, unreadable } = parseKeyFile(bytes.toString('utf8'));
  return lines.length > 0 && unreadable.length === 0;
}

interface ResealOptions extends Pick<FleetParts, 'engine' | 'keys' | 'seal' | 'grouped'> {
  readonly identity: Identity;
}

const MAX_TRIES = 20;

/** Resealed entries keep id and version: no file changes. */
export async function resealStep({ after, limit }: Step, options: ResealOptions): Promise<FleetResealAnswer> {
  const { engine, keys, identity } = options;
  await identity.guard();
  await resealFleet(options);
  const range = keys.everyEntry;
  const listAfter = (key: string | undefined) => engine.list({ ...range, after: key }, { limit });
  const streamsIn = ({ values }: Page) => values.flatMap(({ key }) => keys.streamOf(key) ?? []);
  let page = await listAfter(after === undefined ? undefined : keys.entry(after as StreamId));
  // A step ends at a stream: keys of other writers may be too long for a request.
  while (page.more && streamsIn(page).length === 0) page = await listAfter(page.values.at(-1)?.key);
  const results: (Resealed | undefined)[] = [];
  for (let begin = 0; begin < page.values.length; begin += MAX_CHANGES) {
    const group = page.values.slice(begin, begin + MAX_CHANGES);
    results.push(...(await Promise.all(group.map((found) => resealOne(found, options)))));
    await yieldToEventLoop();
  }
  const count = (wanted: Resealed) => results.filter((result) => result === wanted).length;
  const unreadable = page.values.flatMap(({ key }, index) =>
    results[index] === 'unreadable' ? [keys.streamOf(key) ?? ''] : [],
  );
  const total = (await engine.list(range, { limit: 1 })).count;
  const next = page.more ? (streamsIn(page).at(-1) ?? null) : null;
  return { resealed: count('resealed'), current: count('current'), unreadable, next, total };
}

type Resealed = 'resealed' | 'current' | 'unreadable';

/** The description of the fleet guards the entries. */
async function resealFleet({ engine, keys, seal, identity }: ResealOptions): Promise<void> {
  const [present] = (await engine.read([keys.fleet])).values;
  if (!present || seal().isCurrent(present.value)) return;
  const text = seal().openText(keys.fleet, present.value);
  if (text === undefined) return;
  const value = seal().sealText(keys.fleet, text);
  await engine.change([{ key: keys.fleet, expected: present.revision, value }]);
  identity.invalidate();
}

/** Undefined: the key is no entry's, or the entry is gone. */
async function resealOne(
  found: StoredValue,
  { keys, seal, grouped, identity }: ResealOptions,
): Promise<Resealed | undefined> {
  const { key } = found;
  const streamId = keys.streamOf(key);
  if (streamId === undefined) return undefined;
  let present: StoredValue | undefined = found;
  for (let tries = 0; present; tries += 1) {
    if (tries === MAX_TRIES) throw apiError('fleet_unavailable');
    const { value, revision }: StoredValue = present;
    const opened = seal().open(key, value, streamId);
    if (!opened) return 'unreadable';
    if (seal().isCurrent(value)) return tries === 0 ? 'current' : 'resealed';
    const sealed = seal().seal(key, { ...opened, awaited: false });
    const answer = await grouped.change({ key, expected: revision, value: sealed }, await identity.guard());
    if (answer?.made) return 'resealed';
    // The entry was changed meanwhile, or the fleet itself was resealed.
    if (answer) present = answer.present;
    else identity.invalidate();
  }
  return undefined;
}

export async function retryFailed({ lacks }: Apply, { reapply }: Replication): Promise<void> {
  const streams = [...lacks].flatMap(([streamId, why]) => (why === 'failed' ? [streamId] : []));
  for (let begin = 0; begin < streams.length; begin += MAX_CHANGES) {
    const group = streams.slice(begin, begin + MAX_CHANGES);
    await reapply(group);
    // When nothing can be written, no more are tried. The others come first the next time.
    if (group.every((streamId) => lacks.get(streamId) === 'failed')) return;
  }
}

const DAY_MS = 24 * 60 * 60_000;
/** Tombstones are kept for packagers that are away. */
const KEPT_MS = 90 * DAY_MS;

interface CollectOptions extends Pick<FleetParts, 'engine' | 'keys' | 'seal' | 'clock'> {
  readonly identity: Pick<Identity, 'guard'>;
  readonly ledger: Pick<Ledger, 'records' | 'forget'>;
  readonly replication: Pick<Replication, 'absent'>;
}

/** The ledger keeps tombstones twice as long, so that an old entry from a backup makes no file. */
export async function collectDeleted(options: CollectOptions): Promise<void> {
  const { engine, keys, seal, identity, ledger, replication, clock } = options;
  // By the engine's clock, if this one is ahead of it: a clock that jumps must not collect too early.
  const time = clock().getTime() - Math.max(0, engine.clockAhead() ?? 0);
  const old = [...ledger.records()].filter(
    ([, { tag, kept, version }]) => tag === undefined && !kept && version < time - KEPT_MS,
  );
  for (let begin = 0; begin < old.length; begin += MAX_CHANGES) {
    const group = old.slice(begin, begin + MAX_CHANGES);
    const { values } = await engine.read(group.map(([streamId]) => keys.entry(streamId)));
    const changes = group.flatMap(([streamId, { version }], index) => {
      const found = values[index];
      if (!found) {
        if (version < time - 2 * KEPT_MS) {
          ledger.forget(streamId);
          replication.absent.delete(streamId);
        }
        return [];
      }
      const opened = seal().open(found.key, found.value, streamId);
      const isSame = opened?.version === version && !opened.bytes;
      return isSame ? [{ key: found.key, expected: found.revision, value: undefined }] : [];
    });
    if (changes.length > 0) await engine.change(changes, await identity.guard());
  }
}
