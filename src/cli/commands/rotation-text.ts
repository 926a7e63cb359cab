import type { Output } from '../../terminal/output';
import { count, shellWord, shown } from '../../terminal/text';
import { EXIT, stopFields } from '../cli-error';
import type { CliContext } from '../context';
import { tellWaited, type WaitedForFleet, waitFields } from '../fleet/wait';
import { keyIdChange, renderChanges, renderKeyChange } from '../key-files';
import { firstOf, tellRest } from '../output';
import type { ContentIdPattern, Restart, Rotation } from './rotation';
import { type Detail, type Sent, type StreamResult, sentenceOf, summaryOf } from './send-manifest';
import type { Watched } from './watch-reads';

/** What a rotation would do. */
interface RotationPlan {
  readonly planned: readonly StreamResult[];
  readonly rotation: Rotation;
  /** The content ids of the present key files. */
  readonly old: ReadonlyMap<string, string>;
}

/** What it did, or would with `dryRun`. */
interface RotationOutcome extends RotationPlan {
  readonly path: string;
  readonly pattern: ContentIdPattern;
  readonly results: readonly StreamResult[];
  readonly sent: Sent | undefined;
  /** What came of waiting for packagers; undefined: nobody waited. */
  readonly waited: WaitedForFleet | undefined;
  readonly dryRun: boolean;
  readonly restart: readonly Restart[];
  /** Whether to apply the manifest as it is would bring other keys back. */
  readonly namesOthers: boolean;
}

/** Shows which keys would come: of each stream the former key id and content id, and the new ones. */
export function showRotation(out: Output, plan: RotationPlan, detail: Detail): void {
  const { planned, rotation } = plan;
  const of = (kind: StreamResult['result']) => planned.filter(({ result }) => result === kind);
  const streams = (found: readonly unknown[]) => count(found.length, 'stream');
  const tell = (found: readonly StreamResult[], title: string) => {
    if (found.length === 0) return;
    out.write(`${out.style('bold', `${streams(found)} ${title}`)}\n`);
    for (const one of firstOf(found, detail.all)) out.write(textOf(out, plan, one, detail));
    tellRest(out, found, detail.all);
  };
  tell(of('changed'), 'would get a new key');
  tell(of('created'), 'would get a first key file');
  tell(of('failed'), 'can’t be provisioned');
  const same = of('unchanged');
  if (same.length > 0)
    out.write(`${out.style('bold', `${streams(same)} would stay: they have this content id already`)}\n`);
  const { supplied } = rotation;
  if (supplied.length === 0) return;
  out.write(
    `${out.style('bold', `${streams(supplied)} not rotated: the manifest brings the keys, so new ones must come there`)}\n`,
  );
  for (const streamid of firstOf(supplied, detail.all)) out.write(`  = ${shown(streamid)}\n`);
  tellRest(out, supplied, detail.all);
}

const MARKS = {
  changed: ['~', 'yellow'],
  created: ['+', 'green'],
  failed: ['!', 'red'],
} as const;

const INDENT = '      ';

function textOf(out: Output, { rotation, old }: RotationPlan, one: StreamResult, detail: Detail): string {
  const { streamid, result, line, lines = [], errors, warnings } = one;
  if (result === 'unchanged' || result === 'not_reached') return '';
  const [mark, style] = MARKS[result];
  const where = result === 'failed' && line !== undefined ? ` (line ${line})` : '';
  const keys = keyIdChange(lines);
  const former = old.get(streamid);
  const now = rotation.contentIds.get(streamid) ?? '';
  // An address that follows the content id says nothing new.
  const others = lines.filter(
    ({ value, former: before }) => former === undefined || before?.replaceAll(former, now) !== value,
  );
  const change =
    result !== 'changed'
      ? ''
      : keys && !detail.verbose
        ? renderKeyChange(out, keys, others, INDENT)
        : renderChanges(out, lines, INDENT);
  const contentId = out.style('green', shown(now));
  const before = former === undefined ? '' : `${shown(former)} → `;
  return [
    `  ${out.style(style, mark)} ${shown(streamid)}${where}\n`,
    change,
    result === 'failed' ? '' : `${INDENT}content id ${before}${contentId}\n`,
    ...errors.map(({ description }) => `${INDENT}${shown(description)}\n`),
    ...warnings.map(
      ({ code, description }) =>
        `${INDENT}${out.style('yellow', 'warning:')} ${shown(`${code}: ${description}`)}\n`,
    ),
  ].join('');
}

/**
 * Tells what a rotation did, and what must be restarted. The answer tells the end, with what came of watching; a JSON
 * document comes with it.
 */
