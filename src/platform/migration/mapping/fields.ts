import type { RouteMapping, V1Action, V1Resource } from './routes';
import { ADVICE, CONTRACT } from './sentences';
import type { Json, JsonObject, ValueKind } from './values';

export interface FieldMapping {
  readonly v1: string;
  readonly kind: ValueKind;
  /**
   * Where v2 takes it: a place in the body, as `metadata.publish_start_date`; a placeholder of the path, as
   * `path.media_id`; a field of an action's body, as `action.name`; `lookup.…`, to find an id that v1 did not need;
   * `member.…`, to choose the member of a playlist.
   */
  readonly request?: string;
  /** Where v2 answers it; undefined where it doesn't. */
  readonly answer?: string;
  /** Why it isn't where it was. */
  readonly sentence?: string;
  /** The actions that take it as a parameter, when not all do. */
  readonly only?: readonly V1Action[];
  /** v1 takes it as a parameter, and v2 doesn't. */
  readonly removed?: true;
  /** Without it, the call must be completed by hand. */
  readonly byHand?: true;
}

function field(v1: string, place: string, kind: ValueKind = 'text', sentence?: string): FieldMapping {
  return { v1, kind, request: place, answer: place, ...(sentence !== undefined && { sentence }) };
}

function answered(v1: string, place: string, kind: ValueKind = 'text', sentence?: string): FieldMapping {
  return { v1, kind, answer: place, ...(sentence !== undefined && { sentence }) };
}

function sent(v1: string, place: string, kind: ValueKind = 'text', sentence?: string): FieldMapping {
  return { v1, kind, request: place, ...(sentence !== undefined && { sentence }) };
}

function gone(v1: string, options: Pick<FieldMapping, 'sentence' | 'byHand'>): FieldMapping {
  return { v1, kind: 'text', removed: true, ...options };
}

const VIDEO: readonly FieldMapping[] = [
  sent('video_key', 'path.media_id'),
  answered('key', 'id'),
  field('title', 'metadata.title'),
  field('description', 'metadata.description'),
  field('author', 'metadata.author'),
  field('tags', 'metadata.tags', 'list', CONTRACT.tag),
  field('date', 'metadata.publish_start_date', 'date', CONTRACT.date),
  field('expires_date', 'metadata.publish_end_date', 'date', CONTRACT.expiresDate),
  field('link', 'metadata.permalink', 'text', CONTRACT.link),
  field('category', 'metadata.category'),
  field('language', 'metadata.language'),
  field('protectionrule_key', 'metadata.protection_rule_key'),
  answered('status', 'status'),
  answered('error', 'error_message', 'text', CONTRACT.error),
  answered('mediatype', 'media_type', 'text', CONTRACT.mediatype),
  answered('updated', 'last_modified', 'date'),
  { ...gone('duration', { sentence: ADVICE.duration }), kind: 'number', answer: 'duration' },
  { ...sent('sourcetype', 'upload.method', 'source_type', CONTRACT.sourcetype), answer: 'hosting_type' },
  { ...sent('sourceformat', 'upload.mime_type', 'format', CONTRACT.sourceformat), answer: 'mime_type' },
  { ...sent('sourceurl', 'upload.source_url', 'text', CONTRACT.upload), answer: 'source_url' },
  { ...sent('trim_in_point', 'upload.trim_in_point', 'text', CONTRACT.upload), answer: 'trim_in_point' },
  { ...sent('trim_out_point', 'upload.trim_out_point', 'text', CONTRACT.upload), answer: 'trim_out_point' },
  sent('download_url', 'upload.download_url', 'text', CONTRACT.upload),
  // The last of these that is given counts.
  { ...sent('update_file', 'upload.method', 'new_file', CONTRACT.upload), only: ['update'] },
  sent('resumable', 'upload.method', 'resumable', CONTRACT.upload),
  sent('upload_method', 'upload.method', 'upload_method', CONTRACT.upload),
  sent('upload_content_type', 'upload.mime_type', 'text', CONTRACT.upload),
  gone('md5', { sentence: CONTRACT.mediaRemoved }),
  gone('size', { sentence: CONTRACT.mediaRemoved }),
];

