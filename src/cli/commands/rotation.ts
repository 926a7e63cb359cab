import { type Checked, refused } from '../../drm/bytes';
import { PROVIDER_ID } from '../../drm/envelope';
import { shellWord } from '../../terminal/text';
import type { Manifest, ManifestItem } from '../manifest/read-manifest';
import type { FileFault } from '../yaml-fields';

/** A manifest with new content ids. */
export interface Rotation {
  readonly manifest: Manifest;
  /** The new content id of each stream. */
  readonly contentIds: ReadonlyMap<string, string>;
  /** The streams that bring keys of their own: only their owner can make new ones. */
  readonly supplied: readonly string[];
  readonly faults: readonly FileFault[];
}

/**
 * Gives every stream of a manifest that gets its keys from the key provider a new content id. A group with one key gets
 * one, by its first member; one with `keys: each` gets one for each member.
 * @param old the content ids of the present key files.
 */
export function rotateManifest(
  items: Manifest,
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

  const stream = (item: ManifestItem): ManifestItem => {
    const contentId = newId(item.name, item.body.contentId, item.line);
    contentIds.set(item.name, contentId);
    return { ...item, body: { ...item.body, contentId } };
  };

  const group = (item: ManifestItem): ManifestItem => {
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

  const manifest = items
    .filter(isProvided)
    .map((item) => (item.kind === 'streams' ? stream(item) : group(item)));
  const supplied = items.filter((item) => !isProvided(item)).flatMap(({ streamIds }) => streamIds);
  return { manifest, contentIds, supplied, faults };
}

/** Whether the key provider makes an entry's keys. */
export function isProvided({ body }: ManifestItem): boolean {
  return body.cenc === undefined && body.fairplay === undefined && body.cpix === undefined;
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
  if (!filled.ok) return filled.problem.description;
  const other = takenBy.get(filled.value);
  if (other === undefined || other === streamid || followsContent) return undefined;
  return `would get the content id ${filled.value} of ${other}, and so its key; use {streamid}`;
}

/** What the places of a pattern stand for. */
interface PatternValues {
  readonly streamid: string;
  /** The content id that the manifest gives. */
  readonly contentId: string | undefined;
  /** The content id of the present key file. */
  readonly old: string | undefined;
}

export interface ContentIdPattern {
  /** With date and time of this run filled in: what repeats it. */
  readonly text: string;
  /** Whether equal content ids are meant to give equal ones again. */
  readonly followsContent: boolean;
  /** The content id of a stream; a fault is the rest of a sentence about it. */
  fill(values: PatternValues): Checked<string>;
}

const PLACES = ['streamid', 'name', 'contentId', 'old', 'date', 'time'] as const;

/** Reads a pattern as `{streamid}-{date}`. Date and time are those of UTC. A fault goes on after the option's name. */
export function readPattern(pattern: string, now: Date): Checked<ContentIdPattern> {
  const found = [...pattern.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  const unknown = found.find((name) => !PLACES.some((place) => place === name));
  if (unknown !== undefined) {
    return refused(
      'unknown_place',
      `has {${unknown}}, which nothing fills; it takes ${PLACES.map((name) => `{${name}}`).join(', ')}`,
    );
  }
  if (!found.some((name) => name !== 'date' && name !== 'time'))
    return refused(
      'same_for_all',
      'needs {streamid}, {name}, {contentId} or {old}: all streams would get one key otherwise',
    );
  const [date = '', time = ''] = now.toISOString().split('T');
  const text = pattern.replaceAll('{date}', date).replaceAll('{time}', time.slice(0, 8).replaceAll(':', ''));
  return {
    ok: true,
    value: {
      text,
      followsContent: found.includes('contentId') || found.includes('old'),
      fill: (values) => fill(text, values),
    },
  };
}

const MISSING = {
  contentId: 'has no content id in the manifest, which {contentId} would be',
  old: 'has no key file with a content id, which {old} would be',
} as const;

function fill(text: string, { streamid, contentId, old }: PatternValues): Checked<string> {
  const values: Readonly<Record<string, string | undefined>> = {
    streamid: asContentId(streamid),
    name: asContentId(streamid.split('/').at(-1) ?? ''),
    contentId,
    old,
  };
  for (const name of ['contentId', 'old'] as const)
    if (text.includes(`{${name}}`) && values[name] === undefined) return refused('missing', MISSING[name]);
  const filled = text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
  return PROVIDER_ID.pattern.test(filled)
    ? { ok: true, value: filled }
    : refused('wrong_value', `would get the content id ${filled}, which ${PROVIDER_ID.problem.description}`);
}

/** Content ids lack some letters that stream ids have; a batch writes them so, too. */
function asContentId(streamId: string): string {
  return streamId.replaceAll(/[/~@+]/g, '_');
}

export interface Restart {
  readonly streamid: string;
  /** A line for a shell. */
  readonly command: string;
}

/**
 * The REST calls that let each stream start anew at a Wowza Streaming Engine, on its default server and virtual host:
 * the stream is the last part of its id, the application what stands before it unless named. An encoder is
 * disconnected and connects again by itself; a stream that the packager pulls (`.stream`) is reset.
 * PACKAGER_LOGIN is `user:password`; an application that isn't known is left to APPLICATION.
 */
export function restartCommands(
  streamIds: readonly string[],
  { application, packagerUrl }: { readonly application: string | undefined; readonly packagerUrl: string },
): Restart[] {
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
