import { LACK_REASONS, MAX_WAIT_SECONDS } from '../../api/fleet';
import type { FleetAnswer, FleetPackager } from '../../api/fleet-answers';
import { isWithinPrefixes } from '../../api/stream-id';
import type { Problem } from '../../http/errors';
import { showProgress } from '../../terminal/progress';
import { count, someNames } from '../../terminal/text';
import { answerOrError, CliError, EXIT, usageError } from '../cli-error';
import { SidecarUnavailable } from '../client';
import type { CliContext } from '../context';
import { type Options, WAIT_SECONDS } from '../options';

const LOOK_MS = 500;

/**
 * How long a change of one stream waits: the sidecar itself does it.
 * @throws CliError when it is longer than a sidecar waits.
 */
export function secondsOfOne(wait: Options['wait']): number | undefined {
  const seconds = wait === true ? MAX_WAIT_SECONDS : wait;
  if (seconds !== undefined && seconds > MAX_WAIT_SECONDS)
    throw usageError(
      `--wait takes at most ${MAX_WAIT_SECONDS} seconds for one stream. Use packager-drm fleet status STREAM to look later.`,
    );
  return seconds;
}

/** Checks before sending that the state of all packagers can be read. @throws CliError when it can't be. */
export async function requireFleet(context: CliContext, wait: Options['wait']): Promise<void> {
  if (wait === undefined) return;
  const answer = await answerOrError(context.sidecar().fleet.status());
  if (!(answer instanceof CliError)) return;
  if (answer.exitCode !== EXIT.failed) throw answer;
  const problems = answer.problems.map(({ code, description }) => {
    const todo =
      code === 'forbidden'
        ? '--wait needs an API key without stream limits, because it checks the whole fleet.'
        : 'Or leave --wait out.';
    return { code, description: `${description} ${todo} Nothing was sent.` };
  });
  throw new CliError(EXIT.failed, problems);
}

interface BehindPackager {
  readonly name: string;
  readonly live: boolean;
  /** Changes of its streams that it has not received. */
  readonly behind: number;
  /** Of the awaited streams, those missing there for another reason, as far as it names them. */
  readonly lacks: FleetPackager['lacks'];
}

export interface WaitedForFleet {
  readonly end: 'all' | 'timeout' | 'interrupted' | 'unknown';
  readonly packagers: number;
  readonly behind: readonly BehindPackager[];
  readonly errors?: readonly Problem[];
}

interface Awaited {
  readonly streamIds: readonly string[];
  /** The fleet's revision of the last change; undefined: none was made now. */
  readonly revision: number | undefined;
  /** Undefined: there is nothing to wait for, as when there are no streams. */
  readonly wait: Options['wait'];
  /** Why not all was changed: then nothing is waited for. */
  readonly stopped: CliError | undefined;
}

/** Waits until every registered packager has the present state of streams; undefined: there was nothing to wait for. */
export async function waitForPackagers(
  context: CliContext,
  awaited: Awaited,
): Promise<WaitedForFleet | undefined> {
  const { wait, interrupted, now } = context;
  if (awaited.wait === undefined || awaited.stopped || awaited.streamIds.length === 0) return undefined;
  const limitMs = 1000 * (awaited.wait === true ? WAIT_SECONDS : awaited.wait);
  const began = now().getTime();
  const look = createLook(context.sidecar().fleet, awaited);
  let last: Looked = { packagers: 0, behind: [] };
  let progress: ReturnType<typeof showProgress> | undefined;
  let done = 0;
  try {
    // The clock may be set back meanwhile, and a call may take its time.
    for (let paused = 0; ; paused += LOOK_MS) {
      const looked = await answerOrError(look());
      const isOver = Math.max(paused, now().getTime() - began) >= limitMs;
      if (interrupted.aborted) return { ...last, end: 'interrupted' };
      if (looked instanceof CliError) {
        last = { ...last, errors: looked.problems };
        if (isOver || !(looked instanceof SidecarUnavailable)) return { ...last, end: 'unknown' };
      } else {
        last = looked;
        progress ??= showProgress(context, 'Packagers with everything', last.packagers);
        progress.advance(last.packagers - last.behind.length - done);
        done = last.packagers - last.behind.length;
        if (done === last.packagers) return { ...last, end: 'all' };
        if (isOver) return { ...last, end: 'timeout' };
      }
      await wait(LOOK_MS, interrupted);
    }
  } finally {
    progress?.stop();
  }
}

type Looked = Omit<WaitedForFleet, 'end'>;

