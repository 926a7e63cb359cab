import { type Checked, refusedAs } from '../../drm/bytes';

/**
 * What is used of m3u8-parser: lines to segments, byte ranges that go on where the last one ended, init segments,
 * variants, variables. What it does with a few tags is not: of several EXT-X-KEY lines it keeps one, and that of FairPlay
 * next to the segments; it breaks on an IV that is none; it writes the names in EXT-X-MEDIA and EXT-X-DATERANGE into
 * objects with a prototype, which a hostile playlist changes for the whole program. So it is given the lines of LINES
 * alone; those of keys and renditions are read here.
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

interface ParsedManifest {
  readonly segments: readonly ParsedSegment[];
  readonly playlists?: readonly {
    readonly uri?: string;
    readonly attributes?: Readonly<Record<string, unknown>>;
  }[];
  readonly definitions?: Readonly<Record<string, string>>;
  readonly mediaSequence?: number;
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
  readonly byterange?: ByteRange;
  readonly map?: { readonly uri?: string; readonly byterange?: ByteRange };
  /** Milliseconds since 1970. */
  readonly programDateTime?: number;
  readonly custom?: { readonly keys?: unknown; readonly gap?: unknown };
}

const {
  Parser,
}: {
  readonly Parser: new (options: {
    readonly uri: string;
    readonly mainDefinitions: Readonly<Record<string, string>>;
  }) => PlaylistParser;
} = require('m3u8-parser');

const LINES =
  /^#EXT(?:M3U|INF:|-X-(?:TARGETDURATION|MEDIA-SEQUENCE|DISCONTINUITY|PLAYLIST-TYPE|BYTERANGE|MAP|STREAM-INF|ENDLIST|I-FRAMES-ONLY|DEFINE|PROGRAM-DATE-TIME)\b(?!-(?!SEQUENCE)))/;
/** It takes the square of their length for attributes; no line of such a tag has as much. */
const WITH_ATTRIBUTES = /^#EXT-X-(?:MAP|STREAM-INF|DEFINE):/;
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
  readonly mainDefinitions: Readonly<Record<string, string>>;
  readonly own: readonly OwnTag[];
}

/** Reads a playlist. Variables are put into lines of own tags, too. A fault goes on after the playlist's name. */
export function parsePlaylist(
  text: string,
  { uri, mainDefinitions, own }: ParseOptions,
): Checked<ParsedManifest> {
  const parser = new Parser({ uri, mainDefinitions });
  const problems: string[] = [];
  parser.on('error', ({ message }) => problems.push(message.slice(0, 200)));
  for (const { tag, name, read } of own) {
    parser.addParser({
      expression: new RegExp(`^${tag}`),
      customType: name ?? 'none',
      segment: name !== undefined,
      dataParser: (line) => read(withVariables(line, parser.manifest.definitions)),
    });
  }
  const lines = text.split(/\r?\n|\r/);
  if (lines.length > MAX_LINES) return unreadable(`has more than ${MAX_LINES} lines`);
  try {
    for (const [index, whole] of lines.entries()) {
      const line = whole.trim();
      const isOwn = own.some(({ tag }) => line.startsWith(tag));
      if (line === '' || (line.startsWith('#') && !isOwn && !LINES.test(line))) continue;
      const isLong = line.length > (isOwn ? 16 : 1) * MAX_LINE;
      if (isLong || (WITH_ATTRIBUTES.test(line) && line.split(',').length > MAX_ATTRIBUTES))
        return unreadable(`has a line ${index + 1} that is far longer than any of a playlist`);
      parser.push(`${line}\n`);
    }
    parser.end();
  } catch {
    return unreadable('has a line that is no line of a playlist; check it with a validator');
  }
  const [problem] = problems;
  if (problem !== undefined) return unreadable(`can't be read: ${problem}`);
  return { ok: true, value: parser.manifest };
}

function withVariables(line: string, definitions: Readonly<Record<string, string>> | undefined): string {
  if (!definitions || !line.includes('{$')) return line;
  return line.replaceAll(/\{\$([\w-]{1,100})\}/g, (whole, name: string) =>
    Object.hasOwn(definitions, name) ? (definitions[name] ?? whole) : whole,
  );
}
