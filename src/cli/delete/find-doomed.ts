import { CliError, EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { readStreamIds } from '../lineup/read-lineup';
import { listPages } from '../list-pages';
import { count } from '../output';
import { patiently } from '../patience';
import { type Progress, showProgress } from '../progress';
import { type DeleteResult, isAbsent } from './delete-files';

/** Which key files are meant by what they are, not by name. */
export interface Selection {
  readonly prefix?: string;
  /** The line-up of what stays. */
  readonly notIn?: string;
}

/** A key file that is to go. */
export interface Doomed {
  readonly streamid: string;
  /** Of the file that was looked at; another one is left. Undefined when the sidecar gives none. */
  readonly etag: string | undefined;
  readonly modified?: string;
  readonly content_id?: string | null;
}

export interface Found {
  readonly doomed: readonly Doomed[];
  readonly failed: readonly DeleteResult[];
  /** How many key files were looked at and stay; undefined when streams were named. */
  readonly staying: number | undefined;
}

/** Looks at the key files of streams that the user names. */
export async function findNamed(
  context: CliContext,
  streamIds: readonly string[],
  ifMatch: string | undefined,
): Promise<Found> {
  const looked = await withEtags(
    context,
    streamIds.map((streamid) => ({ streamid, ...(ifMatch !== undefined && { etag: ifMatch }) })),
  );
  return { ...looked, staying: undefined };
}

/**
 * Looks for the key files that a selection means.
 * @throws CliError when the line-up can't be used, or names none of the key files: it is then hardly the one of this
 *   sidecar.
 */
export async function findByRule(context: CliContext, { prefix, notIn }: Selection): Promise<Found> {
  const kept = notIn === undefined ? undefined : new Set(readStreamIds(context, notIn));
  const candidates: Omit<Doomed, 'etag'>[] = [];
  let staying = 0;
  for await (const { keyfiles } of listPages(context.sidecar(), { prefix })) {
    for (const { streamid, modified, content_id } of keyfiles) {
      if (kept?.has(streamid)) staying += 1;
      else candidates.push({ streamid, modified, content_id });
    }
  }
  if (kept && staying === 0 && candidates.length > 0) {
    const where = prefix === undefined ? '' : ` below ${prefix}`;
    const all = count(candidates.length, 'key file');
    throw usageError(
      `${notIn} names none of the ${all}${where} at ${context.sidecar().address}, so all would be deleted. Is it the line-up of this sidecar? To delete them all the same, use --prefix alone.`,
    );
  }
  candidates.sort((one, other) => (one.streamid < other.streamid ? -1 : 1));
  return { ...(await withEtags(context, candidates)), staying };
}

type Candidate = Omit<Doomed, 'etag'> & { readonly etag?: string };

const AT_ONCE = 8;

/** Takes the ETags down, so that what changes from here on is left. A stream without a key file is a failure. */
async function withEtags(
  context: CliContext,
  candidates: readonly Candidate[],
): Promise<Omit<Found, 'staying'>> {
  const doomed: Doomed[] = [];
  const failed: DeleteResult[] = [];
  const progress = showProgress(context, 'Looking at', candidates.length);
  try {
    for (let from = 0; from < candidates.length; from += AT_ONCE) {
      const some = candidates.slice(from, from + AT_ONCE);
      const looked = await Promise.all(some.map((candidate) => lookAt(context, progress, candidate)));
      for (const one of looked) {
        if (one === 'gone') continue;
        if ('result' in one) failed.push(one);
        else doomed.push(one);
      }
      progress.advance(some.length);
    }
  } finally {
    progress.stop();
  }
  return { doomed, failed };
}

async function lookAt(
  context: CliContext,
  progress: Progress,
  candidate: Candidate,
): Promise<Doomed | DeleteResult | 'gone'> {
  const { streamid, modified } = candidate;
  try {
    const etag = await patiently(context, progress, () => context.sidecar().etagOf(streamid));
    return { ...candidate, etag: candidate.etag ?? etag };
  } catch (thrown) {
    if (!(thrown instanceof CliError) || thrown.exitCode !== EXIT.failed) throw thrown;
    // What was listed a moment ago and is no more need not be deleted.
    const isGone = modified !== undefined && isAbsent(thrown);
    return isGone ? 'gone' : { streamid, result: 'failed', errors: thrown.problems };
  }
}
