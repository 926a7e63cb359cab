import { type Checked, formatUuid, parseUuid } from '../drm/bytes';
import { decodeXml, readCpix } from '../drm/cpix/read';

/**
 * The text of a CPIX document, as a request takes it, from a file in any encoding of XML. A document that can't be
 * used is refused before it is sent; the problem follows the name of the file.
 */
export function readDocumentText(bytes: Buffer): Checked<string> {
  const text = decodeXml(bytes);
  if (!text.ok) return text;
  const read = readCpix(text.value);
  return read.ok ? { ok: true, value: text.value.replace(/^\ufeff/, '') } : read;
}

/** The names of a list in one text: `widevine, playready`. */
export function namesOf(list: string): string[] {
  return list
    .split(/[\s,;]+/)
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '');
}

/** A key id as a request takes it; people have it as 32 digits, too. Any other text stays: the sidecar refuses it. */
export function keyIdOf(text: string): string {
  const digits = text.trim().replace(/^urn:uuid:/i, '');
  const uuid = parseUuid(digits);
  if (uuid.ok) return formatUuid(uuid.value);
  return /^[0-9a-f]{32}$/i.test(digits) ? formatUuid(Buffer.from(digits, 'hex')) : text;
}
