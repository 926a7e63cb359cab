import { isJsonObject } from '../drm/bytes';
import { type Problem, printable } from '../http/faults';
import {
  atPlace,
  type Claim,
  type Fields,
  failed,
  invalidBody,
  type Planned,
  type PlannedFailure,
} from './batch';
import { createDistinctKeys } from './distinct-keys';
import { createReadOnce } from './read-cpix-request';
import { ASKED_BY_JSON, parseKeyFileRequest, type RequestOptions } from './read-key-file-request';

/** What is wrong with the tracks of an entry before any is looked at. */
export function trackRules(
  tracks: unknown,
  request: Fields,
  { rules = ASKED_BY_JSON }: RequestOptions,
): Problem[] {
  const isGiven = (name: string) => (request[name] ?? null) !== null;
  const problems: Problem[] = [];
  if (!isJsonObject(tracks) || Object.keys(tracks).length === 0)
    problems.push(invalidBody('tracks: must name the streams of each track, as {"SD": "news_sd"}'));
  const isOfProvider = isGiven('contentId') && rules.taken.includes('track');
  if (!isGiven('cpix') && !isOfProvider)
    problems.push(invalidBody('tracks: needs cpix: give the text of a CPIX document with it'));
  for (const name of ['track', 'kid']) {
    if (isGiven(name)) problems.push(invalidBody(`${name}: tracks chooses the keys; leave it out`));
  }
  return problems;
}

/** How many streams tracks name, those that can't be read counted. */
export function countStreams(tracks: unknown): number {
  const all = isJsonObject(tracks) ? Object.values(tracks) : [];
  return all.reduce<number>((count, each) => count + (Array.isArray(each) ? each.length : 1), 0);
}

interface TracksContext {
  /** Where the entry stands. */
  readonly place: string;
  readonly claim: Claim;
  /** Awaited at each track. */
  readonly pause: () => Promise<void> | undefined;
  readonly options: RequestOptions;
  /** Put before each stream id. */
  readonly folder?: string;
}

/**
 * Finds out what an entry with tracks asks for each of their streams. Its document is read once; a track that it has no
 * one key for fails alone.
 */
export async function planTracks(
  tracks: Fields,
  request: Fields,
  { place, claim, pause, options, folder = '' }: TracksContext,
): Promise<readonly Planned[]> {
  const readDocument = createReadOnce();
  const sameKeyAs = createDistinctKeys();

  const requestOf = (track: string): ReturnType<typeof parseKeyFileRequest> => {
    const parsed = parseKeyFileRequest({ ...request, track }, { ...options, readDocument });
    const same = parsed.ok ? sameKeyAs(track, parsed.value) : undefined;
    return same ? { ok: false, problems: [sameKey(track, same.what, same.other)] } : parsed;
  };

  const planTrack = ([track, named]: [string, unknown]): readonly Planned[] => {
    const at = `${place}.tracks.${printable(track)}`;
    const names: readonly unknown[] = Array.isArray(named) ? named : [named];
    if (names.length === 0) return [failed(undefined, invalidBody(`${at}: is empty`))];
    const streams = names.map((name) => (typeof name === 'string' ? claim(folder + name, at) : notNamed(at)));
    if (streams.every(({ kind }) => kind === 'failed')) return streams as readonly PlannedFailure[];
    const parsed = requestOf(track);
    return streams.map((stream): Planned => {
      if (stream.kind === 'failed') return stream;
      const { streamId } = stream;
      if (!parsed.ok) return failed(streamId, ...parsed.problems);
      return { kind: 'member', streamId, request: parsed.value };
    });
  };

  const plan: Planned[] = [];
  for (const track of Object.entries(tracks)) {
    // A choice among hundreds of keys takes a millisecond.
    await pause();
    for (const planned of planTrack(track)) plan.push(planned);
  }
  return plan;
}

function notNamed(at: string): PlannedFailure {
  return failed(undefined, ...atPlace(at, [invalidBody('must be a stream id, or a list of stream ids')]));
}

function sameKey(track: string, what: string, other: string): Problem {
  const [one, first] = [printable(track), printable(other)];
  return {
    code: 'duplicate_quality',
    description: `${one} has the same ${what} as ${first}; name the streams of both under ${first}, as {"${first}": ["news_1", "news_2"]}.`,
  };
}
