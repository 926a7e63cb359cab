export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of names. */
export function valueIn(value: Json, ...[name, ...rest]: readonly string[]): Json | undefined {
  if (name === undefined) return value;
  if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
  return valueIn(value[name] ?? null, ...rest);
}

/** The object at a path of names; an empty one when there is none. */
export function objectIn(value: Json, ...path: readonly string[]): JsonObject {
  const found = valueIn(value, ...path);
  return isObject(found) ? found : {};
}

/** A v1 value in v2's form, or its fault, as `must be …`. */
type Translated =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly fault: string };

type Codec = { readonly toV2: (text: string) => Translated; readonly toV1: (value: Json) => Json };

/** A value that is not known yet, as `{video_key}` in a documented call or a variable in a program. */
export function isPlaceholder(text: string): boolean {
  return /^\{[^{}]{1,200}\}$/.test(text);
}

export type ValueKind = keyof typeof CODECS;

/** The kinds whose values, also placeholders, become part of another value in v2. */
const WRAPPED: readonly ValueKind[] = ['list', 'relation', 'media_relation'];

/** Placeholders stay as they are where v2 has the value on its own. */
export function toV2Value(kind: ValueKind, text: string): Translated {
  return isPlaceholder(text) && !WRAPPED.includes(kind) ? translated(text) : CODECS[kind].toV2(text);
}

/** A value of v2, which has the kind, as v1 answers it; null stays null. */
export function toV1Value(kind: ValueKind, value: Json): Json {
  return value === null ? null : CODECS[kind].toV1(value);
}

const translated = (value: Json): Translated => ({ ok: true, value });
const fault = (text: string): Translated => ({ ok: false, fault: text });
const same = (value: Json) => value;
const joined = (value: Json) => (Array.isArray(value) ? value.map(asText).join(',') : value);
const asText = (value: Json) => (typeof value === 'object' ? JSON.stringify(value) : String(value));

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)$/;
const TRUE = ['true', '1', 'yes', 'on'];
const FALSE = ['false', '0', 'no', 'off'];

/** v1's names of formats and their media types; other values stay as they are. */
const FORMATS: readonly (readonly [v1: string, v2: string])[] = [
  ['mp4', 'video/mp4'],
  ['webm_vp8', 'video/webm'],
  ['flv', 'video/x-flv'],
  ['youtube', 'video/youtube'],
  ['aac', 'audio/mp4'],
  ['mp3', 'audio/mpeg'],
  ['vorbis', 'audio/ogg'],
  ['m3u8', 'application/vnd.apple.mpegurl'],
  ['smil', 'application/smil'],
];

/** v1's source types, as `upload.method` and `hosting_type` of v2 have them, where a file is `hosted`. */
const SOURCE_TYPES = [
  ['file', 'direct'],
  ['file', 'hosted'],
  ['url', 'external'],
] as const;

/** The first name of each is the one that is written in the other direction. */
const UPLOAD_METHODS = [
  ['single', 'direct'],
  ['s3', 'direct'],
  ['multipart', 'multipart'],
  ['resumable', 'multipart'],
  ['fetch', 'fetch'],
  ['external', 'external'],
  ['direct', 'direct'],
] as const;

function named(names: readonly (readonly [v1: string, v2: string])[], open: boolean): Codec {
  const known = [...new Set(names.map(([v1]) => v1))].join(', ');
  return {
    toV2: (text) => {
      const found = names.find(([v1]) => v1 === text)?.[1];
      if (found !== undefined) return translated(found);
      return open ? translated(text) : fault(`must be one of ${known}`);
    },
    toV1: (value) => names.find(([, v2]) => v2 === value)?.[0] ?? value,
  };
}

const readBoolean = (text: string) => {
  const lower = text.toLowerCase();
  if (TRUE.includes(lower)) return true;
  return FALSE.includes(lower) ? false : undefined;
};

/** v1: `true`, `false`, `1`, `0` and the like; v2: one of two values. */
function either(yes: Json, no: Json): Codec {
  return {
    toV2: (text) => {
      const value = readBoolean(text);
      return value === undefined ? fault('must be true or false') : translated(value ? yes : no);
    },
    toV1: same,
  };
}

