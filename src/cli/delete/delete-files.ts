import type { Problem } from '../../http/errors';
import { CliError, EXIT } from '../cli-error';
import type { CliContext } from '../context';
import { patiently } from '../patience';
import { showProgress } from '../progress';
import { interrupted, type SidecarApi, SidecarAway } from '../sidecar-api';
import type { Doomed } from './find-doomed';

/** What became of a key file that was to go, or would; `gone`: another deleted it meanwhile. */
export interface DeleteResult {
  readonly streamid: string;
  readonly result: 'deleted' | 'gone' | 'failed' | 'not_reached';
  readonly errors: readonly Problem[];
}

export interface Deleted {
  readonly results: readonly DeleteResult[];
  /** Why the rest was not deleted. */
  readonly stopped: CliError | undefined;
}

/** Deletes key files one after the other, each only while it is the one that was looked at. */
export async function deleteFiles(context: CliContext, doomed: readonly Doomed[]): Promise<Deleted> {
  const sidecar = context.sidecar({ finishCalls: true });
  const results: DeleteResult[] = [];
  const progress = showProgress(context, 'Deleting', doomed.length);
  const rest = () =>
    doomed.slice(results.length).map(
      ({ streamid }): DeleteResult => ({
        streamid,
        result: 'not_reached',
        errors: [],
      }),
    );
  try {
    for (const { streamid, etag } of doomed) {
      if (context.interrupted.aborted) return { results: [...results, ...rest()], stopped: interrupted() };
      try {
        const precondition = etag === undefined ? undefined : { ifMatch: etag };
        await patiently(context, progress, () => sidecar.remove(streamid, precondition));
        results.push({ streamid, result: 'deleted', errors: [] });
      } catch (thrown) {
        if (!(thrown instanceof CliError)) throw thrown;
        if (thrown instanceof SidecarAway || thrown.exitCode !== EXIT.failed) {
          const stopped =
            thrown instanceof SidecarAway ? new CliError(EXIT.unreachable, thrown.problems) : thrown;
          return { results: [...results, ...rest()], stopped };
        }
        results.push(
          (await isGone(sidecar, streamid, thrown))
            ? { streamid, result: 'gone', errors: [] }
            : { streamid, result: 'failed', errors: thrown.problems },
        );
      }
      progress.advance(1);
    }
  } finally {
    progress.stop();
  }
  return { results, stopped: undefined };
}

/** Whether a deletion failed because the file is deleted already: by another, or by a try whose answer was lost. */
async function isGone(
  sidecar: Pick<SidecarApi, 'etagOf'>,
  streamid: string,
  failure: CliError,
): Promise<boolean> {
  if (failure.problems[0]?.code !== 'precondition_failed') return isAbsent(failure);
  try {
    await sidecar.etagOf(streamid);
    return false;
  } catch (thrown) {
    return thrown instanceof CliError && isAbsent(thrown);
  }
}

/** Whether the sidecar says that a stream has no key file. */
export function isAbsent({ problems }: CliError): boolean {
  return problems[0]?.code === 'key_file_not_found';
}
