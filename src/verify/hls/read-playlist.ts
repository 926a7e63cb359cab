import { type Checked, isJsonObject, refused, refusedAs } from '../../drm/bytes';
import { attributesOf } from '../../drm/check/playlist';
import { absoluteAddress, type Resource } from '../fetches';
import type { MediaKind } from '../media/judgement';
import type { KeyLine, SegmentSource, Segments } from '../rendition';

export interface NamedPlaylist {
  readonly url: string;
  readonly name: string;
  readonly kind: MediaKind;
  readonly codec: string | undefined;
}

interface MultivariantPlaylist {
  readonly type: 'multivariant';
  readonly playlists: readonly NamedPlaylist[];
  readonly sessionKeys: readonly KeyLine[];
  readonly variables: Variables;
}

export type MediaPlaylist = ReturnType<typeof mediaPlaylistOf>;

/** By RFC 8216, variables and gaps by 8216bis. `imported`: the multivariant playlist's. A fault continues its name. */
export function readPlaylist(
  text: string,
  url: string,
  imported: Variables = new Map(),
): Checked<MultivariantPlaylist | MediaPlaylist> {
  if (!/^\ufeff?#EXTM3U\b/.test(text))
    return refused('not_a_manifest', 'does not begin with #EXTM3U, as every playlist must');
  const sessionKeys: KeyLine[] = [];
  const renditions: ReadonlyMap<string, string>[] = [];
  const inForce = new KeysInForce();
  const own: OwnTag[] = [
    { tag: '#EXT-X-KEY:', name: 'keys', read: (line) => inForce.add(keyLineOf(line, url)) },
    { tag: '#EXT-X-SESSION-KEY:', read: (line) => sessionKeys.push(keyLineOf(line, url)) },
    { tag: '#EXT-X-MEDIA:', read: (line) => renditions.push(attributesOf(line)) },
    { tag: '#EXT-X-GAP', name: 'gap', read: () => true },
  ];
  const parsed = parsePlaylist(text.replace(/^\ufeff/, ''), url, imported, own);
  if (!parsed.ok) return parsed;
  if (inForce.isFull || sessionKeys.length > MAX_KEYS)
    return tooLarge(`has more than ${MAX_KEYS} keys at once; no player needs that many`);
  const { manifest, variables } = parsed.value;
  const { playlists: variants = [] } = manifest;
  if (variants.length + renditions.length > 0) {
    const playlists = uniquePlaylists([
      ...variants.flatMap(({ uri, attributes = {} }) => (uri ? variantOf(uri, attributes, url) : [])),
      ...renditions.flatMap((attributes) => renditionOf(attributes, url)),
    ]);
    return { ok: true, value: { type: 'multivariant', playlists, sessionKeys, variables } };
  }
  if (manifest.iFramesOnly)
    return refused(
      'not_a_media_playlist',
      'is an I-frame playlist, which names parts of segments for seeking; give the multivariant playlist, or a media playlist',
    );
  return { ok: true, value: mediaPlaylistOf(manifest, url) };
}

function mediaPlaylistOf(manifest: ParsedManifest, url: string) {
  const { segments } = manifest;
  const sequence = Math.min(Math.max(0, manifest.mediaSequence ?? 0), Number.MAX_SAFE_INTEGER);
  let keys: readonly KeyLine[] = [];
  const named = segments.flatMap((segment, index): SegmentSource[] => {
    const own = segment.custom?.keys;
    if (Array.isArray(own)) keys = own;
    if (segment.custom?.gap) return [];
    const { map, duration: seconds } = segment;
    const init = map?.uri === undefined ? undefined : resourceOf(map.uri, url, map.byterange);
    const resource = resourceOf(segment.uri, url, segment.byterange);
    return [{ ...resource, seconds, number: sequence + index, init, keys }];
  });
  const last = named.findLastIndex(({ keys: own = [] }) => own.length > 0);
  const hasClearEnd = manifest.endList === true && last >= 0 && last < named.length - 1;
  const tested = hasClearEnd ? named.slice(0, last + 1) : named;
  // The time of day may have jumped between them, where the encoder was away.
  const newest = segments.at(-1);
  const ended = newest?.programDateTime;
  return {
    type: 'media' as const,
    live: manifest.endList !== true,
    /** When the newest part began, by the time of day of the segments that are there. */
    started: startOf(manifest, sequence),
    ended: ended === undefined ? undefined : new Date(ended + (newest?.duration ?? 0) * 1000),
    segments: { first: named[0], newest: tested.slice(-3).reverse(), hasClearEnd } satisfies Segments,
    targetSeconds: manifest.targetDuration ?? 10,
  };
}

/** When the newest part began: at the last discontinuity, or before the first segment by the time that those before it played. */
function startOf(
  { segments, discontinuitySequence = 0 }: ParsedManifest,
  sequence: number,
): Date | undefined {
  const newest = segments.findLast(({ discontinuity }) => discontinuity);
  // The last discontinuity may be one that the playlist no longer has.
  if (!newest && discontinuitySequence > 0) return undefined;
  const begun = (newest ?? segments[0])?.programDateTime;
  if (begun === undefined) return undefined;
  const seconds = segments.reduce((sum, { duration = 0 }) => sum + duration, 0);
  const before = newest ? 0 : (sequence * seconds) / segments.length;
  return new Date(begun - before * 1000);
}

/** Of different key formats for one segment, or of a session. */
const MAX_KEYS = 1000;

/** The key lines that hold for the next segment: one for each key format, until NONE. */
class KeysInForce {
  #keys: readonly KeyLine[] = [];
  isFull = false;

  add(key: KeyLine): readonly KeyLine[] {
    this.isFull ||= this.#keys.length >= MAX_KEYS;
    if (this.isFull) return this.#keys;
    const others = this.#keys.filter(({ format }) => format !== key.format);
    this.#keys = key.method === 'NONE' ? [] : [...others, key];
    return this.#keys;
  }
}

function keyLineOf(line: string, base: string): KeyLine {
  const attributes = attributesOf(line);
  const digits = /^0x([0-9a-f]{1,32})$/i.exec(attributes.get('IV') ?? '')?.[1];
  return {
    line,
    method: attributes.get('METHOD') ?? '',
    format: attributes.get('KEYFORMAT') ?? 'identity',
    uri: attributes.get('URI'),
    base,
    iv: digits === undefined ? undefined : Buffer.from(digits.padStart(32, '0'), 'hex'),
  };
}

function variantOf(uri: string, attributes: Readonly<Record<string, unknown>>, url: string): NamedPlaylist[] {
  const codecs = typeof attributes.CODECS === 'string' ? attributes.CODECS : undefined;
  const { RESOLUTION: size, BANDWIDTH: bandwidth } = attributes;
  const { width, height } = isJsonObject(size) ? size : {};
  const kind = codecs?.split(',').every((codec) => AUDIO.test(codec.trim())) ? 'audio' : 'video';
  const parts = [
    kind,
    width && height ? `${width}x${height}` : undefined,
    typeof bandwidth === 'number' && bandwidth > 0 ? `${Math.round(bandwidth / 1000)} kb/s` : undefined,
  ];
  const name = parts.filter((part) => part !== undefined).join(' ');
  return [{ url: absoluteAddress(uri, url), name, kind, codec: codecs }];
}

const AUDIO = /^(?:mp4a|ac-3|ec-3|ac-4|opus|flac|alac|mp3)\b/i;
const KINDS: Readonly<Record<string, MediaKind>> = { AUDIO: 'audio', VIDEO: 'video', SUBTITLES: 'text' };

function renditionOf(attributes: ReadonlyMap<string, string>, url: string): NamedPlaylist[] {
  const uri = attributes.get('URI');
  const type = attributes.get('TYPE') ?? '';
  const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;
  // Without an address it is in the variant's own segments; captions always are.
  if (uri === undefined || kind === undefined) return [];
  const parts = [kind, attributes.get('LANGUAGE') ?? attributes.get('NAME'), attributes.get('GROUP-ID')];
  const name = [...new Set(parts.filter((part) => part !== undefined))].join(' ').slice(0, 80);
  return [{ url: absoluteAddress(uri, url), name, kind, codec: undefined }];
}

/** Variants that differ in their sound name one playlist several times. */
function uniquePlaylists(all: readonly NamedPlaylist[]): NamedPlaylist[] {
  const found = new Map<string, NamedPlaylist>();
  const names = new Map<string, number>();
  for (const playlist of all) {
    if (found.has(playlist.url)) continue;
    const before = names.get(playlist.name) ?? 0;
    names.set(playlist.name, before + 1);
    const name = before === 0 ? playlist.name : `${playlist.name} (${before + 1})`;
    found.set(playlist.url, { ...playlist, name });
  }
  return [...found.values()];
}

function resourceOf(address: string, base: string, range: ByteRange | undefined): Resource {
  const url = absoluteAddress(address, base);
  if (!range || !(range.length > 0)) return { url };
  const first = range.offset ?? 0;
  return { url, range: { first, last: first + range.length - 1 } };
}

/**
 * The used part of m3u8-parser, which gets the lines of LINES alone: of several EXT-X-KEY lines it keeps one,
 * and it breaks on an IV that is none; a hostile EXT-X-MEDIA or EXT-X-DATERANGE changes a prototype for the
 * whole program; it looks for every variable in every line. Those lines are read here.
 */
interface PlaylistParser {
  readonly manifest: ParsedManifest;
  addParser(options: {
    readonly expression: RegExp;
    readonly customType: string;
    readonly dataParser: (line: string) => unknown;
    readonly segment?: boolean;
  }): void;
  push(text: string): void;
  end(): void;
}

interface ParsedManifest {
  readonly segments: readonly ParsedSegment[];
  readonly playlists?: readonly {
    readonly uri?: string;
    readonly attributes?: Readonly<Record<string, unknown>>;
  }[];
  readonly mediaSequence?: number;
  readonly discontinuitySequence?: number;
  readonly targetDuration?: number;
  readonly endList?: boolean;
  readonly iFramesOnly?: boolean;
}

interface ByteRange {
  readonly offset?: number;
  readonly length: number;
}

interface ParsedSegment {
  readonly uri: string;
  readonly duration?: number;
  readonly discontinuity?: boolean;
  readonly byterange?: ByteRange;
  readonly map?: { readonly uri?: string; readonly byterange?: ByteRange };
  /** Milliseconds since 1970. */
  readonly programDateTime?: number;
  readonly custom?: { readonly keys?: unknown; readonly gap?: unknown };
}

const library: { readonly Parser: new (options: { uri: string }) => PlaylistParser } = require('m3u8-parser');

const LINES =
  /^#EXT(?:M3U|INF:|-X-(?:TARGETDURATION|MEDIA-SEQUENCE|DISCONTINUITY|PLAYLIST-TYPE|BYTERANGE|MAP|STREAM-INF|ENDLIST|I-FRAMES-ONLY|PROGRAM-DATE-TIME)\b(?!-(?!SEQUENCE)))/;
/** It takes the square of their length for attributes; no line of such a tag has as much. */
const WITH_ATTRIBUTES = /^#EXT-X-(?:MAP|STREAM-INF):/;
const MAX_ATTRIBUTES = 100;
const WITH_RANGE = /^#EXT-X-(?:BYTERANGE:?|MAP:.*\bBYTERANGE=)"?([^",]*)/;
const BYTE_RANGE = /^\s*[1-9]\d{0,14}(?:@\d{1,15})?\s*$/;
const MAX_LINE = 8 * 1024;
const MAX_LINES = 400_000;

interface OwnTag {
  /** With the `:` where it has one, as `#EXT-X-KEY:`. */
  readonly tag: string;
  /** The result is in `custom` of the next segment under this name. */
  readonly name?: 'keys' | 'gap';
  readonly read: (line: string) => unknown;
}

const unreadable = refusedAs('manifest_unreadable');
const tooLarge = refusedAs('manifest_too_large');

function parsePlaylist(
  text: string,
  uri: string,
  imported: Variables,
  own: readonly OwnTag[],
): Checked<{ manifest: ParsedManifest; variables: Variables }> {
  const parser = new library.Parser({ uri });
  const variables = new Map<string, string>();
  for (const { tag, name, read } of own) {
    const at = { customType: name ?? 'none', segment: name !== undefined };
    parser.addParser({ expression: new RegExp(`^${tag}`), dataParser: read, ...at });
  }
  const lines = text.split(/\r?\n|\r/);
  if (lines.length > MAX_LINES) return unreadable(`has more than ${MAX_LINES} lines`);
  try {
    for (const [index, whole] of lines.entries()) {
      const written = whole.trim();
      const isOwn = own.some(({ tag }) => written.startsWith(tag));
      const isDefinition = written.startsWith(DEFINE);
      if (written === '' || (written.startsWith('#') && !isOwn && !isDefinition && !LINES.test(written)))
        continue;
      const line = withVariables(written, variables, (isOwn ? 16 : 1) * MAX_LINE);
      if (line === undefined || (WITH_ATTRIBUTES.test(line) && line.split(',').length > MAX_ATTRIBUTES))
        return unreadable(`has a line ${index + 1} that is too long for a playlist`);
      // The library would read the tag that a value puts in place of an address or into a further line.
      if (/[\r\n]/.test(line) || line.trim().startsWith('#') !== written.startsWith('#'))
        return unreadable(`has a line ${index + 1} that its variables make a tag or more than one line`);
      const [, range = '1'] = WITH_RANGE.exec(line) ?? [];
      if (!BYTE_RANGE.test(range))
        return unreadable(`has a line ${index + 1} whose byte range is not <length>@<start> in digits`);
      if (!isDefinition) {
        parser.push(`${line}\n`);
        continue;
      }
      const [name, value] = definitionIn(line, uri, imported) ?? [];
      if (name === undefined || value === undefined || variables.has(name))
        return unreadable(`has an EXT-X-DEFINE in line ${index + 1} without a new name or without a value`);
      variables.set(name, value);
      if (variables.size > MAX_VARIABLES) return tooLarge(`has more than ${MAX_VARIABLES} variables`);
    }
    parser.end();
  } catch {
    return unreadable('has a line that is not valid in a playlist; check it with a validator');
  }
  return { ok: true, value: { manifest: parser.manifest, variables } };
}

const DEFINE = '#EXT-X-DEFINE:';
const MAX_VARIABLES = 1000;

/** Values by the names of variables (RFC 8216bis § 4.4.2.3). */
type Variables = ReadonlyMap<string, string>;

function definitionIn(line: string, uri: string, imported: Variables): [string, string] | undefined {
  const attributes = attributesOf(line);
  const [query, other] = [attributes.get('QUERYPARAM'), attributes.get('IMPORT')];
  const ofAddress = query !== undefined && URL.canParse(uri) ? new URL(uri).searchParams.get(query) : null;
  const name = attributes.get('NAME') ?? query ?? other;
  const value = ofAddress ?? (other === undefined ? attributes.get('VALUE') : imported.get(other));
  return name === undefined || value === undefined ? undefined : [name, value];
}

/** Puts values in place of variables; undefined if the line gets more than `most` characters. */
function withVariables(line: string, variables: Variables, most: number): string | undefined {
  let { length } = line;
  if (variables.size === 0 || length > most || !line.includes('{$')) return length > most ? undefined : line;
  const replaced = line.replaceAll(/\{\$([\w-]{1,100})\}/g, (whole, name: string) => {
    const value = variables.get(name) ?? whole;
    length += value.length - whole.length;
    return length > most ? '' : value;
  });
  return length > most ? undefined : replaced;
}
