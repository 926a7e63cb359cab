import type { Checked } from '../../drm/bytes';
import type { LineUp, LineUpItem } from '../lineup/lineup';
import type { FileFault } from '../yaml-text';
import type { ContentIdPattern } from './content-id-pattern';

/** A line-up with new content ids. */
export interface Rotation {
  readonly lineUp: LineUp;
  /** The new content id of each stream. */
  readonly contentIds: ReadonlyMap<string, string>;
  /** The streams that bring keys of their own: only their owner can make new ones. */
  readonly supplied: readonly string[];
  readonly faults: readonly FileFault[];
}

/**
 * Gives every stream of a line-up that gets its keys from the key provider a new content id. A group with one key gets
 * one, by its first member; one with `keys: each` gets one for each member.
 * @param old the content ids of the present key files.
 */
export function rotateLineUp(
  { streams, groups }: LineUp,
  pattern: ContentIdPattern,
  old: ReadonlyMap<string, string>,
): Rotation {
  const contentIds = new Map<string, string>();
  const faults: FileFault[] = [];
  const takenBy = new Map<string, string>();

  const newId = (streamid: string, contentId: unknown, line: number | undefined): string => {
    const filled = pattern.fill({
      streamid,
      contentId: typeof contentId === 'string' ? contentId : undefined,
      old: old.get(streamid),
    });
    const described = describe(filled, takenBy, pattern, streamid);
    if (described !== undefined) faults.push({ line, description: `${streamid} ${described}` });
    const value = filled.ok ? filled.value : '';
    takenBy.set(value, streamid);
    return value;
  };

  const stream = (item: LineUpItem): LineUpItem => {
    const contentId = newId(item.name, item.body.contentId, item.line);
    contentIds.set(item.name, contentId);
    return { ...item, body: { ...item.body, contentId } };
  };

  const group = (item: LineUpItem): LineUpItem => {
    const { body, line, streamIds } = item;
    if (body.keys !== 'each') {
      const contentId = newId(streamIds[0] ?? '', body.contentId, line);
      for (const streamid of streamIds) contentIds.set(streamid, contentId);
      return { ...item, body: { ...body, contentId } };
    }
    const given: readonly unknown[] = Array.isArray(body.members) ? body.members : [];
    const members = streamIds.map((streamid, index) => {
      const contentId = newId(streamid, ownContentId(given[index]), line);
      contentIds.set(streamid, contentId);
      return { streamid, contentId };
    });
    const { smil: _smil, folder: _folder, contentId: _contentId, ...rest } = body;
    return { ...item, body: { ...rest, members } };
  };

  const lineUp = {
    streams: streams.filter(isProvided).map(stream),
    groups: groups.filter(isProvided).map(group),
  };
  const supplied = [...streams, ...groups]
    .filter((item) => !isProvided(item))
    .flatMap(({ streamIds }) => streamIds);
  return { lineUp, contentIds, supplied, faults };
}

/** Whether the key provider makes an entry's keys. */
export function isProvided({ body }: LineUpItem): boolean {
  return body.cenc === undefined && body.fairplay === undefined;
}

function ownContentId(member: unknown): unknown {
  return typeof member === 'object' && member !== null ? Reflect.get(member, 'contentId') : undefined;
}

/** What is wrong with a new content id, as the rest of a sentence about the stream. */
function describe(
  filled: Checked<string>,
  takenBy: ReadonlyMap<string, string>,
  { followsContent }: ContentIdPattern,
  streamid: string,
): string | undefined {
  if (!filled.ok) return filled.fault.sentence;
  const other = takenBy.get(filled.value);
  if (other === undefined || other === streamid || followsContent) return undefined;
  return `would get the content id ${filled.value} of ${other}, and so its key; use {streamid}`;
}