/** A sidecar knows how far packagers are with the streams that it takes. Of others, it is asked for each who has it. */
function createLook(
  fleet: ReturnType<CliContext['sidecar']>['fleet'],
  { streamIds, ...awaited }: Pick<Awaited, 'streamIds' | 'revision'>,
): () => Promise<Looked> {
  let { revision } = awaited;
  /** Of others, the streams that every packager has. */
  const had = new Set<string>();
  return async () => {
    const answer = await fleet.status();
    // Waits for earlier changes, too.
    revision ??= answer.revision ?? undefined;
    const here = answer.packagers.find(({ name }) => name === answer.name);
    const isOwn = (streamId: string) => isWithinPrefixes(here?.streams, streamId);
    const packagers = takersOf(answer, streamIds).length;
    const behind = findBehind(answer, streamIds.filter(isOwn), revision);
    for (const streamid of streamIds.filter((id) => !isOwn(id) && !had.has(id))) {
      const missing = (await fleet.streamStatus(streamid)).packagers.filter(({ has }) => !has);
      const others = missing.filter(({ name }) => !behind.some((one) => one.name === name));
      for (const { name, live, why = 'behind' } of others)
        behind.push({ name, live, behind: 0, lacks: [{ streamid, why }] });
      if (missing.length > 0) break;
      had.add(streamid);
    }
    return { packagers, behind };
  };
}

function takersOf({ packagers }: FleetAnswer, streamIds: readonly string[]): FleetPackager[] {
  return packagers.filter(({ streams }) => streamIds.some((id) => isWithinPrefixes(streams, id)));
}

function findBehind(
  answer: FleetAnswer,
  streamIds: readonly string[],
  target: number | undefined,
): BehindPackager[] {
  const wanted = new Set(streamIds);
  return takersOf(answer, streamIds).flatMap((packager) => {
    const { name, live, lacking } = packager;
    const lacks = packager.lacks.filter(({ streamid, why }) => wanted.has(streamid) && why !== 'behind');
    // A packager that names only some missing streams may miss these.
    const isNamed = lacking <= packager.lacks.length;
    if (hasRevision(packager, answer, target) && lacks.length === 0 && isNamed) return [];
    return [{ name, live, behind: packager.behind, lacks }];
  });
}

/** Whether a packager has received all changes up to a revision; later ones do not count. */
function hasRevision(
  { applied, behind }: FleetPackager,
  { revision }: FleetAnswer,
  target = Number.POSITIVE_INFINITY,
): boolean {
  const isKnown = revision !== null && revision >= target;
  return (applied !== null && applied >= target) || (behind === 0 && isKnown);
}

/** The fields of a JSON document with the result of waiting. */
export function waitFields(waited: WaitedForFleet | undefined) {
  if (!waited) return {};
  const { end, packagers, behind, errors } = waited;
  return { fleet: { end, packagers, behind, ...(errors && end === 'unknown' && { errors }) } };
}

export function showWaiting({ out }: Pick<CliContext, 'out'>, waited: WaitedForFleet): void {
  if (out.json) return;
  const { end, packagers, behind, errors = [] } = waited;
  const has = `${(packagers - behind.length).toLocaleString('en-US')} of ${count(packagers, 'packager')}`;
  const all = packagers === 1 ? 'The packager has' : `All ${count(packagers, 'packager')} have`;
  const none = 'No registered packager takes these streams. The fleet keeps the changes for one that does.';
  const names = someNames(behind.map(nameOf));
  const sentences = {
    all: packagers === 0 ? none : `${all} everything.`,
    interrupted: `Stopped waiting: ${has} have everything${names === '' ? '' : `, not ${names}`}. The fleet has accepted the changes.`,
    timeout: `Not everywhere in time: ${names} (${has} have everything). The fleet has accepted the changes, and these packagers receive them as soon as they can: packager-drm fleet status shows it.`,
    unknown: 'Whether every packager has everything is not known. The fleet has accepted the changes.',
  };
  if (end === 'unknown') out.errors(errors);
  const style = end === 'all' ? 'green' : 'red';
  out.note(sentences[end], end === 'interrupted' ? undefined : style);
}

function nameOf({ name, live, behind, lacks: [lack] }: BehindPackager): string {
  const late = behind > 0 ? `${count(behind, 'change')} behind` : '';
  const why = !live ? 'not live' : lack ? `${lack.streamid}: ${LACK_REASONS[lack.why]}` : late;
  return why === '' ? name : `${name} (${why})`;
}

export const EXIT_CODES = {
  all: EXIT.done,
  timeout: EXIT.failed,
  interrupted: EXIT.interrupted,
  unknown: EXIT.unreachable,
} as const;
