import { isStrongMatch } from '../../drm/bytes';
import type { Problem } from '../../http/errors';
import type { Output } from '../../terminal/output';
import { count, shown, showSome, timeText } from '../../terminal/text';
import { answerOrError, CliError, EXIT, usageError } from '../cli-error';
import { listPages, quotedEtag, type SidecarApi } from '../client';
import type { CliContext } from '../context';
import { requireFleet, secondsOfOne, waitFields, waitForPackagers } from '../fleet/wait';
import { readStreamIds } from '../manifest/read-manifest';
import type { Options } from '../options';
import {
  callEach,
  confirm,
  countsOf,
  countsText,
  endAs,
  requireTerminal,
  showFailed,
  stopFields,
} from '../outcome';

const NOTHING = 'Nothing was deleted.';

export async function deleteKeyFiles(
  context: CliContext,
  streamIds: readonly string[],
  options: Options,
): Promise<void> {
  checkCall(streamIds, options);
  const [only = ''] = streamIds;
  if (streamIds.length === 1 && !options.dryRun) {
    await deleteOne(context, only, options);
    return;
  }
  if (!options.dryRun && !options.yes) requireTerminal(context, 'delete the key files');
  await requireFleet(context, options.wait);
  const found =
    streamIds.length > 0
      ? await withEtags(
          context,
          [...new Set(streamIds)].map((streamid) => ({ streamid, etag: options.ifMatch })),
        )
      : await findByRule(context, options);
  const { deletions } = found;
  if (!context.out.json) showPlan(context.out, found, options.all);
  const isDry = options.dryRun || deletions.length === 0;
  if (!isDry && !options.yes) {
    const question = `Delete ${count(deletions.length, 'key file')} at ${context.sidecar().address}?`;
    if (!(await confirm(context, question, NOTHING))) return;
  }
  const sent = isDry ? undefined : await deleteFiles(context, deletions);
  const results: readonly DeleteResult[] =
    sent?.results ?? deletions.map((deletion) => resultOf(deletion, 'deleted'));
  const waited = await waitForPackagers(context, {
    streamIds: results.flatMap(({ streamid, result }) => (result === 'deleted' ? [streamid] : [])),
    revision: sent?.revision,
    wait: sent && options.wait,
    stopped: sent?.stopped,
  });
  const all = [...found.failed, ...results];
  const summary = countsOf(['deleted', 'gone', 'failed', 'not_reached'], all);
  const { dryRun = false } = options;
  const { stopped } = sent ?? {};
  if (context.out.json) {
    const document = { dry_run: dryRun, results: all, summary };
    context.out.document({ ...document, ...waitFields(waited), ...stopFields(stopped) });
  } else {
    const late = results.filter(({ result }) => result === 'failed');
    showFailed(context.out, failedTitle(late), late, options.all);
  }
  const nothing = dryRun ? NOTHING : 'There is nothing to delete.';
  const sentence = sent ? `Key files: ${countsText(summary)}.` : nothing;
  endAs(context, { sentence, isFaulty: summary.failed > 0, stopped, waited });
}

function checkCall(streamIds: readonly string[], { prefix, notIn, ifMatch }: Options): void {
  const isByRule = prefix !== undefined || notIn !== undefined;
  if (streamIds.length > 0 && isByRule)
    throw usageError('Name streams, or select them with --prefix and --not-in, not both.');
  if (streamIds.length === 0 && !isByRule)
    throw usageError(
      'No key files are given: name their streams, or give --prefix, or --not-in with the manifest of the streams that stay.',
    );
  if (ifMatch !== undefined && streamIds.length !== 1)
    throw usageError('--if-match is for one stream: an ETag belongs to one file.');
}

async function deleteOne(context: CliContext, streamId: string, { ifMatch, wait }: Options): Promise<void> {
  const { out } = context;
  const seconds = secondsOfOne(wait);
  const sidecar = context.sidecar();
  const { warnings, isPending } = await sidecar.remove(streamId, { ifMatch }, seconds);
  if (isPending && seconds !== undefined) context.endWith(EXIT.failed);
  for (const { code, description } of warnings) out.warn(`${code}: ${description}`);
  if (out.json)
    out.document({ streamid: streamId, result: 'deleted', ...(warnings.length > 0 && { warnings }) });
  else out.note(`Removed the key file of ${shown(streamId)}.`, 'green');
}

function showPlan(out: Output, { deletions, failed, staying = 0 }: Found, all: boolean | undefined): void {
  const title = `${count(deletions.length, 'key file')} would be deleted`;
  showSome(out, title, deletions, all, ({ streamid, modified, content_id }) => {
    const content = content_id ? `, content ${shown(content_id)}` : '';
    const details = modified === undefined ? '' : `  (of ${shown(timeText(modified))} UTC${content})`;
    out.write(`  ${out.style('red', '-')} ${shown(streamid)}${out.style('dim', details)}\n`);
  });
  showFailed(out, failedTitle(failed), failed, all);
  if (staying > 0) out.write(`${out.style('bold', `${count(staying, 'key file')} would stay`)}\n`);
}

