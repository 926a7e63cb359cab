import type { LineChange } from '../../api/answers';
import { groupNameFindings, type StreamId } from '../../api/stream-id';
import { decodeBase64Block, formatUuid } from '../../drm/bytes';
import type { Finding } from '../../drm/finding';
import {
  isSameKeyFile,
  isSameValue,
  type KeyFileLine,
  keyFileLines,
  keysIn,
  MASK,
  maskLines,
  parseKeyFile,
  renderKeyFile,
} from '../../drm/key-file';
import { describeThrown, type HttpError } from '../../http/errors';
import { etagOf } from '../../http/etag';
import type { Log } from '../../http/log';
import type { Provisioned } from '../../provider/provision';
import type { ApiKey } from '../access/api-key';
import { apiError } from '../errors';
import { notHereFindings } from '../fleet/wait';
import type { Audit } from '../observe/audit';
import type { Change, ChangedBy, Conditions, KeyFileStore } from '../storage/key-file-store';
import { indexedKeysIn, type KeyIndex, keyConflictFindings } from './survey';

/** The client that changes a key file. */
export interface Actor extends ChangedBy {
  readonly apiKey: ApiKey;
}

interface ChangeOptions extends Conditions {
  /** The client waits until every packager of the fleet has it. */
  readonly awaited?: boolean;
}

export type PutOutcome = Awaited<ReturnType<KeyFileChanges['put']>>;

export type KeyFileChanges = ReturnType<typeof createKeyFileChanges>;

interface ChangesContext {
  readonly store: KeyFileStore;
  readonly audit: Audit;
  readonly log: Log;
  readonly index: KeyIndex;
}

/** Changes key files and audits each change. The caller has checked the rights of the actor. */
export function createKeyFileChanges({ store, index, audit, log }: ChangesContext) {
  /**
   * Writes a key file. Answers it as it is written, or would be, and the file before; `fleet` when a fleet has it, never of
   * a dry run.
   */
  const put = async (
    streamId: StreamId,
    provisioned: Provisioned,
    actor: Actor,
    { awaited = false, ...conditions }: ChangeOptions = {},
  ) => {
    const { keyFile, source } = provisioned;
    const by = changedBy(actor);
    const bytes: Buffer = Buffer.from(renderKeyFile(keyFileLines(keyFile)), 'utf8');
    if (bytes.length > MAX_KEY_FILE_BYTES) throw tooLarge(bytes.length);
    const change = await store.write(streamId, bytes, conditions, { by, awaited });
    const { dryRun, skipUnchanged } = conditions;
    const { former } = change;
    const keys = keyFile.cenc && indexedKeysIn(keyFile.cenc);
    if (!dryRun && !isElsewhere(change)) index.set(streamId, keys);
    const warnings = [
      ...provisioned.warnings,
      ...groupNameFindings(streamId),
      ...keyConflictFindings(index, streamId, keys, actor.apiKey),
      ...storageFindings(streamId, change, actor),
    ];
    const result = resultOf(former, bytes);
    if (!dryRun) {
      const written = !skipUnchanged || result !== 'unchanged';
      for (const { code, description } of written ? warnings : []) {
        const fields = { requestId: by.requestId, streamId, code, description };
        log.warn('key file written with a warning', fields);
      }
      const newKeyId = uuidOf(keyFile.cenc?.keyId);
      const oldKeyId = result === 'unchanged' ? newKeyId : keyIdOf(former);
      const more = { ...(source && { source }), ...(isElsewhere(change) && { isElsewhere: true }) };
      audit({ action: 'put', ...by, streamId, result, oldKeyId, newKeyId, ...more });
    }
    const fleet = dryRun ? undefined : change.fleet;
    const isLeft = skipUnchanged && result === 'unchanged';
    return { bytes, former, etag: etagOf(isLeft && former ? former : bytes), result, warnings, fleet };
  };

  /** The warnings about how a change was stored. */
  const storageFindings = (
    streamId: StreamId,
    { notSynced, fleet }: Change,
    { requestId }: Actor,
  ): Finding[] => {
    const report = (message: string, cause: unknown) =>
      log.error(message, { requestId, streamId, cause: describeThrown(cause) });
    if (notSynced) report('key-file folder not synced', notSynced.cause);
    if (fleet?.notHere) report('a change of the fleet could not be made here', fleet.notHere);
    return [...(notSynced ? [NOT_DURABLE] : []), ...notHereFindings({ ...fleet })];
  };

  return {
    put,
    /** Removes a key file, and answers its bytes; undefined: there was none. */
    async remove(streamId: StreamId, actor: Actor, { awaited = false, ...conditions }: ChangeOptions = {}) {
      const by = changedBy(actor);
      const change = await store.remove(streamId, conditions, { by, awaited });
      const { former: bytes, fleet } = change;
      const more = { oldKeyId: keyIdOf(bytes), ...(isElsewhere(change) && { isElsewhere: true }) };
      if (bytes)
        audit({ action: 'delete', ...by, streamId, result: 'deleted', newKeyId: undefined, ...more });
      return { bytes, warnings: storageFindings(streamId, change, actor), fleet };
    },
  };
}

