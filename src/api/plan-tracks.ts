import { isJsonObject } from '../drm/bytes';
import { type Problem, printable } from '../http/faults';
import {
  atPlace,
  type Claim,
  type Fields,
  failed,
  invalidBody,
  type PlanContext,
  type Planned,
  type PlannedFailure,
} from './batch';
import { createDistinctKeys } from './distinct-keys';
import { createReadOnce } from './read-cpix-request';
import { ASKED_BY_JSON, parseKeyFileRequest, type RequestOptions } from './read-key-file-request';

/** The faults of an entry's tracks as a whole. */
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

/**
 * Finds out what an entry with tracks asks for each of their streams. Its document is read once; a track that it has no
 * one key for fails alone. In a large document the key of one track takes some milliseconds to choose.
 * @param folder is put before each stream id.
 */
export async function planTracks(
  tracks: Fields,
  request: Fields,
  place: string,
  claim: Claim,
  { pause, yieldNow, ...options }: PlanContext,
  folder = '',
): Promise<readonly Planned[]> {
  const readDocument = createReadOnce();
  const sameKeyAs = createDistinctKeys();

  const requestOf = (track: string): ReturnType<typeof parseKeyFileRequest> => {
    const parsed = parseKeyFileRequest({ ...request, track }, { ...options, readDocument });
    const same = parsed.ok ? sameKeyAs(track, parsed.value) : undefined;
    return same ? { ok: false, problems: [sameKey(track, same.what, same.other)] } : parsed;
  };

  const plan: Planned[] = [];
  for (const [track, named] of Object.entries(tracks)) {
    await yieldNow();
    const at = `${place}.tracks.${printable(track)}`;
    const names: readonly unknown[] = Array.isArray(named) ? named : [named];
    if (names.length === 0) plan.push(failed(undefined, invalidBody(`${at}: is empty`)));
    let parsed: ReturnType<typeof requestOf> | undefined;
    for (const name of names) {
      await pause();
      const stream = typeof name === 'string' ? claim(folder + name, at) : notNamed(at);
      if (stream.kind === 'failed') {
        plan.push(stream);
        continue;
      }
      const { streamId } = stream;
      parsed ??= requestOf(track);
      plan.push(
        parsed.ok
          ? { kind: 'member', streamId, request: parsed.value }
          : failed(streamId, ...parsed.problems),
      );
    }
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
