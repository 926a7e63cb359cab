import { SUPPLYING } from '../../api/key-file-request';
import { type Checked, isJsonObject, type JsonObject, refused } from '../../drm/bytes';
import { PROVIDER_ID } from '../../drm/envelope';
import { qualityFields, qualityOf } from '../../drm/quality';
import { readSmil } from '../../drm/smil';
import { shellWord } from '../../terminal/text';
import type { Manifest, ManifestItem } from '../manifest/entries';
import type { FileProblem } from '../yaml-fields';

/** Streams that get one content id. */
interface SharedContent {
  readonly streamIds: readonly string[];
  readonly fields: JsonObject;
  /** Of keys by quality: its name, and the fields of its own. */
  readonly quality?: string;
  readonly own?: JsonObject;
}

/**
 * Gives each stream with keys from the key provider a new content id: one for a group or each of its
 * qualities, by the first member; one for each member with `keys: each`. `old` are the present content ids.
 */
export function rotateManifest(items: Manifest, pattern: string, old: ReadonlyMap<string, string>) {
  const contentIds = new Map<string, string>();
  const faults: FileProblem[] = [];
  const takenBy = new Map<string, string>();
  /** The streams whose keys are in the manifest: only its author can make new ones. */
  const supplied: string[] = [];
  // The same former content id gives the same new one.
  const isShared = /\{(?:contentId|old)\}/.test(pattern);
  /** Whether applying the manifest unchanged would restore former keys. */
  let namesOthers = false;

  /** Undefined: the keys of the streams are in the manifest. */
  const renewed = ({ streamIds, fields }: SharedContent, line: number | undefined): string | undefined => {
    if ([...SUPPLYING, 'cpix'].some((name) => fields[name] !== undefined)) {
      supplied.push(...streamIds);
      return undefined;
    }
    const [streamid = ''] = streamIds;
    const given = typeof fields.contentId === 'string' ? fields.contentId : undefined;
    const filled = fillPattern(pattern, { streamid, contentId: given, old: old.get(streamid) });
    const contentId = filled.ok ? filled.value : '';
    const other = takenBy.get(contentId);
    const shared = `would get the content id ${contentId} of ${other}, and so its key; use {streamid}`;
    if (!filled.ok) faults.push({ line, description: `${streamid} ${filled.problem.description}` });
    else if (other !== undefined && other !== streamid && !isShared)
      faults.push({ line, description: `${streamid} ${shared}` });
    takenBy.set(contentId, streamid);
    for (const each of streamIds) contentIds.set(each, contentId);
    namesOthers ||= given !== undefined && given !== contentId;
    return contentId;
  };

  const manifest = items.flatMap((item): ManifestItem[] => {
    const kept = contentsOf(item).flatMap((content) => {
      const contentId = renewed(content, item.line);
      return contentId === undefined ? [] : [{ ...content, contentId }];
    });
    const [first] = kept;
    if (!first) return [];
    const { members, smil, folder, heights, bitrates, keys, contentId, ...common } = item.body;
    if (keys !== 'each' && first.quality === undefined)
      return [{ ...item, body: { ...item.body, contentId: first.contentId } }];
    const named = kept.flatMap(({ streamIds, quality, contentId }) =>
      streamIds.map((streamid) => ({ streamid, ...(quality === undefined ? { contentId } : { quality }) })),
    );
    const qualities = kept.map(({ quality, own, contentId }) => [quality, { ...own, contentId }]);
    // With a key for each, the sidecar refuses the limits of qualities.
    const own = keys === 'each' ? { heights, bitrates, keys } : { keys: Object.fromEntries(qualities) };
    return [
      {
        ...item,
        streamIds: named.map(({ streamid }) => streamid),
        body: { ...common, members: named, ...own },
      },
    ];
  });
  return { manifest, contentIds, supplied, namesOthers, faults };
}

