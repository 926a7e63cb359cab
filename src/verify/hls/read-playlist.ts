import { type Checked, isJsonObject, refused } from '../../drm/bytes';
import { attributesOf } from '../../drm/check/playlist';
import type { Resource } from '../fetches';
import type { MediaKind } from '../media/judgement';
import type { KeyLine, SegmentSource, Segments } from '../rendition';
import { type OwnTag, parsePlaylist, type Variables } from './playlist-library';

/** A playlist that a multivariant playlist names: a variant, or a rendition of one. */
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
  /** Variables that media playlists may import. */
  readonly variables: Variables;
}

export interface MediaPlaylist {
  readonly type: 'media';
  readonly live: boolean;
  /** When its newest part began, by the time of day of the segments that are there. */
  readonly started: Date | undefined;
  readonly ended: Date | undefined;
  readonly segments: Segments;
  readonly targetSeconds: number;
}

interface PlaylistSource {
  readonly url: string;
  /** Of the multivariant playlist. */
  readonly imported?: Variables;
}

/** Reads an HLS playlist (RFC 8216, and 8216bis for variables and gaps). A fault goes on after its name. */
export function readPlaylist(
  text: string,
  { url, imported = new Map() }: PlaylistSource,
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
  const parsed = parsePlaylist(text.replace(/^\ufeff/, ''), { uri: url, imported, own });
  if (!parsed.ok) return parsed;
  if (inForce.isFull || sessionKeys.length > MAX_KEYS)
    return refused('manifest_too_large', `has more than ${MAX_KEYS} keys at once; no player needs that many`);
  const { manifest, variables } = parsed.value;
  const { playlists: variants = [], segments } = manifest;
  if (variants.length + renditions.length > 0) {
    const playlists = uniquePlaylists([
      ...variants.flatMap(({ uri, attributes = {} }) => (uri ? variantOf(uri, attributes, url) : [])),
      ...renditions.flatMap((attributes) => renditionOf(attributes, url)),
    ]);
    return { ok: true, value: { type: 'multivariant', playlists, sessionKeys, variables } };
  }
  return { ok: true, value: mediaPlaylistOf(manifest, segments, url) };
}

type Manifest = Extract<ReturnType<typeof parsePlaylist>, { ok: true }>['value']['manifest'];

function mediaPlaylistOf(manifest: Manifest, segments: Manifest['segments'], url: string): MediaPlaylist {
  const sequence = Math.min(Math.max(0, manifest.mediaSequence ?? 0), Number.MAX_SAFE_INTEGER);
  let keys: readonly KeyLine[] = [];
  const named = segments.flatMap((segment, index): SegmentSource[] => {
    const own = segment.custom?.keys;
    if (Array.isArray(own)) keys = own;
    if (segment.custom?.gap) return [];
    const init =
      segment.map?.uri === undefined ? undefined : resourceOf(segment.map.uri, url, segment.map.byterange);
    return [
      {
        ...resourceOf(segment.uri, url, segment.byterange),
        seconds: segment.duration,
        number: sequence + index,
        init,
        keys,
      },
    ];
  });
  // The time of day may have jumped between them, where the encoder was away.
  const newest = segments.at(-1);
  const ended = newest?.programDateTime;
  return {
    type: 'media',
    live: manifest.endList !== true,
    started: startOf(manifest, sequence),
    ended: ended === undefined ? undefined : new Date(ended + (newest?.duration ?? 0) * 1000),
    segments: { first: named[0], newest: named.slice(-3).reverse() },
    targetSeconds: manifest.targetDuration ?? 10,
  };
}

/** When the newest part began: at the last discontinuity, or so long before the first segment as those before it played. */
function startOf({ segments, discontinuitySequence = 0 }: Manifest, sequence: number): Date | undefined {
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
  return [{ url: absolute(uri, url), name, kind, codec: codecs }];
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
  return [{ url: absolute(uri, url), name, kind, codec: undefined }];
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

function absolute(address: string, base: string): string {
  return URL.canParse(address, base) ? new URL(address, base).href : address;
}

function resourceOf(
  address: string,
  base: string,
  range: { readonly offset?: number; readonly length: number } | undefined,
): Resource {
  const url = absolute(address, base);
  if (!range || !(range.length > 0)) return { url };
  const first = range.offset ?? 0;
  return { url, range: { first, last: first + range.length - 1 } };
}