const CODECS = {
  text: { toV2: translated, toV1: asText },
  number: {
    toV2: (text) =>
      NUMBER.test(text.trim()) ? translated(Number(text)) : fault('must be a number, as 12.5'),
    toV1: asText,
  },
  boolean: either(true, false),
  /** v1: UNIX time in seconds, empty for none; v2: ISO 8601, null for none. */
  date: { toV2: readDate, toV1: writeDate },
  /** v1: one text with commas; v2: an array of texts. */
  list: { toV2: (text) => translated(splitList(text)), toV1: joined },
  /** An option of a player, which can be anything: a boolean or a number where it looks like one. */
  option: {
    toV2: (text) => {
      if (/^(?:true|false)$/i.test(text)) return translated(text.toLowerCase() === 'true');
      return translated(NUMBER.test(text) && String(Number(text)) === text ? Number(text) : text);
    },
    toV1: same,
  },
  /** Playback rates: a boolean, or numbers, in v1 with commas. */
  rates: {
    toV2: (text) => {
      const value = readBoolean(text);
      if (value !== undefined && !NUMBER.test(text)) return translated(value);
      const rates = splitList(text);
      if (rates.length > 0 && rates.every((rate) => NUMBER.test(rate))) return translated(rates.map(Number));
      return fault('must be true, false, or numbers with commas between them');
    },
    toV1: joined,
  },
  /** v1: a name of its own, as `mp4`; v2: a media type. */
  format: named(FORMATS, true),
  source_type: named(SOURCE_TYPES, false),
  upload_method: named(UPLOAD_METHODS, false),
  /** `update_file`: v1 answers where to send a file then, as v2 does for a direct upload. */
  new_file: either('direct', null),
  /** `resumable`, which `upload_method` took the place of. */
  resumable: either('multipart', 'direct'),
  playlist_type: { toV2: readPlaylistType, toV1: (value) => asText(value).replace(/_playlist$/, '') },
  /** v1: UNIX time in seconds; v2: the day. */
  day: {
    toV2: (text) => {
      const time = readDate(text);
      return time.ok && typeof time.value === 'string' ? translated(time.value.slice(0, -15)) : time;
    },
    toV1: writeDate,
  },
  /** v1: `date-desc`; v2: `publish_start_date:dsc`. */
  sort_order: { toV2: readSortOrder, toV1: writeSortOrder },
  relation: { toV2: (text) => translated({ id: text }), toV1: same },
  media_relation: { toV2: (text) => translated([{ id: text }]), toV1: same },
  same: { toV2: translated, toV1: same },
  /** v1: an object of protocol, address, path and query; v2: the URL. Only answers have it. */
  link: { toV2: translated, toV1: (value) => (typeof value === 'string' ? splitUrl(value) : value) },
} satisfies Readonly<Record<string, Codec>>;

export const PLAYLIST_TYPES = [
  'manual_playlist',
  'dynamic_playlist',
  'trending_playlist',
  'article_matching_playlist',
  'search_playlist',
  'recommendations_playlist',
] as const;

function readPlaylistType(text: string): Translated {
  const name = `${text.replace(/_playlist$/, '')}_playlist`;
  const known: readonly string[] = PLAYLIST_TYPES;
  if (known.includes(name)) return translated(name);
  return fault(`must be one of ${known.map((type) => type.replace(/_playlist$/, '')).join(', ')}`);
}

const SORT_FIELDS = [
  ['date', 'publish_start_date'],
  ['title', 'title'],
  ['duration', 'duration'],
  ['views', 'views'],
] as const;

function readSortOrder(text: string): Translated {
  const [, name, order] = /^(\w+)-(asc|desc)$/.exec(text) ?? [];
  const found = SORT_FIELDS.find(([v1]) => v1 === name)?.[1];
  if (found === undefined) return fault('must be one of date, title, duration, views, with -asc or -desc');
  return translated(`${found}:${order === 'asc' ? 'asc' : 'dsc'}`);
}

function writeSortOrder(value: Json): Json {
  const [name, order] = asText(value).split(':');
  const found = SORT_FIELDS.find(([, v2]) => v2 === name)?.[0];
  return found === undefined ? value : `${found}-${order === 'asc' ? 'asc' : 'desc'}`;
}

export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** The furthest second that a Date can hold. */
const LAST_SECOND = 8.64e12;

function readDate(text: string): Translated {
  if (text.trim() === '') return translated(null);
  const iso = /^[+-]?\d{1,13}$/.test(text.trim()) ? isoTime(Number(text)) : undefined;
  return iso === undefined ? fault('must be a UNIX time in seconds, as 1237387851') : translated(iso);
}

/** UNIX seconds as ISO 8601, in the form that v2 answers; undefined beyond the calendar. */
function isoTime(seconds: number): string | undefined {
  if (Math.abs(seconds) > LAST_SECOND) return undefined;
  return new Date(seconds * 1000).toISOString().replace(/\.000Z$/, '+00:00');
}

function writeDate(value: Json): Json {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? value : Math.floor(time / 1000);
}

export function splitUrl(text: string): Json {
  if (!URL.canParse(text)) return text;
  const { protocol, host, pathname, searchParams } = new URL(text);
  const query = Object.fromEntries(searchParams);
  return {
    protocol: protocol.replace(/:$/, ''),
    address: host,
    path: pathname,
    ...(Object.keys(query).length > 0 && { query }),
  };
}
