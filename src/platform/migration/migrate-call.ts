import { nearestName, unknownName } from '../../drm/nearest';
import { LIST_NAMES } from './lists';
import { CUSTOM, FIELDS, membersBody, SETUP_CONFIG } from './mapping/fields';
import {
  describeMapping,
  findRoute,
  type HttpMethod,
  ROUTES,
  type RouteMapping,
  shownRoute,
} from './mapping/routes';
import { ADVICE, CONTRACT } from './mapping/sentences';
import { isObject, isPlaceholder, type Json, type JsonObject, splitList } from './mapping/values';
import { readParameters, type V1Parameters, type V2Body, type V2Parts } from './parameters';

export interface V1Call {
  /** As `/v1/videos/create`. */
  readonly route: string;
  readonly parameters: V1Parameters;
}

export interface V2Call {
  readonly method: HttpMethod;
  /** With placeholders in braces for unknown parts. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The secret is always the placeholder `$V2_API_SECRET`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: JsonObject;
  /** Why it is needed in addition to the call of the mapping. */
  readonly purpose?: string;
}

/** A difference in v2, with the sentence of the contract about it, if there is one. */
export interface Note {
  readonly kind: 'changed' | 'beware' | 'removed' | 'unsupported' | 'unknown';
  readonly field?: string;
  readonly sentence: string;
  /** Whether somebody must decide or complete something. */
  readonly byHand: boolean;
}

export type Verdict = 'ready' | 'by_hand' | 'unsupported' | 'unknown';

export interface Migration {
  readonly route: string;
  readonly verdict: Verdict;
  readonly calls: readonly V2Call[];
  readonly notes: readonly Note[];
  /** The answer fields with another name or place in v2; null for those that v2 removed. */
  readonly answers: readonly { readonly v1: string; readonly v2: string | null }[];
}

/** The calls of v2 that do the same, without secrets and values of unknown parameters. @param site its id. */
export function migrateCall({ route, parameters }: V1Call, site = '{site_id}'): Migration {
  const mapping = findRoute(route);
  if (!mapping) return unknownRoute(route);
  if (mapping.v2.length === 0) return unsupported(mapping);
  const parts = readParameters(mapping, parameters);
  const notes = new Map<string, Note>();
  const add: AddNote = (kind, sentence, field, byHand = false) => {
    const shown = field === undefined ? undefined : shownName(field);
    const key = JSON.stringify([kind, shown, sentence]);
    notes.set(key, { kind, ...(shown !== undefined && { field: shown }), sentence, byHand });
  };
  addGeneral(add, mapping, parts);
  const work = { mapping, parts, ids: { site_id: site, ...parts.ids }, add };
  const calls = CALLS[mapping.resource]?.(work) ?? mapped(work);
  for (const name of missingIn(mapping, calls)) addMissing(work, name);
  const verdict = [...notes.values()].some(({ byHand }) => byHand) ? 'by_hand' : 'ready';
  return { route: mapping.route, verdict, calls, notes: [...notes.values()], answers: answersOf(mapping) };
}

function addMissing({ mapping, add }: Work, name: string): void {
  const sentence = `v1 could not ${mapping.action} without the key that is \`${name}\` in v2.`;
  add('beware', sentence, undefined, true);
}

type AddNote = (kind: Note['kind'], sentence: string, field?: string, byHand?: boolean) => void;

/** Any name; one that looks like a key is not shown. */
function shownName(name: string): string {
  const isCamel = /^[a-z]{1,20}(?:[A-Z][a-z]{1,20}){0,5}$/.test(name);
  return isCamel ? name : (unknownName(name, []).shown ?? 'a parameter');
}

