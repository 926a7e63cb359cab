import { isJsonObject } from '../../drm/bytes';
import { type BatchBody, divideFields, MAX_STREAMS, STREAM_FIELDS, tooManyStreams } from './batch-wire';
import { sizeFault } from './entry-size';
import { readGroup } from './group';
import { breathe } from './lane';
import { atPlace, type Claim, createClaim, failed, invalidBody, type Planned } from './planned';

/**
 * Finds out what a batch asks for, stream by stream, without doing any of it.
 * @throws HttpError 400 when it asks for too much.
 */
export async function planBatch(
  { streams, groups }: BatchBody,
  pause: () => Promise<void> | undefined,
): Promise<readonly Planned[]> {
  const claim = createClaim();
  const plan: Planned[] = [];
  for (const [index, stream] of streams.entries()) {
    await pause();
    plan.push(planStream(stream, `streams.${index}`, claim));
  }
  for (const [index, group] of groups.entries()) {
    // A SMIL document may take longer than many streams.
    await breathe();
    for (const member of await readGroup(group, `groups.${index}`, claim, pause)) plan.push(member);
    if (plan.length > MAX_STREAMS) throw tooManyStreams();
  }
  return plan;
}

function planStream(stream: unknown, place: string, claim: Claim): Planned {
  if (!isJsonObject(stream)) return failed(undefined, invalidBody(`${place}: must be an object`));
  const { own, request, problems } = divideFields(stream, STREAM_FIELDS);
  if (problems.length > 0) return failed(undefined, ...atPlace(place, problems));
  const claimed = claim(own.streamid, place);
  if (claimed.kind === 'failed') return claimed;
  const { streamId } = claimed;
  const tooLarge = sizeFault(request);
  return tooLarge ? failed(streamId, tooLarge) : { kind: 'stream', streamId, fields: request };
}