function failedTitle({ length }: readonly DeleteResult[]): string {
  return `${count(length, 'key file')} can't be deleted`;
}

interface Deletion {
  readonly streamid: string;
  /** Of the file that was looked at; another one is left. Undefined when the sidecar gives none. */
  readonly etag?: string | undefined;
  readonly modified?: string;
  readonly content_id?: string | null;
}

interface Found {
  readonly deletions: readonly Deletion[];
  readonly failed: readonly DeleteResult[];
  /** Key files that were looked at and stay; undefined when streams were named. */
  readonly staying?: number;
}

/** @throws CliError when the manifest names none of the key files: it is then hardly for this sidecar. */
async function findByRule(context: CliContext, { prefix, notIn }: Options): Promise<Found> {
  const kept = notIn === undefined ? undefined : new Set(readStreamIds(context, notIn));
  const candidates: Deletion[] = [];
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
      `${notIn} names none of the ${all}${where} at ${context.sidecar().address}, so all would be deleted. Is it the manifest of this sidecar? To delete them anyway, use only --prefix.`,
    );
  }
  return { ...(await withEtags(context, candidates)), staying };
}

/** Reads the ETags, so that a file that changes from here on stays. A stream without a key file is a failure. */
async function withEtags(context: CliContext, candidates: readonly Deletion[]): Promise<Found> {
  const deletions: Deletion[] = [];
  const failed: DeleteResult[] = [];
  const sidecar = context.sidecar();
  const { stopped } = await callEach(context, 'Looking at', candidates, {
    call: async (candidate) => {
      const etag = await sidecar.etagOf(candidate.streamid);
      if (isDeletable(candidate.etag, etag)) deletions.push({ ...candidate, etag: candidate.etag ?? etag });
      else failed.push(resultOf(candidate, 'failed', [OTHER_ETAG]));
      return undefined;
    },
    refused: (candidate, problems) => {
      // A file that was listed a moment ago and is deleted now needs no deletion.
      if (candidate.modified === undefined || !isAbsent({ problems }))
        failed.push(resultOf(candidate, 'failed', problems));
    },
  });
  if (stopped) throw stopped;
  return { deletions, failed };
}

const OTHER_ETAG: Problem = {
  code: 'precondition_failed',
  description: 'The key file has another ETag than the one of --if-match.',
};

/** Whether the sidecar would delete a file with this ETag; it decides on an unknown one. */
function isDeletable(given: string | undefined, etag: string | undefined): boolean {
  return given === undefined || etag === undefined || isStrongMatch(quotedEtag(given), etag);
}

/** The result for a key file to delete, or the expected one; `gone`: another deleted it meanwhile. */
interface DeleteResult {
  readonly streamid: string;
  readonly result: 'deleted' | 'gone' | 'failed' | 'not_reached';
  readonly errors: readonly Problem[];
}

function resultOf(
  { streamid }: Deletion,
  result: DeleteResult['result'],
  errors: readonly Problem[] = [],
): DeleteResult {
  return { streamid, result, errors };
}

/** Deletes a key file only if it is still the one that was looked at; `stopped` says why others are left. */
async function deleteFiles(context: CliContext, deletions: readonly Deletion[]) {
  const sidecar = context.sidecar({ finishCalls: true });
  const results: DeleteResult[] = [];
  const { revision, stopped } = await callEach(context, 'Deleting', deletions, {
    call: async (deletion) => {
      const deleted = await sidecar.remove(deletion.streamid, { ifMatch: deletion.etag });
      results.push(resultOf(deletion, 'deleted'));
      return deleted.revision;
    },
    refused: async (deletion, problems) => {
      const isDone = await isGone(sidecar, deletion.streamid, problems);
      results.push(isDone ? resultOf(deletion, 'gone') : resultOf(deletion, 'failed', problems));
    },
  });
  const left = deletions.slice(results.length).map((deletion) => resultOf(deletion, 'not_reached'));
  return { results: [...results, ...left], revision, stopped };
}

/** Whether a deletion failed because the file is deleted already: by another, or by a try whose answer was lost. */
async function isGone(
  sidecar: Pick<SidecarApi, 'etagOf'>,
  streamid: string,
  problems: readonly Problem[],
): Promise<boolean> {
  if (problems[0]?.code !== 'precondition_failed') return isAbsent({ problems });
  const etag = await answerOrError(sidecar.etagOf(streamid));
  return etag instanceof CliError && isAbsent(etag);
}

function isAbsent({ problems }: Pick<CliError, 'problems'>): boolean {
  return problems[0]?.code === 'key_file_not_found';
}