function addGeneral(add: AddNote, mapping: RouteMapping, parts: V2Parts): void {
  add('changed', describeMapping(mapping));
  add('changed', CONTRACT.bearer);
  if (mapping.sentence !== undefined) add('changed', mapping.sentence);
  add('beware', `${CONTRACT.v1Error} ${CONTRACT.v2Error}`);
  if (parts.authentication.includes('api_format')) add('removed', ADVICE.format, 'api_format');
  for (const { v1, removed, sentence, byHand } of parts.used) {
    if (removed) add('removed', sentence ?? ADVICE.noParameter, v1, byHand === true);
    else if (sentence !== undefined) add('changed', sentence, v1);
  }
  for (const name of parts.options) add('changed', CONTRACT.player, name);
  for (const { field, sentence, byHand } of parts.list?.notes ?? [])
    add(byHand ? 'beware' : 'changed', sentence, field, byHand);
  for (const { field, sentence } of parts.forms) add('beware', sentence, field, true);
  for (const { field, fault } of parts.faults)
    add('beware', `The value ${fault}; it is left out.`, field, true);
  for (const { field, near } of parts.unknown) {
    const meant = near === undefined ? '' : ` Did you mean \`${near}\`?`;
    add('unknown', `${ADVICE.noParameter}${meant}`, field, true);
  }
}

/** Placeholders of the paths that neither the call nor the answers of earlier calls fill. */
function missingIn({ v2, resource }: RouteMapping, calls: readonly V2Call[]): string[] {
  const found = new Set(calls.flatMap(({ path }) => placeholders(path)));
  return [...found].filter((name) => {
    const isOfBefore = resource === 'thumbnail' || (name === 'playlist_type' && calls.length > 1);
    const isSaid = name === 'media_id' && (resource === 'conversion' || resource === 'track');
    return name !== 'site_id' && !isOfBefore && !isSaid && v2.some(({ path }) => path.includes(`{${name}}`));
  });
}

function placeholders(path: string): string[] {
  return [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name);
}

function unknownRoute(route: string): Migration {
  const name = shownRoute(route);
  const near = nearestName(
    name,
    ROUTES.map((mapping) => mapping.route),
  );
  const meant = near === undefined ? '' : ` Did you mean ${near}?`;
  const sentence = /^\/v1\/(?:videos\/)?uploads?\b/.test(route)
    ? ADVICE.uploadRoute
    : `${name} is no route of the mapping.${meant}`;
  return withoutCalls(name, 'unknown', [sentence]);
}

function unsupported(mapping: RouteMapping): Migration {
  const sentences = [describeMapping(mapping), ...(mapping.sentence ? [mapping.sentence] : [])];
  return withoutCalls(mapping.route, 'unsupported', sentences);
}

function withoutCalls(
  route: string,
  verdict: 'unknown' | 'unsupported',
  sentences: readonly string[],
): Migration {
  const notes = sentences.map((sentence) => ({ kind: verdict, sentence, byHand: true }));
  return { route, verdict, calls: [], notes, answers: [] };
}

const SETUP = SETUP_CONFIG.replace(/^metadata\./, '');

function answersOf({ resource, action }: RouteMapping): Migration['answers'] {
  if (action === 'delete') return [];
  const names = action === 'list' ? LIST_NAMES[resource] : undefined;
  const list = names ? [{ v1: names[0], v2: names[1] }] : [];
  const fields = FIELDS[resource]
    .filter(
      ({ v1: name, answer }) => answer !== name && (answer !== undefined || REMOVED_ANSWERS.includes(name)),
    )
    .map(({ v1: name, answer }) => ({ v1: name, v2: answer ?? null }));
  const custom = CUSTOM.includes(resource) ? [{ v1: 'custom', v2: 'metadata.custom_params' }] : [];
  return [...list, ...fields, ...custom];
}

/** The removed parameters that v1 also answered. */
const REMOVED_ANSWERS = ['md5', 'size'];

interface Work {
  readonly mapping: RouteMapping;
  readonly parts: V2Parts;
  readonly ids: Readonly<Record<string, string>>;
  readonly add: AddNote;
}

const CALLS: Partial<Readonly<Record<RouteMapping['resource'], (work: Work) => readonly V2Call[]>>> = {
  channel: channelCalls,
  channel_video: memberCalls,
  conversion: conversionCalls,
  thumbnail: thumbnailCalls,
  track: trackCalls,
  video: videoCalls,
};

