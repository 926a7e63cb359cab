import { isUtf8 } from 'node:buffer';
import type * as z from 'zod';
import type { exportQuery } from '../../api/key-file-request';
import type { Finding } from '../../drm/finding';
import { etagOf } from '../../http/etag';
import { apiError } from '../errors';

/** A key file as another packager takes it. */
interface ExportAnswer {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly mediaType: string;
  readonly extension: string;
  readonly warnings: readonly Finding[];
}

/** Exports a key file. @throws HttpError 409 when it does not have what the export needs. */
export async function exportKeyFile(
  bytes: Buffer,
  { as, scheme }: z.output<typeof exportQuery>,
): Promise<ExportAnswer> {
  if (!isUtf8(bytes))
    throw apiError(
      'key_file_malformed',
      'The key file is not UTF-8, so that it cannot be exported. Write it again.',
    );
  // Few sidecars export, and what writes the forms would make the start of each longer.
  const { exportKeyFile: exportText } = await import('../../drm/export/export-key-file');
  const { EXPORT_FORMS } = await import('../../drm/export/forms');
  const exported = exportText(bytes.toString('utf8'), as, scheme);
  if (!exported.ok)
    throw apiError(CODES[exported.problem.code], `The key file ${exported.problem.description}.`);
  const { text, findings: warnings } = exported;
  const { mediaType, extension } = EXPORT_FORMS[as];
  const written = Buffer.from(text);
  return { bytes: written, etag: etagOf(written), mediaType, extension, warnings };
}

const CODES = {
  key_file_torn: 'key_file_malformed',
  key_file_foreign: 'key_file_malformed',
  key_file_incomplete: 'keys_missing',
  keys_missing: 'keys_missing',
} as const;