const NOT_DURABLE: Finding = {
  severity: 'warning',
  code: 'not_durable',
  description:
    'the change is made, but the key-file folder could not be synced: a power cut may undo it. Check the disk, and send the request again',
};

/** A key file has one or two KiB; what is far larger is a mistake, and could not be read back. */
export const MAX_KEY_FILE_BYTES = 64 * 1024;

function tooLarge(bytes: number): HttpError {
  const description = `The key file would have ${bytes} bytes; the limit is ${MAX_KEY_FILE_BYTES}. Look for a value that is too long.`;
  return apiError('invalid_body', description);
}

/** What the audit and the fleet are given of an actor. */
export function changedBy({ key, address, requestId }: Actor): ChangedBy {
  return { key, address, requestId };
}

/** Whether the folder here did not change: the change is in the fleet, and made elsewhere or later. */
function isElsewhere({ fleet }: Change): boolean {
  return fleet !== undefined && (!fleet.isHere || fleet.notHere !== undefined);
}

function resultOf(former: Buffer | undefined, bytes: Buffer): 'created' | 'changed' | 'unchanged' {
  if (!former) return 'created';
  return isSameKeyFile(former, bytes) ? 'unchanged' : 'changed';
}

/** The key id of a key file, as a UUID. */
export function keyIdOf(bytes: Buffer | undefined): string | undefined {
  return bytes && uuidOf(keysIn(bytes.toString('latin1')).keyId);
}

function uuidOf(keyId: string | undefined): string | undefined {
  const bytes = decodeBase64Block(keyId ?? '');
  return bytes.ok ? formatUuid(bytes.value) : undefined;
}

/** Compares the file that would be written with the present one, line by line. Secret values are masked. */
export function lineChanges(next: string, present: Buffer | undefined): LineChange[] {
  const presentLines = linesOf(present?.toString('utf8') ?? '');
  const before = new Map(presentLines.map(({ name, value }) => [name, value]));
  const formerShown = new Map(maskLines(presentLines).map(({ name, value }) => [name, value]));
  const after = linesOf(next);
  const shown = maskLines(after);
  const kept = after.map(({ name, value: real }, at): LineChange => {
    const value = shown[at]?.value ?? MASK;
    const former = before.get(name);
    before.delete(name);
    if (former === undefined) return { name, value, change: 'added' };
    if (isSameValue(name, former, real)) return { name, value, change: 'same' };
    return { name, value, change: 'changed', former: formerShown.get(name) ?? MASK };
  });
  const removed = [...before.keys()].map(
    (name): LineChange => ({ name, value: formerShown.get(name) ?? MASK, change: 'removed' }),
  );
  return [...kept, ...removed];
}

/** The same as text: `+` for what comes, `-` for what goes, two spaces before what stays. */
export function renderLineChanges(changes: readonly LineChange[]): string {
  const line = (mark: string, name: string, value: string) => `${mark} ${name}: ${value}\n`;
  return changes
    .map(({ name, value, change, former }) => {
      if (change === 'same') return line(' ', name, value);
      if (change === 'removed') return line('-', name, value);
      return (former === undefined ? '' : line('-', name, former)) + line('+', name, value);
    })
    .join('');
}

function linesOf(text: string): readonly KeyFileLine[] {
  return parseKeyFile(text).lines;
}
