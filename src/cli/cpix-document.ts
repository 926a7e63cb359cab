import { type Checked, formatUuid, parseUuid } from '../drm/bytes';
import type { CpixDocument } from '../drm/cpix/document';
import { decodeXml, readCpix } from '../drm/cpix/read';
import { sentenceOf } from '../drm/finding';
import { partsOf } from '../drm/list-parts';
import { unusable } from './input';

/** Reads CPIX in any encoding of XML, with its text for a request. A problem follows the file's name. */
export function readDocument(
  bytes: Buffer,
): Checked<{ readonly document: CpixDocument; readonly text: string }> {
  const text = decodeXml(bytes);
  if (!text.ok) return text;
  const read = readCpix(text.value);
  if (!read.ok) return read;
  return { ok: true, value: { document: read.value, text: text.value.replace(/^\ufeff/, '') } };
}

/** The same. @throws CliError for a document that can't be used. */
export function requireDocument(bytes: Buffer, name: string) {
  const read = readDocument(bytes);
  if (!read.ok) throw unusable(sentenceOf(read.problem, name));
  return read.value;
}

/** The names of a list in one text: `widevine, playready`. */
export function namesOf(list: string): string[] {
  return partsOf(list.toLowerCase(), /[\s,;]+/);
}

/** A key id as a request takes it; people have it as 32 digits, too. Any other text stays: the sidecar refuses it. */
export function keyIdOf(text: string): string {
  const digits = text.trim().replace(/^urn:uuid:/i, '');
  const uuid = parseUuid(digits);
  if (uuid.ok) return formatUuid(uuid.value);
  return /^[0-9a-f]{32}$/i.test(digits) ? formatUuid(Buffer.from(digits, 'hex')) : text;
}