export function tellRotation(
  context: CliContext,
  outcome: RotationOutcome,
  options: Detail,
): (seen: Watched | undefined) => void {
  const { out } = context;
  if (out.json) return (seen) => out.document(documentOf(outcome, seen));
  const { path, pattern, results, sent, waited, dryRun, restart, namesOthers } = outcome;
  const late = sent ? [...sent.results.values()].flat().filter(({ result }) => result === 'failed') : [];
  if (late.length > 0) {
    out.write(`${out.style('bold', `${count(late.length, 'stream')} failed`)}\n`);
    for (const one of firstOf(late, options.all)) out.write(textOf(out, outcome, one, options));
  }
  const stopped = sent?.stopped;
  if (stopped && stopped.exitCode !== EXIT.interrupted) out.errors(stopped.problems);
  if (stopped)
    out.note(
      `Run it again with --content-id ${shellWord(pattern.text)} to go on: what is written is left as it is.`,
    );
  const summary = summaryOf(results);
  const what = sent
    ? `${shown(path)}: ${sentenceOf(summary)}.`
    : dryRun
      ? 'Nothing was written.'
      : 'There is nothing to write.';
  out.note(out.noteStyle(summary.failed > 0 || stopped ? 'red' : 'green', what));
  tellWaited(context, waited);
  if (restart.length > 0) {
    if (namesOthers)
      out.warn(
        `${path} still gives other content ids: applying it unchanged restores the former keys; write the new ones into it (--json lists them)`,
      );
    out.write(restartText(restart));
  }
  return (seen) => seen && tellWatched(context, seen);
}

function restartText(restart: readonly Restart[]): string {
  const streams = count(restart.length, 'stream');
  const unknown = restart.some(({ command }) => command.includes('APPLICATION'));
  return [
    `# ${streams} to restart: each goes on with its former key until it starts again.\n`,
    '# At a Wowza Streaming Engine (another packager’s commands are not known here), with PACKAGER_LOGIN=user:password',
    `${unknown ? ' and APPLICATION=application' : ''}:\n`,
    ...restart.map(({ command }) => `${command}\n`),
  ].join('');
}

function tellWatched({ out }: Pick<CliContext, 'out'>, { end, read, unread, elsewhere }: Watched): void {
  const number = `${read.length.toLocaleString('en-US')} of ${count(read.length + unread.length, 'key file')}`;
  const some = (names: readonly string[]) => {
    const first = firstOf(names);
    const more = names.length - first.length;
    return first.map(shown).join(', ') + (more > 0 ? ` and ${more.toLocaleString('en-US')} more` : '');
  };
  if (end === 'all_read') {
    const all =
      read.length === 1 ? 'The key file was read' : `All ${count(read.length, 'key file')} were read`;
    out.note(out.noteStyle('green', `${all} since (by whom, the access time does not say).`));
  } else if (end === 'interrupted') {
    out.note(`Stopped waiting: ${number} read, not ${some(unread)}. The new keys are written.`);
  } else if (end === 'timeout') {
    out.note(
      out.noteStyle(
        'red',
        `Not read in time: ${some(unread)} (${number} read). Restart these streams. A packager that mounts the folder read-only, as a container may, leaves no trace: see there when they started.`,
      ),
    );
  } else {
    out.note(
      out.noteStyle(
        'red',
        `--folder is not the sidecar’s key folder: the new key file of ${some(elsewhere)} is not there. The new keys are written; whether they were read is not known.`,
      ),
    );
  }
}

function documentOf(outcome: RotationOutcome, seen: Watched | undefined): unknown {
  const { path, pattern, results, planned, rotation, old, sent, dryRun, restart } = outcome;
  const looked = new Map(planned.map((one) => [one.streamid, one]));
  return {
    lineup: path,
    dry_run: dryRun,
    content_id: pattern.text,
    results: results.map(({ streamid, result, line, errors: problems, warnings }) => {
      const keys = keyIdChange(looked.get(streamid)?.lines ?? []);
      return {
        streamid,
        result,
        line,
        key_id: keys?.now ?? null,
        former_key_id: keys?.former ?? null,
        content_id: rotation.contentIds.get(streamid) ?? null,
        former_content_id: old.get(streamid) ?? null,
        errors: problems,
        warnings,
      };
    }),
    supplied: rotation.supplied,
    summary: summaryOf(results),
    restart,
    watched: seen ? { end: seen.end, read: seen.read, unread: seen.unread } : null,
    ...waitFields(outcome.waited),
    ...stopFields(sent?.stopped),
  };
}