/** Where the members of a playlist are: the ids of a manual one, the filter of a dynamic one. */
export const MEMBERS = 'metadata.media_filter.include';

/** The body that gives a manual playlist these members. */
export function membersBody(values: readonly Json[]): JsonObject {
  const include: JsonObject = { match: 'any', values };
  return MEMBERS.split('.').reduceRight((inner, name) => ({ [name]: inner }), include);
}

const CHANNEL: readonly FieldMapping[] = [
  sent('channel_key', 'path.playlist_id'),
  answered('key', 'id'),
  { ...sent('type', 'path.playlist_type', 'playlist_type', CONTRACT.channel), answer: 'playlist_type' },
  field('title', 'metadata.title'),
  field('description', 'metadata.description'),
  field('author', 'metadata.author'),
  field('link', 'metadata.link'),
  field('tags', `${MEMBERS}.tags.values`, 'list', CONTRACT.channel),
  field('tags_mode', `${MEMBERS}.tags.match`, 'text', CONTRACT.channel),
  field('sort_order', 'metadata.sort', 'sort_order', CONTRACT.channel),
  field('videos_max', 'metadata.media_limit', 'number', CONTRACT.channel),
  answered('updated', 'last_modified', 'date'),
];

const CHANNEL_VIDEO: readonly FieldMapping[] = [
  sent('channel_key', 'path.playlist_id'),
  // The members are one list in v2, which `migrate-call` edits.
  sent('video_key', 'member.id'),
  sent('position', 'member.position', 'number'),
  sent('position_from', 'member.before', 'number'),
  sent('position_to', 'member.after', 'number'),
  // v2 has the whole list at once.
  { ...sent('result_limit', 'member.limit', 'number'), only: ['list'] },
  { ...sent('result_offset', 'member.offset', 'number'), only: ['list'] },
];

const PLAYER_OPTIONS: readonly (readonly [v1: string, kind: ValueKind, v2?: string])[] = [
  ['aspectratio', 'text'],
  ['responsive', 'boolean'],
  ['autostart', 'option'],
  ['displaydescription', 'boolean'],
  ['displaytitle', 'boolean'],
  ['playback_rate_controls', 'rates', 'playbackRateControls'],
  ['preload', 'text'],
  ['repeat', 'boolean'],
  ['stretching', 'text'],
  ['width', 'option'],
  ['height', 'option'],
];

export const SETUP_CONFIG = 'metadata.setup_config';

const PLAYER: readonly FieldMapping[] = [
  sent('player_key', 'path.player_id'),
  answered('key', 'id'),
  field('name', 'metadata.name'),
  field('release_channel', 'metadata.release_channel'),
  ...PLAYER_OPTIONS.map(([v1, kind, v2 = v1]) =>
    field(v1, `${SETUP_CONFIG}.${v2}`, kind, CONTRACT.playerFields),
  ),
];

const CONVERSION: readonly FieldMapping[] = [
  sent('video_key', 'path.media_id'),
  sent('conversion_key', 'path.rendition_id'),
  sent('template_key', 'relationships.media_rendition_template', 'relation', ADVICE.template),
  answered('key', 'id'),
  answered('status', 'status'),
  answered('error', 'error_message'),
  answered('mediatype', 'media_type'),
  answered('width', 'width', 'same'),
  answered('height', 'height', 'same'),
  answered('filesize', 'filesize', 'number', CONTRACT.conversion),
  // Only originals have it.
  answered('duration', 'duration', 'number', CONTRACT.conversion),
  answered('link', 'delivery_url', 'link', CONTRACT.conversion),
];

