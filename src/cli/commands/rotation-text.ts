import type { Output } from '../../terminal/output';
import { count, shown, showSome, someNames } from '../../terminal/text';
import type { CliContext } from '../context';
import { keyIdChange, renderChanges, renderKeyChange } from '../key-files';
import type { ContentIdPattern, Restart, Rotation } from './rotation';
import {
  type Detail,
  failedIn,
  INDENT,
  type Provisioned,
  provisionedFields,
  type StreamResult,
  showResult,
} from './send-manifest';
import type { Watched } from './watch-reads';

interface RotationPlan {
  readonly planned: readonly StreamResult[];
  readonly rotation: Rotation;
  readonly old: ReadonlyMap<string, string>;
}

/** Shows which keys would come: of each stream the former key id and content id, and the new ones. */
export function showRotation(out: Output, plan: RotationPlan, detail: Detail): void {
  const { planned, rotation } = plan;
  const of = (kind: StreamResult['result']) => planned.filter(({ result }) => result === kind);
  const show = <Item>(found: readonly Item[], text: string, one: (item: Item) => void) =>
    showSome(out, `${count(found.length, 'stream')} ${text}`, found, detail.all, one);
  const showOne = (one: StreamResult) => showStream(out, plan, one, detail);
  show(of('changed'), 'would get a new key', showOne);
  show(of('created'), 'would get a first key file', showOne);
  show(of('failed'), 'can’t be provisioned', showOne);
  const same = count(of('unchanged').length, 'stream');
  if (of('unchanged').length > 0)
    out.write(`${out.style('bold', `${same} would stay: they have this content id already`)}\n`);
  show(rotation.supplied, 'not rotated: the manifest has the keys; write new ones there', (streamid) =>
    out.write(`  = ${shown(streamid)}\n`),
  );
}

function showStream(out: Output, { rotation, old }: RotationPlan, one: StreamResult, detail: Detail): void {
  const { streamid, result, lines = [] } = one;
  const keys = keyIdChange(lines);
  const former = old.get(streamid);
  const now = rotation.contentIds.get(streamid) ?? '';
  // An address that follows the content id changes with it.
  const others = lines.filter(
    ({ value, former: before }) => former === undefined || before?.replaceAll(former, now) !== value,
  );
  const change =
    result !== 'changed'
      ? ''
      : keys && !detail.verbose
        ? renderKeyChange(out, keys, others, INDENT)
        : renderChanges(out, lines, INDENT);
  const before = former === undefined ? '' : `${shown(former)} → `;
  const contentId = `${INDENT}content id ${before}${out.style('green', shown(now))}\n`;
  showResult(out, one, `${change}${result === 'failed' ? '' : contentId}`);
}

/** Shows the streams whose new key could not be written. */
export function showFailed(out: Output, plan: RotationPlan, done: Provisioned, detail: Detail): void {
  const late = failedIn(done);
  showSome(out, `${count(late.length, 'stream')} failed`, late, detail.all, (one) =>
    showStream(out, plan, one, detail),
  );
}

export function showRestarts(
  out: Output,
  path: string,
  { namesOthers }: Rotation,
  restart: readonly Restart[],
): void {
  if (restart.length === 0) return;
  if (namesOthers)
    out.warn(
      `${path} still gives other content ids: applying it unchanged restores the former keys; write the new ones into it (--json lists them)`,
    );
  const isUnknown = restart.some(({ command }) => command.includes('APPLICATION'));
  out.write(
    [
      `# ${count(restart.length, 'stream')} to restart: each goes on with its former key until it starts again.\n`,
      '# At a Wowza Streaming Engine (another packager’s commands are not known here), with PACKAGER_LOGIN=user:password',
      `${isUnknown ? ' and APPLICATION=application' : ''}:\n`,
      ...restart.map(({ command }) => `${command}\n`),
    ].join(''),
  );
}

export function showWatched({ out }: CliContext, { end, read, unread, elsewhere }: Watched): void {
  const number = `${read.length.toLocaleString('en-US')} of ${count(read.length + unread.length, 'key file')}`;
  const all = read.length === 1 ? 'The key file was read' : `All ${count(read.length, 'key file')} were read`;
  const sentences = {
    all_read: `${all} since (the access time does not say by which program).`,
    interrupted: `Stopped waiting: ${number} read, not ${someNames(unread)}. The new keys are written.`,
    timeout: `Not read in time: ${someNames(unread)} (${number} read). Restart these streams. A packager that mounts the folder read-only, as a container may, leaves no trace: check there when they started.`,
    other_folder: `--folder is not the sidecar’s key folder: the new key file of ${someNames(elsewhere)} is not there. The new keys are written; it is not known whether they were read.`,
  };
  const style = end === 'all_read' ? 'green' : 'red';
  out.note(sentences[end], end === 'interrupted' ? undefined : style);
}

interface RotationOutcome extends RotationPlan, Provisioned {
  readonly path: string;
  readonly pattern: ContentIdPattern;
  readonly dryRun: boolean;
  readonly restart: readonly Restart[];
  readonly seen: Watched | undefined;
}

/** What a rotation did, or would with `dryRun`, as programs read it. */
export function documentOf(outcome: RotationOutcome): unknown {
  const { path, pattern, results, planned, rotation, old, dryRun, restart, seen } = outcome;
  const looked = new Map(planned.map((one) => [one.streamid, one]));
  const { results: _results, summary, ...ending } = provisionedFields(outcome);
  return {
    lineup: path,
    dry_run: dryRun,
    content_id: pattern.text,
    results: results.map(({ streamid, result, line, errors, warnings }) => {
      const keys = keyIdChange(looked.get(streamid)?.lines ?? []);
      return {
        streamid,
        result,
        line,
        key_id: keys?.now ?? null,
        former_key_id: keys?.former ?? null,
        content_id: rotation.contentIds.get(streamid) ?? null,
        former_content_id: old.get(streamid) ?? null,
        errors,
        warnings,
      };
    }),
    supplied: rotation.supplied,
    summary,
    restart,
    watched: seen ? { end: seen.end, read: seen.read, unread: seen.unread } : null,
    ...ending,
  };
}
