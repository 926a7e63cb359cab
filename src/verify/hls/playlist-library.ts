import { type Checked, refused, refusedAs } from '../../drm/bytes';
import { attributesOf } from '../../drm/check/playlist';

/**
 * What is used of m3u8-parser: lines to segments, byte ranges that go on where the last one ended, init segments,
 * variants. What it does with a few tags is not: of several EXT-X-KEY lines it keeps one, and that of FairPlay next to
 * the segments; it breaks on an IV that is none; it writes the names in EXT-X-MEDIA and EXT-X-DATERANGE into objects with
 * a prototype, which a hostile playlist changes for the whole program; it looks for every variable in every line. So it
 * is given the lines of LINES alone; those of keys and renditions are read here, and so are variables.
 */
interface PlaylistParser {
  readonly manifest: ParsedManifest;
  on(event: 'error', listener: (problem: { readonly message: string }) => void): void;
  addParser(options: {
    readonly expression: RegExp;
    readonly customType: string;
    readonly dataParser: (line: string) => unknown;
    readonly segment?: boolean;
  }): void;
  push(text: string): void;
  end(): void;
}

interface ParsedPlaylist {
  readonly manifest: ParsedManifest;
  readonly variables: Variables;
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

/** Byte ranges are of `length` bytes from `offset`. */
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

const {
  Parser,
}: {
  readonly Parser: new (options: { readonly uri: string }) => PlaylistParser;
} = require('m3u8-parser');

const LINES =
  /^#EXT(?:M3U|INF:|-X-(?:TARGETDURATION|MEDIA-SEQUENCE|DISCONTINUITY|PLAYLIST-TYPE|BYTERANGE|MAP|STREAM-INF|ENDLIST|I-FRAMES-ONLY|PROGRAM-DATE-TIME)\b(?!-(?!SEQUENCE)))/;
/** It takes the square of their length for attributes; no line of such a tag has as much. */
const WITH_ATTRIBUTES = /^#EXT-X-(?:MAP|STREAM-INF):/;
const MAX_ATTRIBUTES = 100;
const MAX_LINE = 8 * 1024;
const MAX_LINES = 400_000;

/** A tag that the library does not read, and what is to be made of its lines. */
export interface OwnTag {
  /** With the `:` where it has one, as `#EXT-X-KEY:`. */
  readonly tag: string;
  /** What is answered stands at the next segment as `custom`, if it has a name there. */
  readonly name?: 'keys' | 'gap';
  readonly read: (line: string) => unknown;
}

const unreadable = refusedAs('manifest_unreadable');

interface ParseOptions {
  readonly uri: string;
  /** Those of the multivariant playlist. */
  readonly imported: Variables;
  readonly own: readonly OwnTag[];
}

/** Reads a playlist, its variables replaced by their values. A fault goes on after the playlist's name. */
export function parsePlaylist(text: string, { uri, imported, own }: ParseOptions): Checked<ParsedPlaylist> {
  const parser = new Parser({ uri });
  const variables = new Map<string, string>();
  const problems: string[] = [];
  parser.on('error', ({ message }) => problems.push(message.slice(0, 200)));
  for (const { tag, name, read } of own) {
    parser.addParser({
      expression: new RegExp(`^${tag}`),
      customType: name ?? 'none',
      segment: name !== undefined,
      dataParser: read,
    });
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
      if (!isDefinition) {
        parser.push(`${line}\n`);
        continue;
      }
      const [name, value] = definitionIn(line, uri, imported) ?? [];
      if (name === undefined || value === undefined || variables.has(name))
        return unreadable(
          `has an EXT-X-DEFINE in line ${index + 1} without a name of its own or without a value`,
        );
      variables.set(name, value);
      if (variables.size > MAX_VARIABLES)
        return refused(
          'manifest_too_large',
          `has more than ${MAX_VARIABLES} variables; no playlist needs that many`,
        );
    }
    parser.end();
  } catch {
    return unreadable('has a line that is not valid in a playlist; check it with a validator');
  }
  const [problem] = problems;
  if (problem !== undefined) return unreadable(`can't be read: ${problem}`);
  return { ok: true, value: { manifest: parser.manifest, variables } };
}

const DEFINE = '#EXT-X-DEFINE:';
const MAX_VARIABLES = 1000;

/** Values by the names of variables (RFC 8216bis § 4.4.2.3). */
export type Variables = ReadonlyMap<string, string>;

/** The value that an EXT-X-DEFINE gives its variable, and its name; undefined if it gives none. */
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