/** A member without a quality is left to the sidecar, which refuses it. */
function contentsOf({ body, streamIds }: ManifestItem): SharedContent[] {
  const { members, smil, keys, heights, bitrates, folder, ...common } = body;
  const memberAt = (index: number): JsonObject => {
    const member: unknown = Array.isArray(members) ? members[index] : undefined;
    return isJsonObject(member) ? member : {};
  };
  if (keys === 'each')
    return streamIds.map((streamid, index) => ({
      streamIds: [streamid],
      fields: { ...common, contentId: memberAt(index).contentId },
    }));
  if (keys !== 'quality' && !isJsonObject(keys)) return [{ streamIds, fields: body }];
  const read = typeof smil === 'string' ? readSmil(smil) : undefined;
  const limits = { heights, bitrates } as Parameters<typeof qualityOf>[1];
  const contents = new Map<string, string[]>();
  for (const [index, streamId] of streamIds.entries()) {
    const stream = read?.ok ? read.value[index] : undefined;
    const found = stream && qualityOf(stream, limits);
    const quality = found ? found.ok && found.value : memberAt(index).quality;
    const name = typeof quality === 'string' ? quality : '';
    contents.set(name, [...(contents.get(name) ?? []), streamId]);
  }
  return [...contents].map(([quality, ids]) => {
    const given = isJsonObject(keys) ? keys[quality] : {};
    const own = isJsonObject(given) ? given : {};
    const fields = isJsonObject(given) ? qualityFields(quality, own, common) : {};
    return { streamIds: ids, fields, quality, own };
  });
}

/** Without a manifest. */
const PLACES_OF_ONE = ['streamid', 'name', 'date', 'time'];
const PLACES = ['streamid', 'name', 'contentId', 'old', 'date', 'time'];

/** Fills in date and time (UTC), so that the pattern repeats the run. A fault follows the option's name. */
export function readPattern(pattern: string, now: Date, isOfOne = false): Checked<string> {
  const found = [...pattern.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  const places = isOfOne ? PLACES_OF_ONE : PLACES;
  const unknown = found.find((name) => !places.includes(name));
  if (unknown !== undefined) {
    const known = places.map((name) => `{${name}}`).join(', ');
    return refused('unknown_place', `has the unknown placeholder {${unknown}}; it takes ${known}`);
  }
  if (!isOfOne && !found.some((name) => name !== 'date' && name !== 'time'))
    return refused(
      'same_for_all',
      'needs {streamid}, {name}, {contentId} or {old}: all streams would get one key otherwise',
    );
  const [date = '', time = ''] = now.toISOString().split('T');
  const value = pattern.replaceAll('{date}', date).replaceAll('{time}', time.slice(0, 8).replaceAll(':', ''));
  return { ok: true, value };
}

/** The content id that a pattern gives a stream; a fault is the rest of a sentence about the stream. */
export function fillPattern(
  pattern: string,
  {
    streamid,
    contentId,
    old,
  }: { streamid: string; contentId?: string | undefined; old?: string | undefined },
): Checked<string> {
  // As a batch writes the characters of a stream id that a content id can't have.
  const own = streamid.replaceAll(/[~@+]/g, '_');
  const values: Readonly<Record<string, string | undefined>> = {
    streamid: own.replaceAll('/', '_'),
    name: own.split('/').at(-1),
    contentId,
    old,
  };
  if (pattern.includes('{contentId}') && contentId === undefined)
    return refused('missing', 'has no content id in the manifest for {contentId}');
  if (pattern.includes('{old}') && old === undefined)
    return refused('missing', 'has no key file with a content id for {old}');
  const filled = pattern.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
  return PROVIDER_ID.pattern.test(filled)
    ? { ok: true, value: filled }
    : refused('wrong_value', `would get the content id ${filled}, which ${PROVIDER_ID.problem.description}`);
}

/**
 * The REST calls that restart streams at a Wowza Streaming Engine, on its default server and virtual host: the stream
 * is the last part of its id, the application the part before it unless given. An encoder is disconnected and connects
 * again; a stream that the packager pulls (`.stream`) is reset. PACKAGER_LOGIN is `user:password`; APPLICATION stands
 * for an unknown application.
 */
export function restartCommands(
  streamIds: readonly string[],
  { application, packagerUrl }: { readonly application?: string | undefined; readonly packagerUrl: string },
) {
  const server = `${packagerUrl.replace(/\/$/, '')}/v2/servers/_defaultServer_/vhosts/_defaultVHost_`;
  return streamIds.map((streamid) => {
    const parts = streamid.split('/');
    const name = parts.at(-1) ?? '';
    const of = application ?? parts.at(-2);
    const action = name.endsWith('.stream') ? 'resetStream' : 'disconnectStream';
    const rest = `/instances/_definst_/incomingstreams/${encodeURIComponent(name)}/actions/${action}`;
    const address =
      of === undefined
        ? `${shellWord(`${server}/applications/`)}"\${APPLICATION:?}"${shellWord(rest)}`
        : shellWord(`${server}/applications/${encodeURIComponent(of)}${rest}`);
    const call = `curl -sS --fail-with-body --anyauth -u "$PACKAGER_LOGIN" -X PUT`;
    return { streamid, command: `${call} -H 'accept: application/json' ${address}` };
  });
}
