import { parseStreamId, type StreamId } from '../../api/stream-id';
import { say } from '../../drm/bytes';
import type { Problem } from '../../http/errors';
import type { KeyFileRequest } from '../key-files/key-file-request';
import type { Fields } from './batch-wire';

/** What a batch asks for one stream. */
export type Planned = PlannedStream | PlannedMember | PlannedFailure;

/** A stream with keys of its own. Its fields are read when its turn comes. */
export interface PlannedStream {
  readonly kind: 'stream';
  readonly streamId: StreamId;
  readonly fields: Fields;
}

/** A stream that has the same keys as others: all those of one request object. */
export interface PlannedMember {
  readonly kind: 'member';
  readonly streamId: StreamId;
  readonly request: KeyFileRequest;
}

/** What can't be done. Without a stream id the problems say where they lie. */
export interface PlannedFailure {
  readonly kind: 'failed';
  readonly streamId: StreamId | undefined;
  readonly problems: readonly Problem[];
}

/** Checks a stream id, and that none before was the same. `place` says where it stands. */
export type Claim = (
  given: unknown,
  place: string,
) => { readonly kind: 'claimed'; readonly streamId: StreamId } | PlannedFailure;

export function createClaim(): Claim {
  const claimed = new Set<StreamId>();
  return (given, place) => {
    if (given === undefined || given === null)
      return failed(undefined, invalidBody(`${place}: streamid is missing`));
    if (typeof given !== 'string')
      return failed(undefined, invalidBody(`${place}: streamid must be a string`));
    const parsed = parseStreamId(given);
    if (!parsed.ok) {
      return failed(undefined, { code: 'invalid_stream_id', description: `${place}: ${say(parsed.fault)}` });
    }
    if (claimed.has(parsed.value)) return failed(parsed.value, DUPLICATE);
    claimed.add(parsed.value);
    return { kind: 'claimed', streamId: parsed.value };
  };
}

const DUPLICATE: Problem = {
  code: 'duplicate_stream',
  description: 'The batch has named this stream before; the first of its entries is the one that counts.',
};

export function failed(streamId: StreamId | undefined, ...problems: readonly Problem[]): PlannedFailure {
  return { kind: 'failed', streamId, problems };
}

export function invalidBody(description: string): Problem {
  return { code: 'invalid_body', description };
}

/** Says where problems lie that no stream id says it of. */
export function atPlace(place: string, problems: readonly Problem[]): Problem[] {
  return problems.map(({ code, description }) => ({ code, description: `${place}: ${description}` }));
}
