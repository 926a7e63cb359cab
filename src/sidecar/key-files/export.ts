import { isUtf8 } from 'node:buffer';
import type * as z from 'zod';
import type { exportQuery } from '../../api/key-file-request';
import { etagOf } from '../../drm/bytes';
import type { ExportedKeys } from '../../drm/export/export-key-file';
import type { ExportName } from '../../drm/export/names';
import { apiError } from '../errors';

type ExportAnswer = Awaited<ReturnType<typeof answerOf>>;

/** As many as a large packager has streams, each of a few KiB. */
const MAX_EXPORTS = 1000;
const EXPORT_MS = 60_000;
/** Packagers that pull repeat their requests, and making an export takes twice as long as sending it. */
const lastExports = new Map<string, ExportAnswer>();

/** @throws HttpError 409 when no key file could be exported so. */
export async function requireForm({ as, scheme }: z.output<typeof exportQuery>): Promise<void> {
  const { notTaken, schemesOf } = await import('../../drm/export/export-key-file');
  if (scheme && !schemesOf(as).includes(scheme))
    throw apiError('keys_missing', `The key file ${notTaken(as, scheme)}.`);
}

/** Kept in memory for a minute at most: a file that is deleted leaves no key there. */
export async function exportKeyFile(
  bytes: Buffer,
  asked: z.output<typeof exportQuery>,
): Promise<ExportAnswer> {
  // By the content of the file, so that an export never outlives it.
  const name = `${etagOf(bytes)} ${asked.as} ${asked.scheme}`;
  const known = lastExports.get(name);
  if (known) return known;
  const answer = await exportLines(bytes, asked);
  const [oldest] = lastExports.keys();
  if (oldest !== undefined && lastExports.size >= MAX_EXPORTS) lastExports.delete(oldest);
  lastExports.set(name, answer);
  setTimeout(() => lastExports.delete(name), EXPORT_MS).unref();
  return answer;
}

/** @throws HttpError 409 when the key file does not have what the export needs. */
export async function exportLines(
  bytes: Buffer,
  { as, scheme }: z.output<typeof exportQuery>,
): Promise<ExportAnswer> {
  if (!isUtf8(bytes))
    throw apiError(
      'key_file_malformed',
      'The key file is not UTF-8, so it cannot be exported. Write it again.',
    );
  // Few sidecars export, and loading this code would make every start longer.
  const { exportKeyFile: exportText } = await import('../../drm/export/export-key-file');
  const exported = exportText(bytes.toString('utf8'), as, scheme);
  if (exported.ok) return await answerOf(exported, as);
  throw apiError(CODES[exported.problem.code], `The key file ${exported.problem.description}.`);
}

export async function answerOf({ text, keys, findings }: ExportedKeys, as: ExportName) {
  const { EXPORT_FORMS } = await import('../../drm/export/forms');
  const { mediaType, extension } = EXPORT_FORMS[as];
  const bytes = Buffer.from(text);
  return { keys, bytes, etag: etagOf(bytes), mediaType, extension, warnings: findings };
}

const CODES = {
  key_file_torn: 'key_file_malformed',
  key_file_foreign: 'key_file_malformed',
  key_file_incomplete: 'keys_missing',
  keys_missing: 'keys_missing',
} as const;