const THUMBNAIL: readonly FieldMapping[] = [
  { ...sent('video_key', 'lookup.media_id'), only: ['show'] },
  { ...sent('video_key', 'relationships.media', 'media_relation', CONTRACT.thumbnail), only: ['update'] },
  sent('position', 'upload.video_position', 'number', ADVICE.thumbnailFrame),
  sent('thumbnail_index', 'upload.thumbstrip_index', 'number', ADVICE.thumbnailFrame),
  gone('md5', {}),
  gone('size', {}),
  answered('key', 'id'),
  answered('status', 'status'),
  answered('link', 'delivery_url', 'link'),
];

const TRACK: readonly FieldMapping[] = [
  sent('video_key', 'path.media_id'),
  sent('track_key', 'path.track_id'),
  answered('key', 'id'),
  { ...sent('kind', 'metadata.track_kind'), answer: 'track_kind', only: ['create'] },
  field('label', 'metadata.label'),
  field('language', 'metadata.srclang'),
  field('position', 'metadata.position', 'number'),
  { ...sent('upload_method', 'upload.method', 'upload_method'), only: ['create'] },
  { ...gone('update_file', { sentence: ADVICE.trackFile, byHand: true }), only: ['update'] },
  answered('status', 'status'),
  answered('error', 'error_message'),
  answered('updated', 'last_modified', 'date'),
  answered('link', 'delivery_url', 'link', CONTRACT.track),
  gone('md5', { sentence: CONTRACT.track }),
  gone('size', { sentence: CONTRACT.track }),
];

const TAG: readonly FieldMapping[] = [
  { ...sent('name', 'action.name'), only: ['delete'] },
  { ...sent('name', 'action.old_name'), only: ['update'] },
  { ...sent('new_name', 'action.new_name'), only: ['update'] },
];

const USAGE: readonly FieldMapping[] = [
  sent('account_key', 'path.site_id', 'text', CONTRACT.account),
  sent('start_date', 'action.start_date', 'day', CONTRACT.usage),
  sent('end_date', 'action.end_date', 'day', CONTRACT.usage),
];

/** Parameters for the signature and the answer format, which v2 does not have. */
export const AUTHENTICATION: readonly string[] = [
  'api_key',
  'api_timestamp',
  'api_nonce',
  'api_signature',
  'api_format',
  'api_kit',
];

/** Whether a parameter only identifies the caller, or looks like a secret. */
export function isAuthentication(name: string): boolean {
  return !name.startsWith('custom.') && (AUTHENTICATION.includes(name) || SECRET.test(name));
}

const SECRET = /^api[_-]?|secret|signature|passw|token|^authorization$/i;

/** A value that may be shown: a placeholder for a custom parameter with the name of a secret. */
export function shownValue(name: string, value: string): string {
  if (isAuthentication(name)) return '';
  return SECRET.test(name.replace(/^custom\.-?/, '')) ? '{value}' : value;
}

export const FIELDS: Readonly<Record<V1Resource, readonly FieldMapping[]>> = {
  tag: TAG,
  usage: USAGE,
  channel: CHANNEL,
  channel_video: CHANNEL_VIDEO,
  player: PLAYER,
  status: [],
  video: VIDEO,
  conversion: CONVERSION,
  video_tag: [],
  thumbnail: THUMBNAIL,
  track: TRACK,
};

export const CUSTOM: readonly V1Resource[] = ['video', 'channel', 'player'];

/** The fields that a route takes as parameters: a call that reads or deletes takes no content. */
export function parametersOf({ resource, action, v2 }: RouteMapping): readonly FieldMapping[] {
  const takesBody = v2.length === 0 || v2.some(({ method }) => method !== 'GET' && method !== 'DELETE');
  return FIELDS[resource].filter(({ request, removed, only }) => {
    if (only && !only.includes(action)) return false;
    if (request === undefined) return removed === true;
    const [part, name] = request.split('.');
    if (part === 'path') return v2.length === 0 || v2.some(({ path }) => path.includes(`{${name}}`));
    return takesBody || part === 'lookup';
  });
}
