import { isUtf8 } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';
import { beginsAsManifest, type ForwardReader, ManifestOutline, outlineMedia } from '../drm/check/outline';
import { looksLikeSegment } from '../drm/check/segment';
import { withHead } from './check-reader';
import { isEightBitText, isUtf16Words, unusable } from './text-input';

/** What an input holds, for `check`: its text, or its bytes. */
export interface Content {
  readonly value: string | Buffer;
  /** Whether nothing of it was left out that could matter. */
  readonly isWhole: boolean;
}

/** As much is checked as it stands; of what is longer, what says something of its protection. */
const MAX_WHOLE = 1024 * 1024;
const PIECE = 64 * 1024;

/** Reads an input, which `name` names for the user. @throws CliError when it can't be checked. */
export async function readContent(reader: ForwardReader, name: string): Promise<Content> {
  const head = await reader.read(MAX_WHOLE + 1);
  if (head.length <= MAX_WHOLE) return { value: contentOf(head, name), isWhole: true };
  if (looksLikeSegment(head)) {
    const { bytes, isWhole } = await outlineMedia(withHead(head, reader));
    return { value: bytes, isWhole };
  }
  if (!beginsAsManifest(head.toString('utf8', 0, 200)))
    throw unusable(`${name} is larger than 1 MiB, and neither media nor a manifest or playlist.`);
  const value = await outlineManifest(withHead(head, reader));
  if (value === undefined)
    throw unusable(`${name} has more than 1 MiB beside its segments; check a part of it, which names keys.`);
  return { value, isWhole: true };
}

/** Without its segments; undefined where even that is too long. */
async function outlineManifest(reader: ForwardReader): Promise<string | undefined> {
  const decoder = new StringDecoder('utf8');
  const outline = new ManifestOutline(MAX_WHOLE);
  for (;;) {
    const piece = await reader.read(PIECE);
    outline.add(decoder.write(piece));
    if (piece.length < PIECE) {
      const kept = outline.end();
      return outline.isTooLong ? undefined : kept;
    }
    if (outline.isTooLong) return undefined;
  }
}

function contentOf(bytes: Buffer, name: string): string | Buffer {
  if (/\.key$/i.test(name)) return bytes.toString('utf8');
  if (isUtf8(bytes) && !bytes.includes(0)) return bytes.toString('utf8');
  if (isUtf16Words(bytes)) throw unusable(`${name} is UTF-16; save it as UTF-8.`);
  // Text of another encoding is told to be that; a box or an object may lie in a file as it is.
  return isEightBitText(bytes) ? bytes.toString('utf8') : bytes;
}