/** The calls of the mapping. Of several that do the same, the one whose placeholders are all known. */
function mapped(work: Work): V2Call[] {
  const { mapping, parts, ids } = work;
  const isKnown = (path: string) => placeholders(path).every((name) => ids[name] !== undefined);
  const one = mapping.v2.findLast(({ path }) => isKnown(path)) ?? mapping.v2[0];
  const operations = mapping.joined === 'and' ? mapping.v2 : one ? [one] : [];
  const body = wholeBody(work);
  return operations.flatMap(({ method, path }) => {
    const call = {
      method,
      query: parts.list?.query ?? {},
      ...(method !== 'GET' && method !== 'DELETE' && { body }),
    };
    const first = readFirst(work, path);
    return [...first, ...repeated(work, path).map((each) => made({ ...call, path: fill(path, each) }))];
  });
}

/** v1 deleted several resources with a call, by keys with commas between them. */
function repeated({ mapping, ids, add }: Work, path: string): Readonly<Record<string, string>>[] {
  const name = placeholders(path).findLast((each) => each !== 'playlist_type') ?? '';
  const keys = mapping.action === 'delete' ? [...new Set(splitList(ids[name] ?? ''))] : [];
  if (keys.length > 1) add('changed', ADVICE.several);
  return keys.length === 0 ? [ids] : keys.map((key) => ({ ...ids, [name]: key }));
}

/** Reads the fields that an update replaces as a whole. */
function readFirst({ mapping, parts, ids }: Work, path: string): V2Call[] {
  const changesOptions = parts.body.metadata?.[SETUP] !== undefined;
  const purpose = (changesCustom(parts) && ADVICE.allCustom) || (changesOptions && ADVICE.setupReplaced);
  if (mapping.action !== 'update' || !purpose) return [];
  return [made({ method: 'GET', path: fill(path, ids), query: {}, purpose })];
}

function changesCustom({ custom }: V2Parts): boolean {
  return Object.keys(custom.set).length + custom.removed.length > 0;
}

/** The body with the fields that are replaced as a whole; an update has placeholders for the values to keep. */
function wholeBody(work: Work): V2Body {
  const body = withCustom(work);
  const options = body.metadata?.[SETUP];
  if (work.mapping.action !== 'update' || !isObject(options)) return body;
  work.add('beware', ADVICE.setupReplaced, undefined, true);
  return { ...body, metadata: { ...body.metadata, [SETUP]: { ...TO_KEEP, ...options } } };
}

const TO_KEEP = { '{name of each to keep}': '{its value}' };

function withCustom({ mapping, parts, add }: Work): V2Body {
  const { body, custom } = parts;
  if (!changesCustom(parts)) return body;
  add('changed', CONTRACT.customNames, 'custom.*');
  const isUpdate = mapping.action === 'update';
  if (isUpdate) add('beware', CONTRACT.customReplaced, 'custom.*', true);
  else if (Object.keys(custom.set).length === 0) return body;
  const kept = isUpdate ? TO_KEEP : {};
  return { ...body, metadata: { ...body.metadata, custom_params: { ...kept, ...custom.set } } };
}

function videoCalls(work: Work): V2Call[] {
  const { mapping, parts, ids, add } = work;
  const { upload, ...rest } = parts.body;
  const isFile = upload?.method === 'direct' || upload?.method === 'multipart';
  if (isFile) add('beware', ADVICE.sendFile);
  if (mapping.action !== 'update' || !upload) return mapped(work);
  add('beware', ADVICE.reupload);
  const path = fill(`${mapping.v2[0]?.path}reupload/`, ids);
  const reupload = made({ method: 'PUT', path, query: {}, body: { upload }, purpose: ADVICE.reupload });
  if (Object.keys(rest).length === 0 && !changesCustom(parts)) return [reupload];
  return [...mapped({ ...work, parts: { ...parts, body: rest } }), reupload];
}

function channelCalls(work: Work): V2Call[] {
  const { mapping, ids, add } = work;
  if (mapping.action === 'create' && ids.playlist_type === undefined) {
    add('beware', ADVICE.defaultType, 'type');
    return mapped({ ...work, ids: { ...ids, playlist_type: 'dynamic_playlist' } });
  }
  if (mapping.action !== 'update' || ids.playlist_type !== undefined) return mapped(work);
  add('beware', ADVICE.playlistType);
  const path = fill('/v2/sites/{site_id}/playlists/{playlist_id}/', ids);
  return [made({ method: 'GET', path, query: {}, purpose: ADVICE.playlistType }), ...mapped(work)];
}

/** The members of a playlist are one list in v2, which replaces v1's calls for single members. */
function memberCalls({ mapping, parts, ids, add }: Work): V2Call[] {
  const path = fill(mapping.v2[0]?.path ?? '', { ...ids, playlist_type: 'manual_playlist' });
  const isRead = mapping.action === 'list' || mapping.action === 'show';
  const get = made({ method: 'GET', path, query: {}, ...(!isRead && { purpose: ADVICE.playlistMembers }) });
  if (isRead) {
    add('beware', ADVICE.playlistRead);
    return [get];
  }
  add('beware', ADVICE.playlistMembers, undefined, true);
  const { id = '{video_key}', position, before = '{position_from}', after = '{position_to}' } = parts.member;
  const values: Readonly<Record<string, readonly Json[]>> = {
    create:
      position === undefined
        ? ['{ids of the present members}', id]
        : ['{ids of the members before}', id, `{ids of the members from position ${position} on}`],
    delete: [
      parts.member.id === undefined
        ? `{ids of the members without the one at position ${position ?? '?'}}`
        : `{ids of the members without ${id}}`,
    ],
    update: [`{ids of the members, the one at position ${before} moved to ${after}}`],
  };
  const body = membersBody(values[mapping.action] ?? []);
  return [get, made({ method: 'PATCH', path, query: {}, body })];
}

function conversionCalls(work: Work): readonly V2Call[] {
  const { mapping, ids, add } = work;
  if (mapping.action === 'list') add('beware', ADVICE.originals);
  if (ids.media_id === undefined) add('beware', ADVICE.mediaOfRendition, 'video_key', true);
  return mapped(work);
}

function trackCalls(work: Work): readonly V2Call[] {
  const { ids, add, parts } = work;
  if (ids.media_id === undefined) add('beware', ADVICE.mediaOfTrack, 'video_key', true);
  if (parts.body.upload?.method === 'direct') add('beware', ADVICE.sendFile);
  return mapped(work);
}

function thumbnailCalls(work: Work): readonly V2Call[] {
  const { mapping, parts, ids, add } = work;
  if (!ids.media_id && !parts.body.relationships?.media) addMissing(work, 'media_id');
  if (mapping.action === 'show') {
    add('beware', ADVICE.thumbnailOf);
    const query = { q: `media_id: ${ids.media_id ?? '{media_id}'}` };
    const path = fill('/v2/sites/{site_id}/thumbnails/', ids);
    return [made({ method: 'GET', path, query, purpose: ADVICE.thumbnailOf }), ...mapped(work)];
  }
  const [create, choose] = mapped(work);
  if (!create || !choose) return [];
  const media = parts.body.relationships?.media ?? [{ id: '{media_id}' }];
  const upload = thumbnailUpload(parts.body, media);
  if (upload.source_type === 'custom_upload') add('beware', ADVICE.sendFile);
  const poster = (Array.isArray(media) ? media : []).map((each) => ({ ...each, is_poster: true }));
  return [
    { ...create, body: { relationships: { media }, upload } },
    { ...choose, body: { relationships: { media: poster } }, purpose: ADVICE.poster },
  ];
}

function thumbnailUpload({ upload = {} }: V2Body, media: Json): JsonObject {
  const [source] = ['video_position', 'thumbstrip_index'].filter((name) => name in upload);
  if (source === undefined) {
    return { method: 'direct', source_type: 'custom_upload', thumbnail_type: 'static' };
  }
  const first = Array.isArray(media) ? media[0] : undefined;
  return {
    source_type: source,
    source_media_id: first?.id,
    [source]: upload[source],
    thumbnail_type: 'static',
  };
}

/** A path with the ids that are known, encoded; placeholders of the caller's stay readable. */
function fill(path: string, ids: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{([^{}]+)\}/g, (whole, name: string) => {
    const id = ids[name];
    if (id === undefined || id === '') return whole;
    // Half a surrogate pair can't be encoded.
    return isPlaceholder(id) ? id : encodeURIComponent(id.replaceAll(/\p{Cs}/gu, '\u{fffd}'));
  });
}

function made(call: Omit<V2Call, 'headers'>): V2Call {
  return {
    ...call,
    headers: {
      Authorization: 'Bearer $V2_API_SECRET',
      ...(call.body !== undefined && { 'Content-Type': 'application/json' }),
    },
  };
}
